#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Piston's contract over HTTP: each row of its tables of answers."""

import base64
import json
import os
import subprocess
import tempfile

from served import JSON, NOT_FOUND, NO_TOKENS, OTHER_SITE, Served, wait_for
from service import BUILD
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
FILES = [{"content": "print(1)"}]
KEYS = ["signal", "stdout", "stderr", "code", "output", "memory", "message",
        "status", "cpu_time", "wall_time"]


def post(body, path="/api/v2/execute", **headers):
    return served.post(path, body, headers)


def execute(code, **more):
    answer = post({"language": "python", "version": "*",
                   "files": [{"content": code}], **more})
    assert answer.status == 200, answer
    assert list(answer.json["run"]) == KEYS, answer
    return answer.json["run"]


def refused(status, message, body):
    answer = post(body)
    got = answer.status, answer.text, answer.headers["Content-Type"]
    want = json.dumps({"message": message}, ensure_ascii=False,
                      separators=(",", ":"))
    assert got == (status, want, "application/json"), (body, got)


def pick(got, *names):
    return tuple(got[name] for name in names)


@test
def an_answer_has_the_keys_of_the_contract():
    answer = post({"language": "py", "version": "3", "files": FILES,
                   "log": 0})
    assert list(answer.json) == ["run", "language", "version"], answer
    assert answer.headers["Content-Type"] == "application/json", answer
    got = answer.json["run"]
    assert list(got) == KEYS, got
    assert pick(got, *KEYS[:5], "message", "status") == (
        None, "1\n", "", 0, "1\n", None, None), got
    assert got["memory"] > 1 << 20 and got["wall_time"] >= 0, got
    assert answer.json["language"] == "python", answer
    assert answer.json["version"].count(".") == 2, answer


@test
def an_interpreter_that_cannot_start_holds_up_no_other():
    images = os.environ["SANDBOX_IMAGE"]
    with Served(IL_API_CELLS="1", SANDBOX_IMAGES=(
            "3.99=inline-test:none,3.11=" + images)) as some:
        runtimes = some.get("/api/v2/runtimes").json
        assert [r["language"] for r in runtimes] == ["python", "bash"], (
            runtimes)
        assert not runtimes[0]["version"].startswith("3.99"), runtimes


@test
def runtimes_and_packages_say_the_same():
    runtimes = served.get("/api/v2/runtimes").json
    assert [r["language"] for r in runtimes] == ["python", "bash"], runtimes
    python, bash = runtimes
    minor = ".".join(python["version"].split(".")[:2])
    assert python["aliases"] == ["py", "py3", "python3", "python" + minor]
    assert bash["aliases"] == ["sh"], bash
    own = execute("import sys; print('%d.%d.%d' % sys.version_info[:3])")
    assert own["stdout"].strip() == python["version"], (own, python)
    assert served.get("/api/v2/packages").json == [
        {"language": r["language"], "language_version": r["version"],
         "installed": True} for r in runtimes]
    for version in (python["version"], minor, "3", "3.x", "*", "x"):
        answer = post({"language": "python" + minor, "version": version,
                       "files": FILES})
        assert answer.json["version"] == python["version"], (version, answer)


@test
def paths_are_as_the_clients_have_them():
    for path in ("/api/v2/execute", "/api/v2/execute/",
                 "/api/v2/piston/execute", "/api/v2/piston/execute/"):
        answer = post({"language": "bash", "version": "*",
                       "files": [{"content": "echo $((6*7))"}]}, path)
        assert answer.json["run"]["stdout"] == "42\n", (path, answer)
    for path in ("/api/v2/runtimes/", "/api/v2/piston/runtimes",
                 "/api/v2/piston/runtimes/"):
        assert served.get(path).json[0]["language"] == "python", path
    head = served.request("HEAD", "/api/v2/runtimes")
    assert (head.status, head.body) == (200, b""), head


@test
def what_is_none_of_them_is_404():
    for method, path in (("GET", "/api/v2"), ("GET", "/api/v2/"),
                         ("GET", "/api/v2/nothing"),
                         ("GET", "/api/v2/execute"),
                         ("GET", "/api/v2/piston"),
                         ("PATCH", "/api/v2/execute"),
                         ("GET", "/api/v2/connect")):
        answer = served.request(method, path)
        assert (answer.status, answer.text) == (
            404, '{"message":"%s"}' % NOT_FOUND), (method, path, answer)
    for method in ("POST", "PUT", "DELETE"):
        for path in ("/api/v2/nothing", "/api/v2/packages",
                     "/api/v2/runtimes"):
            answer = served.request(method, path, b"{}", JSON)
            assert (answer.status, answer.text) == (
                404, '{"message":"%s"}' % NOT_FOUND), (method, path, answer)
    for path, allowed in (("execute", "POST"), ("runtimes", "GET,HEAD"),
                          ("packages", "GET,HEAD")):
        answer = served.request("OPTIONS", "/api/v2/" + path)
        assert (answer.status, answer.text, answer.headers["Allow"]) == (
            200, allowed, allowed), (path, answer)


@test
def only_json_is_read():
    for kind in (None, "text/plain", "application/x-www-form-urlencoded",
                 "multipart/form-data; boundary=b", " application/json",
                 "text/json"):
        for method, path in (("POST", "/api/v2/execute"),
                             ("DELETE", "/api/v2/packages"),
                             ("PUT", "/api/v2/nothing")):
            answer = served.request(method, path, b"{}", kind and {
                "Content-Type": kind})
            if kind == " application/json":
                assert answer.status != 415, answer
                continue
            assert (answer.status, answer.text) == (
                415, '{"message":"requests must be of type '
                'application/json"}'), (kind, answer)
    answer = post({"language": "python", "version": "*", "files": FILES},
                  **{"Content-Type": "application/json; charset=utf-8"})
    assert answer.status == 200, answer


@test
def each_fault_is_told_as_the_contract_says():
    py = {"language": "python", "version": "*", "files": FILES}
    rows = [(name + " must be a string", {**py, name: value})
            for name in ("language", "version")
            for value in (None, 5, [], {}, True)]
    rows += [(name + " must not be empty", {**py, name: ""})
             for name in ("language", "version")]
    rows += [("files must be an array", {**py, "files": value})
             for value in (None, "", {}, 1)]
    rows += [("files[1].content must be a string",
              {**py, "files": FILES + [{"content": value}]})
             for value in (None, 1)]
    rows += [("files[1] must be an object", {**py, "files": FILES + [value]})
             for value in (None, "x", [])]
    rows += [("files[1].content is missing", {**py, "files": FILES + [{}]}),
             ("language is missing", {})]
    for field, message in (
            ({"language": "html", "version": "5.0.0"},
             "html-5.0.0 runtime is unknown"),
            ({"language": "Python"}, "Python-* runtime is unknown"),
            ({"language": "python2"}, "python2-* runtime is unknown"),
            ({"version": "latest"}, "python-latest runtime is unknown"),
            ({"version": "2.7.18"}, "python-2.7.18 runtime is unknown"),
            ({"version": '\u00e9"\n'}, 'python-\u00e9"\n runtime is unknown'),
            ({"files": []},
             "files must include at least one utf8 encoded file"),
            ({"files": [{"content": "", "encoding": "hex"},
                        {"content": "", "encoding": "latin1"}]},
             "files must include at least one utf8 encoded file"),
            ({"stdin": 5}, "stdin must be a string"),
            ({"stdin": []}, "stdin must be a string"),
            ({"args": 5}, "args must be an array"),
            ({"args": ["a", {}]},
             "args[1] must be a string without NUL characters"),
            ({"args": ["a\0"]},
             "args[0] must be a string without NUL characters")):
        rows.append((message, {**py, **field}))
    for name in ("compile_memory_limit", "run_memory_limit",
                 "compile_timeout", "run_timeout", "compile_cpu_time",
                 "run_cpu_time"):
        for value in ("1", True, [], {}):
            rows.append((f"{name} must be a number", {**py, name: value}))
        if "memory" in name:
            continue
        most = 10000 if "compile" in name else 3000
        for value in (most + 1, most + 0.5, 1e300, 10 ** 18):
            rows.append((f"{name} cannot exceed the configured limit of "
                         f"{most}", {**py, name: value}))
        for value in (-1, -0.5, -10 ** 18):
            rows.append((f"{name} must be at least 0",
                         {**py, name: value}))
    for message, body in rows:
        refused(400, message, body)


@test
def the_nearest_version_stands_in_for_one_that_is_not_there():
    for version in "3.10.0", "3.10", "3.99.x":
        answer = served.post("/api/v2/execute", {
            "language": "python", "version": version,
            "files": [{"content": "import sys; print('%d.%d.%d' % "
                       "sys.version_info[:3])"}]})
        assert answer.status == 200, answer
        assert answer.json["version"] + "\n" == answer.json["run"]["stdout"]
        assert answer.headers["Inline-Interpreter"] == "3.11", answer.headers
    answer = served.post("/api/v2/execute", {
        "language": "python", "version": "3.11", "files": FILES})
    assert "Inline-Interpreter" not in answer.headers, answer.headers


@test
def the_first_fault_in_order_is_told():
    body = {"run_cpu_time": "x", "compile_cpu_time": "x", "run_timeout": "x",
            "compile_timeout": "x", "run_memory_limit": "x",
            "compile_memory_limit": "x", "stdin": 1, "args": 1}
    refused(400, "language is missing", body)
    body["language"] = "html"
    refused(400, "version is missing", body)
    body["version"] = "*"
    refused(400, "files is missing", body)
    body["files"] = [{"content": "", "encoding": "hex", "name": ".."}, {}]
    refused(400, "files[1].content is missing", body)
    body["files"].pop()
    for name in ("compile_memory_limit", "run_memory_limit",
                 "compile_timeout", "run_timeout", "compile_cpu_time",
                 "run_cpu_time"):
        refused(400, f"{name} must be a number", body)
        del body[name]
    refused(400, "stdin must be a string", body)
    del body["stdin"]
    refused(400, "html-* runtime is unknown", body)
    body["language"] = "python"
    refused(400, "args must be an array", body)
    del body["args"]
    refused(400, "files[0].name leads out of the folder", body)
    del body["files"][0]["name"]
    refused(400, "files must include at least one utf8 encoded file", body)


@test
def bodies_that_are_none():
    for body in (b"", b"{}"):
        refused(400, "language is missing", body)
    for body in (b"5", b'"x"', b"null", b"true", b"[]"):
        refused(400, "The body must be an object", body)
    for body, why in (
            (b"{", "string or '}' expected near end of file at line 1, "
             "column 1"),
            (b"nothing", "invalid token near 'nothing' at line 1, column 7"),
            (b"\xff", "it is not in UTF-8")):
        refused(400, "The body is no JSON: " + why, body)
    assert post(b"[" * 100000).status == 400
    answer = served.request("POST", "/api/v2/execute", None, {
        **JSON, "Content-Length": str(200 << 20)})
    assert (answer.status, answer.text) == (
        413, '{"message":"Content Too Large"}'), answer


@test
def names_stay_in_the_folder():
    for name, why in (("..", "leads out of the folder"),
                      ("../x", "leads out of the folder"),
                      ("a/../../x", "leads out of the folder"),
                      ("/..", "leads out of the folder"),
                      (".", "is no name of a file"),
                      ("a/..", "is no name of a file"),
                      ("a\0b", "must not contain a NUL character"),
                      (5, "must be a string"), ([], "must be a string"),
                      ("x" * 256, "is too long"),
                      ("a/" * 600, "is too long"),
                      ("m", "is the folder of another file"),
                      ("m/a/b", "lies below another file")):
        refused(400, "files[1].name " + why, {
            "language": "python", "version": "*", "files": [
                {"name": "m/a", "content": ""},
                {"name": name, "content": ""}]})
    refused(400, "files[19999].name is one too many", {
        "language": "python", "version": "*",
        "files": [{"name": "x/%d" % i, "content": ""} for i in range(20001)]})


@test
def files_are_there_as_they_were_sent():
    data = bytes(range(256))
    got = execute("", files=[
        {"name": "d/b", "encoding": "base64",
         "content": base64.b64encode(data).decode()},
        {"name": "h", "encoding": "hex", "content": data.hex()},
        {"name": "u", "encoding": "base64",
         "content": base64.urlsafe_b64encode(data).decode().rstrip("=")},
        {"name": "/sub/../main.py", "content":
         "import os, sys\n"
         "print(sys.argv, os.getcwd())\n"
         "print([open(n, 'rb').read() == bytes(range(256))\n"
         "       for n in ('d/b', 'h', 'u')])\n"
         "print(sorted(os.listdir()), os.environ['HOME'],\n"
         "      os.environ['PISTON_LANGUAGE'])\n"},
        {"name": "", "content": "\ud800x", "encoding": "latin1"}])
    assert got["stdout"].splitlines() == [
        "['main.py'] /workspace", "[True, True, True]",
        "['d', 'file4.code', 'h', 'main.py', 'u'] /tmp python"], got
    got = execute("", files=[{"name": "-c", "content": "print('it runs')"}])
    assert got["stdout"] == "it runs\n", got


@test
def arguments_and_input():
    code = "import sys; print(sys.argv[1:]); print(repr(sys.stdin.read()))"
    for args, want in (([], []), (None, []), (["a", "b c", ""],
                                              ["a", "b c", ""]),
                       ([1, 1.5, 1.0, True, False, None, 10 ** 18, 1e300],
                        ["1", "1.5", "1.0", "true", "false", "null",
                         "1" + "0" * 18, "1e300"])):
        got = execute(code, args=args)["stdout"].splitlines()[0]
        assert got == repr(want), (args, got)
    for stdin, want in ((None, "\n"), ("", "\n"), ("x", "x\n"),
                        ("x\n", "x\n"), ("x\n\n", "x\n\n"),
                        ("\0\u00e9" * 70000, "\0\u00e9" * 70000 + "\n")):
        got = execute("import sys; print(len(sys.stdin.read()))",
                      stdin=stdin)["stdout"]
        assert got == "%d\n" % len(want), (want, got)
    refused(400, "The arguments are too long", {
        "language": "bash", "version": "*", "files": FILES,
        "args": ["x" * 200000]})
    refused(400, "stdin must have at most 16777215 bytes", {
        "language": "bash", "version": "*", "files": FILES,
        "stdin": "x" * (17 << 20)})


@test
def each_status_is_told():
    rows = (
        ("import sys; sys.exit(3)",
         (None, 3, "RE", "Exited with error status 3")),
        ("import os; os.kill(os.getpid(), 11)",
         ("SIGSEGV", None, "SG", "Caught fatal signal 11")),
        ("import os; os.abort()",
         ("SIGABRT", None, "SG", "Caught fatal signal 6")),
        ("import os; os.kill(os.getpid(), 9)",
         ("SIGKILL", None, "SG", "Caught fatal signal 9")),
        ("x = bytearray(2**20)\nfor i in range(4096): x += bytes(2**20)",
         ("SIGKILL", None, "SG", "Memory limit exceeded")),
        ("import time; time.sleep(60)",
         ("SIGKILL", None, "TO", "Time limit exceeded (wall clock)")),
        ("while True: print('x' * 1000)",
         ("SIGKILL", None, "OL", "stdout length exceeded")),
        ("import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
         ("SIGKILL", None, "EL", "stderr length exceeded")),
    )
    with Served(IL_API_CELLS="1", IL_MEMORY="128m") as small:
        for code, want in rows:
            answer = small.post("/api/v2/execute", {
                "language": "python", "version": "*",
                "files": [{"content": code}]})
            assert answer.status == 200, (code, answer)
            got = pick(answer.json["run"], "signal", "code", "status",
                       "message")
            # where the machine is slow, writing memory takes its time
            slow = "bytearray" in code and got == rows[5][1]
            assert got == want or slow, (code, answer)


@test
def the_operator_sets_how_long_a_run_may_take():
    body = {"language": "python", "version": "*", "files": [
        {"content": "import time\ntime.sleep(.5)\nprint(1)"}]}
    with Served(IL_API_CELLS="1", IL_PISTON_TIMEOUT_SECONDS="0.3") as short:
        answer = short.post("/api/v2/execute", body)
        assert answer.json["run"]["status"] == "TO", answer
        for name in ("run_timeout", "run_cpu_time"):
            answer = short.post("/api/v2/execute", {**body, name: 301})
            assert (answer.status, answer.json) == (400, {
                "message": f"{name} cannot exceed the configured limit of "
                "300"}), answer


@test
def no_run_goes_on_behind_its_limits():
    body = {"language": "python", "version": "*"}
    with Served(IL_API_CELLS="1", IL_PISTON_TIMEOUT_SECONDS="60") as long:
        for code, more, want in (
                ("print('x' * 65536, flush=True)\nimport time; time.sleep(99)",
                 {}, "stdout length exceeded"),
                ("while True: pass", {"run_cpu_time": 1000},
                 "Time limit exceeded")):
            answer = long.post("/api/v2/execute", {
                **body, **more, "files": [{"content": code}]},
                timeout=30)     # of 60 that it would have
            assert answer.json["run"]["message"] == want, (code, answer)


@test
def a_cpu_limit_is_told_to_the_millisecond():
    got = execute("import time\nwhile time.process_time() < 0.03: pass",
                  run_cpu_time=10)
    assert pick(got, "signal", "code", "status", "message") == (
        "SIGKILL", None, "TO", "Time limit exceeded"), got
    for name in ("run_timeout", "run_cpu_time"):
        got = execute("import time; time.sleep(2)", **{name: 0})
        assert (got["status"], got["signal"]) == ("TO", "SIGKILL"), got


@test
def a_memory_limit_is_one():
    code = "x = bytes(100 << 20)"
    assert execute(code)["code"] == 0
    for free in (-1, -5, 0, 1 << 40):
        assert execute(code, run_memory_limit=free)["code"] == 0
    got = execute(code, run_memory_limit=64 << 20)
    assert got["code"] == 1 and "MemoryError" in got["stderr"], got


@test
def output_is_whole_up_to_its_limit_and_cut_there():
    got = execute("print('x' * 65535)")
    assert (len(got["stdout"]), got["status"]) == (65536, None), got["status"]
    got = execute("print('x' + '\u20ac' * 30000)")
    assert got["status"] == "OL", got["status"]
    assert got["stdout"] == "x" + "\u20ac" * 21845, len(got["stdout"])
    assert got["output"] == got["stdout"]
    got = execute("import sys\nsys.stdout.buffer.write(b'\\xff\\xe2\\x82')")
    assert got["stdout"] == "\ufffd\ufffd", got
    got = execute("import os\nfor b in '\u20ac'.encode():\n"
                  " os.write(1, bytes([b])); os.write(2, b'e')")
    assert got["stdout"] == "\u20ac" and got["stderr"] == "eee", got
    assert sorted(got["output"]) == ["e"] * 3 + ["\u20ac"], got


@test
def bash_is_one_of_them():
    got = post({"language": "sh", "version": "5.x", "args": ["a b", "c"],
                "stdin": "in", "files": [
                    {"content": "echo \"$# $1 $PISTON_LANGUAGE $0\"; cat;"
                     " echo oh >&2; python3 -c 'print(6*7)'; exit 7"}]}).json
    assert got["language"] == "bash", got
    assert pick(got["run"], "stdout", "stderr", "code", "status") == (
        "2 a b bash file0.code\nin\n42\n", "oh\n", 7, "RE"), got
    got = post({"language": "bash", "version": "*", "files": [
        {"content": "sh -c 'kill -11 $$'"}]}).json["run"]
    assert pick(got, "code", "status", "signal") == (139, "RE", None), got


@test
def nothing_is_left_for_the_next_run():
    execute("open('/tmp/left', 'w'); open('left', 'w')")
    got = execute("import os; print(os.listdir('/tmp'), os.listdir())")
    assert got["stdout"] == "[] ['file0.code']\n", got


@test
def runs_are_counted():
    text = served.get("/metrics").text
    for line in ('inline_api_requests_total{route="/api/v2/execute",'
                 'status="200"}', 'inline_api_runs_total{api="piston",'
                 'outcome="exit"}', 'inline_api_requests_total{route='
                 '"/api/v2/runtimes",status="200"}'):
        assert line in text, line


@test
def pages_from_elsewhere_and_strangers_are_refused():
    answer = post({}, Origin="http://example.org")
    assert (answer.status, answer.text) == (
        403, '{"message":"%s"}' % OTHER_SITE), answer
    for path, shape in (("/v1/none", '{"detail":"%s"}'),
                        ("/api/v2/none", '{"message":"%s"}'),
                        ("/librechat/none", '{"error":"%s"}')):
        answer = served.get(path, Origin="http://example.org")
        assert (answer.status, answer.text) == (
            403, shape % OTHER_SITE), (path, answer)
    answer = post({}, Host="inline.example.org")
    assert (answer.status, answer.text) == (
        403, '{"message":"%s"}' % NO_TOKENS), answer


@test
def tokens_are_taken_with_and_without_bearer():
    body = {"language": "bash", "version": "*",
            "files": [{"content": "echo 1"}]}
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens")
        open(tokens, "w").close()

        def token(name, *limits):
            return subprocess.run(
                [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", tokens,
                 *limits, "add", name], capture_output=True, text=True,
                check=True).stdout.split()[0]

        with Served(IL_API_CELLS="1", IL_API_TOKENS_FILE=tokens) as other:
            answer = other.post("/api/v2/execute", body)
            assert (answer.status, answer.text) == (
                401, '{"message":"Not authenticated"}'), answer
            assert answer.headers["WWW-Authenticate"] == "Bearer", answer
            good = token("alice")
            for value in (good, "Bearer " + good):
                answer = other.post("/api/v2/execute", body,
                                    {"Authorization": value})
                assert answer.json["run"]["stdout"] == "1\n", answer
            few = token("bob", "-r", "1")
            wait_for(lambda: other.get("/api/v2/runtimes",
                                       Authorization=few).status == 429)
            answer = other.post("/api/v2/execute", body,
                                {"Authorization": few})
            assert (answer.status, answer.text) == (
                429, '{"message":"This token\'s requests of a minute are '
                'used up"}'), answer
            assert int(answer.headers["Retry-After"]) > 0, answer


try:
    run()
finally:
    served.close()
