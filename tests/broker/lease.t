#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Leases on the real engine: cold, warm, two clients, and every end of one."""
from brokerlib import *


def cold_then_warm():
    with Broker() as b:
        is_(b.create(1), "GRANTED", "a workspace is made")
        lease = b.lease(1)
        is_(lease.fields["COLD"], 1, "the first lease starts a cell")
        cold = lease.ms
        result, output = lease.run("open('a', 'w').write('x'); print(6 * 7)")
        is_((result["REASON"], output), (N["REASON_EXIT"], b"42\n"),
            "code runs in it")
        first = lease.name()
        lease.close()
        lease = b.lease(1)
        is_((lease.fields["COLD"], lease.name()), (0, first),
            "the second lease takes the same cell")
        note("cold %.0f ms, warm %.2f ms" % (cold, lease.ms))
        ok(lease.ms < cold / 4, "which is quicker")
        _, output = lease.run("print(open('a').read())")
        is_(output, b"x\n", "the workspace is still there")
        lease.close()
        is_(b.status()["PYTHON"].split(b".")[0], b"3", "the version is known")


def workspace_lasts():
    with Broker(IL_TUNE_WARM_CELLS="0") as b:
        b.create(1)
        lease = b.lease(1)
        lease.run("open('keep', 'w').write('kept')")
        first = lease.name()
        lease.close()
        b.wait_status(CELLS=0)
        ok(True, "without warm cells none is kept")
        lease = b.lease(1)
        ok(lease.name() != first, "the next lease has a new cell")
        is_(lease.run("print(open('keep').read())")[1], b"kept\n",
            "with the same workspace")


def two_clients():
    with Broker() as b:
        b.create(1)
        b.create(2)
        one, two = b.lease(1), b.lease(2)
        ok(one.name() != two.name(), "two sandboxes have two cells")
        one.run("open('mine', 'w')")
        is_(two.run("import os; print(sorted(os.listdir()))")[1],
            b"['.site-packages']\n", "and do not see each other's files")
        is_((b.status()["LEASED"], b.status()["CELLS"]), (2, 2), "both count")


def same_sandbox():
    with Broker() as b:
        b.create(1)
        first = b.lease(1)
        second = b.ask_lease(1)
        kind, fields = second.answer()
        is_((kind, refusal_name(fields)), ("REFUSED", "BUSY"),
            "a leased sandbox is busy")
        ok(900 < second.ms < 20000, "which is said after a second")
        third = b.ask_lease(1)
        first.close()
        while third.answer()[0] == "REFUSED":   # not in time, on a busy host
            first = b.lease(1)
            third = b.ask_lease(1)
            first.close()
        ok(third.ms < 900, "one that comes free in time is granted, at once")


def client_killed():
    with Broker() as b:
        b.create(1)
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            lease = b.lease(1)
            lease.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]),
                                 ("WALL_MS", 60000), ("OUTPUT_MAX", MIB)))
            lease.cell.send(pack("BYTES", ("PART", 1), ("DATA",
                                 "print(1, flush=True)\nwhile True: pass")))
            lease.cell.send(pack("GO"))
            while unpack(lease.cell.recv(65536))[0] != "OUTPUT":
                pass
            os.write(told, b"x")
            time.sleep(1000)
        os.read(ready, 1)
        os.close(ready)
        os.close(told)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        took = b.wait_status(LEASED=0)
        again = b.lease(1)
        ok(took < 20 and again.ms < 20000,
           "a client killed in a run gives its cell back")
        note("after %.0f ms" % (took * 1000 + again.ms))
        is_(again.run("print('clean')")[1], b"clean\n", "which works")


def cell_killed():
    with Broker() as b:
        b.create(1)
        lease = b.lease(1)
        subprocess.run([DOCKER, "kill", lease.name()], check=True,
                       stdout=subprocess.DEVNULL)
        is_(lease.answer()[0], None, "a cell killed from outside ends the lease")
        is_(lease.cell.recv(100), b"", "on both descriptors")
        lease.close()
        again = b.lease(1)
        is_(again.run("print(1)")[1], b"1\n", "the next lease has a new cell")
        again.close()
        b.wait_status(LEASED=0)
        subprocess.run([DOCKER, "kill", again.name()], check=True,
                       stdout=subprocess.DEVNULL)
        is_(b.lease(1).run("print(2)")[1], b"2\n",
            "an idle cell that was killed is replaced as well")


def too_long():
    with Broker() as b:
        b.create(1)
        began = time.monotonic()
        lease = b.lease(1, lease_ms=500)
        is_(lease.answer()[0], None, "a lease ends after its time")
        took = time.monotonic() - began
        ok(0.5 < took < 40, "not before, not long after")
        b.wait_no_container()
        ok(True, "and its cell is gone")


def asked_and_gone():
    with Broker() as b:
        b.create(1)
        b.ask_lease(1).close()
        lease = b.lease(1)
        is_(lease.run("print(1)")[1], b"1\n",
            "who hangs up while waiting leaves the cell to the next")


main(cold_then_warm, workspace_lasts, two_clients, same_sandbox, client_killed,
     cell_killed, too_long, asked_and_gone)
