#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the code-interpreter routes refuse, over HTTP and byte for byte: every
row of the contract's table of errors, in the contract's order."""

import json
import os

from interpreter import UNKNOWN, Interpreter, compact, missing, refused
from served import NOT_FOUND, Served
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)
SESSION = "/v1/sessions/code-session-" + "0" * 32 + "/bash"
RUNS = ("/v1/execute", "/v1/execute/stream")
ROUTES = (*RUNS, "/v1/sessions", SESSION)
NO_OBJECT = ("Input should be a valid dictionary or object to extract fields "
             "from")
UNPARSABLE = "There was an error parsing the body"


def error(kind, where, message, given, **bound):
    """One error of a list."""
    made = {"type": kind, "loc": ["body", *where], "msg": message,
            "input": given}
    return {**made, "ctx": bound} if bound else made


def refuses(path, body, *errors):
    """A body is refused with this list and 422."""
    refused(served.post(path, body), 422, list(errors))


# ---- bodies ----

@test
def all_that_pydantic_and_fastapi_answered_is_answered_over_http():
    paths = {"execute": RUNS, "session": ("/v1/sessions",),
             "bash": (SESSION,)}
    with open(os.path.join(os.path.dirname(__file__), "execute.json"),
              encoding="ascii") as file:
        golden = json.load(file)
    for command, content_type, body, want in golden:
        if want == "RUN":
            continue
        headers = {"Content-Type": content_type} if content_type else {}
        for path in paths[command]:
            answer = served.request("POST", path, body.encode("latin-1"),
                                    headers)
            got = "%d %s" % (answer.status, answer.text)
            assert got == want, (path, body, content_type, got, want)
            assert answer.headers["Content-Type"] == "application/json"


@test
def an_empty_body_and_null_are_missing():
    for path in ROUTES:
        for body in (b"", b"null", b" null "):
            refuses(path, body, missing())


@test
def what_is_no_object_is_told_back():
    for path in ROUTES:
        for value in ([], [1, {"a": None}], "é", 1, 1.5, True, False):
            refuses(path, value,
                    error("model_attributes_type", [], NO_OBJECT, value))


@test
def only_json_content_types_are_read_as_json():
    body = '{"code": "é"}'
    for path in ROUTES:
        for kind in (None, "text/plain", "application/x-www-form-urlencoded",
                     "application/jsonx", "garbage"):
            answer = served.request(
                "POST", path, body.encode(),
                {"Content-Type": kind} if kind else {})
            refused(answer, 422, [error("model_attributes_type", [],
                                        NO_OBJECT, body)])
        for kind in ("application/json", "application/json; charset=utf-8",
                     "Application/Problem+JSON"):
            answer = served.request("POST", path, b"null",
                                    {"Content-Type": kind})
            refused(answer, 422, [missing()])


@test
def invalid_json_is_told_with_cpythons_position():
    for path in ROUTES:
        for body, at, why in (
                ('{"code": }', 9, "Expecting value"),
                ("{", 1, "Expecting property name enclosed in double quotes"),
                ('{"a":1,}', 7,
                 "Expecting property name enclosed in double quotes"),
                ('{"a" 1}', 5, "Expecting ':' delimiter"),
                ('{"a":1 "b":2}', 7, "Expecting ',' delimiter"),
                ('{"a":"', 5, "Unterminated string starting at"),
                ('{"a":"\t"}', 6, "Invalid control character at"),
                ('{"a":"\\q"}', 6, "Invalid \\escape"),
                ("{} {}", 3, "Extra data"), ("   ", 3, "Expecting value")):
            refused(served.post(path, body.encode()), 422, [{
                "type": "json_invalid", "loc": ["body", at],
                "msg": "JSON decode error", "input": {},
                "ctx": {"error": why}}])


@test
def a_body_that_is_not_utf_8_is_400():
    for path in ROUTES:
        for body in (b"\xff", b'{"code":"\xe9"}', b'{"code":"\xe2\x82"}',
                     '{"code":"1"}'.encode("utf-16")):
            refused(served.post(path, body), 400, UNPARSABLE)


@test
def deep_json_is_400():
    for path in ROUTES:
        for body in (b"[" * 100000, b'{"code":' * 5000,
                     b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}"):
            refused(served.post(path, body), 400, UNPARSABLE)


@test
def a_lone_surrogate_is_422():
    for path in RUNS:
        for body in (b'{"code":"\\ud800"}', b'{"code":"\xed\xa0\x80"}'):
            answer = served.post(path, body)
            assert (answer.status, answer.text) == (
                422, '{"detail":[{"type":"string_unicode","loc":["body",'
                '"code"],"msg":"Input should be a valid string, unable to '
                'parse raw data as a unicode string","input":"\\ud800"}]}'
            ), answer


# ---- fields ----

@test
def a_required_field_is_missed_with_the_whole_body():
    for path in RUNS:
        refuses(path, {}, missing("code", given={}))
        refuses(path, {"x": [1], "stdin": "é"},
                missing("code", given={"x": [1], "stdin": "é"}))
    refuses(SESSION, {"timeout_ms": 1},
            missing("cmd", given={"timeout_ms": 1}))


@test
def texts_are_not_coerced():
    def wrong(name, value):
        return error("string_type", [name], "Input should be a valid string",
                     value)
    for value in (1, 1.5, True, [], {}, ["a"]):
        for path in RUNS:
            refuses(path, {"code": value}, wrong("code", value))
            refuses(path, {"code": "1", "stdin": value},
                    wrong("stdin", value))
        refuses(SESSION, {"cmd": value}, wrong("cmd", value))
    for path in RUNS:
        refuses(path, {"code": None}, wrong("code", None))
    refuses(SESSION, {"cmd": None}, wrong("cmd", None))


@test
def numbers_are_not_coerced():
    for value in (True, False, 1.0, 1.5, "5", None, [], {}):
        for path, name, rest in ((RUNS[0], "timeout_ms", {"code": "1"}),
                                 (RUNS[1], "timeout_ms", {"code": "1"}),
                                 (SESSION, "timeout_ms", {"cmd": "1"}),
                                 ("/v1/sessions", "ttl_seconds", {})):
            refuses(path, {**rest, name: value},
                    error("int_type", [name],
                          "Input should be a valid integer", value))


@test
def numbers_have_bounds():
    for value in (0, -1, -10 ** 30):
        for path, name, rest in ((RUNS[0], "timeout_ms", {"code": "1"}),
                                 (RUNS[1], "timeout_ms", {"code": "1"}),
                                 (SESSION, "timeout_ms", {"cmd": "1"}),
                                 ("/v1/sessions", "ttl_seconds", {})):
            refuses(path, {**rest, name: value},
                    error("greater_than_equal", [name],
                          "Input should be greater than or equal to 1",
                          value, ge=1))
    for value in (86401, 10 ** 30):
        refuses("/v1/sessions", {"ttl_seconds": value},
                error("less_than_equal", ["ttl_seconds"],
                      "Input should be less than or equal to 86400", value,
                      le=86400))


@test
def a_wrong_truth_is_of_two_kinds():
    for path in RUNS:
        for value in ("maybe", "", " true", 2, -1):
            refuses(path, {"code": "1", "last_line_interactive": value},
                    error("bool_parsing", ["last_line_interactive"],
                          "Input should be a valid boolean, unable to "
                          "interpret input", value))
        for value in (None, [], {}, 0.5):
            refuses(path, {"code": "1", "last_line_interactive": value},
                    error("bool_type", ["last_line_interactive"],
                          "Input should be a valid boolean", value))


@test
def files_are_checked_one_by_one():
    def text(index, name, value):
        return error("string_type", ["files", index, name],
                     "Input should be a valid string", value)
    for path, rest in ((RUNS[0], {"code": "1"}), (RUNS[1], {"code": "1"}),
                       ("/v1/sessions", {})):
        for value in (None, {}, "x", 1):
            refuses(path, {**rest, "files": value},
                    error("list_type", ["files"],
                          "Input should be a valid list", value))
        refuses(path, {**rest, "files": [
            {"path": "a", "file_id": "x"}, {}, {"path": 1, "file_id": None},
            "x", {"path": "p"}]},
                missing("files", 1, "path", given={}),
                missing("files", 1, "file_id", given={}),
                text(2, "path", 1), text(2, "file_id", None),
                error("model_attributes_type", ["files", 3], NO_OBJECT, "x"),
                missing("files", 4, "file_id", given={"path": "p"}))


@test
def all_errors_are_told_in_the_order_of_the_model():
    body = {"files": 1, "last_line_interactive": [], "timeout_ms": 0,
            "stdin": 2}
    for path in RUNS:
        refuses(path, body, missing("code", given=body),
                error("string_type", ["stdin"],
                      "Input should be a valid string", 2),
                error("greater_than_equal", ["timeout_ms"],
                      "Input should be greater than or equal to 1", 0, ge=1),
                error("bool_type", ["last_line_interactive"],
                      "Input should be a valid boolean", []),
                error("list_type", ["files"],
                      "Input should be a valid list", 1))


# ---- the order of the checks ----

@test
def the_time_limit_comes_after_the_schema_and_before_the_files():
    text = "timeout_ms exceeds maximum of 60000 ms"
    files = [{"path": "/x", "file_id": UNKNOWN}]
    for path in RUNS:
        for value in (60001, 10 ** 30):
            refused(served.post(path, {"code": "1", "timeout_ms": value,
                                       "files": files}), 422, text)
        refuses(path, {"timeout_ms": 60001},
                missing("code", given={"timeout_ms": 60001}))
    refused(served.post(SESSION, {"cmd": "1", "timeout_ms": 60001}), 422,
            text)
    refused(served.post(SESSION, {"cmd": "1", "timeout_ms": 60000}), 404,
            "Session '%s' not found" % SESSION.split("/")[3])


@test
def unknown_files_come_in_order_and_before_paths():
    known = client.put("a", b"x")
    for path, rest in ((RUNS[0], {"code": "1"}), (RUNS[1], {"code": "1"}),
                       ("/v1/sessions", {})):
        refused(served.post(path, {**rest, "files": [
            {"path": "/bad", "file_id": known},
            {"path": "é'\"", "file_id": UNKNOWN},
            {"path": "b", "file_id": "x"}]}), 404,
            "File with ID '%s' not found for path 'é'\"'." % UNKNOWN)


@test
def bad_paths_are_422_and_in_a_stream_an_error():
    known = client.put("a", b"x")
    main = "File path '__main__.py' is reserved for the execution entrypoint."
    for paths, want in (
            (["/x"], "File paths must be relative."),
            (["ok", "a/../b"], "File paths must not contain '..'."),
            ([".."], "File paths must not contain '..'."),
            ([""], "File path must not be empty."),
            (["./"], "File path must not be empty."),
            (["__main__.py"], main), ([".//__main__.py"], main)):
        files = [{"path": p, "file_id": known} for p in paths]
        body = {"code": "print(1)", "files": files}
        refused(served.post("/v1/execute", body), 422, want)
        answer = served.post("/v1/execute/stream", body)
        assert (answer.status, answer.text) == (
            200, "event: error\ndata: %s\n\n" % compact({"message": want})
        ), answer
        if "main" not in want:
            refused(served.post("/v1/sessions", {"files": files}), 422, want)
    answer = served.post("/v1/sessions", {"files": [
        {"path": "__main__.py", "file_id": known}]})
    assert answer.status == 201, answer
    served.request("DELETE", "/v1/sessions/" + answer.json["session_id"])


# ---- what is not there ----

@test
def what_is_not_there_is_named():
    for name in (UNKNOWN, "x", UNKNOWN.upper(), UNKNOWN + ".meta.json",
                 "x" * 250, "a'b\"c", "é", "a b"):
        quoted = name.encode()
        path = "/v1/files/" + "".join("%%%02x" % c for c in quoted)
        for method in ("GET", "DELETE"):
            refused(served.request(method, path), 404,
                    "File with ID '%s' not found" % name)
    for name in ("x", "code-session-", "code-session-" + "0" * 32,
                 "code-session-" + "A" * 32, "code-sessionx" + "0" * 32,
                 "é'\""):
        path = "/v1/sessions/" + "".join("%%%02x" % c for c in name.encode())
        want = "Session '%s' not found" % name
        refused(served.request("DELETE", path), 404, want)
        refused(served.post(path + "/bash", {"cmd": "true"}), 404, want)


@test
def unknown_paths_are_404():
    for path in ("/v1/nothing", "/v1", "/v1/execute/x", "/v1/Execute",
                 "/v1/files/a/b", "/v1/sessions/x/y"):
        refused(served.get(path), 404, NOT_FOUND)


try:
    run()
finally:
    served.close()
