#!/usr/bin/python3
"""PID 1, and what it has ahead, ask for short time slices; a run does not."""

from apidriver import EVAL_ENV, ApiCell
from driver import Cell, N
from slices import EXPECTED, ORDINARY, PROGRAM, slice_of
from tap import run, test

RUN = b"5 %d\n" % ORDINARY


@test
def of_a_users_cell():
    with Cell() as cell:
        pid = cell.spare()
        told = slice_of(cell.root_pid()), slice_of(pid)
        assert told == (EXPECTED, EXPECTED), told
        with cell.lease() as lease:
            ahead, other = (lease.run(PROGRAM).stdout for _ in range(2))
        assert (ahead, other) == (RUN, RUN), (ahead, other)


@test
def of_an_api_cell():
    words = b"-c\0" + PROGRAM.encode() + b"\0"
    with ApiCell() as cell:
        told = [slice_of(pid) for pid in cell.processes()]
        assert told and set(told) == {EXPECTED}, told
        for pieces in ((words,), (words[:1], words[1:])):   # C, and Python
            with cell.lease() as lease:
                lease.send("REQUEST", ("OP", N.OP_RUN), ("PLAIN", 1),
                           ("FOLDER", "/home"), ("WALL_MS", 20000),
                           ("OUTPUT_MAX", 1000),
                           *(("ENV", entry) for entry in EVAL_ENV))
                for piece in pieces:
                    lease.send_part("ARGS", piece)
                lease.send("GO")
                told = lease.finish()
            cell.said()
            assert told.stdout == RUN, told


run()
