#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""OP_NAMES: what there is in the workspace, whatever its owner made of it."""

import time

from driver import N, Cell
from tap import run, test

LIMITS = {"count": 1000, "max_bytes": 200, "output_max": 202000,
          "wall_ms": 1000}


def told(**limits):
    """[(letter, path)]"""
    answer = lease.ask("NAMES", **dict(LIMITS, **limits))
    assert answer.reason == N.REASON_EXIT and answer.status == 0, answer
    assert answer.output.endswith(b"\0") or not answer.output
    return [(one[:1], one[1:]) for one in answer.output.split(b"\0")[:-1]]


def python(source):
    answer = lease.run("import os\n" + source)
    assert answer.status == 0, answer


def fresh():
    python("import shutil\nfor n in os.listdir():\n    shutil.rmtree(n)"
           " if os.path.isdir(n) and not os.path.islink(n) else os.unlink(n)")


@test
def the_nearest_come_first():
    fresh()
    assert told() == []
    python("""
os.makedirs('b/c/d')
for name in 'z', 'b/f', 'b/c/g', 'a': open(name, 'w').close()
""")
    assert told() == [
        (b"f", b"a"), (b"d", b"b"), (b"f", b"z"), (b"d", b"b/c"),
        (b"f", b"b/f"), (b"d", b"b/c/d"), (b"f", b"b/c/g")]
    assert len(told(count=3)) == 3
    assert told(output_max=8) == [(b"f", b"a"), (b"d", b"b")]
    assert told(max_bytes=1) == [(b"f", b"a"), (b"d", b"b"), (b"f", b"z")]


@test
def nothing_is_followed_and_nothing_hidden_is_entered():
    fresh()
    python("""
for folder in '.cache', '__pycache__', '.site-packages/p', 'locked':
    os.makedirs(folder)
    open(folder + '/x', 'w').close()
os.symlink('/etc', 'link'); os.symlink('.', 'self'); os.mkfifo('fifo')
os.chmod('locked', 0)
""")
    assert told() == [
        (b"d", b".cache"), (b"d", b".site-packages"), (b"f", b"fifo"),
        (b"f", b"link"), (b"d", b"locked"), (b"f", b"self")]
    python("os.chmod('locked', 0o700)")


@test
def names_of_any_bytes_come_as_they_are():
    fresh()
    python(r"for n in b'\xff', b'\n', b'-rf', b' ': open(n, 'w').close()")
    assert told() == [(b"f", name) for name in (b"\n", b" ", b"-rf", b"\xff")]


@test
def a_large_folder_takes_no_longer():
    fresh()
    python("""
os.mkdir('many')
for i in range(20000): open('many/%d' % i, 'w').close()
path = '.'
for i in range(300):
    path += '/d'
    os.mkdir(path)
""")
    began = time.monotonic()
    found = told()
    took = time.monotonic() - began
    assert 100 < len(found) <= 1000 and took < 1, (len(found), took)
    assert found[:2] == [(b"d", b"d"), (b"d", b"many")]


@test
def after_a_run_and_in_a_lease_that_only_tidies():
    python("open('new', 'w').close()")
    assert (b"f", b"new") in told()
    with Cell() as other, other.lease(access=N.ACCESS_TIDY) as tidy:
        answer = tidy.ask("NAMES", **LIMITS)
        assert answer.status == 0 and answer.output == b"", answer


with Cell(inodes=30000) as cell:
    with cell.lease() as lease:
        run()
