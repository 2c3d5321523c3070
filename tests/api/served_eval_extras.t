#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What POST /eval does beyond its contract, and that clients of the contract
never notice: stdin, timeout_ms, Inline-Extras, Inline-Left-Out."""

import hashlib
import json
import time

from served import JSON, Served
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2",
                IL_TIMEOUT_SECONDS="10").__enter__()

OLD = ["stdout", "returncode", "files"]
NEW = OLD + ["duration_ms", "cpu_ms", "max_rss_bytes", "reason", "left_out",
             "more_left_out"]
EXTRAS = {"Inline-Extras": "1"}
TITLE = "Request data failed validation"


def both(**fields):
    """The answers for a client of the contract and for one that asks."""
    return (served.post("/eval", fields),
            served.post("/eval", fields, EXTRAS))


def extras(**fields):
    answer = served.post("/eval", fields, EXTRAS)
    assert answer.status == 200, answer
    assert list(answer.json) == NEW, list(answer.json)
    return answer.json


MANY = "for i in range(%d): open('f%%03d' %% i, 'w').write('1')"
DEEP = ("import os\nopen('top', 'w').write('1')\nname = ''\n"
        "for i in range(70):\n    name += 'd/'\n    os.mkdir(name)\n"
        "open(name + 'f', 'w')\nprint('out')")


@test
def old_clients_see_no_difference():
    for fields in ({"input": "print('é')"}, {"input": "1/0"},
                   {"input": "open('a', 'w').write('1')"},
                   {"input": MANY % 105},
                   {"input": "import os; os.write(1, b'\\xff')"}):
        old, new = both(**fields)
        assert list(old.json) == OLD, list(old.json)
        assert list(new.json) == NEW, list(new.json)
        assert new.body.startswith(old.body[:-1] + b", "), (old, new)


@test
def refusals_are_the_same_with_the_header():
    for fields in ({"input": 1}, {"files": []}, {"input": "a\0b"},
                   {"input": "1", "files": [{"path": "../x"}]}):
        old, new = both(**fields)
        assert (old.status, old.body) == (new.status, new.body), (old, new)


@test
def only_1_asks_for_extras():
    for value in ("", "0", "true", "11", " 1 2"):
        answer = served.post("/eval", {"input": "1"}, {"Inline-Extras": value})
        assert list(answer.json) == OLD, (value, answer)


@test
def duration_and_cpu_are_told():
    answer = extras(input="import time\ntime.sleep(.3)")
    assert 300 <= answer["duration_ms"] < 60000, answer
    assert answer["cpu_ms"] < answer["duration_ms"], answer
    answer = extras(input="import time\nt = time.process_time\nb = t()\n"
                          "while t() - b < .3: pass")
    assert 300 <= answer["cpu_ms"] < 60000, answer


@test
def memory_is_told_of_the_largest_process():
    small = extras(input="pass")["max_rss_bytes"]
    assert 1 << 20 < small < 40 << 20, small
    large = extras(input="x = b'x' * (60 << 20)")["max_rss_bytes"]
    assert 60 << 20 < large < 140 << 20, large


@test
def the_reason_is_told():
    for code, reason, code_returned in (
            ("pass", "exit", 0), ("raise SystemExit(137)", "exit", 137),
            ("import os; os.kill(os.getpid(), 11)", "signal", 139),
            ("while True: pass", "time", 137),
            ("x = []\nwhile True: x.append(b'x' * (1 << 20))", None, None),
            ("print('x' * 1_200_000)", "output", 143),
            ("print('x' * 999_000)", "exit", 0)):
        answer = extras(input=code,
                        timeout_ms=1500 if reason == "time" else 60000)
        if reason is None:      # by the cell's limit, or by the process's
            assert (answer["reason"], answer["returncode"]) in (
                ("memory", 137), ("exit", 1)), (code, answer)
        else:
            assert (answer["reason"], answer["returncode"]) == (
                reason, code_returned), (code, answer["reason"])


@test
def stdin_is_what_the_run_reads():
    for text in ("", "a\nb", "é\u20ac\U0001f600\0\r\n", "x" * 3_000_000):
        answer = served.eval(input="import sys, hashlib\n"
                             "data = sys.stdin.buffer.read()\n"
                             "print(len(data), hashlib.md5(data).hexdigest())",
                             stdin=text)
        data = text.encode()
        assert answer["stdout"] == "%d %s\n" % (
            len(data), hashlib.md5(data).hexdigest()), answer
    answer = served.eval(input="print(input() + input())", stdin="a\nb\n")
    assert answer["stdout"] == "ab\n", answer


@test
def stdin_that_nobody_reads_holds_up_nothing():
    answer = served.eval(input="print(1)", stdin="x" * 3_000_000)
    assert (answer["stdout"], answer["returncode"]) == ("1\n", 0), answer


@test
def a_shorter_time_ends_the_run():
    started = time.monotonic()
    answer = extras(input="import time\nprint('a')\ntime.sleep(60)",
                    timeout_ms=1500)
    assert answer["returncode"] == 137 and answer["stdout"] == "a\n", answer
    assert 1500 <= answer["duration_ms"] < 5900, answer
    assert time.monotonic() - started < 30


@test
def a_longer_time_than_the_contracts_is_given():
    answer = served.eval(input="import time\ntime.sleep(6.5)\nprint(1)",
                         timeout_ms=10000)
    assert answer == {"stdout": "1\n", "returncode": 0, "files": []}, answer


OUT_OF_RANGE = "timeout_ms must be an integer from 1 to 60000"


@test
def extras_of_a_wrong_type_are_refused_like_all_else():
    for field, value, text in (
            ("stdin", 5, "5 is not of type 'string'"),
            ("stdin", None, "null is not of type 'string'"),
            ("timeout_ms", "5", "'5' is not of type 'integer'"),
            ("timeout_ms", 1.5, "1.5 is not of type 'integer'"),
            ("timeout_ms", True, "true is not of type 'integer'"),
            ("timeout_ms", 0, OUT_OF_RANGE),
            ("timeout_ms", -10 ** 18, OUT_OF_RANGE)):
        answer = served.post("/eval", {"input": "1", field: value})
        assert answer.status == 400 and answer.json == {
            "title": TITLE, "description": text}, answer


@test
def the_time_has_a_maximum():
    over = served.post("/eval", {"input": "1", "timeout_ms": 10 ** 18})
    text = over.json["description"]
    want = "timeout_ms must be an integer from 1 to "
    assert text.startswith(want), text
    most = int(text[len(want):])
    assert served.post("/eval", {"input": "1", "timeout_ms": most}).status \
        == 200
    assert served.post("/eval", {"input": "1", "timeout_ms": most + 1}).status \
        == 400


@test
def files_over_the_number_are_told():
    old, new = both(input=MANY % 103)
    assert old.headers["Inline-Left-Out"] == "2", old.headers
    assert new.headers["Inline-Left-Out"] == "2", new.headers
    assert len(old.json["files"]) == 101
    assert new.json["left_out"] == [
        {"path": "f101", "size": 1, "why": "too many files"},
        {"path": "f102", "size": 1, "why": "too many files"}], new
    assert new.json["more_left_out"] is False


@test
def more_than_can_be_listed_is_told():
    old, new = both(input=MANY % 300)
    assert old.headers["Inline-Left-Out"] == "100+", old.headers
    assert len(new.json["left_out"]) == 100
    assert new.json["more_left_out"] is True


@test
def files_over_the_size_are_told():
    answer = extras(input="""
for name, size in (('a', 30), ('b', 30), ('c', 49), ('d', 1)):
    with open(name, 'wb') as file: file.truncate(size << 20)
""")
    assert [file["path"] for file in answer["files"]] == ["a", "d"]
    assert answer["left_out"] == [
        {"path": "b", "size": 30 << 20, "why": "too large together"},
        {"path": "c", "size": 49 << 20, "why": "too large"}], answer


@test
def what_is_no_regular_file_is_told():
    old, new = both(input="import os\nopen('f', 'w'); os.mkfifo('fifo')\n"
                    "os.symlink('f', 'link'); os.symlink('none', 'dangling')\n"
                    "os.symlink('none', '_hidden'); os.mkfifo('.hidden')")
    assert old.headers["Inline-Left-Out"] == "2", old.headers
    assert [f["path"] for f in new.json["files"]] == ["f", "link"], new
    assert new.json["left_out"] == [
        {"path": path, "size": 0, "why": "not a regular file"}
        for path in ("dangling", "fifo")], new


@test
def files_too_far_down_are_told():
    old, new = both(input=DEEP)
    assert old.json == {"stdout": "FileParsingError: Exceeded directory depth "
                        "limit while parsing attachments",
                        "returncode": None, "files": []}, old
    answer = new.json
    assert answer["stdout"] == "out\n" and answer["returncode"] == 0, answer
    assert [file["path"] for file in answer["files"]] == ["top"]
    (missing,) = answer["left_out"]
    assert missing["why"] == "too deep", missing
    assert missing["path"].startswith("d/d/"), missing


@test
def paths_too_long_are_told():
    answer = extras(input="import os\nfor i in range(20):\n"
                          "    os.mkdir('d' * 250); os.chdir('d' * 250)\n"
                          "open('f', 'w')")
    (missing,) = answer["left_out"]
    assert missing["why"] == "too deep", missing
    assert 500 < len(missing["path"]) <= 1024, missing


@test
def nothing_is_told_where_nothing_is_missing():
    old, new = both(input="open('a', 'w')")
    assert "Inline-Left-Out" not in old.headers, old.headers
    assert new.json["left_out"] == [] and not new.json["more_left_out"]


@test
def names_of_files_left_out_may_be_any_bytes():
    answer = served.post("/eval", {"input": "for i in range(101): "
                                   "open('a%03d' % i, 'w')\n"
                                   "open(b'z\\xff\"\\n', 'w')"}, EXTRAS)
    json.loads(answer.body.decode())
    assert len(answer.json["left_out"]) == 1, answer.json["left_out"]


@test
def versions_are_listed():
    answer = served.get("/versions")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.text == (
        '{"default":"3.11","versions":[{"name":"3.11","executable_path":'
        '"/snekbin/python/3.11/bin/python"}]}'), answer
    for method in ("POST", "PUT", "DELETE"):
        answer = served.request(method, "/versions", b"{}", JSON)
        assert answer.status == 405, answer


@test
def the_path_of_each_version_runs_it():
    for version in served.get("/versions").json["versions"]:
        answer = served.eval(input="import sys\nprint('%d.%d' % "
                             "sys.version_info[:2])",
                             executable_path=version["executable_path"])
        assert answer["stdout"] == version["name"] + "\n", answer


@test
def a_build_that_is_not_there_is_refused_as_by_snekbox():
    with Served(IL_API_CELLS="1", IL_TUNE_EVAL_FALLBACK="0") as strict:
        for build in "3.11t", "3.11j", "3.14t", "3.15":
            answer = strict.post("/eval", {
                "input": "1",
                "executable_path": "/snekbin/python/%s/bin/python" % build})
            assert answer.status == 400 and answer.json == {
                "title": "executable_path does not exist"}, answer
        answer = strict.post("/api/v2/execute", {
            "language": "python", "version": "3.10.0",
            "files": [{"content": "1"}]})
        assert (answer.status, answer.json["message"]) == (
            400, "python-3.10.0 runtime is unknown"), answer


@test
def the_nearest_version_runs_and_a_header_says_so():
    for build, ran in (("3.11t", "3.11"), ("3.11j", "3.11"), ("3.11", None),
                       ("3.14t", "3.11"), ("3.15", "3.11")):
        answer = served.post("/eval", {
            "input": "import sys; print('%d.%d' % sys.version_info[:2])",
            "executable_path": "/snekbin/python/%s/bin/python" % build})
        assert answer.status == 200, answer
        assert answer.json["stdout"] == "3.11\n", answer
        assert answer.headers["Inline-Interpreter"] == ran, build
    answer = served.post("/eval", {"input": "1", "executable_path":
                                   "/snekbin/python/2.7/bin/python"})
    assert answer.status == 400, answer


try:
    run()
finally:
    served.close()
