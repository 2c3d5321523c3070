#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Clients that break the protocol, and cells that do."""
from brokerlib import *

ID = ("SANDBOX", sandbox_id(1))
USER = ("CLASS", "user")
MS = ("LEASE_MS", 1000)


def answer(b, packet):
    asked = b.ask(packet)
    kind, fields = asked.answer()
    asked.close()
    return refusal_name(fields) if kind == "REFUSED" else kind


def malformed():
    with Broker() as b:
        b.create(1)
        for name, packet in (
                ("an unknown kind", b"\xff"),
                ("a frame that is not for it", pack("READY")),
                ("a field cut off", pack("LEASE", USER)[:-1]),
                ("a length beyond the packet", b"\x01\x01\xff\xff\xff\x7fx"),
                ("nothing in it", pack("LEASE")),
                ("no class", pack("LEASE", ID, MS)),
                ("an unknown class", pack("LEASE", ("CLASS", "root"), ID, MS)),
                ("no time", pack("LEASE", USER, ID)),
                ("no time at all", pack("LEASE", USER, ID, ("LEASE_MS", 0))),
                ("time before now",
                 pack("LEASE", USER, ID, ("LEASE_MS", -5))),
                ("time for ever",
                 pack("LEASE", USER, ID, ("LEASE_MS", 1 << 62))),
                ("time of four bytes",
                 pack("LEASE", USER, ID, ("LEASE_MS", b"1234"))),
                ("no quota", pack("CREATE", ID, ("QUOTA_FILES", 10))),
                ("a quota below zero",
                 pack("CREATE", ("SANDBOX", sandbox_id(2)),
                      ("QUOTA_BYTES", -1), ("QUOTA_FILES", 10))),
                ("a quota above all",
                 pack("CREATE", ("SANDBOX", sandbox_id(2)),
                      ("QUOTA_BYTES", (1 << 63) - 1), ("QUOTA_FILES", 10))),
                ("files above all",
                 pack("CREATE", ("SANDBOX", sandbox_id(2)),
                      ("QUOTA_BYTES", 16 * MIB),
                      ("QUOTA_FILES", (1 << 63) - 1)))):
            is_(answer(b, packet), "INPUT", name)
        is_(b.folders(), [sandbox_id(1)], "nothing was made")


def wrong_ids():
    with Broker() as b:
        b.create(1)
        for bad in ("", "0" * 31, "0" * 33, "0" * 31 + "A", "../" + "0" * 29,
                    "0" * 31 + "/", "." * 32, "0" * 31 + "\n",
                    b"0" * 31 + b"\0", b"\xff" * 32, "/etc/passwd"):
            field = ("SANDBOX", bad)
            is_({answer(b, pack("LEASE", USER, field, MS)),
                 answer(b, pack("CREATE", field, ("QUOTA_BYTES", 16 * MIB),
                                ("QUOTA_FILES", 10))),
                 answer(b, pack("REMOVE", field))}, {"INPUT"},
                "an id that is none: %r" % (bad,))
        is_(b.folders(), [sandbox_id(1)], "nothing was touched")


# What each program needs, and nothing else: {program: words}.
COMMANDS = {
    "LEASE user": pack("LEASE", USER, ID, MS),
    "LEASE pip": pack("LEASE", ("CLASS", "pip"), ID, MS),
    "LEASE api": pack("LEASE", ("CLASS", "api"), MS),
    "LEASE session": pack("LEASE", ("CLASS", "session"), MS),
    "CREATE": pack("CREATE", ("SANDBOX", sandbox_id(2)),
                   ("QUOTA_BYTES", 16 * MIB), ("QUOTA_FILES", 10)),
    "LEASE install": pack("LEASE", ("CLASS", "install"), MS),
    "STAGE": pack("STAGE"),
    "PUBLISH": pack("PUBLISH"),
    "PACKAGES": pack("PACKAGES"),
    "CELLS": pack("CELLS"),
    "REMOVE": pack("REMOVE", ID),
    "STATUS": pack("STATUS"),
}
ALLOWED = {
    "worker": {"LEASE user", "LEASE pip", "CREATE", "REMOVE", "STATUS"},
    "api": {"LEASE api", "LEASE session", "STATUS"},
    "ctl": {"CELLS", "REMOVE", "STATUS"},
}
# What a command about the APIs' packages does: api/served_packages.t.
PACKAGES = {"LEASE install", "STAGE", "PUBLISH", "PACKAGES"}


def by_program():
    with Broker(IL_PIP_NETWORK="none") as b:
        b.create(1)
        for program in ("api", "ctl", "worker"):
            for name, packet in COMMANDS.items():
                if program == "ctl" and name in PACKAGES:
                    continue
                before = b.logged().count("may not ask for")
                asked = b.ask(packet, program)
                kind, fields = asked.answer()
                asked.close()
                if name in ALLOWED[program]:
                    ok(kind in ("GRANTED", "STATUS_IS"),
                       "%s: %s" % (program, name))
                    continue
                told = (kind, fields.get("CODE"), fields.get("TEXT", b""))
                ok(told[:2] == ("REFUSED", N["REFUSAL_INPUT"]) and
                   b"may not ask for " + name.split()[-1].encode()
                   in told[2],
                   "%s: %s is refused in words" % (program, name))
                is_(b.logged().count("may not ask for"), before + 1,
                    "and logged")
            if program != "worker":
                is_(b.folders(), [] if program == "ctl" else
                    [sandbox_id(1)], "%s made nothing" % program)
            b.create(1)


def one_floods():
    """As many connections as it may have are one program's alone."""
    with Broker() as b:
        b.create(1)
        silent = [b.ask(None, "api") for _ in range(400)]
        is_(b.lease(1).run("print(1)")[1], b"1\n",
            "il-api's flood is not the workers'")
        is_(b.ask(pack("STATUS"), "ctl").answer()[0], "STATUS_IS",
            "nor the operator's")
        for one in silent:
            one.close()


def rude():
    with Broker() as b:
        b.create(1)
        is_(b.ask(b"x" * 60000).answer()[0], None, "a packet too long")
        asked = b.ask(None)
        read, write = os.pipe()
        socket.send_fds(asked.sock, [pack("STATUS")], [write] * 3)
        os.close(write)
        asked.answer()
        is_(os.read(read, 1), b"", "descriptors that come along are closed")
        os.close(read)
        lease = b.lease(1)
        lease.sock.send(pack("STATUS"))
        is_(lease.answer()[0], None, "a second request ends the first")
        is_(lease.cell.recv(10), b"", "and its lease")
        is_(b.refusal(1), "GRANTED", "others are served")


def silent():
    with Broker() as b:
        began = time.monotonic()
        asked = b.ask(None)
        is_(asked.answer()[0], None, "a client that says nothing")
        took = time.monotonic() - began
        ok(8 < took < 45, "is hung up on after ten seconds")


def many():
    with Broker() as b:
        b.create(1)
        silent = [b.ask(None) for _ in range(1500)]
        asked = b.ask_lease(1)
        for one in silent[:700]:
            one.close()
        is_(asked.answer()[0], "GRANTED",
            "more than it takes: the others wait, none is lost")


# ---- cells ----

CELL = """
import array, socket, sys, time
N = %r
def pack(kind, *fields):
    out = bytearray([N["FRAME_" + kind]])
    for tag, value in fields:
        out += bytes([N["TAG_" + tag]]) + len(value).to_bytes(4, "little")
        out += value
    return bytes(out)
control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
def connect():
    control.connect(sys.argv[1])
def ready():
    control.send(pack("READY", ("PYTHON", b"3.99")))
def serve():
    data, more, _, _ = control.recvmsg(65536, 64)
    if not data:
        sys.exit()
    fd = array.array("i", bytes(more[0][2][:4]))[0]
    return socket.socket(fileno=fd)
"""


class BadCell(Broker):
    """A broker whose cells run `code` instead of cell.py."""

    def __init__(self, code, **settings):
        folder = tempfile.mkdtemp(prefix="broker-test-")
        lib = os.path.join(folder, "lib")
        os.makedirs(os.path.join(lib, "cell"))
        shutil.copy(os.path.join(ROOT, "sandbox/cell/python/seccomp.json"), lib)
        with open(os.path.join(lib, "cell/cell.py"), "w") as file:
            file.write(CELL % N + code)
        super().__init__(folder=folder, IL_TUNE_LIB_DIR=lib, **settings)
        self.create(1)


def stand_in():
    with BadCell("connect(); ready()\n"
                 "while True:\n lease = serve(); lease.recv(1)\n"
                 " control.send(pack('IDLE'))\n") as b:
        first = b.lease(1)
        name = first.name()
        first.close()
        is_(b.lease(1).name(), name, "a stand-in that behaves is used again")


def never_connects():
    with BadCell("time.sleep(1000)") as b:
        began = time.monotonic()
        is_(b.refusal(1), "START", "a cell that does not connect")
        took = time.monotonic() - began
        ok(18 < took < 55, "is given up after 20 s")
        b.wait_no_container()
        ok(True, "and removed")


def dies_at_start():
    for name, code in (("before it connects", "sys.exit(1)"),
                       ("after it connected", "connect(); sys.exit(1)")):
        with BadCell(code) as b:
            began = time.monotonic()
            is_(b.refusal(1), "START", "a cell that dies " + name)
            ok(time.monotonic() - began < 18, "soon")
            b.wait_status(CELLS=0)


def speaks_nonsense():
    for name, code in (
            ("not a frame", "control.send(b'\\xff\\xff')"),
            ("the wrong frame", "control.send(pack('IDLE'))"),
            ("no version", "control.send(pack('READY'))"),
            ("a version of control bytes",
             "control.send(pack('READY', ('PYTHON', b'\\x1b[31m')))"),
            ("a packet too long", "control.send(b'x' * 60000)")):
        with BadCell("connect()\n%s\ntime.sleep(1000)" % code) as b:
            is_(b.refusal(1), "START", "a cell that says " + name)
            b.wait_no_container()
    idle = "control.send(pack('IDLE'))\n"
    for name, code in (("READY twice", "ready()"),
                       ("IDLE twice", "lease = serve()\n" + idle + idle)):
        with BadCell("connect(); ready()\n%s\ntime.sleep(1000)" % code) as b:
            b.ask_lease(1).answer()
            b.wait_status(CELLS=0)
            ok(True, "a cell that says %s is ended" % name)
            b.wait_no_container()


def does_not_come_back():
    with BadCell("connect(); ready()\nl = serve()\ntime.sleep(1000)") as b:
        lease = b.lease(1)
        name = lease.name()
        lease.close()
        began = time.monotonic()
        again = b.lease(1)
        took = time.monotonic() - began
        note("after %.1f s" % took)
        ok(again.name() != name and 1.5 < took < 45,
           "a cell that does not report IDLE is killed after two seconds")


def ignores_the_end():
    with BadCell("connect(); ready()\n"
                 "import os\nif os.fork() == 0: time.sleep(1000)\n"
                 "l = serve(); l.recv(1); control.close(); l.close()\n"
                 "time.sleep(1000)", IL_CELLS="1") as b:
        lease = b.lease(1)
        name = lease.name()
        lease.close()
        again = b.lease(1)
        ok(again.name() != name,
           "a cell that hangs up and lives on is killed")


main(malformed, wrong_ids, by_program, one_floods, rude, silent, many, stand_in, never_connects,
     dies_at_start, speaks_nonsense, does_not_come_back, ignores_the_end)
