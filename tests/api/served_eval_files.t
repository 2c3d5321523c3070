#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /eval: what the contract says about files, those that come with a
request and those that come back."""

import base64

from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2").__enter__()


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes)
                            else data.encode()).decode()


def file(path, data=""):
    return {"path": path, "content": b64(data)}


def back(path, data=""):
    data = data if isinstance(data, bytes) else data.encode()
    return {"path": path, "size": len(data), "content": b64(data)}


def left(code, *files, **fields):
    """The files of a run that ends well."""
    answer = served.eval(input=code, files=list(files), **fields)
    assert answer["returncode"] == 0, answer
    return answer["files"]


def paths(code, *files):
    return [found["path"] for found in left(code, *files)]


def null(text, *files):
    answer = served.eval(input="print(1)\nopen('x', 'w')", files=list(files))
    assert answer == {"stdout": text, "returncode": None, "files": []}, answer


# ---- with a request ----

@test
def files_are_written_below_home_with_their_folders():
    code = ("import os\nfor r, d, f in sorted(os.walk('/home')):\n"
            "    for n in sorted(f):\n        print(r, n, "
            "open(r + '/' + n, 'rb').read())")
    answer = served.eval(input=code, files=[
        file("a", b"\0\xff"), file("b/c/d", "x"), {"path": "e"},
        {"path": "f", "content": ""}])
    assert answer["stdout"] == ("/home a b'\\x00\\xff'\n/home e b''\n"
                                "/home f b''\n/home/b/c d b'x'\n"), answer


@test
def their_mode_is_0777():
    answer = served.eval(input="import os\nfor n in ('a', 'b/c'): "
                         "print(oct(os.stat(n).st_mode))",
                         files=[file("a"), file("b/c")])
    assert answer["stdout"] == "0o100777\n0o100777\n", answer


@test
def they_are_the_runs_own():
    left("import os\nos.rename('b', 'd'); os.remove('a'); "
         "open('d/c', 'a').write('x'); os.chmod('d/c', 0)",
         file("a"), file("b/c"))


@test
def of_the_same_path_the_last_one_counts():
    for again in ("a/b", "./a//b", "x/../a/b"):
        answer = served.eval(input="print(open('a/b').read())", files=[
            file("a/b", "first"), file(again, "last")])
        assert answer["stdout"] == "last\n", (again, answer)


@test
def a_program_is_a_file_and_finds_its_neighbours():
    answer = served.eval(args=["sub/main.py"], files=[
        file("sub/main.py", "import other; other.f()"),
        file("sub/other.py", "def f(): print(__file__)")])
    assert answer["stdout"] == "/home/sub/other.py\n", answer


@test
def a_file_where_a_folder_is_needed_is_null():
    null("FileExistsError: Failed to create file 'a/b'.", file("a"),
         file("a/b"))
    null("NotADirectoryError: Failed to create file 'a/b/c'.", file("a"),
         file("a/b/c"))


@test
def a_folder_where_a_file_is_to_be_is_null():
    null("IsADirectoryError: Failed to create file 'a'.", file("a/b"),
         file("a"))
    null("IsADirectoryError: Failed to create file ''.", file(""))


@test
def names_too_long_are_null():
    name = "x" * 256
    null(f"OSError: Failed to create file '{name}'.", file(name))


@test
def more_than_48_mib_is_null():
    null("OSError: Failed to create file 'b'.",
         file("a", bytes(30 << 20)), file("b", bytes(20 << 20)))
    left("assert len(open('a', 'rb').read()) == 47 << 20",
         file("a", bytes(47 << 20)))


# ---- back ----

@test
def files_come_back_in_the_order_of_code_points():
    names = ["b", "a", "Z", "é", "\U0001f600", "\uffee", "a/b", "a.b", "a-b",
             "10", "9", "~"]
    names.remove("a")
    code = ("import os\nfor n in %r:\n    os.makedirs(os.path.dirname(n) or "
            "'.', exist_ok=True); open(n, 'w')" % names)
    assert paths(code) == sorted(names)


@test
def their_size_and_content_are_exact():
    data = bytes(range(256)) * 5000
    for cut in (0, 1, 2, 3, 32768, 32769, 1_000_001):
        assert left("open('f', 'wb').write((bytes(range(256)) * 5000)[:%d])"
                    % cut) == [back("f", data[:cut])]


@test
def names_with_a_dot_are_excluded_at_any_depth():
    assert paths("import os\nfor n in ('.a', 'd/.a', '.d/a', 'd/.d/e/a', 'a.'"
                 ", 'd/a', '...'):\n    os.makedirs(os.path.dirname(n) or '.',"
                 " exist_ok=True); open(n, 'w')") == ["a.", "d/a"]


@test
def names_with_an_underscore_are_excluded_but_not_folders():
    assert paths("import os\nfor n in ('_a', 'd/_a', '_d/a', 'a_', '_d/_e/b', "
                 "'__pycache__/c.pyc'):\n    os.makedirs(os.path.dirname(n) or"
                 " '.', exist_ok=True); open(n, 'w')") == [
                     "__pycache__/c.pyc", "_d/_e/b", "_d/a", "a_"]


@test
def any_other_name_comes_back():
    names = sorted(["\n", " ", '"', "\\", "\x01", "\x7f", "é", "\u202e",
                    "a\r\nb", "x" * 255, "-", "%", "'", "\\u0041"])
    assert paths("for n in %r: open(n, 'w')" % names) == names


@test
def a_name_that_is_no_utf8_makes_all_null():
    for code in ("open(b'\\xff', 'w')", "open(b'a\\xc3(', 'w')",
                 "import os; os.mkdir(b'\\xff'); open(b'\\xff/a', 'w')"):
        answer = served.eval(input=code + "\nprint('out')")
        assert answer == {
            "stdout": "FileParsingError: invalid bytes in filename while "
            "parsing attachments", "returncode": None, "files": []}, answer
    assert paths("open(b'.\\xff', 'w'); open(b'_\\xff', 'w')") == []


@test
def uploaded_files_come_back_when_their_time_has_changed():
    code = ("import os, time\n"
            "open('written', 'w').write('new')\nopen('same', 'w').write('s')\n"
            "os.utime('touched')\nos.remove('gone')\nos.chmod('mode', 0o600)\n"
            "open('read').read()\nopen('made', 'w').write('m')\n"
            "os.remove('again'); open('again', 'w').write('a')\n"
            "open('deep/er', 'a').write('+')")
    names = ("written", "same", "touched", "gone", "mode", "read", "again")
    assert left(code, *(file(name, name[0]) for name in names),
                file("deep/er", "x")) == [
        back("again", "a"), back("deep/er", "x+"), back("made", "m"),
        back("same", "s"), back("touched", "t"), back("written", "new")]


@test
def a_time_that_was_put_back_is_no_change():
    assert left("import os\ns = os.stat('a')\nopen('a', 'w').write('b')\n"
                "os.utime('a', ns=(s.st_atime_ns, s.st_mtime_ns))",
                file("a", "a")) == []


@test
def paths_with_dots_always_come_back():
    assert left("pass", file("./x/../y", "1"), file("z", "2")) == [
        back("y", "1")]


@test
def regular_files_and_links_to_such_come_back():
    code = ("import os, socket\nopen('t', 'w').write('abc')\n"
            "os.symlink('t', 'link'); os.symlink('link', 'far')\n"
            "os.link('t', 'hard'); os.symlink('nowhere', 'dangling')\n"
            "os.symlink('loop', 'loop'); os.mkdir('d'); os.symlink('d', 'e')\n"
            "open('d/x', 'w').write('1'); os.mkfifo('fifo')\n"
            "os.symlink('fifo', 'fifolink')\n"
            "socket.socket(socket.AF_UNIX).bind('socket')\n"
            "os.symlink('/dev/zero', 'zero'); os.symlink('/home', 'up')")
    assert left(code) == [back("d/x", "1"), back("far", "abc"),
                          back("hard", "abc"), back("link", "abc"),
                          back("t", "abc")]


@test
def links_out_of_home_give_nothing_of_the_host():
    code = ("import os\nfor i, n in enumerate(('/proc/1/environ', "
            "'/proc/1/maps', '/run/cell/cell.py', '/etc/shadow', "
            "'/dev/null', '/run/inline/cell.sock', '../../etc/shadow')):\n"
            "    os.symlink(n, 'f%d' % i)")
    for found in left(code):
        data = base64.b64decode(found["content"])
        assert b"root:" not in data and b"TOKEN" not in data, found


@test
def a_hundred_and_one_files_come_back():
    code = "for i in range(%d): open('f%%03d' %% i, 'w')"
    assert len(paths(code % 101)) == 101
    assert len(paths(code % 102)) == 101
    assert len(paths(code % 1000)) == 101


@test
def forty_eight_mib_come_back():
    for size, count in ((16 << 20, 3), ((16 << 20) + 1, 2)):
        found = left("for i in range(3):\n    with open(str(i), 'wb') as f: "
                     "f.truncate(%d)" % size)
        assert [(f["size"], len(f["content"])) for f in found] == [
            (size, (size + 2) // 3 * 4)] * count, len(found)


@test
def sparse_files_and_links_count_by_their_apparent_size():
    found = left("import os\nwith open('a', 'wb') as f: f.truncate(20 << 20)\n"
                 "os.symlink('a', 'b'); os.symlink('a', 'c')")
    assert [f["path"] for f in found] == ["a", "b"], len(found)


@test
def a_sparse_file_of_200_mib_is_no_burden():
    assert paths("with open('a', 'wb') as f: f.truncate(200 << 20)\n"
                 "open('b', 'w')") == ["b"]


@test
def modes_hide_nothing():
    assert left("import os\nos.mkdir('d'); open('d/x', 'w').write('1')\n"
                "os.chmod('d/x', 0); os.chmod('d', 0); os.chmod('.', 0)") == [
                    back("d/x", "1")]


@test
def files_beside_home_do_not_come_back():
    assert left("open('/dev/shm/b', 'w')") == []


@test
def files_come_back_from_a_run_that_failed():
    answer = served.eval(input="open('a', 'w').write('1'); 1/0")
    assert answer["returncode"] == 1 and answer["files"] == [back("a", "1")]


@test
def files_that_survivors_write_afterwards_do_no_harm():
    answer = served.eval(input="""
import os
if os.fork() == 0:
    os.setsid()
    while True:
        for i in range(200):
            with open('f%d' % i, 'wb') as file: file.write(os.urandom(5000))
            os.rename('f%d' % i, 'g%d' % i)
            os.remove('g%d' % i)
open('mine', 'w').write('1')
""")
    assert answer["returncode"] == 0, answer
    assert back("mine", "1") in answer["files"], answer
    for found in answer["files"]:
        assert len(base64.b64decode(found["content"])) == found["size"], found


try:
    run()
finally:
    served.close()
