#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /eval: what the contract says about requests: the status, the title and
the description of each row of its schema and of its table of errors."""

import base64
import json

from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="1").__enter__()

INVALID = "Request data failed validation"
FILE = "Request file is invalid"


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
             "'}' expected near '\"b\"' at line 1, column 17"),
            (b'{"input": 1\n "b"}',
             "'}' expected near '\"b\"' at line 2, column 4"),
            (b"x", "invalid token near 'x' at line 1, column 1"),
            (b" ", "unexpected token near end of file at line 1, column 1")):
        is_refused(body, "Invalid JSON", "The body is no JSON: " + text)


@test
def an_empty_body():
    is_refused(b"", "Invalid JSON",
               "The body is empty: send its Content-Length with it.")


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
            "{'files': [], 'x': [true, null, 1.5, 'é'\\\"\\n']}" + any_of)


@test
def a_body_that_is_no_object():
    for body, text in ((b"[]", "[]"), (b"null", "null"), (b"1", "1"),
                       (b'"a"', "'a'"), (b"true", "true")):
        invalid(body, text + " is not of type 'object'")


@test
def input_that_is_no_string():
    for value, text in ((400, "400"), (None, "null"), (True, "true"),
                        ([], "[]"), ({}, "{}"), (1.0, "1.0")):
        invalid({"input": value}, text + " is not of type 'string'")


@test
def args_that_are_no_array_of_strings():
    for value, text in ((400, "400"), (None, "null"), ("a", "'a'"),
                        ({}, "{}"), (True, "true")):
        invalid({"args": value}, text + " is not of type 'array'")
    for value, text in ((1, "1"), (None, "null"), ([], "[]")):
        invalid({"args": ["-c", value]}, text + " is not of type 'string'")


@test
def files_that_are_no_array_of_objects():
    for value, text in ((400, "400"), (None, "null"), ("a", "'a'"),
                        ({}, "{}")):
        invalid({"input": "1", "files": value},
                text + " is not of type 'array'")
    for value, text in ((1, "1"), (None, "null"), ("a", "'a'"), ([], "[]")):
        invalid(files(value), text + " is not of type 'object'")


@test
def fields_of_a_file_that_are_no_strings():
    for value, text in ((1, "1"), (None, "null"), (True, "true"), ([], "[]")):
        invalid(files({"path": value}), text + " is not of type 'string'")
        invalid(files({"path": "a", "content": value}),
                text + " is not of type 'string'")


@test
def an_executable_path_that_is_no_string():
    for value, text in ((400, "400"), (None, "null"), ([], "[]")):
        invalid({"input": "1", "executable_path": value},
                text + " is not of type 'string'")


@test
def a_file_without_path():
    invalid(files({}), "files[0].path is missing")
    invalid(files({"content": "YQ=="}), "files[0].path is missing")
    invalid(files({"path": "a"}, {"Path": "b"}), "files[1].path is missing")


@test
def a_path_that_does_not_match():
    for path in ("/etc/x", "/", "a\\0", "a\nb", "\n\n"):
        invalid(files({"path": path}),
                "files[0].path does not match what is allowed: it must be "
                "relative, without line feeds and without \\0.")


# ---- files ----

@test
def a_path_that_leaves_the_root():
    for path in ("../x", "a/../../x", ".."):
        is_refused(files({"path": path}), FILE,
                   f"File path '{path}' may not traverse beyond root")


@test
def content_that_is_no_base64():
    for content in ("a", "YQ", "YQ=", "Y===", "é", "YQ==é", "YWJjZ",
                    "!!", "Y.Q=", "YQ==YQ=="):
        is_refused(files({"path": "a", "content": content}), FILE,
                   "Invalid base64 encoding for file 'a'")


@test
def base64_may_have_blanks_and_either_alphabet():
    code = "print(open('f', 'rb').read())"
    for content, want in (("", b""), ("YQ==", b"a"), (" Y\nQ=\r=\t", b"a"),
                          ("YWI=", b"ab"), ("YWJj", b"abc"),
                          ("-_8=", b"\xfb\xff"), ("+/8=", b"\xfb\xff")):
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
                 "snekbin/python/3.11/bin/python", "/etc/hostname", "/bin/sh",
                 "/", "/snekbin", "/snekbin/python/3.11/bin", "/home"):
        is_refused({"input": "1", "executable_path": path},
                   "executable_path does not exist")


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
    for kind in ("application/xml", "text/plain", "application/x+json",
                 "application/jsonx", "json",
                 "application/x-www-form-urlencoded", "multipart/form-data"):
        is_refused({"input": "1"}, "415 Unsupported Media Type",
                   kind + " is an unsupported media type.", 415,
                   **{"Content-Type": kind})


@test
def media_types_that_count_as_json():
    for kind in ("application/json", "application/json; charset=utf-8",
                 "application/json;x=y", "application/json ; a",
                 "APPLICATION/JSON"):
        answer = served.post("/eval", {"input": "print(1)"},
                             {"Content-Type": kind})
        assert answer.status == 200, (kind, answer)
    answer = served.request("POST", "/eval", b'{"input": "print(2)"}')
    assert answer.json["stdout"] == "2\n", answer


@test
def errors_are_json_whatever_is_accepted():
    for accept in ("application/xml", "text/html", "*/*"):
        answer = served.post("/eval", b"", {"Accept": accept})
        assert (answer.status, answer.headers["Content-Type"]) == (
            400, "application/json"), answer
        assert answer.json["title"] == "Invalid JSON", answer


# ---- several faults: which one is told ----

@test
def of_several_faults_the_first_is_told():
    invalid({"input": 1, "args": 2, "files": 3},
            "1 is not of type 'string'")
    invalid({"args": 2, "files": 3}, "2 is not of type 'array'")
    invalid({"args": ["1"], "files": [4, {}]}, "4 is not of type 'object'")
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
