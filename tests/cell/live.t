#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Standard input that comes while a run goes on, and signals for it."""

import array
import contextlib
import os
import socket

from apidriver import EXECUTE_ENV, ApiCell
from driver import F, N, pack
from tap import run, test

cell = ApiCell()
ECHO = "import sys\nfor line in sys.stdin: print('got', line, end='')\nprint(1)"


def begin(lease, code, passed, live=1, stdin=b"", op="RUN", **fields):
    """Send a request whose last frame brings descriptors along."""
    send, last = lease.send, pack("GO")

    def keep(kind, *more):
        if kind == "GO":
            lease.sock.sendmsg([last], [(
                socket.SOL_SOCKET, socket.SCM_RIGHTS,
                array.array("i", passed))] if passed else [])
        else:
            send(kind, *more)

    lease.send = keep
    name = "main.sh" if op == "BASH" else "main.py"
    lease.begin(op, args=[name], plain=1, folder="/workspace",
                wall_ms=20000, output_max=100000, env=EXECUTE_ENV,
                inputs=[(name, code.encode())], stdin=stdin,
                **{"live": live} if live else {}, **fields)
    lease.send = send


@contextlib.contextmanager
def leased(code, **fields):
    """A lease, and the end of the pipe into its run."""
    reader, writer = os.pipe()
    with cell.lease() as lease:
        begin(lease, code, [reader], **fields)
        os.close(reader)
        try:
            yield lease, writer
        finally:
            with contextlib.suppress(OSError):
                os.close(writer)
    cell.said()


def until(lease, want):
    """Take output until it has this."""
    got = b""
    while want not in got:
        kind, fields = lease.frame()
        if kind == "OUTPUT":
            got += fields["DATA"]
        assert kind in ("STARTED", "OUTPUT"), (kind, fields, got)
    return got


@test
def lines_come_as_they_are_sent():
    for op, code in (("RUN", ECHO), ("BASH", "while read -r line; do "
                                     "echo \"got $line\"; done; echo 1")):
        with leased(code, op=op) as (lease, writer):
            for line in (b"a\n", b"b c\n", b"\xc3\xa9\n"):
                os.write(writer, line)
                assert until(lease, line) == b"got " + line
            os.close(writer)
            told = lease.finish()
            assert (told.reason, told.status, told.stdout) == (
                N.REASON_EXIT, 0, b"1\n"), told


@test
def who_reads_nothing_ends_all_the_same():
    with leased("print(2)") as (lease, writer):
        told = lease.finish()
        assert (told.status, told.stdout) == (0, b"2\n"), told


@test
def a_client_that_hangs_up_ends_the_run():
    with leased("import sys\nprint('on', flush=True)\n"
                "while True: sys.stdin.readline()") as (lease, writer):
        until(lease, b"on\n")
    assert cell.run("print(3)").stdout == b"3\n"


@test
def a_run_has_no_other_descriptor_of_the_clients():
    code = ("import os\nfor fd in range(64):\n try: os.fstat(fd)\n"
            " except OSError: continue\n print(fd, end=' ')")
    with leased(code) as (lease, writer):
        assert lease.finish().stdout == b"0 1 2 "


@test
def signals_reach_the_run_and_whom_it_has_started():
    code = ("import os, signal, subprocess, sys\n"
            "signal.signal(signal.SIGUSR1, lambda *_: print('usr1', "
            "flush=True))\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import signal;"
            "signal.signal(signal.SIGUSR1, lambda *_: print(\"child\", "
            "flush=True)); print(\"on\", flush=True)\\nwhile 1: "
            "signal.pause()'])\nwhile 1: signal.pause()")
    with leased(code) as (lease, writer):
        until(lease, b"on\n")
        lease.send("SIGNAL", ("SIGNAL", 10))
        got = b""
        while b"usr1" not in got or b"child" not in got:
            got += until(lease, b"\n")
        lease.send("SIGNAL", ("SIGNAL", 15))
        told = lease.finish()
        assert (told.reason, told.signal) == (N.REASON_SIGNAL, 15), told


@test
def what_is_no_signal_breaks_the_lease():
    for frame in (pack("SIGNAL", ("SIGNAL", 0)),
                  pack("SIGNAL", ("SIGNAL", 65)),
                  pack("SIGNAL", ("SIGNAL", -15)),
                  pack("SIGNAL", ("STATUS", 15)), pack("SIGNAL"),
                  pack("SIGNAL", ("SIGNAL", 15), ("STATUS", 1)),
                  pack("GO")):
        with cell.lease() as lease:
            begin(lease, "import time; print('on', flush=True); "
                  "time.sleep(60)", [], live=0)
            until(lease, b"on\n")
            lease.sock.send(frame)
            assert lease.sock.recv(F["FRAME_MAX"]) == b"", frame
        cell.said()


@test
def a_signal_that_comes_too_late_is_nothing():
    with cell.lease() as lease:
        begin(lease, "print(4)", [], live=0)
        assert lease.finish().stdout == b"4\n"
        with contextlib.suppress(OSError):
            lease.send("SIGNAL", ("SIGNAL", 15))
    cell.said()
    assert cell.run("print(5)").stdout == b"5\n"


@test
def only_a_pipe_is_standard_input():
    ours, theirs = socket.socketpair()
    null = os.open("/dev/null", os.O_RDONLY)
    reader, writer = os.pipe()
    for passed, stdin in (((), b""), ((theirs.fileno(),), b""),
                          ((null,), b""), ((reader,), b"both")):
        with cell.lease() as lease:
            begin(lease, "print(6)", list(passed), stdin=stdin)
            told = lease.finish()
            assert (told.reason, told.code) == (
                N.REASON_ERROR, N.ERROR_REQUEST), (passed, told)
        cell.said()
    with cell.lease() as lease:
        begin(lease, "print(6)", [reader, null])
        assert lease.sock.recv(F["FRAME_MAX"]) == b""
    cell.said()
    # without being asked for it is dropped
    with cell.lease() as lease:
        begin(lease, "print(repr(input()))", [reader], live=0, stdin=b"x\n")
        assert lease.finish().stdout == b"'x'\n"
    cell.said()
    os.close(writer)


@test
def a_cell_without_jails_does_the_same():
    with ApiCell(isolation=1) as other:
        reader, writer = os.pipe()
        with other.lease() as lease:
            begin(lease, ECHO, [reader])
            os.close(reader)
            os.write(writer, b"a\n")
            assert until(lease, b"a\n") == b"got a\n"
            lease.send("SIGNAL", ("SIGNAL", 2))
            told = lease.finish()
            assert told.signal == 2 or told.status == 130, told
        os.close(writer)


try:
    run()
finally:
    cell.close()
