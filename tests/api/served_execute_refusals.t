#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the code-interpreter routes refuse, over HTTP: the status and the shape of
every row of the contract's table of errors, and the place of each fault."""

import json
import os

from interpreter import UNKNOWN, Interpreter, compact, missing, place, refused
from served import NOT_FOUND, Served
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)
SESSION = "/v1/sessions/code-session-" + "0" * 32 + "/bash"
RUNS = ("/v1/execute", "/v1/execute/stream")
ROUTES = (*RUNS, "/v1/sessions", SESSION)
UNPARSABLE = "There was an error parsing the body: "


def error(kind, where, message, given):
    """The error of a list."""
    return {"type": kind, "loc": ["body", *where],
            "msg": f"{place(where)} {message}", "input": given}


def refuses(path, body, *errors):
    """A body is refused with this list and 422."""
    refused(served.post(path, body), 422, list(errors))


# ---- bodies ----

@test
def each_status_is_that_of_pydantic_and_fastapi():
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
            assert str(answer.status) == want, (path, body, content_type,
                                                answer, want)
            assert list(answer.json) == ["detail"], answer
            assert answer.headers["Content-Type"] == "application/json"


@test
def an_empty_body_is_told():
    for path in ROUTES:
        refuses(path, b"", error("missing", [], "is empty", None))


@test
def what_is_no_object_is_told_back():
    for path in ROUTES:
        for value in ([], [1, {"a": None}], "é", 1, 1.5, True, False, None):
            refuses(path, value, error("model_attributes_type", [],
                                       "must be an object", value))


@test
def only_json_content_types_are_read_as_json():
    for path in ROUTES:
        for kind in (None, "text/plain", "application/x-www-form-urlencoded",
                     "application/jsonx", "application/problem+json", "garbage"):
            answer = served.request(
                "POST", path, '{"code": "é"}'.encode(),
                {"Content-Type": kind} if kind else {})
            refused(answer, 422, [error(
                "model_attributes_type", [],
                "must be JSON, with the Content-Type application/json", None)])
        for kind in ("application/json", "application/json; charset=utf-8",
                     "Application/JSON"):
            answer = served.request("POST", path, b"null",
                                    {"Content-Type": kind})
            refused(answer, 422, [error("model_attributes_type", [],
                                        "must be an object", None)])


@test
def invalid_json_is_told_with_its_place():
    for path in ROUTES:
        for body, why in (
                ('{"code": }', "unexpected token near '}' at line 1, "
                 "column 10"),
                ("{\n", "string or '}' expected near end of file at line 2, "
                 "column 0"),
                ("{} {}", "end of file expected near '{' at line 1, "
                 "column 4")):
            refuses(path, body.encode(), error(
                "json_invalid", [], "is no JSON: " + why, None))


@test
def a_body_that_is_not_utf_8_is_400():
    for path in ROUTES:
        for body in (b"\xff", b'{"code":"\xe9"}', b'{"code":"\xe2\x82"}',
                     b'{"code":"\xed\xa0\x80"}',
                     '{"code":"1"}'.encode("utf-16")):
            refused(served.post(path, body), 400,
                    UNPARSABLE + "it is not in UTF-8")


@test
def deep_json_is_400():
    for path in ROUTES:
        for body in (b"[" * 100000, b'{"code":' * 5000,
                     b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}"):
            refused(served.post(path, body), 400,
                    UNPARSABLE + "it is nested too deeply")


@test
def half_of_a_pair_becomes_a_replacement_character():
    answer = served.post("/v1/execute",
                         b'{"code":"print(ascii(\'\\ud800\'))"}')
    assert answer.json["stdout"] == "'\\ufffd'\n", answer


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
        return error("string_type", [name], "must be a string", value)
    for value in (1, 1.5, True, [], {}, ["a"]):
        for path in RUNS:
            refuses(path, {"code": value}, wrong("code", value))
            refuses(path, {"code": "1", "stdin": value},
                    wrong("stdin", value))
        refuses(SESSION, {"cmd": value}, wrong("cmd", value))
    for path in RUNS:
        refuses(path, {"code": None}, wrong("code", None))
    refuses(SESSION, {"cmd": None}, wrong("cmd", None))


BOUNDS = {"timeout_ms": "must be an integer of at least 1",
          "ttl_seconds": "must be an integer from 1 to 86400"}
NUMBERS = ((RUNS[0], "timeout_ms", {"code": "1"}),
           (RUNS[1], "timeout_ms", {"code": "1"}),
           (SESSION, "timeout_ms", {"cmd": "1"}),
           ("/v1/sessions", "ttl_seconds", {}))


@test
def numbers_are_not_coerced():
    for value in (True, False, 1.0, 1.5, "5", None, [], {}):
        for path, name, rest in NUMBERS:
            refuses(path, {**rest, name: value},
                    error("int_type", [name], BOUNDS[name], value))


@test
def numbers_have_bounds():
    def wrong(name, value):
        return error("value_error", [name], BOUNDS[name], value)
    for value in (0, -1, -10 ** 18):
        for path, name, rest in NUMBERS:
            refuses(path, {**rest, name: value}, wrong(name, value))
    for value in (86401, 10 ** 18):
        refuses("/v1/sessions", {"ttl_seconds": value},
                wrong("ttl_seconds", value))


@test
def a_truth_is_true_or_false():
    for path in RUNS:
        for value in ("maybe", "", "yes", 2, 1, None, [], {}, 0.5):
            refuses(path, {"code": "1", "last_line_interactive": value},
                    error("bool_type", ["last_line_interactive"],
                          "must be true or false", value))


@test
def files_are_checked_one_by_one():
    def text(index, name, value):
        return error("string_type", ["files", index, name],
                     "must be a string", value)
    for path, rest in ((RUNS[0], {"code": "1"}), (RUNS[1], {"code": "1"}),
                       ("/v1/sessions", {})):
        for value in (None, {}, "x", 1):
            refuses(path, {**rest, "files": value},
                    error("list_type", ["files"], "must be an array", value))
        for item, want in (
                ({}, missing("files", 1, "path", given={})),
                ({"path": 1, "file_id": None}, text(1, "path", 1)),
                ({"path": "a", "file_id": None}, text(1, "file_id", None)),
                ("x", error("model_attributes_type", ["files", 1],
                            "must be an object", "x")),
                ({"path": "p"},
                 missing("files", 1, "file_id", given={"path": "p"}))):
            refuses(path, {**rest, "files": [
                {"path": "a", "file_id": "x"}, item, {}]}, want)


@test
def the_first_fault_is_told():
    body = {"files": 1, "last_line_interactive": [], "timeout_ms": 0,
            "stdin": 2}
    for path in RUNS:
        refuses(path, body, missing("code", given=body))


# ---- the order of the checks ----

@test
def the_time_limit_comes_after_the_schema_and_before_the_files():
    text = "timeout_ms exceeds maximum of 60000 ms"
    files = [{"path": "/x", "file_id": UNKNOWN}]
    for path in RUNS:
        for value in (60001, 10 ** 18):
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
