#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that a run made or changed come back."""

import os
import signal

from driver import N, Cell, unpack
from tap import run, test

WANT = {"collect_files": 10, "collect_bytes": 1000, "collect_total": 5000}


def fresh():
    lease.run("import os, shutil\nfor n in os.listdir():\n"
              "  shutil.rmtree(n) if os.path.isdir(n) and not"
              " os.path.islink(n) else os.unlink(n)")


def collect(source, **fields):
    wanted = dict(WANT)
    wanted.update(fields)
    told = lease.run(source, **wanted)
    assert told.status == 0, told
    return told


@test
def new_and_changed_files_come_and_others_do_not():
    fresh()
    for name in ("same", "changed", "touched", "gone", "chmod", "rewritten"):
        lease.ask("WRITE", path=name, content=b"old")
    told = collect("""
import os
open('new', 'wb').write(b'\\0\\xff')
open('changed', 'a').write('!')
os.utime('touched', (1, 1))
os.unlink('gone')
open('rewritten', 'r+').write('new')
os.makedirs('d/e'); open('d/e/deep', 'w').write('deep')
open('empty', 'w').close()
""")
    assert told.files == {
        b"new": b"\0\xff", b"changed": b"old!", b"touched": b"old",
        b"rewritten": b"new", b"d/e/deep": b"deep", b"empty": b""}, told
    assert list(told.files) == sorted(told.files) and told.total == 6
    assert not told.left_out
    kinds = [kind for kind, _ in told.frames]
    assert kinds[0] == "STARTED" and kinds[-1] == "RESULT"
    assert collect("pass").files == {}


@test
def nothing_comes_that_was_not_asked_for():
    fresh()
    told = lease.run("open('new', 'w').write('x')")
    assert told.files == {} and told.total is None, told


@test
def only_regular_visible_files_come():
    fresh()
    told = collect("""
import os, socket
os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')
socket.socket(socket.AF_UNIX).bind('sock')
os.mkdir('.cache'); open('.cache/x', 'w').close(); open('.hidden', 'w').close()
os.mkdir('__pycache__'); open('__pycache__/x.pyc', 'w').close()
os.mkdir('.site-packages'); open('.site-packages/x.py', 'w').close()
os.symlink('/etc', 'etc'); os.mkdir('dir')
os.link('/workspace/seen', 'hard') if 0 else None
open('seen', 'w').close()
""")
    assert list(told.files) == [b"seen"] and not told.left_out, told


@test
def a_folder_that_became_a_link_leads_nowhere():
    fresh()
    lease.ask("WRITE", path="d/f", content=b"old")
    told = collect("""
import os, shutil
shutil.rmtree('d'); os.symlink('/etc', 'd')
os.chdir('/'); os.rename('/workspace/d', '/workspace/e')
""")
    assert told.files == {} and not told.left_out, told
    lease.ask("WRITE", path="c/f", content=b"old")
    told = collect("import os\nopen('g', 'w').close()\n"
                   "os.rename('../c', '../b'); os.symlink('/etc', '../c')",
                   cwd="c")
    assert told.files == {} and not told.left_out, told


@test
def only_the_folder_of_the_run_is_looked_at():
    fresh()
    lease.ask("WRITE", path="d/f", content=b"old")
    told = collect("open('../out', 'w').close(); open('in', 'w').close()",
                   cwd="d")
    assert list(told.files) == [b"d/in"], told


@test
def what_is_left_out_is_named_with_the_reason():
    fresh()
    told = collect("""
import os
open('a', 'wb').write(bytes(1001))
open('b', 'wb').write(bytes(1000))
open('c', 'wb').write(bytes(900))
open('d', 'wb').write(bytes(200))
open('e', 'wb').write(bytes(50))
open('f', 'wb').write(bytes(1))
open('g', 'wb').write(bytes(1)); os.chmod('g', 0)
with open('sparse', 'wb') as s: s.truncate(1 << 24)
""", collect_files=3, collect_total=2000)
    assert list(told.files) == [b"b", b"c", b"e"], told
    assert told.left_out == {
        b"a": N.LEFT_OUT_SIZE, b"d": N.LEFT_OUT_TOTAL, b"f": N.LEFT_OUT_COUNT,
        b"g": N.LEFT_OUT_COUNT, b"sparse": N.LEFT_OUT_SIZE}, told
    told = collect("import os; os.chmod('g', 0o200); os.chmod('g', 0)")
    assert told.left_out == {b"g": N.LEFT_OUT_UNREADABLE}, told


@test
def files_come_back_whatever_the_end():
    fresh()
    for source, reason in (("while True: pass", N.REASON_TIME),
                           ("while True: print('x')", N.REASON_OUTPUT),
                           ("import os; os.kill(os.getpid(), 9)",
                            N.REASON_SIGNAL),
                           ("x = []\nwhile 1: x.append(bytes(1 << 20))",
                            N.REASON_MEMORY)):
        told = lease.run("f = open('half', 'w'); f.write('%d'); f.flush()\n"
                         % reason + source, wall_ms=3000 if reason == N.REASON_TIME else 60000,
                         output_max=9999, **WANT)
        assert told.reason == reason, told
        assert told.files == {b"half": b"%d" % reason}, told


@test
def a_folder_that_is_locked_keeps_no_other_file_back():
    for mode in 0o400, 0o100, 0:
        fresh()
        told = collect("import os\nos.mkdir('d'); open('d/f', 'w').close()\n"
                       "os.chmod('d', %d); open('new', 'w').close()" % mode)
        assert told.files == {b"new": b""} and not told.left_out, (mode, told)
        lease.ask("REMOVE", path="d", recursive=1)


@test
def times_of_any_year():
    for when in -1, -1 << 40, (1 << 63) - 1:
        fresh()
        told = lease.run("import os\nopen('old', 'w').close()\n"
                         "os.utime('old', (%d, %d))" % (when, when))
        if told.status:         # this file system has no such year
            continue
        told = collect("open('new', 'w').close()")
        assert told.files == {b"new": b""}, (when, told)


@test
def who_sends_them_is_killed_and_the_client_is_told():
    with Cell() as other:
        with other.lease() as broken:
            broken.start_run("for i in range(2000):\n"
                             "    open('%04d' % i, 'w').close()",
                             collect_files=2000, collect_bytes=9,
                             collect_total=9)
            assert broken.frame()[0] == "STARTED"
            assert broken.frame()[0] == "FILE"
            sender = max(set(other.processes()) - {other.root_pid()})
            os.kill(sender, signal.SIGKILL)
            told = broken.finish()
            assert (told.reason, told.code) == (N.REASON_ERROR,
                                                N.ERROR_FAILED), told
        kind, fields = unpack(other.control.recv(65536))
        assert (kind, fields) == ("IDLE", {}), fields
        assert other.run_ahead("print(1)").stdout == b"1\n"


@test
def names_of_any_bytes():
    fresh()
    told = collect("for n in b'\\xff\\xfe', b'new\\nline', b'a b', b'n' * 255:\n"
                   "  open(n, 'w').write('x')")
    assert sorted(told.files) == [b"a b", b"new\nline", b"n" * 255,
                                  b"\xff\xfe"], told


@test
def images_are_sent_before_all_others():
    fresh()
    told = collect("for i in range(20): open('%02d' % i, 'w').write('x')\n"
                   "for n in ('z.PNG', 'y.gif'): open(n, 'w').write('x')")
    assert list(told.files)[:3] == [b"y.gif", b"z.PNG", b"00"], told


@test
def thousands_of_files_are_bounded():
    fresh()
    told = collect("import os\nfor i in range(3000): open('%04d' % i, 'w').close()")
    # the last one as well, so that it is known which folder they are in
    assert len(told.files) == 10 and len(told.left_out) == 101, told.fields
    assert told.total == 3000 and max(told.left_out) == b"2999", told.fields
    told = collect("open('2999', 'w').write('x')")
    assert told.files == {b"2999": b"x"}, told


@test
def more_than_a_look_takes_in():
    with Cell(inodes=30000) as other, other.lease() as big:
        told = big.run("import os\nfor d in range(30):\n  os.mkdir(str(d))\n"
                       "  for i in range(500): open('%d/%d' % (d, i), 'w').close()",
                       **WANT)
        assert told.status == 0 and told.total <= 10000, told.fields
        told = big.run("import time; time.sleep(.1)", **WANT)
        assert told.files == {}, told.fields


@test
def a_large_file_comes_whole():
    fresh()
    told = collect("import hashlib, os\nd = os.urandom(3000000)\n"
                   "open('big', 'wb').write(d)\n"
                   "print(hashlib.sha256(d).hexdigest())",
                   collect_bytes=1 << 22, collect_total=1 << 22)
    import hashlib
    assert hashlib.sha256(told.files[b"big"]).hexdigest().encode() in \
        told.stdout


with Cell(inodes=5000) as cell:
    with cell.lease() as lease:
        run()
