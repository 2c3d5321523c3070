#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files of the workspace, for the client, among what hostile runs left."""

import io
import os
import time
import zipfile

from driver import USER, N, Cell
from tap import run, test


def python(source, **fields):
    told = lease.run(source, **fields)
    assert told.status == 0, told
    return told.stdout.decode("utf-8", "surrogateescape")


def fresh():
    """An empty workspace."""
    for entry in lease.ask("LIST", path="", count=10000).entries:
        told = lease.ask("REMOVE", path=entry["NAME"], recursive=1)
        assert told.reason == N.REASON_EXIT, told


def write(path, content=b""):
    told = lease.ask("WRITE", path=path, content=content)
    assert told.reason == N.REASON_EXIT, told
    return told


def refused(code, op, **fields):
    told = lease.ask(op, **fields)
    assert told.reason == N.REASON_ERROR and told.code == code, (fields, told)
    return told


def listing(path=""):
    told = lease.ask("LIST", path=path, count=10000)
    assert told.reason == N.REASON_EXIT, told
    assert told.total == len(told.entries)
    return [entry["NAME"] for entry in told.entries]


@test
def what_is_written_is_read_again():
    fresh()
    for content in (b"", b"x", os.urandom(32768), os.urandom(2000000)):
        write("a/b/c.bin", content)
        told = lease.ask("READ", path="a/b/c.bin", max_bytes=1 << 24)
        assert told.files == {b"a/b/c.bin": content}
        assert told.total == len(content)
        assert python("print(len(open('a/b/c.bin', 'rb').read()))") == \
            "%d\n" % len(content)


@test
def a_file_that_is_too_long_is_refused_or_cut():
    write("long", b"0123456789")
    assert refused(N.ERROR_TOO_LARGE, "READ", path="long", max_bytes=9).size \
        == 10
    told = lease.ask("READ", path="long", max_bytes=4, cut=1)
    assert told.files == {b"long": b"0123"} and told.total == 10
    assert lease.ask("READ", path="long", max_bytes=10).files


@test
def listing_puts_directories_first():
    fresh()
    python("""
import os
for d in 'b', 'a', '.d': os.mkdir(d)
for f in 'z', 'c', '.f': open(f, 'w').write(f)
os.symlink('/etc', 'link'); os.mkfifo('fifo'); os.utime('z', (5, 5))
os.symlink('loop', 'loop')
""")
    told = lease.ask("LIST", path="", count=100)
    assert [(e["NAME"], e["KIND"]) for e in told.entries] == [
        (b".d", N.ENTRY_DIRECTORY), (b"a", N.ENTRY_DIRECTORY),
        (b"b", N.ENTRY_DIRECTORY), (b".f", N.ENTRY_FILE), (b"c", N.ENTRY_FILE),
        (b"fifo", N.ENTRY_OTHER), (b"link", N.ENTRY_LINK),
        (b"loop", N.ENTRY_LINK), (b"z", N.ENTRY_FILE)], told.entries
    assert told.entries[-1]["MTIME"] == 5 and told.entries[-1]["SIZE"] == 1
    told = lease.ask("LIST", path="", offset=2, count=3)
    assert [e["NAME"] for e in told.entries] == [b"b", b".f", b"c"]
    assert told.total == 9
    assert lease.ask("LIST", path="", offset=99, count=3).entries == []
    assert lease.ask("LIST", path="", offset=-5, count=0).entries == []


OUT = [b"/etc/passwd", b"..", b"../x", b"a/../../x", b"a/..", b"link",
       b"link/passwd", b"in/../../x", b"x\0y", b"n" * 256, b"d/" * 600 + b"x",
       b"/", b"//x", b"dirlink/f", b"loop", b"a/" + b"m" * 256]


@test
def nothing_outside_is_reached():
    fresh()
    python("""
import os
os.symlink('/etc/passwd', 'link'); os.symlink('/', 'root'); os.mkdir('a')
os.symlink('a', 'dirlink'); open('a/f', 'w').write('f'); os.symlink('loop', 'loop')
os.symlink('/tmp/out', 'dangling')
""")
    paths = OUT + [b"root", b"root/etc/passwd", b"dangling"]
    for path in paths:
        refused(N.ERROR_NOT_INSIDE, "READ", path=path, max_bytes=1 << 20)
        refused(N.ERROR_NOT_INSIDE, "WRITE", path=path, content=b"evil")
        refused(N.ERROR_NOT_INSIDE, "LIST", path=path, count=10)
        told = lease.run(path=path)
        assert told.code == N.ERROR_NOT_INSIDE, told
        told = lease.run("1", cwd=path)
        assert told.code == N.ERROR_NOT_INSIDE, told
        if b"/" in path or b"." in path or len(path) > 200 or b"\0" in path:
            refused(N.ERROR_NOT_INSIDE, "STAT", path=path)
            refused(N.ERROR_NOT_INSIDE, "REMOVE", path=path, recursive=1)
    assert python("import os; print(os.path.exists('/tmp/out'),"
                  "open('a/f').read())") == "False f\n"


@test
def a_link_is_looked_at_and_removed_itself():
    assert lease.ask("STAT", path="link").entries[0]["KIND"] == N.ENTRY_LINK
    for name in ("link", "root", "dirlink", "loop", "dangling"):
        assert lease.ask("REMOVE", path=name, recursive=1).status == 0
    assert listing() == [b"a"]
    assert listing("a") == [b"f"]


@test
def what_is_no_file_is_told_and_never_waited_for():
    fresh()
    python("""
import os, socket
os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock'); os.mkdir('d')
open('f', 'w').close()
""")
    began = time.monotonic()
    for name in ("fifo", "sock"):
        refused(N.ERROR_NOT_REGULAR, "READ", path=name, max_bytes=9)
        refused(N.ERROR_NOT_REGULAR, "WRITE", path=name, content=b"x")
        refused(N.ERROR_NOT_DIRECTORY, "LIST", path=name, count=1)
        refused(N.ERROR_NOT_DIRECTORY, "READ", path=name + "/x", max_bytes=9)
        assert lease.run(path=name).code == N.ERROR_NOT_REGULAR
    refused(N.ERROR_IS_DIRECTORY, "READ", path="d", max_bytes=9)
    refused(N.ERROR_IS_DIRECTORY, "READ", path="", max_bytes=9)
    refused(N.ERROR_IS_DIRECTORY, "WRITE", path="d", content=b"x")
    refused(N.ERROR_IS_DIRECTORY, "WRITE", path="", content=b"x")
    refused(N.ERROR_NOT_DIRECTORY, "WRITE", path="f/x", content=b"x")
    refused(N.ERROR_NOT_DIRECTORY, "LIST", path="f", count=1)
    for op in ("READ", "STAT", "LIST", "REMOVE"):
        refused(N.ERROR_NOT_FOUND, op, path="nope", max_bytes=1)
        refused(N.ERROR_NOT_FOUND, op, path="nope/nope", max_bytes=1)
    assert lease.run("1", cwd="f").code == N.ERROR_NOT_DIRECTORY
    assert lease.run("1", cwd="nope").code == N.ERROR_NOT_FOUND
    assert lease.run(path="nope").code == N.ERROR_NOT_FOUND
    assert time.monotonic() - began < 60
    assert sorted(listing()) == [b"d", b"f", b"fifo", b"sock"]


NAMES = [b"a b", b"new\nline", b"\xff\xfe", "h\u00e9\u4e16".encode(), b"-rf",
         b"`", b"...", b".x", b"'\"", b"\x01", b"n" * 255, b"a" * 254 + b"\xff"]


@test
def names_of_any_bytes():
    fresh()
    for name in NAMES:
        write(name, name)
        write(b"dir-" + name[:200] + b"/" + name, b"in")
    assert listing()[len(NAMES):] == sorted(NAMES)
    for name in NAMES:
        told = lease.ask("READ", path=name, max_bytes=999)
        assert told.files == {name: name}, told
        assert lease.ask("STAT", path=name).entries[0]["NAME"] == name
        assert lease.ask("REMOVE", path=name).status == 0
    assert len(listing()) == len(NAMES)
    told = lease.ask("READ", path=b"./dir-a b//./a b", max_bytes=9)
    assert told.files == {b"dir-a b/a b": b"in"}, told


@test
def writing_is_whole_or_not_at_all():
    fresh()
    write("f", b"old")
    python("import os; os.chmod('f', 0o750)")
    write("f", b"new")
    assert python("import os; print(oct(os.stat('f').st_mode),"
                  "open('f').read(), os.listdir())") == "0o100750 new ['f']\n"
    refused(N.ERROR_NO_SPACE, "WRITE", path="f", content=b"x" * (20 << 20))
    refused(N.ERROR_NO_SPACE, "WRITE", path="g", content=b"x" * (20 << 20))
    assert lease.ask("READ", path="f", max_bytes=99).files == {b"f": b"new"}
    assert listing() == [b"f"]


@test
def no_more_files_than_allowed():
    fresh()
    python("""
n = 0
try:
    while True: open(str(n), 'w').close(); n += 1
except OSError: pass
""")
    told = refused(N.ERROR_NO_SPACE, "WRITE", path="new", content=b"x")
    assert told.disk_full == N.DISK_FULL_FILES, told
    refused(N.ERROR_NO_SPACE, "WRITE", path="d/new", content=b"x")
    assert lease.ask("READ", path="0", max_bytes=1).files == {b"0": b""}
    fresh()


TREE = r"""
import os, socket
os.makedirs('d/empty'); os.makedirs('d/sub/' + 'n' * 200); os.mkdir('d/locked')
open('d/a.txt', 'w').write('a' * 1000)
open('d/sub/b', 'w').write('b'); os.utime('d/sub/b', (0, 0))
open(b'd/\xff.bin', 'w').write('raw')
open('d/locked/x', 'w').close(); os.chmod('d/locked', 0)
open('d/secret', 'w').close(); os.chmod('d/secret', 0)
os.symlink('/etc/passwd', 'd/link'); os.symlink('sub', 'd/to-sub')
os.mkfifo('d/fifo'); socket.socket(socket.AF_UNIX).bind('d/socket')
open('d/run.sh', 'w').write('#!/bin/sh'); os.chmod('d/run.sh', 0o6755)
open(r'd/..\..\x', 'w').write('1')
"""


def archive(path, **fields):
    fields = {"max_bytes": 1 << 20, "count": 1000, **fields}
    return lease.ask("ARCHIVE", path=path, **fields)


@test
def a_directory_is_a_zip():
    fresh()
    python(TREE)
    told = archive("d")
    assert told.reason == N.REASON_EXIT, told
    made = zipfile.ZipFile(io.BytesIO(told.files[b"d.zip"]))
    assert made.testzip() is None
    assert {one.filename: one.file_size for one in made.infolist()} == {
        "a.txt": 1000, "empty/": 0, "run.sh": 9, "sub/b": 1,
        "sub/" + "n" * 200 + "/": 0, "_xff.bin": 3, ".._.._x": 1}
    assert made.getinfo("run.sh").external_attr >> 16 & 0o7777 == 0o755
    assert len(told.files[b"d.zip"]) < 2000
    left = told.left_out
    assert left == {b"d/link": N.LEFT_OUT_KIND, b"d/to-sub": N.LEFT_OUT_KIND,
                    b"d/fifo": N.LEFT_OUT_KIND, b"d/socket": N.LEFT_OUT_KIND,
                    b"d/secret": N.LEFT_OUT_UNREADABLE,
                    b"d/locked": N.LEFT_OUT_UNREADABLE}, left
    assert told.total == len(left)
    assert b"files.zip" in archive("").files
    assert archive("d/empty").files == {}
    refused(N.ERROR_NOT_DIRECTORY, "ARCHIVE", path="d/a.txt", max_bytes=9,
            count=9)
    refused(N.ERROR_NOT_INSIDE, "ARCHIVE", path="d/to-sub", max_bytes=9,
            count=9)
    refused(N.ERROR_NOT_FOUND, "ARCHIVE", path="none", max_bytes=9, count=9)


@test
def names_that_are_told_alike_are_one_entry():
    fresh()
    python(r"""
import os
os.mkdir('alike')
for name in ('a\\b', 'a_b'):
    open('alike/' + name, 'w').write(name)
""")
    told = archive("alike")
    made = zipfile.ZipFile(io.BytesIO(told.files[b"alike.zip"]))
    assert made.namelist() == ["a_b"] and made.testzip() is None
    assert list(told.left_out.values()) == [N.LEFT_OUT_PATH], told.left_out


@test
def a_zip_has_its_bounds():
    fresh()
    python("""
import os
os.makedirs('many'); os.makedirs('big'); os.makedirs('sparse')
for i in range(300): open(f'many/{i:03}', 'w').write('x')
open('big/random', 'wb').write(os.urandom(100000))
os.truncate(os.open('sparse/f', os.O_CREAT | os.O_RDWR), 1 << 40)
""")
    told = archive("many", count=120)
    made = zipfile.ZipFile(io.BytesIO(told.files[b"many.zip"]))
    assert made.namelist() == ["%03d" % i for i in range(120)]
    assert told.total == 180 and len(told.left_out) == 100
    assert set(told.left_out.values()) == {N.LEFT_OUT_COUNT}
    refused(N.ERROR_TOO_LARGE, "ARCHIVE", path="big", max_bytes=50000, count=9)
    refused(N.ERROR_TOO_LARGE, "ARCHIVE", path="sparse", max_bytes=1 << 30,
            count=9)
    assert list(archive("big").files) == [b"big.zip"]
    # Sizes are known before a file is opened, and of one that is no entry the
    # size does not matter.
    python("""
import os
os.mkdir('holes')
for i in range(9):
    os.truncate(os.open(f'holes/{i}', os.O_CREAT | os.O_RDWR), 1 << 26)
os.chmod('holes/0', 0)
os.makedirs('after/z'); open('after/a', 'w').write('a')
os.truncate(os.open('after/z/f', os.O_CREAT | os.O_RDWR), 1 << 40)
""")
    told = refused(N.ERROR_TOO_LARGE, "ARCHIVE", path="holes",
                   max_bytes=1 << 30, count=1000)
    assert told.left_out == {}, told
    told = archive("after", count=1)
    assert list(told.files) == [b"after.zip"], told
    assert told.left_out == {b"after/z/f": N.LEFT_OUT_COUNT}, told.left_out


@test
def removing():
    fresh()
    write("d/e/f", b"x")
    write("g", b"x")
    refused(N.ERROR_NOT_EMPTY, "REMOVE", path="d")
    refused(N.ERROR_REQUEST, "REMOVE", path="", recursive=1)
    refused(N.ERROR_REQUEST, "REMOVE", path="./.", recursive=1)
    assert lease.ask("REMOVE", path="g").status == 0
    assert lease.ask("REMOVE", path="d", recursive=1).status == 0
    write("empty/x")
    lease.ask("REMOVE", path="empty/x")
    assert lease.ask("REMOVE", path="empty").status == 0
    assert listing() == []


@test
def removing_follows_nothing():
    fresh()
    write("keep/f", b"kept")
    python("""
import os
os.mkdir('d'); os.symlink('../keep', 'd/link'); os.symlink('/tmp', 'd/tmp')
open('/tmp/kept', 'w').close()
os.mkfifo('d/fifo')
""")
    assert lease.ask("REMOVE", path="d", recursive=1).status == 0
    assert listing() == [b"keep"] and listing("keep") == [b"f"]
    assert python("import os; print(os.path.exists('/tmp/kept'))") == "True\n"


@test
def locked_directories_are_removed_by_their_owner():
    fresh()
    python("""
import os
os.makedirs('d/e/f'); open('d/e/f/x', 'w').close()
for p in 'd/e/f', 'd/e', 'd': os.chmod(p, 0)
open('secret', 'w').close(); os.chmod('secret', 0)
""")
    refused(N.ERROR_PERMISSION, "LIST", path="d", count=1)
    refused(N.ERROR_PERMISSION, "READ", path="secret", max_bytes=1)
    refused(N.ERROR_PERMISSION, "WRITE", path="d/new")
    assert lease.ask("REMOVE", path="d", recursive=1).status == 0
    assert listing() == [b"secret"]
    fresh()


DEEP = """
import os
os.mkdir('deep'); os.chdir('deep')
for _ in range(%d):
    os.mkdir('d'); os.chdir('d')
    open('f', 'w').close()
"""


@test
def trees_of_ten_thousand_levels():
    with Cell(inodes=30000) as other, other.lease() as deep:
        told = deep.run(DEEP % 10000, collect_files=5, collect_bytes=99,
                        collect_total=99)
        assert told.status == 0, told
        assert len(told.files) == 5, told
        assert deep.ask("STAT", path="deep").status == 0
        told = deep.ask("REMOVE", path="deep", recursive=1)
        assert told.status == 0, told
        assert deep.ask("LIST", path="", count=9).entries == []
        told = deep.run(DEEP.replace("'deep'", "'/tmp/deep'") % 1500)
        assert told.status == 0, told
        deep.sock.close()
        assert other.idle()
        with other.lease() as again:
            told = again.run("import os; print(os.listdir('/tmp'))")
            assert told.stdout == b"[]\n", told


@test
def packages_are_emptied_where_they_are_mounted():
    own = "uid=%d,gid=%d" % (USER, USER)
    with Cell(options=["--tmpfs", "/workspace/.site-packages:" + own]) as other:
        with other.lease() as lease:
            lease.ask("WRITE", path=".site-packages/p/m.py", content=b"x")
            told = lease.ask("REMOVE", path=".site-packages")
            assert told.code == N.ERROR_NOT_EMPTY, told
            told = lease.ask("REMOVE", path=".site-packages", recursive=1)
            assert told.status == 0, told
            told = lease.ask("LIST", path=".site-packages", count=9)
            assert told.status == 0 and told.entries == [], told


@test
def input_files_are_there_when_the_run_begins():
    fresh()
    told = lease.run("print(open('in/a').read(), len(open('b').read()))",
                     inputs=[("in/a", b"A"), ("b", b"B" * 100000),
                             ("empty", b"")])
    assert told.stdout == b"A 100000\n", told
    told = lease.run("print(1)", inputs=[("../x", b"A"), ("c", b"C")])
    assert told.code == N.ERROR_NOT_INSIDE and told.stdout == b"", told
    assert listing() == [b"in", b"b", b"empty"]


@test
def a_cell_of_this_class_installs_nothing():
    refused(N.ERROR_REQUEST, "PIP", args=["x"], wall_ms=1000, output_max=1000)


@test
def a_workspace_that_its_owner_locked_opens_again():
    for mode in 0, 0o444, 0o644:
        lease.run("import os; os.chmod('/workspace', %d)" % mode)
        told = lease.run("import os; print(oct(os.stat('.').st_mode)[-3:])")
        assert told.stdout == b"%o\n" % (mode | 0o700), told
        lease.run("import os; os.chmod('/workspace', %d)" % mode)
        assert lease.ask("LIST", path="", count=9).code is None


with Cell(workspace_size="16m", inodes=600) as cell:
    with cell.lease() as lease:
        run()
