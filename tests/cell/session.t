#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A session's cell: files and commands for one client, and then the end."""

import time

from apidriver import EXECUTE_ENV, ApiCell
from driver import N
from tap import run, test

cell = ApiCell(kind="session")
lease = cell.lease()


def has_shell():
    """Not every image has one; then a command says so."""
    told = lease.request("BASH", source=b"true", wall_ms=20000, output_max=1)
    assert told.reason == N.REASON_EXIT or b"no shell" in told.text.encode()
    return told.reason == N.REASON_EXIT


def bash(command, **fields):
    if isinstance(command, str):
        command = command.encode()
    fields.setdefault("wall_ms", 20000)
    fields.setdefault("output_max", 1000000)
    fields.setdefault("env", EXECUTE_ENV)
    return lease.request("BASH", source=command, **fields)


@test
def files_are_staged_before_anything_runs():
    told = lease.request("STAGE", inputs=[("d/a", b"1"), ("b", b"2")])
    assert told.reason == N.REASON_EXIT, told
    assert told.status == (bash("echo $BASH_VERSION").output == b"\n"), told
    told = bash("cat d/a b; pwd; ls")
    assert told.output == b"12/workspace\nb\nd\n", told
    told = lease.request("STAGE", inputs=[("../x", b"")])
    assert (told.code, told.path) == (N.ERROR_NOT_INSIDE, b"../x"), told


@test
def files_stay_between_commands():
    bash("echo hello >kept; mkdir -p /tmp/x; echo 3 >/tmp/x/y")
    assert bash("cat kept /tmp/x/y").output == b"hello\n3\n"


@test
def a_command_ends_as_a_shell_says():
    told = bash("echo out; echo err >&2; exit 3")
    assert (told.stdout, told.stderr) == (b"out\n", b"err\n"), told
    assert (told.reason, told.status) == (N.REASON_EXIT, 3), told
    assert bash("kill -9 $$").signal == 9
    assert bash("no-such-command").status == 127
    assert bash("if").status == 2
    assert bash("").status == 0


@test
def python_is_there_and_looks_as_ever():
    told = bash("python3 -c 'import os; print(os.getcwd(), os.getpid() > 1)'")
    assert told.output == b"/workspace True\n", told
    assert bash("python3 -c 'print(1)' | python3 -c 'print(input())'"
                ).output == b"1\n"


@test
def a_command_of_python_is_run_too():
    told = lease.request("RUN", plain=1, folder="/workspace", env=EXECUTE_ENV,
                         args=["-c", "import os; print(os.getcwd())"],
                         wall_ms=20000, output_max=1000)
    assert (told.output, told.status) == (b"/workspace\n", 0), told


@test
def standard_input_is_empty():
    assert bash("cat; echo end").output == b"end\n"


@test
def a_pipe_that_is_not_read_ends_its_writer():
    told = bash("yes | head -n 1; echo ${PIPESTATUS:-}", wall_ms=5000)
    assert told.output.startswith(b"y\n") and told.reason == N.REASON_EXIT, told


@test
def the_time_limit_ends_all_that_the_command_began():
    began = time.monotonic()
    told = bash("(trap '' TERM HUP; while :; do echo x >late; sleep .05; done) &"
                " setsid sleep 60 & sleep 60", wall_ms=1500)
    assert told.reason == N.REASON_TIME, told
    assert time.monotonic() - began < 30
    assert bash("rm -f late; sleep .3; ls late 2>&1").status != 0
    assert len(cell.processes()) == 1, cell.processes()


@test
def what_a_command_leaves_behind_ends_with_it():
    told = bash("sleep 60 & echo gone")
    assert told.output == b"gone\n" and told.wall_us < 5000000, told
    assert len(cell.processes()) == 1, cell.processes()


@test
def output_is_bounded():
    told = bash("yes | head -c 100000; echo end >&2", output_max=1000,
                output_mode=N.OUTPUT_DRAIN)
    assert len(told.stdout) == 1000 and told.stderr == b"end\n", told
    assert bash("yes", output_max=1000).reason == N.REASON_OUTPUT


@test
def limits_and_environment_are_the_requests():
    told = bash("echo $A; ulimit -n; ulimit -t", env=["A=1", "PATH=/usr/bin:/bin"],
                limit_files=77, limit_cpu=5)
    assert told.output == b"1\n77\n5\n", told


@test
def long_commands_run():
    told = bash(b"echo " + b"x" * 200000)
    assert told.output == b"x" * 200000 + b"\n", told.fields
    assert bash("echo \0").code == N.ERROR_REQUEST


@test
def a_folder_may_be_named():
    assert bash("pwd", cwd="d").output == b"/workspace/d\n"
    assert bash("pwd", cwd="../tmp").code == N.ERROR_NOT_INSIDE


@test
def the_cell_has_neither_network_nor_namespaces_to_offer():
    told = bash("python3 - <<'E'\nimport ctypes, socket\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "print(libc.unshare(0x10000000))\n"
                "try: socket.create_connection(('1.1.1.1', 53), 1)\n"
                "except OSError: print('none')\nE\n")
    assert told.output == b"-1\nnone\n", told


@test
def a_full_workspace_says_so():
    told = bash("head -c 200000000 /dev/zero >big; echo $?")
    assert told.disk_full == 1, told
    assert bash("rm big; echo ok").output == b"ok\n"


@test
def files_can_be_read_and_listed():
    told = lease.request("LIST", path="", count=10)
    assert [e["NAME"] for e in told.entries][:2] == [b"d", b"b"], told.entries
    assert lease.request("READ", path="b", max_bytes=10).files == {b"b": b"2"}


@test
def hanging_up_ends_the_session():
    lease.begin("BASH", source=b"echo on; sleep 60", wall_ms=60000,
                output_max=10)
    while lease.frame()[0] != "OUTPUT":
        pass
    began = time.monotonic()
    lease.sock.close()
    assert cell.said() == {}
    assert time.monotonic() - began < 30
    assert len(cell.processes()) == 1


try:
    if has_shell():
        run()
    print("1..0 # SKIP no shell in the image")
finally:
    cell.close()
