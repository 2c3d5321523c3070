#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/mnt/data, another name of an API's workspace; and commands in a cell that
serves runs, with files in and out."""

from apidriver import EXECUTE_ENV, ApiCell
from driver import USER, F, N
from tap import run, test

MNT = ["--tmpfs", "/mnt:noexec,nosuid,nodev,size=4k,nr_inodes=2,mode=0755,"
       "uid=%d,gid=%d" % (USER, USER)]
jailed = ApiCell(options=MNT)


def bash(cell, command, **fields):
    if isinstance(command, str):
        command = command.encode()
    for name, value in (("op", "BASH"), ("folder", "/workspace"),
                        ("wall_ms", 20000), ("output_max", 1000000),
                        ("env", EXECUTE_ENV), ("collect_files", 100),
                        ("collect_ms", 60000), ("collect_bytes", 1 << 20),
                        ("collect_total", 1 << 20),
                        ("collect_how", F["COLLECT_BYTES"])):
        fields.setdefault(name, value)
    return cell.once({**fields, "source": command})


def left(told):
    return {path: bytes(data) for path, data in told.files.items()}


@test
def it_is_the_workspace():
    for isolation in (None, 1):
        cell = jailed if isolation is None else ApiCell(
            options=MNT, isolation=isolation)
        told = cell.run("import os\nprint(open('/mnt/data/d/in').read(), "
                        "os.path.samefile('.', '/mnt/data'), os.listdir('/mnt'))\n"
                        "open('/mnt/data/out', 'w').write('made')",
                        wait=isolation is None, inputs=[("d/in", b"given")],
                        echo=0)
        assert told.stdout == b"given True ['data']\n", told
        assert left(told) == {b"out": b"made"}, told


@test
def nobody_changes_what_the_name_means():
    told = jailed.run("import os\nfor f in (lambda: os.remove('/mnt/data'), "
                      "lambda: os.symlink('/tmp', '/mnt/x'), lambda: "
                      "os.rename('/mnt/data', '/mnt/y')):\n"
                      "  try: f()\n"
                      "  except OSError as e: print(e.errno)")
    assert told.stdout == b"30\n30\n30\n", told


@test
def a_session_has_it_too():
    cell = ApiCell(kind="session", options=MNT)
    with cell.lease() as lease:
        lease.request("STAGE", inputs=[("a", b"1")])
        told = lease.request("BASH", source=b"cat /mnt/data/a; ls /mnt",
                             wall_ms=20000, output_max=1000,
                             env=EXECUTE_ENV)
        assert told.output == b"1data\n", told


@test
def a_command_has_words_files_and_standard_input():
    told = bash(jailed, 'echo "$0 $# $2"; cat in - >out; exit 3',
                inputs=[("in", b"a"), ("same", b"s")], stdin=b"b",
                arg="one")
    assert told.stdout.endswith(b" 1 \n"), told
    assert (told.status, left(told)) == (3, {b"out": b"ab"}), told


@test
def a_command_may_be_longer_than_a_word():
    long = "true " + "x" * 300000 + "\necho done; pwd; echo x >f"
    told = bash(jailed, long)
    assert told.stdout == b"done\n/workspace\n", told
    assert left(told) == {b"f": b"x\n"}, told
    told = bash(jailed, "ls -A /tmp")
    assert told.stdout == b"", told


@test
def a_command_is_a_run_like_others():
    told = bash(jailed, "sleep 60", wall_ms=300)
    assert told.reason == N.REASON_TIME, told
    told = bash(jailed, b"a\0b")
    assert told.reason == N.REASON_ERROR, told


run()
