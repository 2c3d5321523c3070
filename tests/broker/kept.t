#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cells that keep an interpreter: how long, how many, which of them goes first,
and what their owners are told."""

from brokerlib import *

ENDS = {N[name]: name[5:] for name in N if name.startswith("KEPT_")}


def make(b, *ids):
    for n in ids:
        b.create(n)


def run(b, n, source="x = 1", keep=1, access=None):
    """A run in a lease of its own, after which the cell is at rest: (why there
    was nothing, as the broker says, its result, its output)."""
    with b.ask_lease(n, keep=1, access=access) as lease:
        kind, fields = lease.answer()
        assert kind == "GRANTED", (kind, fields)
        result, output = lease.run(source, keep=keep)
        assert result["REASON"] == N["REASON_EXIT"], result
    b.wait_status(LEASED=0)
    return ENDS.get(fields.get("ENDED")), result, output


def begin(b, *sandboxes):
    for n in sandboxes:
        assert run(b, n)[1].get("KEPT") == 1


def asking(b, n, retire=None):
    """Who asks what is kept, and has no answer yet."""
    return b.ask(pack("KEPT", ("SANDBOX", sandbox_id(n)), ("RETIRE", retire)))


def rest(client):
    """How long it rests, or None: there is none."""
    kind, fields = client.answer()
    assert kind == "GRANTED", (kind, fields)
    return fields.get("REST_MS") if fields.get("KEPT") else None


def ask_kept(b, n, retire=None):
    """The same, at once; a cell that comes back from its lease is waited
    for by the broker.
    """
    return rest(asking(b, n, retire))


def comes_back():
    with Broker(IL_TUNE_WARM_SECONDS="0") as b:
        make(b, 1, 2)
        is_(run(b, 1)[0], "RESTARTED", "nothing is known of a first one")
        ok(ask_kept(b, 1) >= 0 and ask_kept(b, 2) is None,
           "it is kept, whatever IL_TUNE_WARM_SECONDS is")
        why, result, output = run(b, 1, "x += 1; print(x)")
        is_((why, result.get("WENT_ON"), output), (None, 1, b"2\n"),
            "and serves the next run")
        with b.lease(1, access="TIDY") as lease:
            is_(lease.op("LIST", ("PATH", ""))[0]["REASON"], N["REASON_EXIT"],
                "who only looks has it, too")
        b.wait_status(LEASED=0)
        is_(run(b, 1, "print(x)")[2], b"2\n", "which ends nothing")
        with b.lease(1) as lease:
            is_(lease.run("print(x)", keep=1)[0].get("KEPT"), None,
                "a lease without KEEP leaves nothing")
        b.wait_status(CELLS=0)
        ok(True, "and its cell ends as any other")


def at_rest():
    with Broker(IL_SESSION_SECONDS="1") as b:
        make(b, 1)
        begin(b, 1)
        b.wait_status(CELLS=0)
        why, result, _ = run(b, 1)
        is_((why, result.get("WENT_ON")), ("RESTED", None),
            "it ends after IL_SESSION_SECONDS, and that is told")
        b.wait_status(CELLS=0)
        run(b, 1, keep=None)
        is_(run(b, 1, keep=None)[0], "RESTARTED", "once")


def bounded():
    with Broker(IL_TUNE_SESSIONS="2", IL_TUNE_WARM_CELLS="0") as b:
        make(b, 1, 2, 3)
        begin(b, 1, 2)
        run(b, 1)
        begin(b, 3)
        b.wait_status(CELLS=2)
        is_([ask_kept(b, n) is None for n in (1, 2, 3)],
            [False, True, False], "the one used longest ago goes first")
        is_(run(b, 2)[0], "GAVE_WAY", "and its owner is told")
    with Broker(IL_TUNE_SESSIONS="0") as b:
        make(b, 1)
        is_(run(b, 1)[1].get("KEPT"), None, "none is kept if there are none")


def room():
    with Broker(IL_CELLS="2") as b:
        make(b, 1, 2, 3)
        begin(b, 1)
        with b.lease(2):
            pass
        ask_kept(b, 2)      # it is back
        with b.lease(3):
            ok(ask_kept(b, 1) is not None, "a cell that keeps nothing goes")
            with b.lease(2):
                pass
        is_(run(b, 1)[0], "GAVE_WAY", "before one that does, which goes then")


def room_on_the_disk():
    with Disk(1300) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="256m",
                                    IL_PIP_QUOTA="512m") as b:
        for n in (1, 2, 3, 4):      # three of them may write at a time
            b.create(n, 256 * MIB, 1000)
        begin(b, 1)
        for n in (2, 3):
            with b.lease(n):
                pass
            ask_kept(b, n)
        with b.lease(4) as lease:
            is_(lease.access(), "WRITE", "for room on the disk cells end")
            ok(ask_kept(b, 1) is not None, "that keep nothing, before")


def ended():
    with Broker(IL_PIP_NETWORK=pip_network()) as b:
        make(b, 1, 2)
        begin(b, 1)
        with b.lease(1, cls="pip"):
            pass
        b.wait_status(LEASED=0)
        is_(run(b, 1)[0], "PACKAGES", "packages are another cell's")
        ok(ask_kept(b, 1, retire=1) is not None, "its owner ends it")
        b.wait_status(CELLS=0)
        is_((ask_kept(b, 1), run(b, 1)[0]), (None, "STOPPED"), "and it has")
        subprocess.run([DOCKER, "kill"] + b.containers(), check=True,
                       stdout=subprocess.DEVNULL)
        b.wait_status(CELLS=0)
        is_(run(b, 1)[0], "DIED", "its cell has been killed")
        begin(b, 1)
        is_(b.remove(1), "GRANTED", "its sandbox is deleted")
        make(b, 1)
        is_(run(b, 1)[0], "RESTARTED", "and with it what was known of it")


def waited_for():
    with Broker() as b:
        make(b, 1)
        begin(b, 1)
        with b.lease(1):
            first, second = asking(b, 1), asking(b, 1)
        ok(rest(first) >= 0 and rest(second) >= 0,
           "who asks beside a lease hears when the cell is back")
        with b.lease(1):
            kind, fields = asking(b, 1).answer()
            is_((kind, refusal_name(fields)), ("REFUSED", "BUSY"),
                "and that it is used, when it is for longer")
            asking(b, 1).close()        # who hangs up is forgotten
        ok(ask_kept(b, 1, retire=1) >= 0, "the next one is answered")


def broken_off():
    with Broker() as b:
        make(b, 1)
        begin(b, 1)
        with b.ask_lease(1, keep=1) as lease:
            lease.answer()
            lease.start("import time; time.sleep(1000)", keep=1)
            is_(unpack(lease.cell.recv(65536))[0], "STARTED",
                "a run begins in it")
        b.wait_status(LEASED=0)
        is_(ask_kept(b, 1), None, "who hangs up in a run keeps nothing")
        is_(run(b, 1, "print('x' in globals())")[2], b"False\n",
            "the next one begins anew")


def restart():
    with Broker() as b:
        make(b, 1)
        begin(b, 1)
        b.kill()
        b.wait_no_container()
        b.start()
        is_((ask_kept(b, 1), run(b, 1)[0]), (None, "RESTARTED"),
            "a broker that was killed knows of none")


def lies():
    """What a cell says alone does not count; what is no sandbox is refused."""
    with Broker() as b:
        make(b, 1)
        for packet in (pack("KEPT"), pack("KEPT", ("SANDBOX", "../x")),
                       pack("KEPT", ("SANDBOX", "f" * 31))):
            is_(b.ask(packet).answer()[0], "REFUSED", "no sandbox's id")
        is_(b.ask(pack("KEPT", ("SANDBOX", sandbox_id(1))), "api").answer()[0],
            "REFUSED", "not for il-api to ask")
        is_(b.ask_lease(1, keep=1, access="LOOK").answer()[0], "REFUSED",
            "who only looks keeps nothing")


main(comes_back, at_rest, bounded, room, room_on_the_disk, ended, waited_for,
     broken_off, restart, lies)
