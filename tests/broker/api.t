#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cells of the HTTP APIs: interpreters, isolation, what is kept ready, when a
cell is used again and when it is not, sessions."""
import os
import select
import socket
import time

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


OWNER, OTHER = b"o" * 32, b"x" * 32


def ask_session(b, n, owner=OWNER, lease_ms=60000, rest_ms=None):
    return b.ask(pack("LEASE", ("CLASS", "session"), ("LEASE_MS", lease_ms),
                      ("SESSION", sandbox_id(n)), ("TOKEN", owner),
                      ("REST_MS", rest_ms)), "api")


def park(asked):
    asked.sock.send(pack("PARK"))
    asked.close()


def resume(b, n, owner=OWNER):
    return b.ask(pack("RESUME", ("SESSION", sandbox_id(n)),
                      ("TOKEN", owner)), "api")


def ended(b, *fields, owner=OWNER):
    kind, fields = b.ask(pack("END_SESSION", ("TOKEN", owner), *fields),
                         "api").answer()
    return refusal_name(fields) if kind == "REFUSED" else kind, fields


def outcome(asked):
    kind, fields = asked.answer()
    return refusal_name(fields) if kind == "REFUSED" else kind


def sees(asked, want):
    asked.cell.send(pack("REQUEST", ("OP", N["OP_BASH"]), ("WALL_MS", 20000),
                         ("OUTPUT_MAX", 100), ("FOLDER", "/workspace")))
    asked.cell.send(pack("BYTES", ("PART", N["PART_SOURCE"]), (
        "DATA", "cat f; echo >>f x")))
    asked.cell.send(pack("GO"))
    return asked.result()[1].endswith(want)


def parked():
    with Broker(IL_API_SESSIONS="2", IL_API_CELLS="1") as b:
        one = ask_session(b, 7)
        is_(outcome(one), "GRANTED", "a session is leased under its id")
        ok(sees(one, b"No such file or directory\n"), "its folder is empty")
        is_(outcome(ask_session(b, 7)), "BUSY", "there is one of each id")
        park(one)
        is_(outcome(resume(b, 7, OTHER)), "NO_WORKSPACE",
            "for another owner it is not there")
        is_(ended(b, ("SESSION", sandbox_id(7)), owner=OTHER)[0],
            "NO_WORKSPACE", "and cannot be ended")
        two = resume(b, 7)
        is_(outcome(two), "GRANTED", "its owner gets it back")
        ok(sees(two, b"x\n"), "with what is in it")
        waiting = resume(b, 7)
        time.sleep(.2)
        is_(outcome(resume(b, 7)), "BUSY", "one client may wait for it")
        park(two)
        is_(outcome(waiting), "GRANTED", "and gets it then")
        again = resume(b, 7)
        again.sock.send(pack("PARK"))
        again.close()
        park(waiting)
        last = resume(b, 7)
        is_(outcome(last), "GRANTED", "a waiting client may give up")
        last.close()
        is_(outcome(resume(b, 7)), "NO_WORKSPACE",
            "a client that hangs up without a word ends it")
        b.wait_status(LEASED=0)
        ok(True, "and its cell")
        for name, packet in (
                ("PARK without a lease", pack("PARK")),
                ("RESUME without an owner",
                 pack("RESUME", ("SESSION", sandbox_id(7)))),
                ("RESUME of no id", pack("RESUME", ("SESSION", "../x"),
                                         ("TOKEN", OWNER))),
                ("END_SESSION with a short owner",
                 pack("END_SESSION", ("TOKEN", b"o" * 31))),
                ("a session of another class", pack(
                    "LEASE", ("CLASS", "api"), ("LEASE_MS", 1000),
                    ("SESSION", sandbox_id(7)), ("TOKEN", OWNER)))):
            is_(outcome(b.ask(packet, "api")), "INPUT", name)
        is_(outcome(b.ask(pack("RESUME", ("SESSION", sandbox_id(7)),
                               ("TOKEN", OWNER)), "worker")), "INPUT",
            "no other program may resume one")
        plain = b.lease_api(cls="session")
        plain.sock.send(pack("PARK"))
        is_(plain.sock.recv(10), b"", "a lease without an id is not parked")
        b.wait_status(LEASED=0)


def evicted():
    with Broker(IL_API_SESSIONS="2", IL_API_CELLS="1") as b:
        slot, held = os.pipe()
        first = ask_session(b, 0)
        first.answer()
        socket.send_fds(first.sock, [pack("PARK")], [held])
        first.close()
        second = b.ask(None, "api")
        socket.send_fds(second.sock, [pack(
            "LEASE", ("CLASS", "session"), ("LEASE_MS", 60000),
            ("SESSION", sandbox_id(1)), ("TOKEN", OWNER))], [held])
        os.close(held)
        is_(outcome(second), "GRANTED", "a descriptor may come along")
        park(second)
        third = ask_session(b, 2)
        is_(outcome(third), "FULL", "a session that has just been used stays")
        ok(1 <= third.fields["REST_MS"] <= 10000, "and it is said how long")
        is_(ended(b)[0], "FULL", "which is so when it is only asked")
        time.sleep(third.fields["REST_MS"] / 1000)
        is_(outcome(ask_session(b, 2, OTHER)), "FULL", "another owner has none")
        is_(ended(b)[0], "GRANTED", "after ten seconds one may be evicted")
        third = ask_session(b, 2)
        is_(outcome(third), "GRANTED", "for a new one of the owner")
        is_(outcome(resume(b, 0)), "NO_WORKSPACE", "the one used longest ago")
        ok(not select.select([slot], [], [], 0)[0],
           "the other one's descriptor is still open")
        wait = ended(b)
        if wait[0] == "FULL":
            time.sleep(wait[1]["REST_MS"] / 1000)
        is_(ended(b, ("RETIRE", 1))[0], "GRANTED", "one is evicted at once")
        ok(select.select([slot], [], [], 10)[0], "its descriptor closes")
        is_(outcome(resume(b, 1)), "NO_WORKSPACE", "it is gone")
        park(third)
        is_(ended(b, ("SESSION", sandbox_id(2)))[0], "GRANTED",
            "a session is ended by its id")
        is_(ended(b, ("SESSION", sandbox_id(2)))[0], "NO_WORKSPACE", "once")
        b.wait_status(LEASED=0)
        for n, name, fields in (
                (3, "at its time", {"lease_ms": 500}),
                (4, "at the limit of its rest", {"rest_ms": 500})):
            asked = ask_session(b, n, **fields)
            asked.answer()
            park(asked)
            b.wait_status(LEASED=0)
            is_(outcome(resume(b, n)), "NO_WORKSPACE", "it ends " + name)
        asked = ask_session(b, 5)
        asked.answer()
        park(asked)
        b.process.kill()
        b.process.wait()
        b.wait_no_container()
        ok(True, "with the broker parked sessions end")


main(parked, evicted, again, refused, interpreters, at_once, ready, retired, weak,
     forced, late, sessions)
