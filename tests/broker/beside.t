#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who only wants to look does so beside the run that goes on, and else has a
lease like any other."""
from brokerlib import *

WAIT = "import time; open('made', 'w'); time.sleep(1000)"


def looks(b, n=1):
    return b.lease(n, access="LOOK")


def names(asked):
    """What there is, as who looks sees it."""
    asked.cell.send(pack("REQUEST", ("OP", N["OP_LIST"]), ("PATH", b""),
                         ("OFFSET", 0), ("COUNT", 100)))
    asked.cell.send(pack("GO"))
    found = []
    while True:
        kind, fields = unpack(asked.cell.recv(65536))
        if kind != "ENTRY":
            return found if kind == "RESULT" else kind
        found.append(fields["NAME"])


def runs(b, n=1, cls="user", access=None):
    lease = b.lease(n, cls, access=access)
    lease.start(WAIT)
    receive(lease.cell)                 # STARTED
    return lease


def closes(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def beside():
    with Broker() as b:
        b.create(1)
        b.create(2)
        lease = runs(b)
        one, two = looks(b), looks(b)
        is_((one.access(), one.name()), ("LOOK", lease.name()),
            "who looks has a socket into the cell of the run")
        while names(one) != [b"made"]:
            pass
        is_(names(two), [b"made"], "and so has another")
        is_(b.status()["LEASED"], 1, "that is no lease")
        other = looks(b, 2)
        is_((other.access(), names(other)), ("TIDY", []),
            "where nothing runs it is one, of the own sandbox")
        one.close()
        is_(names(two), [b"made"], "who goes ends nothing")
        is_(b.refusal(1), "BUSY", "who wants to run has to wait")
        lease.close()
        ok(closes(two.cell), "with the run the look is over")
        again = looks(b)
        is_((again.access(), again.fields["COLD"], again.name()),
            ("TIDY", 0, lease.name()), "the next one has the warm cell")
        two.close()
        is_(names(again), [b"made"], "which the end of the last one leaves it")


def not_beside_others():
    with Broker(IL_PIP_NETWORK=pip_network()) as b:
        b.create(1)
        with b.lease(1, access="TIDY"):
            is_(b.refusal(1, access="LOOK"), "BUSY", "not beside files")
        with b.lease(1, "pip"):
            is_(b.refusal(1, access="LOOK"), "BUSY", "nor beside pip")
        for cls in ("pip", "packages"):
            is_(b.refusal(1, cls, access="LOOK"), "INPUT",
                "nor into a cell of " + cls)
        b.wait_status(LEASED=0)


def waits_for_the_run():
    with Broker() as b:
        b.create(1)
        first = b.ask_lease(1)
        look = b.ask_lease(1, access="LOOK")
        is_(first.answer()[0], "GRANTED", "a cell is started for a run")
        is_((look.answer()[0], look.access()), ("GRANTED", "LOOK"),
            "who came meanwhile looks beside it")
        first.start(WAIT)
        receive(first.cell)
        while names(look) != [b"made"]:
            pass
        ok(True, "as soon as it runs")


def lost():
    with Broker() as b:
        b.create(1)
        runs(b)
        look = looks(b)
        subprocess.run([DOCKER, "kill", look.name()], check=True,
                       stdout=subprocess.DEVNULL)
        ok(closes(look.cell), "a cell that dies takes the look with it")
        look.close()
        ok(b.wait_granted(1), "the next lease has another")
        lease = runs(b)
        many = [b.ask_lease(1, access="LOOK") for _ in range(40)]
        granted = [asked.answer()[0] for asked in many]
        is_(granted, ["GRANTED"] * 40, "forty ask at a time")
        served = [asked for asked in many if not gone(asked.cell)]
        is_(len(served), 4, "four of them are served")
        is_(names(served[0]), [b"made"], "while the run goes on")
        ok(not select.select([lease.cell], [], [], 0)[0],
           "which hears nothing of it")


def gone(sock):
    """Has the cell hung up?  Whoever it serves says so at once."""
    try:
        sock.send(pack("REQUEST", ("OP", N["OP_STAT"]), ("PATH", b"")))
        sock.send(pack("GO"))
        while True:
            kind, _ = unpack(sock.recv(65536))
            if kind in (None, "RESULT"):
                return kind is None
    except (BrokenPipeError, ConnectionResetError):
        return True


main(beside, not_beside_others, waits_for_the_run, lost)
