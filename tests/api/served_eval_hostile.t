#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Hostile requests to POST /eval: the contract's answer or a clear 4xx, and no
process dies."""

import base64
import json
import socket

from served import Served
from service import children
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2").__enter__()

TITLE = "Request data failed validation"
FILE = "Request file is invalid"
EMBEDDED = {"stdout": "ValueError: embedded null byte", "returncode": None,
            "files": []}
LARGE = {"title": "413 Content Too Large",
         "description": "The arguments, or standard input, are too long."}


def processes():
    """Of all programs, but those that they start for a while."""
    found = served.pids("il-fcgi") + served.pids("il-sandboxd")
    for program in ("il-api", "nginx"):
        pids = served.pids(program)
        found += pids + children(pids)
    return sorted(found)


def post(body):
    return served.post("/eval", body, timeout=120)


def refused(body, title, description):
    answer = post(body)
    want = {"title": title, "description": description}
    assert (answer.status, answer.json) == (400, want), answer


def ran(body, stdout):
    answer = post(body)
    assert answer.status == 200 and answer.json["stdout"] == stdout, answer


def known(body, want):
    answer = post(body)
    assert (answer.status, answer.json) == (200, want), answer


def one(path, content="YQ==", **more):
    return {"input": "import os, sys\nfor r, d, f in os.walk('.'): "
            "print(*[ascii(r + '/' + n) for n in f])",
            "files": [{"path": path, "content": content}], **more}


before = processes()


@test
def bytes_that_are_not_utf8_are_refused():
    for body in (b'{"input": "\xff"}', b'{"args": ["\xc3("]}',
                 b'{"input": "\xed\xa0\x80"}',
                 '{"input": "1"}'.encode("utf-16")):
        refused(body, "Invalid JSON",
                "The body is no JSON: it is not in UTF-8")


@test
def a_byte_order_mark_is_passed_over():
    ran(b'\xef\xbb\xbf{"input": "print(1)"}', "1\n")


@test
def half_of_a_pair_becomes_a_replacement_character():
    ran(b'{"input": "print(ascii(\'\\ud800\'))"}', "'\\ufffd'\n")
    ran(b'{"args": ["-c", "import sys; print(ascii(sys.argv[1:]))", '
        b'"\\udc00\\ud800", "\\\\ud800"]}',
        "['\\ufffd\\ufffd', '\\\\ud800']\n")
    ran(b'{"input": "print(1)", "x": "\\ud800"}', "1\n")
    ran({"input": "import os; print(ascii(os.listdir()))",
        "files": [{"path": "\ud800"}]}, "['\\ufffd']\n")
    refused(b'{"input": "1", "files": [{"path": "a", "content": "\\ud800"}]}',
            FILE, "Invalid base64 encoding for file 'a'")


@test
def pairs_of_surrogates_are_one_character():
    ran(b'{"input": "print(len(\'\\ud83d\\ude00\'))"}', "1\n")


@test
def a_nul_in_arguments_is_null():
    for body in ({"input": "a\0b"}, {"args": ["-c", "1", "\0"]},
                 {"input": "1\0"}, {"input": "\0"}):
        known(body, EMBEDDED)


@test
def a_nul_in_a_name_is_refused():
    refused(one("a\0b"), FILE,
            "File path 'a' may not traverse beyond root")


@test
def a_nul_in_the_interpreters_path_is_none():
    answer = post({"input": "1", "executable_path":
                   "/snekbin/python/3.11/bin/python\0"})
    assert answer.status == 400 and answer.json == {
        "title": "executable_path does not exist"}, answer


@test
def numbers_that_are_no_json_are_refused():
    for body in (b"NaN", b'{"input": NaN}', b'{"input": "", "x": Infinity}'):
        answer = post(body)
        assert answer.status == 400, answer
        assert answer.json["title"] == "Invalid JSON", answer


@test
def numbers_that_are_too_large_are_refused():
    for number in (b"9" * 900, b"1" + b"0" * 5000, b"1e400"):
        answer = post(b'{"input": %s}' % number)
        assert answer.status == 400, answer
        assert answer.json["title"] == "Invalid JSON", answer


@test
def of_equal_keys_the_last_one_counts():
    ran(b'{"input": 1, "input": "print(2)"}', "2\n")
    refused(b'{"input": "1", "input": 1}', TITLE, "1 is not of type 'string'")


@test
def deep_json_is_refused():
    for body in (b"[" * 100000, b"[" * 100000 + b"]" * 100000,
                 b'{"input":' * 100000, b'{"a":[' * 100000,
                 b'{"input":"1","x":' + b"[" * 100000 + b"]" * 100000 + b"}"):
        answer = post(body)
        assert answer.status == 400, answer
        assert answer.json["title"] == "Invalid JSON", answer
        assert answer.json["description"] == (
            "The body is no JSON: it is nested too deeply"), answer
    ran(b'{"input": "print(1)", "x": ' + b"[" * 900 + b"]" * 900 + b"}", "1\n")


@test
def too_many_values_are_refused():
    answer = post(b'{"input": "1", "x": [' + b"1," * 1000001 + b"1]}")
    assert answer.status == 400 and answer.json["title"] == "Invalid JSON"


@test
def a_body_of_100_mb_is_taken():
    ran(b'{"input": "print(1)", "x": "' + b"a" * 100_000_000 + b'"}', "1\n")


@test
def code_of_101_mb_is_too_large():
    answer = post(b'{"input": "#' + b"a" * 101_000_000 + b'"}')
    assert (answer.status, answer.json) == (413, LARGE), answer
    assert answer.headers["Content-Type"] == "application/json"


@test
def code_and_input_of_16_mb_are_the_most():
    most = (16 << 20) - len("-c\0\0")
    ran({"input": "print(1)#" + "a" * (most - 9)}, "1\n")
    answer = post({"input": "print(1)#" + "a" * (most - 8)})
    assert (answer.status, answer.json) == (413, LARGE), answer
    ran({"input": "import sys; print(len(sys.stdin.read()))",
         "stdin": "a" * (16 << 20)}, "%d\n" % (16 << 20))
    answer = post({"input": "1", "stdin": "a" * ((16 << 20) + 1)})
    assert (answer.status, answer.json) == (413, LARGE), answer


@test
def a_body_over_the_limit_is_413_before_it_is_sent():
    for length in ((128 << 20) + 1, 1 << 40, 1 << 62):
        with socket.create_connection(("127.0.0.1", served.port), 30) as link:
            link.sendall(b"POST /eval HTTP/1.1\r\nHost: x\r\nContent-Type: "
                         b"application/json\r\nContent-Length: %d\r\n\r\n"
                         % length)
            head, _, body = link.recv(65536).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 413 "), head
        assert b"application/json" in head, head
        assert json.loads(body) == {"title": "413 Content Too Large"}, body


@test
def arguments_over_131071_bytes_run():
    ran({"input": "print(len('%s'))" % ("a" * 200_000)}, "200000\n")
    ran({"args": ["-c", "import sys; print(len(sys.argv[1]))", "a" * 131_072]},
        "131072\n")
    ran({"args": ["-c", "import sys; print(len(sys.argv[1]))", "a" * 131_071]},
        "131071\n")
    ran({"args": ["m.py", "é" * 100_000], "files": [
        {"path": "m.py", "content": base64.b64encode(
            b"import sys; print(len(sys.argv[1]))").decode()}]}, "100000\n")


@test
def arguments_that_no_program_can_have_are_413():
    """Options start the interpreter anew, and the kernel has a limit."""
    for args in (["-I", "-c", "print(1)#" + "a" * 200_000],
                 ["-I", "-c", "print(1)"] + ["a" * 100_000] * 21,
                 ["-I", "-c", "print(1)"] + [""] * 300_000):
        answer = post({"args": args})
        assert (answer.status, answer.json) == (413, LARGE), answer
    ran({"args": ["-I", "-c", "print(1)#" + "a" * 131_062]}, "1\n")
    ran({"args": ["-I", "-c", "print(1)"] + ["a" * 100_000] * 18}, "1\n")


@test
def a_million_arguments_run():
    ran({"args": ["-c", "import sys; print(len(sys.argv))"] + ["a"] * 900_000},
        "900001\n")


@test
def ten_thousand_files_are_written():
    answer = post({"input": "import os; print(len(os.listdir()))", "files": [
        {"path": "f%d" % i} for i in range(10_000)]})
    assert answer.json == {"stdout": "10000\n", "returncode": 0, "files": []}


@test
def more_files_than_there_is_room_for_are_null():
    answer = post({"input": "1", "files": [{"path": "f%d" % i}
                                           for i in range(40_000)]})
    assert answer.json["returncode"] is None, answer
    assert answer.json["stdout"].startswith("OSError: Failed to create file "
                                            "'f"), answer


@test
def names_with_odd_characters_are_names():
    for path in ("a\rb", "a\n", 'a"b', "a'b", "a\\b", "\x7f\x01", " ",
                 "é\u2028\u202e", "\U0001f600", "-c", "*", "a;b", "$(a)",
                 "%0d", "a\tb"):
        ran(one(path), ascii("./" + path) + "\n")


@test
def a_line_feed_within_a_name_is_refused():
    for path in ("a\nb", "\na", "a\n\n"):
        refused(one(path), TITLE, "files[0].path does not match what is "
                "allowed: it must be relative, without line feeds and "
                "without \\0.")


@test
def absolute_names_are_refused():
    for path in ("/a", "//a", "/etc/passwd", "/home/a", "/"):
        refused(one(path), TITLE, "files[0].path does not match what is "
                "allowed: it must be relative, without line feeds and "
                "without \\0.")


@test
def a_backslash_with_a_zero_is_refused():
    for path in ("a\\0b", "\\0", "\\\\0"):
        refused(one(path), TITLE, "files[0].path does not match what is "
                "allowed: it must be relative, without line feeds and "
                "without \\0.")


@test
def names_that_leave_the_root_are_refused():
    for path in ("../x", "..", "a/../../x", "../../etc/passwd", "./..",
                 "../homex", "a/../..", "../" * 3000 + "x"):
        refused(one(path), FILE,
                "File path '%s' may not traverse beyond root" % path)


@test
def names_that_leave_and_come_back_are_written():
    ran(one("../home/x"), "'./x'\n")
    ran(one("a/../x"), "'./x'\n")


@test
def names_of_a_folder_are_null():
    for path in ("", ".", "a/..", "./", "../home"):
        known(one(path), {"stdout": "IsADirectoryError: Failed to create file "
                          "'%s'." % path, "returncode": None, "files": []})


@test
def names_that_are_too_long_are_null():
    for path in ("x" * 256, "x" * 10_000, "é" * 128, "a/" * 5000 + "b",
                 ("x" * 200 + "/") * 6 + "b"):
        known(one(path), {"stdout": "OSError: Failed to create file '%s'."
                          % path, "returncode": None, "files": []})
    ran(one("x" * 255), ascii("./" + "x" * 255) + "\n")
    ran(one("é" * 127), ascii("./" + "é" * 127) + "\n")


@test
def many_slashes_are_one():
    ran(one("a" + "/" * 5000 + "b"), "\n'./a/b'\n")
    ran(one("./" * 5000 + "b"), "'./b'\n")


@test
def paths_of_interpreters_that_are_too_long_are_refused():
    for path in ("/" + "a" * 10_000, "x" * 5000, "/" + "a/" * 3000,
                 "/snekbin/python/" + "3" * 5000 + "/bin/python"):
        answer = post({"input": "1", "executable_path": path})
        assert answer.status == 400 and answer.json == {
            "title": "executable_path does not exist"}, answer


@test
def output_of_any_bytes_is_answered():
    ran({"input": "import sys\n"
         "sys.stdout.write('\\0\\x7f\\u2028\\ufffe\\x1b')"},
        "\0\x7f\u2028\ufffe\x1b")
    for code in ("b'\\xff'", "b'a\\xc3'", "b'\\xed\\xa0\\x80'",
                 "b'\\xf4\\x90\\x80\\x80'", "b'\\xc0\\x80'",
                 "bytes(range(256))"):
        answer = post({"input": "import os; os.write(1, %s)" % code}).json
        assert answer == {"stdout": "UnicodeDecodeError: invalid Unicode in "
                          "output pipe", "returncode": None, "files": []}, code


@test
def characters_in_pieces_are_whole():
    ran({"input": "import os, time\nfor b in '\u20ac\U0001f600é'.encode():\n"
         "    os.write(1, bytes([b])); time.sleep(.02)"},
        "\u20ac\U0001f600é")


@test
def forms_and_other_types_do_no_harm():
    for kind, body, status in (
            ("application/x-www-form-urlencoded", b"input=print(3)", 415),
            ("application/x-www-form-urlencoded", b"%ff" * 1000, 415),
            ("application/x-www-form-urlencoded", b"a&" * 100_000, 415),
            ("multipart/form-data; boundary=x", b"--x\r\n" * 1000, 415),
            ("multipart/form-data", b"", 415),
            ("application/json" + ";x" * 2000, b'{"input": "1"}', 200),
            ("\xff", b"{}", 415), ("application/xml", b"<a/>", 415)):
        answer = served.post("/eval", body, {"Content-Type": kind})
        assert answer.status == status, (kind, answer)


@test
def no_process_has_died():
    assert processes() == before, (processes(), before)
    ran({"input": "print(1)"}, "1\n")


try:
    run()
finally:
    served.close()
