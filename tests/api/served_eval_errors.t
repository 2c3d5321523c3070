#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /eval: what the contract says about requests, each row of its schema and
of its table of errors, with the exact bytes of the answer."""

import base64
import json

from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2", IL_API_WARM="1").__enter__()

INVALID = "Request data failed validation"
FILE = "Request file is invalid"
PATTERN = r"'^(?!/)(?!.*\\\\0).*$'"


def bytes_of(title, description=None):
    body = {"title": title}
    if description is not None:
        body["description"] = description
    return json.dumps(body, ensure_ascii=False).encode()


def is_refused(body, title, description=None, status=400, **headers):
    answer = served.post("/eval", body, headers)
    want = bytes_of(title, description)
    assert (answer.status, answer.body) == (status, want), (body, answer)
    assert answer.headers["Content-Type"] == "application/json", answer.headers
    assert answer.headers["Vary"] == "Accept", answer.headers


def invalid(body, description):
    is_refused(body, INVALID, description)


def runs(body, stdout, returncode=0):
    answer = served.post("/eval", body)
    assert answer.status == 200, answer
    assert answer.json == {"stdout": stdout, "returncode": returncode,
                           "files": []}, answer


def files(*items, **more):
    return {"input": "1", "files": list(items), **more}


# ---- JSON ----

@test
def a_body_that_is_no_json():
    for body, text in (
            (b'{"input": "a" "b"}',
             "Expecting ',' delimiter: line 1 column 15 (char 14)"),
            (b'{"input": 1\n "b"}',
             "Expecting ',' delimiter: line 2 column 2 (char 13)"),
            (b'{"input" 1}', "Expecting ':' delimiter: line 1 column 10 "
             "(char 9)"),
            (b"{", "Expecting property name enclosed in double quotes: "
             "line 1 column 2 (char 1)"),
            (b'{"input": "a",}', "Expecting property name enclosed in double "
             "quotes: line 1 column 15 (char 14)"),
            (b"x", "Expecting value: line 1 column 1 (char 0)"),
            (b"{} {}", "Extra data: line 1 column 4 (char 3)"),
            (b'{"input": "', "Unterminated string starting at: line 1 column "
             "11 (char 10)"),
            (b'{"input": "a\nb"}', "Invalid control character at: line 1 "
             "column 13 (char 12)"),
            (b'{"input": "\\q"}', "Invalid \\escape: line 1 column 12 "
             "(char 11)"),
            (b'{"input": "\\u12"}', "Invalid \\uXXXX escape: line 1 column 13 "
             "(char 12)"),
            (b" ", "Expecting value: line 1 column 2 (char 1)")):
        is_refused(body, "Invalid JSON", "Could not parse JSON body - " + text)


@test
def an_empty_body():
    is_refused(b"", "Invalid JSON", "Could not parse an empty JSON body")


@test
def unknown_keys_are_ignored():
    runs({"input": "print(1)", "x": [None, {}], "timeout": -1}, "1\n")


@test
def of_equal_keys_the_last_one_counts():
    runs(b'{"input": "print(1)", "input": "print(2)"}', "2\n")


# ---- the schema ----

@test
def neither_input_nor_args():
    any_of = " is not valid under any of the given schemas"
    invalid({"stuff": "foo"}, "{'stuff': 'foo'}" + any_of)
    invalid({}, "{}" + any_of)
    invalid({"files": [], "x": [True, None, 1.5, "é'\"\n"]},
            "{'files': [], 'x': [True, None, 1.5, 'é\\'\"\\n']}" + any_of)


@test
def a_body_that_is_no_object():
    for body, text in ((b"[]", "[]"), (b"null", "None"), (b"1", "1"),
                       (b'"a"', "'a'"), (b"true", "True")):
        invalid(body, text + " is not of type 'object'")


@test
def input_that_is_no_string():
    for value, text in ((400, "400"), (None, "None"), (True, "True"),
                        ([], "[]"), ({}, "{}"), (1.0, "1.0")):
        invalid({"input": value}, text + " is not of type 'string'")


@test
def args_that_are_no_array_of_strings():
    for value, text in ((400, "400"), (None, "None"), ("a", "'a'"),
                        ({}, "{}"), (True, "True")):
        invalid({"args": value}, text + " is not of type 'array'")
    for value, text in ((1, "1"), (None, "None"), ([], "[]")):
        invalid({"args": ["-c", value]}, text + " is not of type 'string'")


@test
def files_that_are_no_array_of_objects():
    for value, text in ((400, "400"), (None, "None"), ("a", "'a'"),
                        ({}, "{}")):
        invalid({"input": "1", "files": value},
                text + " is not of type 'array'")
    for value, text in ((1, "1"), (None, "None"), ("a", "'a'"), ([], "[]")):
        invalid(files(value), text + " is not of type 'object'")


@test
def fields_of_a_file_that_are_no_strings():
    for value, text in ((1, "1"), (None, "None"), (True, "True"), ([], "[]")):
        invalid(files({"path": value}), text + " is not of type 'string'")
        invalid(files({"path": "a", "content": value}),
                text + " is not of type 'string'")


@test
def an_executable_path_that_is_no_string():
    for value, text in ((400, "400"), (None, "None"), ([], "[]")):
        invalid({"input": "1", "executable_path": value},
                text + " is not of type 'string'")


@test
def a_file_without_path():
    invalid(files({}), "'path' is a required property")
    invalid(files({"content": "YQ=="}), "'path' is a required property")
    invalid(files({"path": "a"}, {"Path": "b"}),
            "'path' is a required property")


@test
def a_path_that_does_not_match():
    for path in ("/etc/x", "/", "a\\0", "a\nb", "\n\n"):
        invalid(files({"path": path}),
                repr(path) + " does not match " + PATTERN)


@test
def the_exact_bytes_of_a_pattern():
    answer = served.post("/eval", files({"path": "/etc/x"}))
    assert answer.body == (
        b'{"title": "Request data failed validation", "description": '
        b"\"'/etc/x' does not match '^(?!/)(?!.*\\\\\\\\\\\\\\\\0).*$'\"}"), \
        answer.body


# ---- files ----

@test
def a_path_that_leaves_the_root():
    for path in ("../x", "a/../../x", ".."):
        is_refused(files({"path": path}), FILE,
                   f"File path '{path}' may not traverse beyond root")


@test
def content_that_is_no_base64():
    for content in ("a", "YQ", "YQ=", "Y===", "é", "YQ==é", "YWJjZ"):
        is_refused(files({"path": "a", "content": content}), FILE,
                   "Invalid base64 encoding for file 'a'")


@test
def base64_is_lenient():
    code = "print(open('f', 'rb').read())"
    for content, want in (("", b""), ("YQ==", b"a"), (" Y\nQ=\r=\t", b"a"),
                          ("!Y-Q_=.=", b"a"), ("YWI=", b"ab"),
                          ("YWJj", b"abc"), ("!!", b""), ("YQ==YQ==", b"a")):
        answer = served.eval(input=code, files=[{"path": "f",
                                                 "content": content}])
        assert answer["stdout"] == f"{want}\n", (content, answer)


# ---- executable_path ----

@test
def an_interpreter_that_is_not_there():
    for path in ("/abc/def", "/snekbin/python/2.7/bin/python", "python",
                 "/snekbin/python/3.11/bin/pythonx", "/usr/bin/python3",
                 "/snekbin/python/3.11/bin/python/x", "/etc/hostnam",
                 "/etc/hostname/x", "/etc/shadow", "/home/x",
                 "snekbin/python/3.11/bin/python"):
        is_refused({"input": "1", "executable_path": path},
                   "executable_path does not exist")


@test
def a_file_that_is_no_interpreter():
    for path in ("/etc/hostname", "/etc/passwd", "/bin/sh", "/usr/bin/env",
                 "/etc//x/../hosts", "/../etc/group"):
        is_refused({"input": "1", "executable_path": path},
                   "executable_path is not executable")


@test
def an_interpreter_that_is_a_folder():
    for path in ("/", "/snekbin", "/snekbin/python/3.11/bin",
                 "/snekbin/python/default", "/snekbin/python/3.11/",
                 "/etc", "/usr/bin/", "/home", "/tmp", "/usr/lib/../bin"):
        is_refused({"input": "1", "executable_path": path},
                   "executable_path is not a file")


@test
def interpreters_by_every_path_that_leads_to_them():
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in ("", "/snekbin/python/default/bin/python",
                 "/snekbin/python/3.11/bin/python",
                 "/snekbin/python/3.11/bin/python3",
                 "/snekbin/python/3.11/bin/python3.11",
                 "/snekbin//python/./x/../3.11/bin/python"):
        runs({"input": code, "executable_path": path}, "3.11\n")
    runs({"input": code}, "3.11\n")


# ---- media types ----

@test
def media_types_that_are_not_supported():
    for kind in ("application/xml", "text/plain", "APPLICATION/JSON",
                 "application/jsonx", "json"):
        is_refused({"input": "1"}, "415 Unsupported Media Type",
                   kind + " is an unsupported media type.", 415,
                   **{"Content-Type": kind})


@test
def media_types_that_count_as_json():
    for kind in ("application/json", "application/json; charset=utf-8",
                 "application/json;x=y", "application/json ; a"):
        answer = served.post("/eval", {"input": "print(1)"},
                             {"Content-Type": kind})
        assert answer.status == 200, (kind, answer)
    answer = served.request("POST", "/eval", b'{"input": "print(2)"}')
    assert answer.json["stdout"] == "2\n", answer


@test
def forms_reach_the_validator():
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    is_refused(b"stuff=foo", INVALID, "{'stuff': 'foo'} is not valid under "
               "any of the given schemas", **kind)
    is_refused(b"args=a", INVALID, "'a' is not of type 'array'", **kind)
    answer = served.post("/eval", b"input=print%283%29", kind)
    assert answer.json["stdout"] == "3\n", answer
    answer = served.post("/eval", b"--x--\r\n",
                         {"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status == 400 and answer.body == bytes_of(
        INVALID, "<MultipartForm object> is not of type 'object'"), answer


@test
def errors_obey_accept():
    for accept, kind, body in (
            ("application/xml", "application/xml",
             b'<?xml version="1.0" encoding="UTF-8"?><error><title>Invalid '
             b"JSON</title><description>Could not parse an empty JSON body"
             b"</description></error>"),
            ("text/html", None, b""),
            ("*/*", "application/json", bytes_of(
                "Invalid JSON", "Could not parse an empty JSON body"))):
        answer = served.post("/eval", b"", {"Accept": accept})
        assert (answer.status, answer.body) == (400, body), answer
        assert answer.headers["Content-Type"] == kind, answer.headers
        assert answer.headers["Vary"] == "Accept", answer.headers


# ---- several faults: which one is told ----

@test
def of_several_faults_the_contracts_is_told():
    invalid({"input": 1, "args": 2, "files": 3},
            "1 is not of type 'string'")
    invalid({"args": 2, "files": 3}, "3 is not of type 'array'")
    invalid({"args": [1, 2], "files": [4, {}]},
            "'path' is a required property")
    is_refused({"input": "1", "executable_path": "/x", "files": [
        {"path": "../x"}]}, "executable_path does not exist")
    is_refused(files({"path": "a", "content": "a"}, {"path": "../x"}), FILE,
               "Invalid base64 encoding for file 'a'")


@test
def nothing_has_run_for_what_was_refused():
    text = base64.b64encode(b"x").decode()
    is_refused({"input": "1", "files": [{"path": "a", "content": text},
                                        {"path": "../x"}]}, FILE,
               "File path '../x' may not traverse beyond root")
    runs({"input": "import os; print(os.listdir())"}, "[]\n")


try:
    run()
finally:
    served.close()
