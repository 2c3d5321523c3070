#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The process of the next run, forked before it is asked for: what it is, what
it may not have, and what it must not miss."""

import os
import signal

from driver import N, Cell, wait_until
from tap import run, test

ME = "import os; print(os.getpid())"
MIB = 1 << 20


def pid_inside(pid):
    """What a process of the host's is called in its container."""
    with open("/proc/%d/status" % pid) as file:
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])


def is_asleep(pid):
    """Does it wait for its orders?"""
    with open("/proc/%d/syscall" % pid) as file:
        words = file.read().split()
    return words[0] == "45" and int(words[1], 16) > 2   # recvfrom()


@test
def it_is_the_first_run_of_the_next_lease():
    for _ in range(3):
        pid = pid_inside(cell.spare())
        with cell.lease() as lease:
            assert lease.run(ME).stdout == b"%d\n" % pid
            assert lease.run(ME).stdout != b"%d\n" % pid
        assert cell.idle()


@test
def there_is_none_while_code_runs():
    source = "import os; print([n for n in os.listdir('/proc') if n.isdigit()])"
    cell.spare()
    with cell.lease() as lease:
        for _ in range(2):
            told = lease.run(source + "; print(os.getpid())")
            first, second = told.stdout.split(b"\n")[:2]
            assert first == b"['1', '%s']" % second, told
    assert cell.idle()


@test
def while_it_waits_it_is_out_of_reach_and_holds_nothing():
    pid = cell.spare()
    wait_until(lambda: is_asleep(pid))
    assert os.stat("/proc/%d/fd" % pid).st_uid == 0, "it is dumpable"
    assert os.readlink("/proc/%d/cwd" % pid) == "/"
    found = [os.readlink("/proc/%d/fd/%s" % (pid, fd))
             for fd in os.listdir("/proc/%d/fd" % pid)]
    # What it has of the cell's it lets go of before it becomes the run.
    assert len(found) == 14 and all(name.startswith((
        "pipe:", "socket:", "/memfd:input", "/dev/null", "/sys/fs/cgroup/"))
        for name in found), found
    with open("/proc/%d/maps" % pid) as maps:
        assert "/workspace" not in maps.read()
    with open("/proc/%d/oom_score_adj" % pid) as score:
        assert score.read() == "1000\n"


@test
def when_it_has_died_a_run_does_without():
    for kind in (signal.SIGKILL, signal.SIGSEGV):
        pid = cell.spare()
        wait_until(lambda: is_asleep(pid))
        os.kill(pid, kind)
        wait_until(lambda: pid not in cell.processes())
        with cell.lease() as lease:
            told = lease.run("print(input())", stdin="one", args=["a"])
            assert (told.stdout, told.reason, told.status) == (
                b"one\n", N.REASON_EXIT, 0), told
        assert cell.idle()
        assert cell.run_ahead("print(2)").stdout == b"2\n"


@test
def one_that_is_not_wanted_does_not_stay():
    seen = set()
    for _ in range(5):
        seen.add(cell.spare())
        with cell.lease() as lease:
            assert lease.ask("LIST", path="", count=1).reason == N.REASON_EXIT
        assert cell.idle()
    cell.spare()
    assert len(seen) == 5 and len(cell.processes()) == 2


@test
def a_request_that_fails_leaves_it_for_the_next():
    pid = pid_inside(cell.spare())
    with cell.lease() as lease:
        assert lease.run(ME, cwd="nowhere").code == N.ERROR_NOT_FOUND
        assert lease.run(path="none.py").code == N.ERROR_NOT_FOUND
        assert lease.run(ME).stdout == b"%d\n" % pid
    assert cell.idle()


@test
def it_does_what_the_request_says():
    cell.spare()
    with cell.lease() as lease:
        lease.ask("WRITE", path="d/\udcff/f.py", content=(
            b"import os, sys; print(os.fsencode(os.getcwd()),"
            b"[os.fsencode(a) for a in sys.argv], len(sys.stdin.read()))"))
        told = lease.run(path=b"d/\xff/f.py", cwd=b"d/\xff", merge=1,
                         args=[b"\xfe", "\u4e16", ""], stdin=b"x" * 3000000)
        assert told.stdout == (
            b"b'/workspace/d/\\xff' [b'/workspace/d/\\xff/f.py', b'\\xfe',"
            b" b'\\xe4\\xb8\\x96', b''] 3000000\n"), told
    assert cell.idle()
    source = "import sys; print('o'); print('e', file=sys.stderr); 4"
    told = cell.run_ahead(source, merge=1, echo=1)
    assert (told.stdout, told.stderr) == (b"o\ne\n4\n", b""), told
    told = cell.run_ahead(source)
    assert (told.stdout, told.stderr) == (b"o\n", b"e\n"), told
    told = cell.run_ahead("1 / 0", name="n.py")
    assert b'File "/code/n.py", line 1' in told.stderr, told


@test
def sixteen_mebibytes_of_source():
    end = b"\nprint('end', __file__)"
    source = b"#" * (16 * MIB - len(end)) + end
    told = cell.run_ahead(source, wall_ms=60000)
    assert told.stdout == b"end /code/main.py\n", told
    assert cell.run_ahead(source + b" ").code == N.ERROR_TOO_LARGE


@test
def it_sees_what_was_installed_after_it_was_forked():
    program = ("import os, subprocess, sys\n"
               "try: import mine, more; print(mine.x, more.x)\n"
               "except ImportError as e: print(e)\n"
               "print(os.environ.get('PYTHONPATH'))\n"
               "print(subprocess.run([sys.executable, '-c',"
               " 'import mine; print(mine.x)'], stdout=-1, stderr=-3).stdout)")
    without = b"No module named 'mine'\nNone\nb''\n"
    with Cell() as fresh:
        for value in (b"1", b"22"):
            assert fresh.run_ahead(program).stdout == without
            fresh.spare()
            with fresh.lease() as lease:
                for path, data in (("mine.py", b"x = " + value),
                                   ("a.pth", b"/workspace/others\n")):
                    lease.ask("WRITE", path=".site-packages/" + path,
                              content=data)
                lease.ask("WRITE", path="others/more.py", content=b"x = 5")
                told = lease.run(program)
                assert told.stdout == (
                    b"%s 5\n/workspace/.site-packages\nb'%s\\n'\n" % (
                        value, value)), told
            assert fresh.idle()
            fresh.spare()
            with fresh.lease() as lease:
                lease.ask("REMOVE", path=".site-packages", recursive=1)
                assert lease.run(program).stdout == without
            assert fresh.idle()


@test
def it_runs_nothing_of_the_users_before_its_request():
    with Cell() as fresh:
        with fresh.lease() as lease:
            lease.ask("WRITE", path=".site-packages/a.pth", content=(
                b"import os; os.mkdir('/workspace/seen')\n"))
            lease.ask("WRITE", path="usercustomize.py", content=b"1 / 0")
        assert fresh.idle()
        pid = fresh.spare()
        wait_until(lambda: is_asleep(pid))
        with fresh.lease() as lease:
            assert lease.ask("STAT", path="seen").code == N.ERROR_NOT_FOUND
            assert lease.run("print(1)").stdout == b"1\n"
            assert lease.ask("STAT", path="seen").reason == N.REASON_EXIT
        assert fresh.idle()


@test
def a_workspace_that_its_owner_has_locked_is_no_matter():
    with cell.lease() as lease:
        lease.run("import os; os.chmod('/workspace', 0)")
    assert cell.idle()
    assert cell.run_ahead("print(1)").stdout == b"1\n"


@test
def nothing_of_a_run_is_in_the_next():
    look = ("import builtins, os, resource, sys\n"
            "print(sorted(os.environ), os.umask(0o22), os.nice(0),"
            " sorted(sys.modules), os.getcwd(), sys.path, sys.argv,"
            " sorted(vars(builtins)), sys.getrecursionlimit(),"
            " resource.getrlimit(resource.RLIMIT_NOFILE))\n")
    first = cell.run_ahead(look)
    assert first.status == 0, first
    told = cell.run_ahead(
        look + "import json, builtins, resource\n"
        "os.environ['A'] = 'b'; os.umask(0); os.nice(3); builtins.x = 1\n"
        "sys.path.append('y'); sys.setrecursionlimit(77); os.chdir('/tmp')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))")
    assert told.stdout == first.stdout and told.status == 0, told
    assert cell.run_ahead(look).stdout == first.stdout


@test
def no_two_have_the_same_random_numbers():
    source = ("import os, random, tempfile, uuid\n"
              "print(random.random(), os.urandom(8).hex(), uuid.uuid4(),"
              " next(tempfile._get_candidate_names()))")
    found = [cell.run_ahead(source).stdout.split() for _ in range(3)]
    assert all(len(set(column)) == 3 for column in zip(*found)), found


@test
def memory_that_runs_out_is_told_as_such():
    told = cell.run_ahead("x = bytearray(1 << 29)", wall_ms=60000)
    assert told.reason == N.REASON_MEMORY, told
    assert cell.run_ahead("print(3)").stdout == b"3\n"


with Cell() as cell:
    run()
