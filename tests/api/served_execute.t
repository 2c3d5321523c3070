#!/usr/bin/python3
"""POST /v1/execute, its stream and /v1/files over HTTP on real cells."""

import json
import time

from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def detail(answer):
    return answer.status, answer.json["detail"]


def upload(name, data, field="file"):
    """POST /v1/files; the Answer."""
    head = ('--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"'
            '\r\n\r\n' % (field, name)).encode()
    return served.request(
        "POST", "/v1/files", head + data + b"\r\n--b--\r\n",
        {"Content-Type": "multipart/form-data; boundary=b"})


def events(link):
    """The frames of a stream, as (seconds, name, data)."""
    started = time.monotonic()
    name = None
    for line in link:
        line = line.rstrip(b"\n")
        if line.startswith(b"event: "):
            name = line[7:].decode()
        elif line.startswith(b"data: "):
            yield time.monotonic() - started, name, json.loads(line[6:])


def stream(code, **fields):
    link = served.connect()
    link.request("POST", "/v1/execute/stream",
                 json.dumps({"code": code, **fields}),
                 {"Content-Type": "application/json"})
    return link, link.getresponse()


def leased():
    return served.get("/health").json["inline"]["cells"]["leased"]


# ---- execute ----

@test
def the_answer_has_the_contracts_fields():
    answer = served.post("/v1/execute", {"code": "print('é')\n1 + 1"})
    assert answer.status == 200, answer
    fields = answer.json
    assert list(fields) == ["stdout", "stderr", "exit_code", "timed_out",
                            "duration_ms", "files"], fields
    assert fields["stdout"] == "é\n2\n" and fields["stderr"] == "", fields
    assert fields["exit_code"] == 0 and fields["timed_out"] is False, fields
    assert answer.text.startswith('{"stdout":"é\\n2\\n","stderr":'), answer


@test
def names_of_the_user_are_free():
    fields = served.execute("tree = 5; ast = compile = exec = 1; y = 1; y")
    assert fields["stdout"] == "1\n" and fields["exit_code"] == 0, fields


@test
def a_failure_is_on_stderr():
    fields = served.execute("x = 1\n1/0")
    assert fields["exit_code"] == 1 and fields["stdout"] == "", fields
    assert 'File "<stdin>", line 2, in <module>' in fields["stderr"], fields
    fields = served.execute("1/0", last_line_interactive=False)
    assert 'File "/workspace/__main__.py", line 1' in fields["stderr"], fields
    assert served.execute("raise SystemExit(3)")["exit_code"] == 3
    fields = served.execute("print(__name__, __file__, __import__('os').getcwd()"
                            ", __import__('sys').argv)")
    assert fields["stdout"] == ("__main__ /workspace/__main__.py /workspace "
                                "['/workspace/__main__.py']\n"), fields


@test
def time_limit():
    fields = served.execute("print('a', flush=True)\nopen('f', 'w').write('1')"
                            "\nwhile True: pass", timeout_ms=500)
    assert fields["timed_out"] and fields["exit_code"] is None, fields
    assert fields["stdout"] == "a\n" and len(fields["files"]) == 1, fields


@test
def output_is_cut_with_a_mark():
    fields = served.execute("print('x' * 1_000_001, end='')")
    assert fields["stdout"] == "x" * 999_968 + "\n...[truncated]", \
        len(fields["stdout"])
    fields = served.execute("_ = print('x' * 1_000_000, end='')")
    assert fields["stdout"] == "x" * 1_000_000, len(fields["stdout"])


@test
def stdin():
    assert served.execute("input()", stdin="x\n")["stdout"] == "'x'\n"
    assert "EOFError" in served.execute("input()")["stderr"]


@test
def refusals():
    for body, status, want in (
            ({"code": "1", "timeout_ms": 60001}, 422,
             "timeout_ms exceeds maximum of 60000 ms"),
            (b"\xff", 400, "There was an error parsing the body"),
            ({"code": "1", "files": [{"path": "/x", "file_id": UNKNOWN}]}, 404,
             "File with ID '%s' not found for path '/x'." % UNKNOWN),
            ({"code": "1", "files": [{"path": "p", "file_id": "/etc/passwd"}]},
             404, "File with ID '/etc/passwd' not found for path 'p'."),
            ({}, 422, [{"type": "missing", "loc": ["body", "code"],
                        "msg": "Field required", "input": {}}]),
            (b"null", 422, [{"type": "missing", "loc": ["body"],
                             "msg": "Field required", "input": None}])):
        for path in ("/v1/execute", "/v1/execute/stream"):
            answer = served.post(path, body)
            assert detail(answer) == (status, want), answer


@test
def paths():
    known = upload("a", b"x").json["file_id"]
    for path, want in (
            ("/x", "File paths must be relative."),
            ("a/../b", "File paths must not contain '..'."),
            ("", "File path must not be empty."),
            ("__main__.py", "File path '__main__.py' is reserved for the "
             "execution entrypoint.")):
        body = {"code": "1", "files": [{"path": path, "file_id": known}]}
        answer = served.post("/v1/execute", body)
        assert detail(answer) == (422, want), answer
        answer = served.post("/v1/execute/stream", body)
        assert (answer.status, answer.text) == (
            200, "event: error\ndata: %s\n\n" % json.dumps(
                {"message": want}, separators=(",", ":"))), answer


@test
def routes():
    for path, allow in (("/v1/execute", "POST"), ("/v1/files", "POST, GET"),
                        ("/v1/files/x", "GET, DELETE")):
        answer = served.request("HEAD", path)
        assert answer.status == 405, answer
        assert answer.headers["Allow"] == allow, answer.headers
    answer = served.get("/v1/nothing")
    assert answer.text == '{"detail":"Not Found"}', answer


# ---- files ----

@test
def a_file_goes_up_and_down():
    data = bytes(range(256)) * 1000
    name = 'é"\u202e✓.bin'
    answer = upload(name.replace('"', "%22"), data)
    assert answer.status == 201, answer
    assert answer.json["size_bytes"] == len(data), answer
    file_id = answer.json["file_id"]
    listed = [f for f in served.get("/v1/files").json["files"]
              if f["file_id"] == file_id]
    assert listed[0]["filename"] == answer.json["filename"], listed
    assert abs(listed[0]["upload_time"] - time.time()) < 60, listed
    answer = served.get("/v1/files/" + file_id)
    assert (answer.status, answer.body) == (200, data), answer
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith(
        "attachment; filename="), answer.headers
    answer = served.request("DELETE", "/v1/files/" + file_id)
    assert (answer.status, answer.body) == (204, b""), answer
    for method in ("GET", "DELETE"):
        answer = served.request(method, "/v1/files/" + file_id)
        assert detail(answer) == (
            404, "File with ID '%s' not found" % file_id), answer


@test
def bad_ids():
    for bad in ("x", UNKNOWN.upper(), UNKNOWN + ".meta", "..%2f..%2fx"):
        assert served.get("/v1/files/" + bad).status == 404, bad


@test
def bad_uploads():
    answer = upload("a", b"x", field="other")
    assert detail(answer) == (422, [{
        "type": "missing", "loc": ["body", "file"], "msg": "Field required",
        "input": None}]), answer
    answer = served.request("POST", "/v1/files", b"x",
                            {"Content-Type": "multipart/form-data"})
    assert detail(answer) == (400, "Missing boundary in multipart."), answer


@test
def an_upload_may_have_100_mb():
    answer = upload("big", bytes(100 << 20))
    assert answer.status == 201, answer
    assert served.request("DELETE", "/v1/files/" +
                          answer.json["file_id"]).status == 204
    for more in (1, 1 << 20, 40 << 20):
        answer = upload("big", bytes((100 << 20) + more))
        assert detail(answer) == (
            413, "File size exceeds maximum of 100 MB"), (more, answer)


@test
def files_go_in_and_come_out():
    file_id = upload("a", b"abc").json["file_id"]
    fields = served.execute(
        "import os; os.makedirs('d', 0o700); open('d/.env', 'w').write("
        "open('in/x').read() * 2); open('__main__.py.txt', 'w').write('1')",
        files=[{"path": "./in//x", "file_id": file_id}])
    made = {f["path"]: f for f in fields["files"]}
    assert set(made) == {"d/.env", "__main__.py.txt"}, fields
    assert made["d/.env"]["kind"] == "file", fields
    answer = served.get("/v1/files/" + made["d/.env"]["file_id"])
    assert answer.body == b"abcabc", answer
    assert 'filename=".env"' in answer.headers["Content-Disposition"], \
        answer.headers["Content-Disposition"]


# ---- the stream ----

@test
def a_stream_is_live():
    link, response = stream("import time; print('a'); time.sleep(1); "
                            "print('\\u2028é')\n7")
    assert response.status == 200
    assert response.headers["Content-Type"] == \
        "text/event-stream; charset=utf-8", response.headers
    assert response.headers["Cache-Control"] == "no-cache"
    seen = list(events(response))
    link.close()
    names = [name for _, name, _ in seen]
    assert names[-1] == "result" and set(names[:-1]) == {"output"}, seen
    text = "".join(data["data"] for _, name, data in seen if name == "output")
    assert text == "a\n\u2028é\n7\n", seen
    assert seen[-1][0] - seen[0][0] > 0.7, "not live: %r" % seen
    assert list(seen[-1][2]) == ["exit_code", "timed_out", "duration_ms",
                                 "files"], seen[-1]


@test
def no_output_is_only_a_result():
    link, response = stream("x = 1")
    assert [name for _, name, _ in events(response)] == ["result"]
    link.close()


@test
def whoever_hangs_up_ends_the_run():
    link, response = stream("import time; print(1); time.sleep(50)",
                            timeout_ms=60000)
    assert next(events(response))[2]["data"].startswith("1")
    assert leased() == 1
    response.close()
    link.close()
    started = time.monotonic()
    wait_for(lambda: not leased())
    assert time.monotonic() - started < 1


try:
    run()
finally:
    served.close()
