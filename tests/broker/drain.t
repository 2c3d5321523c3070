#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""SIGTERM: leases end by themselves, others wait, and at the end there is no
container, however slow docker is."""
import subprocess
import threading

from brokerlib import *
from fake import Fake


def leases_end():
    with Broker(IL_STOP_SECONDS="60") as b:
        b.create(1)
        b.create(2)
        b.lease(2).close()
        lease = b.lease(1)
        lease.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]),
                             ("WALL_MS", 30000), ("MERGE", 1),
                             ("OUTPUT_MAX", MIB)))
        lease.cell.send(pack("BYTES", ("PART", N["PART_SOURCE"]),
                             ("DATA", "print(1, flush=True)\n"
                              "import time; time.sleep(2)\nprint(2)")))
        lease.cell.send(pack("GO"))
        kind, fields = unpack(lease.cell.recv(65536))
        b.process.send_signal(signal.SIGTERM)
        b.wait_log("letting leases end")
        waiting = b.ask_lease(2)
        kept = b.ask(pack("KEPT", ("SANDBOX", sandbox_id(2))))
        is_(kept.answer()[0], "GRANTED", "what is kept is told meanwhile")
        result, output = lease.result()
        is_((fields.get("DATA", b"") + output, result.get("STATUS")),
            (b"1\n2\n", 0), "a run goes on to its end")
        ok(b.process.poll() is None, "while its lease is there")
        lease.close()
        is_(waiting.answer()[0], None, "who has asked meanwhile is let go")
        is_(b.process.wait(PATIENCE), 0, "then it ends")
        is_(b.containers(), [], "with no container left")
        b.start()
        is_(b.refusal(2), "GRANTED", "the next one serves who asks again")


def leases_are_bounded():
    with Broker(IL_STOP_SECONDS="1") as b:
        b.create(1)
        lease = b.lease(1)
        is_(b.stop(PATIENCE), 0, "a lease that does not end has its time")
        lease.sock.settimeout(PATIENCE)
        is_(lease.sock.recv(100), b"", "and is over then")
    with Broker(IL_STOP_SECONDS="600") as b:
        session = b.lease_api(cls="session")
        is_(b.stop(PATIENCE), 0, "a session is not waited for")
        session.close()
    with Broker(IL_STOP_SECONDS="600") as b:
        b.create(1)
        b.lease(1)
        b.process.send_signal(signal.SIGTERM)
        b.wait_log("letting leases end")
        b.process.send_signal(signal.SIGINT)
        try:
            b.process.wait(1.1)
        except subprocess.TimeoutExpired:
            pass
        ok(b.process.poll() is None, "one within a second is the same one")
        is_(b.stop(PATIENCE), 0, "a second SIGTERM does not wait")


def starts_are_ended():
    """docker run takes 8 s: longer than cells need to go by themselves."""
    fake = Fake(run="slow 8")
    with Broker(**fake.settings) as b:
        b.create(1)
        asked = b.ask_lease(1)
        fake.wait_called("run")
        is_(b.stop(PATIENCE), 0, "SIGTERM while docker run is slow")
        is_(b.containers(), [], "no container is there when it has ended")
        is_(fake.calls().count("started"), 1, "though the start came late")
        asked.close()
    fake.close()


def removals_end():
    """Neither what its client sends nor SIGTERM keeps a removal's files."""
    fake = Fake(run="slow 8")
    with Broker(**fake.settings) as b:
        for n, packet in ((1, b"no frame"), (2, pack("PARK")), (3, None)):
            b.create(n)
            if n < 3:
                b.ask_lease(n)
                fake.wait_called("run", n)
            asked = b.ask(pack("REMOVE", ("SANDBOX", sandbox_id(n))))
            if packet:
                asked.sock.send(packet)
            is_(asked.answer()[0], "GRANTED" if n == 3 else None,
                "one removal is answered" if n == 3 else
                "another packet, and the broker hangs up")
        is_(len(b.folders()), 2, "two have cells that start")
        is_(b.stop(PATIENCE), 0, "SIGTERM meanwhile")
        is_(b.folders(), [], "they go on to their end")
    fake.close()


main(leases_end, leases_are_bounded, starts_are_ended, removals_end)
