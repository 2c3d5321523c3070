#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that go into a run and come out of it, over HTTP on real cells; and that
what the original service does wrong is not done here (contract, 1.11)."""

import json
import os
import subprocess
import threading
import time
import zlib

from interpreter import UNKNOWN, Interpreter, refused, text_of
from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)


def files(**named):
    """Files of a request: path=content."""
    return [{"path": path, "file_id": client.put("x", data)}
            for path, data in named.items()]


def placed(*pairs):
    """The same of paths that are no names."""
    return [{"path": path, "file_id": client.put("x", data)}
            for path, data in pairs]


def execute(code, given=(), **fields):
    """A run that goes well: the answer and what it left."""
    answer = served.execute(code, files=list(given), **fields)
    assert answer["exit_code"] == 0, answer
    return answer, client.made(answer)


def left_out(code, **fields):
    """What was not given back, as the extras have it."""
    answer = served.post("/v1/execute", {"code": code, **fields},
                         {"Inline-Extras": "1"})
    assert answer.status == 200, answer
    return answer.json, {f["path"]: f["why"] for f in answer.json["left_out"]}


def containers(service):
    """Those that have its folder mounted."""
    ids = subprocess.run(["docker", "ps", "-q"], capture_output=True,
                         text=True, check=True).stdout.split()
    text = subprocess.run(["docker", "inspect", *ids], capture_output=True,
                          text=True).stdout if ids else ""
    return {one["Id"] for one in json.loads(text or "[]")
            if service.settings["IL_STATE_DIR"] in json.dumps(one["Mounts"])}


# ---- in ----

@test
def files_are_where_they_were_asked_for():
    answer, made = execute(
        "import os\nfor d, _, names in sorted(os.walk('.')):\n"
        "  for p in sorted(d + '/' + n for n in names):\n"
        "    if p != './__main__.py': print(repr(p), open(p).read())",
        placed(("a//b/./c.txt", b"1"), ("./d", b"2"), ("e\\f", b"3"),
               (".env", b"4"), ("x/__main__.py", b"5"), ("é\u2028\n", b"6"),
               ("...", b"7"), ("n" * 255, b"8")))
    assert answer["stdout"].splitlines(True) == [
        "'./...' 7\n", "'./.env' 4\n", "'./d' 2\n", "'./e\\\\f' 3\n",
        "'./" + "n" * 255 + "' 8\n", "'./é\\u2028\\n' 6\n",
        "'./a/b/c.txt' 1\n", "'./x/__main__.py' 5\n"] and not made, answer


@test
def of_equal_paths_the_last_one_counts():
    answer, _ = execute("print(open('a').read())", placed(
        ("a", b"1"), ("./a", b"2"), (".//a", b"3")))
    assert answer["stdout"] == "3\n", answer


@test
def files_and_folders_belong_to_the_run():
    answer, _ = execute(
        "import os\nfor p in ('d', 'd/e', 'd/e/f', 'g'):\n"
        "  s = os.lstat(p); print(p, oct(s.st_mode), s.st_uid, s.st_gid, "
        "int(s.st_mtime) if 'f' in p or 'g' in p else '')",
        placed(("d/e/f", b"1"), ("g", b"1")))
    assert answer["stdout"] == (
        "d 0o40755 65532 65532 \nd/e 0o40755 65532 65532 \n"
        "d/e/f 0o100644 65532 65532 0\ng 0o100644 65532 65532 0\n"), answer


@test
def one_file_may_stand_in_many_places():
    file_id = client.put("x", b"abc")
    answer, _ = execute(
        "import os\nprint(sum(len(open(f'd/{i}').read()) "
        "for i in range(500)))",
        [{"path": "d/%d" % i, "file_id": file_id} for i in range(500)])
    assert answer["stdout"] == "1500\n", answer


@test
def what_clashes_is_422_and_what_does_not_fit_is_413():
    for paths, want in (
            (("a", "a/b"), "File path lies below another file."),
            (("a/b", "a"), "File path is the folder of another file."),
            (("n" * 256,), "File path is too long."),
            (("a/" * 600 + "b",), "File path is too long."),
            (("a\0b",), "File paths must not contain a NUL character.")):
        refused(served.post("/v1/execute", {"code": "1", "files": placed(
            *((p, b"x") for p in paths))}), 422, want)
    big = client.put("big", bytes(80 << 20))
    answer = served.post("/v1/execute", {"code": "1", "files": [
        {"path": p, "file_id": big} for p in "abc"]})
    assert answer.status == 413, answer
    assert answer.json["detail"].endswith("does not fit into the workspace."
                                          ), answer
    client.delete(big)


@test
def a_large_file_goes_in():
    data = os.urandom(1 << 20) * 60
    big = client.put("big", data)
    answer, _ = execute("import os, zlib; h = 0\n"
                        "for p in iter(lambda f=open('big', 'rb'): "
                        "f.read(1 << 20), b''): h = zlib.crc32(p, h)\n"
                        "print(os.stat('big').st_size, h)",
                        [{"path": "big", "file_id": big}], timeout_ms=20000)
    assert answer["stdout"] == "%d %d\n" % (len(data), zlib.crc32(data))
    client.delete(big)


# ---- out ----

@test
def what_is_new_or_changed_comes_back():
    given = files(same=b"1", changed=b"2", touched=b"3", gone=b"4",
                  longer=b"5", linked=b"6")
    _, made = execute(
        "import os\nopen('changed', 'w').write('x'); os.utime('touched')\n"
        "os.chmod('touched', 0o600); os.remove('gone')\n"
        "open('longer', 'a').write('5'); open('same', 'w').write('1')\n"
        "os.remove('linked'); os.symlink('same', 'linked')\n"
        "os.makedirs('a/b/c'); open('a/b/c/new', 'w').write('n')\n"
        "_ = open('empty', 'w')", given)
    assert made == {"changed": b"x", "longer": b"55", "a/b/c/new": b"n",
                    "empty": b""}, made


@test
def nothing_but_regular_files_comes_back():
    _, made = execute(
        "import os, socket\nopen('f', 'w').write('1'); os.mkfifo('fifo')\n"
        "os.symlink('/etc/passwd', 'link'); os.symlink('f', 'link2')\n"
        "os.mkdir('folder'); socket.socket(socket.AF_UNIX).bind('socket')\n"
        "os.symlink('/etc', 'etc')")
    assert made == {"f": b"1"}, made


@test
def what_is_no_regular_file_is_named_and_counted():
    code = ("import os, socket\nopen('f', 'w').write('1'); os.mkfifo('fifo')\n"
            "os.symlink('f', 'link'); os.symlink('none', 'dangling')\n"
            "os.mkdir('d'); os.symlink('.', 'd/loop')\n"
            "socket.socket(socket.AF_UNIX).bind('socket')")
    fields, out = left_out(code)
    assert out == dict.fromkeys(("fifo", "link", "dangling", "d/loop",
                                 "socket"), "not a regular file"), out
    assert [f["path"] for f in fields["files"]] == ["f"], fields
    answer = served.post("/v1/execute", {"code": code})
    assert answer.headers["Inline-Left-Out"] == "5", answer.headers
    answer = served.post("/v1/execute", {"code": "for i in range(1200): "
                         "open('%04d' % i, 'w').close()"})
    assert answer.headers["Inline-Left-Out"] == "100+", answer.headers
    answer = served.post("/v1/execute", {"code": "open('f', 'w').close()"})
    assert "Inline-Left-Out" not in answer.headers, answer.headers


@test
def names_of_one_file_come_back_as_so_many_files():
    answer, made = execute("import os\n_ = open('b', 'w').write('1')\n"
                           "os.link('b', 'a'); os.link('b', 'c')")
    assert made == {"a": b"1", "b": b"1", "c": b"1"}, answer


@test
def names_come_back_as_they_are():
    names = ["é", "e\u0301", "a b", "a\nb", "\u2028", "-rf", "...", "a\\b",
             "😀", "n" * 255, "\x01", "'\"", ".hidden", "x.tar.gz"]
    answer, made = execute("for n in %a: _ = open(n, 'w').write(n)" % names)
    assert made == {n: n.encode() for n in names}, answer
    for item in answer["files"]:
        listed = client.listed()[item["file_id"]]
        assert listed["filename"] == item["path"], listed


@test
def a_name_that_is_no_text_comes_back_with_its_bytes():
    answer, made = execute("_ = open(b'a\\xff', 'w').write('1')")
    assert made == {"a%FF": b"1"}, answer


@test
def the_script_itself_does_not_come_back():
    for echo in (True, False):
        _, made = execute("_ = open('__main__.py', 'a').write('#')\n"
                          "_ = open('x', 'w').write('1')",
                          last_line_interactive=echo)
        assert made == {"x": b"1"}, made


@test
def failures_and_timeouts_leave_their_files():
    answer = served.execute("open('f', 'w').write('1'); 1/0")
    assert answer["exit_code"] == 1 and client.made(answer) == {"f": b"1"}
    answer = served.execute("import os\nopen('f', 'w').write('1')\n"
                            "os.kill(os.getpid(), 9)")
    assert answer["exit_code"] == 137 and client.made(answer) == {"f": b"1"}


@test
def what_is_left_out_is_said():
    fields, out = left_out(
        "import os\nfor i in range(1003): open('%04d' % i, 'w').close()\n"
        "os.truncate(os.open('0big', os.O_CREAT | os.O_WRONLY), 101 << 20)",
        timeout_ms=20000)
    assert len(fields["files"]) == 1000, len(fields["files"])
    assert out.pop("0big") == "too large", out
    assert set(out.values()) == {"too many files"} and len(out) == 3, out


@test
def a_thousand_files_come_back_whole():
    answer, made = execute("for i in range(1000): "
                           "_ = open('%d' % i, 'w').write('%d' % i)")
    assert made == {str(i): str(i).encode() for i in range(1000)}, len(made)
    for item in answer["files"]:
        client.delete(item["file_id"])


@test
def a_stream_gives_the_same_files():
    given = files(same=b"1", changed=b"2")
    events = client.streamed("_ = open('changed', 'w').write('x'); "
                             "_ = open('.new', 'w').write('n')", files=given)
    assert client.made(events[-1].data) == {"changed": b"x", ".new": b"n"}


# ---- what the original does wrong (1.11) ----

@test
def defect_1_no_file_of_the_host_can_be_named():
    known = client.put("x", b"x")
    folder = os.path.join(served.settings["IL_STATE_DIR"], "files")
    for bad in ("/etc/passwd", "../inline.db", "../../etc/passwd",
                known + ".meta", known + ".meta.json", known + "/",
                "./" + known, known.upper(), known + "\n", known + "\0",
                folder + "/" + known, "", ".", ".."):
        for path in ("/v1/execute", "/v1/execute/stream", "/v1/sessions"):
            answer = served.post(path, {"code": "print(open('p').read())",
                                        "files": [{"path": "p",
                                                   "file_id": bad}]})
            refused(answer, 404,
                    "File with ID '%s' not found for path 'p'." %
                    bad.split("\0")[0])
        if bad.startswith("./"):
            continue  # in an address that is the same as without
        quoted = "".join("%%%02X" % c for c in bad.encode())
        for method in ("GET", "DELETE"):
            answer = served.request(method, "/v1/files/" + quoted)
            assert answer.status in (307, 400, 404, 405), (bad, answer)
            assert b"root:" not in answer.body, answer
    assert client.download(known).body == b"x"


@test
def defect_2_no_container_outlives_its_service():
    with Served(IL_API_CELLS="1") as other:
        other.execute("1", timeout_ms=60000)
        link = other.connect()
        link.request("POST", "/v1/execute", b'{"code":"import time; '
                     b'time.sleep(50)","timeout_ms":60000}',
                     {"Content-Type": "application/json"})
        wait_for(lambda: containers(other))
        other.kill("il-api")
        link.close()
        wait_for(lambda: other.get("/health").json["inline"]["cells"][
            "leased"] == 0)
    assert not containers(other), "left behind"


@test
def defect_3_what_is_out_of_time_is_dead():
    mark = "%d.75" % (100000 + os.getpid())
    answer = served.execute(
        "import subprocess\n"
        "subprocess.Popen(['setsid', 'sleep', '%s'])\n"
        "subprocess.run(['sleep', '%s'])" % (mark, mark), timeout_ms=1500)
    assert answer["timed_out"] is True, answer
    assert subprocess.run(["pgrep", "-f", "sleep " + mark],
                          capture_output=True).returncode == 1


@test
def defect_4_one_unreadable_file_does_not_lose_the_others():
    fields, out = left_out(
        "import os\nos.mkdir('d', 0o700)\n"
        "for p, m in (('d/a', 0o600), ('b', 0o400), ('c', 0), ('e', 0o200)):\n"
        "  open(p, 'w').write(p); os.chmod(p, m)\n"
        "os.mkdir('f'); open('f/g', 'w').close(); os.chmod('f', 0)")
    made = client.made(fields)
    assert {"d/a", "b"} <= set(made), fields
    assert made["d/a"] == b"d/a" and made["b"] == b"b", fields
    assert set(made) | set(out) >= {"d/a", "b", "c", "e"}, (fields, out)


@test
def defect_5_leading_dots_stay_and_inputs_do_not_come_back():
    _, made = execute(
        "import os\nos.mkdir('.d'); open('.d/.e', 'w').write('1')\n"
        "open('..f', 'w').write('2'); os.mkdir('sub')\n"
        "_ = open('sub/__main__.py', 'w').write('3')",
        placed(("./x", b"1"), (".//.y", b"2")))
    assert made == {".d/.e": b"1", "..f": b"2", "sub/__main__.py": b"3"}, made


@test
def defect_6_any_name_can_be_downloaded():
    for name in ("日本語.txt", 'a"b', "é\r\nX: y", "\u202e", "a\\b"):
        answer, made = execute("_ = open(%a, 'w').write('1')" % name)
        assert made == {name: b"1"}, answer
        head = client.download(answer["files"][0]["file_id"]).headers
        assert head["X"] is None and head["Content-Disposition"].isascii()


@test
def defect_8_lines_of_a_stream_end_where_they_end():
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    events = client.streamed("print(%a)" % text)
    for event in events:
        assert len(event.raw.decode("utf-8").splitlines()) == 3, event
    assert text_of(events) == text + "\n", events


@test
def defect_9_a_command_may_print_what_it_likes():
    session = served.post("/v1/sessions", {}).json["session_id"]
    answer = served.post("/v1/sessions/%s/bash" % session, {
        "cmd": "echo 'Error: No such container: x' >&2; exit 1"})
    assert answer.status == 200, answer
    assert answer.json["exit_code"] == 1, answer
    assert answer.json["stderr"] == "Error: No such container: x\n", answer
    served.request("DELETE", "/v1/sessions/" + session)


@test
def defect_10_code_may_compute_as_long_as_it_asked_for():
    answer = served.execute(
        "import time\nwhile time.process_time() < 6: pass\n"
        "print('done')", timeout_ms=60000)
    assert answer["stdout"] == "done\n" and answer["exit_code"] == 0, answer
    answer = served.execute("import os\n(os.environ['OMP_NUM_THREADS'], "
                            "os.environ['OPENBLAS_NUM_THREADS'])")
    assert answer["exit_code"] == 0, answer


@test
def defects_of_the_wrapper_are_absent():
    for code, want in (
            ("tree = 5; y = 1; y", "1\n"),
            ("ast = sys = code = node = last_node = code_obj = compile = "
             "exec = interactive = 1\n2", "2\n"),
            ("sorted(n for n in globals() if n[0] != '_')", "[]\n"),
            ("from __future__ import annotations\ndef f(a: no): pass\n"
             "f.__annotations__", "{'a': 'no'}\n")):
        answer = served.execute(code)
        assert (answer["stdout"], answer["stderr"]) == (want, ""), answer


@test
def uploads_at_the_same_time_are_all_there():
    ids = []
    threads = [threading.Thread(target=lambda n=n: ids.append(
        (client.put("f%d" % n, b"%d" % n * 100000), n))) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({file_id for file_id, _ in ids}) == 24, ids
    for file_id, number in ids:
        assert client.download(file_id).body == b"%d" % number * 100000


@test
def a_file_may_be_deleted_while_it_is_used():
    big = client.put("big", bytes(50 << 20))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(served.execute(
        "import os\nprint(os.stat('big').st_size)",
        files=[{"path": "big", "file_id": big}], timeout_ms=20000)))
    thread.start()
    time.sleep(0.02)
    client.delete(big)
    thread.join()
    if seen:
        assert seen[0]["stdout"] == "%d\n" % (50 << 20), seen
    refused(served.post("/v1/execute", {"code": "1", "files": [
        {"path": "a", "file_id": big}]}), 404,
            "File with ID '%s' not found for path 'a'." % big)
    assert UNKNOWN not in client.listed()


try:
    run()
finally:
    served.close()
