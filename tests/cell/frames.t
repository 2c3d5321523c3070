#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cell speaks the protocol of frame.h, and takes no other."""

import sys

from driver import F, SOURCE, Cell, pack
from tap import run, test

sys.path.insert(0, SOURCE)


@test
def frames_survive_the_journey():
    import frames
    packet = frames.frame(frames.FRAME_OUTPUT, (frames.TAG_DATA, b"\0\xff"),
                          (frames.TAG_STREAM, 2), (frames.TAG_SIZE, None),
                          (frames.TAG_MTIME, -1))
    assert packet == pack("OUTPUT", ("DATA", b"\0\xff"), ("STREAM", 2),
                          ("MTIME", -1))
    frame = frames.Frame(packet)
    assert frame.kind == frames.FRAME_OUTPUT
    assert frame.data(frames.TAG_DATA) == b"\0\xff"
    assert frame.number(frames.TAG_MTIME) == -1
    assert frame.number(frames.TAG_SIZE, 7) == 7


BROKEN = [b"\x20\x10", b"\x20\x10\x08\0\0\0\1", b"\x20\x10\xff\xff\xff\xff\1",
          pack("REQUEST", ("OP", 1), ("OP", 1)),
          pack("REQUEST", ("OP", b"\1")),
          pack("GO"), pack("OUTPUT"), b"\xff"]


@test
def a_broken_frame_ends_the_lease_and_not_the_cell():
    with Cell() as cell:
        for packet in BROKEN:
            with cell.lease() as lease:
                lease.sock.send(packet)
                assert lease.sock.recv(65536) == b"", packet
            assert cell.idle()
        with cell.lease() as lease:
            lease.send("REQUEST", ("OP", F["OP_RUN"]), ("WALL_MS", 1000))
            lease.send("BYTES", ("PART", 9), ("DATA", b"x"))
            assert lease.sock.recv(65536) == b""
        assert cell.idle()
        with cell.lease() as lease:
            assert lease.run("print(1)").stdout == b"1\n"


@test
def an_unknown_tag_is_skipped_and_an_unknown_operation_refused():
    with Cell() as cell, cell.lease() as lease:
        packet = pack("REQUEST", ("OP", F["OP_STAT"]), ("PATH", ""))
        lease.sock.send(packet + b"\xf0\2\0\0\0ab")
        lease.send("GO")
        assert lease.finish().reason == F["REASON_EXIT"]
        lease.send("REQUEST", ("OP", 99))
        lease.send("GO")
        assert lease.finish().code == F["ERROR_REQUEST"]


run()
