#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cells of the HTTP APIs: interpreters, isolation, what is kept ready, when a
cell is used again and when it is not, sessions."""
from brokerlib import *

TWO = "one=%s,two=%s" % (IMAGE, IMAGE)


def again():
    with Broker(IL_API_CELLS="2") as b:
        is_(b.status()["ISOLATION"], 0, "at first nobody knows the isolation")
        first = b.lease_api()
        is_(first.fields["COLD"], 1, "the first lease is cold")
        is_(first.run_api("print(1)")[1], b"1\n", "it runs code")
        name = first.name()
        first.close()
        b.wait_status(LEASED=0)
        is_(b.status()["ISOLATION"], N["ISOLATION_RUN"],
            "the status tells of the isolation")
        is_(b.status()["TEXT"], b"", "which nothing hinders")
        names = set()
        for n in range(5):
            asked = b.lease_api()
            names.add((asked.name(), asked.fields["COLD"]))
            is_(asked.run_api("print(%d)" % n)[1], b"%d\n" % n, "run %d" % n)
            asked.close()
            b.wait_status(LEASED=0)
        is_(names, {(name, 0)}, "the same cell serves them all")


def refused():
    with Broker(SANDBOX_IMAGES=TWO) as b:
        asked = b.ask_api("three")
        kind, fields = asked.answer()
        is_((kind, refusal_name(fields)), ("REFUSED", "INTERPRETER"),
            "an interpreter that is not on offer")
        for name, fields in (
                ("a name that is too long", [("INTERPRETER", "x" * 40)]),
                ("a name with a NUL", [("INTERPRETER", "one\0")])):
            asked = b.ask(pack("LEASE", ("CLASS", "api"), ("LEASE_MS", 1000),
                               *fields), "api")
            is_(refusal_name(asked.answer()[1]), "INTERPRETER", name)
        for name, program, fields in (
                ("a sandbox of an API", "api",
                 [("CLASS", "api"), ("SANDBOX", sandbox_id(1))]),
                ("a malformed sandbox with an interpreter", "worker", [
                    ("CLASS", "user"), ("SANDBOX", "x"),
                    ("INTERPRETER", "one")])):
            asked = b.ask(pack("LEASE", ("LEASE_MS", 1000), *fields), program)
            is_(refusal_name(asked.answer()[1]), "INPUT", name)
    with Broker(SANDBOX_IMAGES="one=%s,none=il-no-such-image:1" % IMAGE) as b:
        asked = b.ask_api("none")
        is_(refusal_name(asked.answer()[1]), "IMAGE",
            "an interpreter whose image is missing")
        b.lease_api("one")
        ok(True, "does not keep the others from running")


def interpreters():
    with Broker(SANDBOX_IMAGES=TWO, IL_API_CELLS="2") as b:
        one, two = b.lease_api(), b.lease_api("two")
        ok(one.name() != two.name(), "each interpreter has its cell")
        names = {"one": one.name(), "two": two.name()}
        one.close()
        two.close()
        b.wait_status(LEASED=0)
        for interpreter in ("two", "one", "", "two"):
            asked = b.lease_api(interpreter)
            is_(asked.name(), names[interpreter or "one"],
                "%r gets its own cell again" % interpreter)
            asked.close()
            b.wait_status(LEASED=0)
        first, second = b.lease_api("two"), b.lease_api("two")
        ok(second.name() != names["one"], "an idle cell of another "
           "interpreter makes room")
        is_(b.status()["CELLS"] - b.status()["LEASED"] in (0, 1), True,
            "there are not more than IL_API_CELLS")


def at_once():
    with Broker(IL_API_CELLS="2", IL_CELLS="1") as b:
        b.create(1)
        user = b.lease(1)
        one, two = b.lease_api(), b.lease_api()
        ok(one.name() != two.name(), "two runs at one time, beside a user's")
        three = b.ask_api()
        b.wait_status(WAITING=1)
        is_(len(b.containers()), 3, "the third waits")
        one.close()
        is_(three.answer()[0], "GRANTED", "until one is back")
        user.close()
        waiting = [b.ask_api() for _ in range(20)]
        for asked in waiting:
            asked.sock.setblocking(True)
        two.close()
        three.close()
        for n, asked in enumerate(waiting):
            kind, _ = asked.answer()
            if kind != "GRANTED" or asked.run_api("print(7)")[1] != b"7\n":
                ok(False, "the %dth of many" % n)
            asked.close()
        ok(True, "a many is served in its order")


def ready():
    with Broker(IL_TUNE_API_WARM="2", IL_API_CELLS="3") as b:
        b.wait_status(CELLS=2, STARTING=0)
        ok(True, "cells are ready before they are asked for")
        is_(b.status()["ISOLATION"], N["ISOLATION_RUN"],
            "and have told of the isolation")
        asked = b.lease_api()
        is_(asked.fields["COLD"], 0, "so the first lease is warm")
        note("granted after %.1f ms" % asked.ms)
        b.wait_status(CELLS=3, STARTING=0)
        ok(True, "what is taken is made up for")
        more = b.lease_api(), b.lease_api()
        is_([a.fields["COLD"] for a in more], [0, 0], "the next are warm, too")
        is_(b.status()["CELLS"], 3, "but not beyond IL_API_CELLS")
    with Broker(IL_TUNE_API_WARM="1", IL_TUNE_WARM_SECONDS="1", IL_API_CELLS="3") as b:
        leases = [b.lease_api() for _ in range(3)]
        for asked in leases:
            asked.close()
        b.wait_status(LEASED=0, CELLS=1)
        ok(True, "beyond those kept ready, idle cells go")


def retired():
    with Broker(IL_API_CELLS="1", IL_TUNE_API_RUNS="3") as b:
        names = []
        for n in range(7):
            asked = b.lease_api()
            names.append(asked.name())
            asked.run_api("print(1)")
            asked.close()
        is_([names.index(n) for n in names], [0, 0, 0, 3, 3, 3, 6],
            "a cell is replaced after IL_TUNE_API_RUNS runs")
    with Broker(IL_API_CELLS="2", IL_TUNE_API_WARM="1", IL_TUNE_API_RUNS="3") as b:
        b.wait_status(CELLS=1, STARTING=0)
        names = []
        for n in range(5):
            if n == 4:
                b.wait_log("gone cell=")
            asked = b.lease_api()
            names.append(asked.name())
            is_(asked.fields["COLD"], 0, "the %dth lease is warm" % n)
            asked.run_api("print(1)")
            asked.close()
        is_([names.index(n) for n in names], [0, 0, 0, 0, 4],
            "one that is kept ready goes when another one is there")
    with Broker(IL_API_CELLS="1") as b:
        for name, code, wall in (
                ("the time limit", "while True: pass", 300),
                ("the output limit", "while True: print('x' * 9999)", 20000),
                ("the memory limit", "x = bytearray(1 << 30)\nfor i in "
                 "range(0, 1 << 30, 4096): x[i] = 1", 20000),
                ("a kill", "import os; os.kill(os.getpid(), 9)", 20000)):
            asked = b.lease_api()
            before = asked.name()
            asked.run_api(code, wall_ms=wall)
            asked.close()
            asked = b.lease_api()
            is_(asked.name(), before, "a cell stays after " + name)
            is_(asked.run_api("print(1)")[1], b"1\n", "the next one works")
            asked.close()
        asked = b.lease_api()
        before = asked.name()
        asked.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]), ("PLAIN", 1),
                             ("WALL_MS", 60000), ("OUTPUT_MAX", 100)))
        asked.cell.send(pack("BYTES", ("PART", N["PART_ARGS"]),
                             ("DATA", "-c\0while True: pass\0")))
        asked.cell.send(pack("GO"))
        asked.cell.recv(65536)
        asked.close()
        asked = b.lease_api()
        is_(asked.name(), before, "a cell stays when a client hangs up")


def weak():
    with Broker(IL_API_ISOLATION="cell", IL_API_CELLS="2",
                IL_TUNE_API_WARM="1") as b:
        b.wait_status(CELLS=1, STARTING=0)
        is_(b.status()["ISOLATION"], N["ISOLATION_CELL"],
            "without namespaces the status says so")
        is_(b.status()["TEXT"], b"asked for", "and why")
        names = set()
        for n in range(3):
            asked = b.lease_api()
            names.add(asked.name())
            is_(asked.run_api("import os; print(os.path.exists('/tmp/x')); "
                              "open('/tmp/x', 'w')")[1], b"False\n",
                "run %d" % n)
            asked.close()
        is_(len(names), 3, "each run has a cell of its own")
        b.wait_status(CELLS=1, STARTING=0)
        ok(True, "and the next one is ready again")


def forced():
    with Broker(IL_API_ISOLATION="run", IL_TUNE_API_APPARMOR="unconfined") as b:
        b.lease_api()
        is_(b.status()["ISOLATION"], N["ISOLATION_RUN"],
            "namespaces can be insisted on")


def late():
    with Broker(IL_API_CELLS="1") as b:
        asked = b.lease_api(lease_ms=500)
        began = time.monotonic()
        is_(asked.run_api("import time; time.sleep(30)", wall_ms=30000)[0], {},
            "a lease that lasts too long ends")
        ok(time.monotonic() - began < 25, "soon")
        is_(b.lease_api().run_api("print(1)")[1], b"1\n",
            "and the next one has a cell")


def sessions():
    with Broker(IL_API_SESSIONS="2", IL_API_CELLS="1") as b:
        one, two = (b.lease_api(cls="session") for _ in range(2))
        run = b.lease_api()
        ok(len({one.name(), two.name(), run.name()}) == 3,
           "sessions have cells of their own, beside those of the runs")
        kind, fields = b.ask_api(cls="session").answer()
        is_((kind, refusal_name(fields)), ("REFUSED", "FULL"),
            "a third is refused: the others may last")
        name = one.name()
        one.close()
        third = b.ask_api(cls="session")
        is_(third.answer()[0], "GRANTED", "until one has ended")
        ok(third.name() != name, "and gets a new cell")
        third.close()
        b.wait_status(LEASED=2, CELLS=2)
        many = [b.ask_api(cls="session") for _ in range(3)]
        is_(sorted(a.answer()[0] for a in many),
            ["GRANTED", "REFUSED", "REFUSED"],
            "of those who ask while one is starting, one gets it")
        run.close()
        b.wait_status(LEASED=2)
        is_(b.lease_api().name(), run.name(), "a run never gets a session's")


main(again, refused, interpreters, at_once, ready, retired, weak,
     forced, late, sessions)
