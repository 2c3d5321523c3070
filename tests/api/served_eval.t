#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /eval over HTTP on real cells: each row of the contract's tables."""

import base64
import json
import select
import time

from served import NOT_FOUND, Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()

TITLE = "Request data failed validation"
FILE = "Request file is invalid"
ROOT = "/snekbin/python/3.11/bin/python"


def b64(text):
    return base64.b64encode(text.encode()).decode()


def refused(title, description=None):
    body = {"title": title}
    if description is not None:
        body["description"] = description
    return json.dumps(body, ensure_ascii=False)


def one(path, content="YQ=="):
    return {"input": "1", "files": [{"path": path, "content": content}]}


ROWS = [
    (b'{"input" 1}', refused("Invalid JSON", "The body is no JSON: ':' "
                             "expected near '1' at line 1, column 10")),
    (b"", refused("Invalid JSON", "The body is empty: send its "
                  "Content-Length with it.")),
    ({"stuff": "foo"}, refused(TITLE, "{'stuff': 'foo'} is not valid under "
                               "any of the given schemas")),
    ({"input": 400}, refused(TITLE, "400 is not of type 'string'")),
    ({"args": None}, refused(TITLE, "null is not of type 'array'")),
    ([], refused(TITLE, "[] is not of type 'object'")),
    ({"input": "1", "files": [{}]},
     refused(TITLE, "files[0].path is missing")),
    (one("/etc/x"), refused(TITLE, "files[0].path does not match what is "
                            "allowed: it must be relative, without line feeds "
                            "and without \\0.")),
    (one("../x"), refused(FILE,
                          "File path '../x' may not traverse beyond root")),
    (one("a", "a"), refused(FILE, "Invalid base64 encoding for file 'a'")),
    ({"input": "1", "executable_path": "/abc/def"},
     refused("executable_path does not exist")),
]


@test
def every_refusal_has_the_contracts_body():
    for body, want in ROWS:
        answer = served.post("/eval", body)
        assert (answer.status, answer.text) == (400, want), (body, answer)
        assert answer.headers["Content-Type"] == "application/json"


@test
def a_chunked_body_counts_as_empty():
    answer = served.request("POST", "/eval", iter([b'{"input": "1"}']),
                            encode_chunked=True,
                            headers={"Transfer-Encoding": "chunked"})
    assert (answer.status, answer.text) == (400, refused(
        "Invalid JSON", "The body is empty: send its Content-Length with "
        "it.")), answer


@test
def media_types():
    answer = served.post("/eval", {"input": "1"},
                         {"Content-Type": "application/xml"})
    assert (answer.status, answer.text) == (415, refused(
        "415 Unsupported Media Type",
        "application/xml is an unsupported media type.")), answer
    answer = served.request("POST", "/eval", b'{"input": "print(2)"}')
    assert answer.json["stdout"] == "2\n", answer


@test
def methods_and_paths():
    for method in ("GET", "PUT", "HEAD", "DELETE"):
        answer = served.request(method, "/eval")
        assert answer.status == 405, answer
        assert answer.headers["Allow"] == "POST, OPTIONS", answer.headers
        assert answer.text == ("" if method == "HEAD" else
                               '{"title": "405 Method Not Allowed"}'), answer
    answer = served.request("OPTIONS", "/eval")
    assert (answer.status, answer.body) == (200, b""), answer
    assert answer.headers["Allow"] == "POST", answer.headers
    for path in ("/eval/", "/eval/x"):
        answer = served.post(path, {"input": "1"})
        assert (answer.status, answer.text) == (
            404, '{"title": "404 Not Found", "description": "%s"}' %
            NOT_FOUND), answer


@test
def an_answer_has_its_keys_in_order():
    answer = served.post("/eval", {"input": "print('é')"})
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.text == ('{"stdout": "é\\n", "returncode": 0, '
                           '"files": []}'), answer


@test
def return_codes():
    for code, want in (("raise SystemExit(7)", 7), ("1/0", 1),
                       ("import os; os.abort()", 134 + 5),
                       ("while True: pass", 137),
                       ("print('x' * 1_500_000)", 143)):
        answer = served.eval(input=code)
        if "abort" in code:     # upstream's is PID 1 of its namespace
            assert answer["returncode"] in (134, 139), answer
        else:
            assert answer["returncode"] == want, (code, answer["returncode"])


@test
def output_is_cut_at_its_limit():
    answer = served.eval(input="print('x' * 1_500_000)")
    assert answer["stdout"] == "x" * 1_000_000, len(answer["stdout"])
    answer = served.eval(input="print('é' * 490_000)")
    assert answer["returncode"] == 0, answer["returncode"]


def ends_early(code, **fields):
    """The answer for code that would go on for a minute."""
    started = time.monotonic()
    answer = served.eval(input=code, timeout_ms=60000, **fields)
    assert time.monotonic() - started < 30, "it went on"
    return answer


@test
def a_run_ends_at_the_output_limit():
    answer = ends_early("import time; open('f', 'w').write('1')\n"
                        "print('x' * 1_000_000, end=''); time.sleep(1000)")
    assert answer["returncode"] == 143, answer["returncode"]
    assert answer["stdout"] == "x" * 1_000_000, len(answer["stdout"])
    assert answer["files"] == [{"path": "f", "size": 1, "content": "MQ=="}]


@test
def who_prints_for_ever_comes_back_with_the_limit():
    for piece, count in (("x", 1_000_000), ("é", 500_000), ("я", 500_000),
                         ("\u20ac", 333_333), ("\U0001f600", 250_000)):
        answer = ends_early("while True: print(%r * 1000, end='')" % piece)
        assert answer["returncode"] == 143, (piece, answer["returncode"])
        assert answer["stdout"] == piece * count, (piece,
                                                   len(answer["stdout"]))


@test
def what_is_not_utf8_ends_the_run():
    answer = ends_early("import os, time; os.write(1, b'\\xff'); "
                        "time.sleep(1000)")
    assert answer["returncode"] is None, answer


@test
def newlines_are_universal_and_streams_are_one():
    answer = served.eval(input="import sys; print('a\\r\\nb\\rc', flush=True);"
                               "print('e', file=sys.stderr)")
    assert answer["stdout"] == "a\nb\nc\ne\n", answer


@test
def what_is_not_utf8_is_null():
    answer = served.eval(input="import os; os.write(1, b'\\xff')")
    assert answer == {"stdout": "UnicodeDecodeError: invalid Unicode in "
                                "output pipe", "returncode": None,
                      "files": []}, answer
    answer = served.eval(input="open(b'\\xff', 'w')")
    assert answer == {"stdout": "FileParsingError: invalid bytes in filename "
                                "while parsing attachments",
                      "returncode": None, "files": []}, answer
    answer = served.eval(input="a\0b")
    assert answer["stdout"] == "ValueError: embedded null byte", answer
    assert answer["returncode"] is None


@test
def files_that_cannot_be_made_are_null():
    answer = served.eval(input="1", files=[{"path": "a"}, {"path": "a/b"}])
    assert answer["returncode"] is None and answer["files"] == [], answer
    assert answer["stdout"].endswith(": Failed to create file 'a/b'."), answer
    answer = served.eval(input="1", files=[
        {"path": "big", "content": b64("x" * (60 << 20))}])
    assert answer["stdout"] == "OSError: Failed to create file 'big'.", \
        answer["stdout"][:200]


@test
def files_come_back():
    answer = served.eval(
        args=["sub/main.py", "arg"],
        files=[{"path": "sub/main.py",
                "content": b64("import sys\nopen('out', 'w').write(sys.argv[1])"
                               "\nopen('.dot', 'w'); open('_low', 'w')\n"
                               "open('é\\n', 'w').write('2')")},
               {"path": "same", "content": b64("x")}])
    assert answer == {"stdout": "", "returncode": 0, "files": [
        {"path": "out", "size": 3, "content": b64("arg")},
        {"path": "é\n", "size": 1, "content": b64("2")}]}, answer


@test
def interpreters():
    answer = served.eval(input="import sys; print(*sys.version_info[:2])",
                         executable_path=ROOT)
    assert answer["stdout"] == "3 11\n", answer
    answer = served.get("/versions").json
    assert answer == {"default": "3.11", "versions": [
        {"name": "3.11", "executable_path": ROOT}]}, answer


@test
def long_arguments_run():
    answer = served.eval(input="#" * 200_000 + "\nprint(5)")
    assert answer["stdout"] == "5\n", answer


@test
def extras_are_there_when_asked_for():
    answer = served.post("/eval", {"input": "print(input())", "stdin": "x\n"},
                         {"Inline-Extras": "1"}).json
    assert answer["stdout"] == "x\n" and answer["reason"] == "exit", answer
    assert answer["duration_ms"] >= 0 and answer["max_rss_bytes"] > 0, answer
    assert answer["left_out"] == [], answer
    started = time.monotonic()
    answer = served.eval(input="while True: pass", timeout_ms=300)
    assert answer["returncode"] == 137, answer
    assert time.monotonic() - started < 5.9  # or by the contract


@test
def a_client_that_hangs_up_ends_its_run():
    link = served.connect()
    link.request("POST", "/eval", json.dumps(
        {"input": "import time; time.sleep(50)", "timeout_ms": 60000}))
    wait_for(lambda: served.get("/health").json["inline"]["cells"]["leased"])
    started = time.monotonic()
    link.close()
    wait_for(lambda: not served.get("/health")
             .json["inline"]["cells"]["leased"])
    assert time.monotonic() - started < 20


@test
def health_does_not_wait_behind_runs():
    slow = [served.connect() for _ in range(4)]
    for link in slow:
        link.request("POST", "/eval", json.dumps(
            {"input": "import time; time.sleep(50)", "timeout_ms": 60000}))
    wait_for(lambda: served.get("/health").json["inline"]["cells"]["leased"])
    assert served.get("/health").status == 200
    assert not select.select([link.sock for link in slow], [], [], 0)[0]
    for link in slow:
        link.close()


try:
    run()
finally:
    served.close()
