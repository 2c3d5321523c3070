#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who gets which cell: bounds, eviction, order, what stays warm."""
from brokerlib import *


def make(b, *ids):
    for n in ids:
        b.create(n)


def eviction():
    with Broker(IL_CELLS="2", IL_TUNE_WARM_CELLS="2") as b:
        make(b, 1, 2, 3)
        first = b.lease(1)
        name = first.name()
        first.close()
        b.wait_status(LEASED=0)
        b.lease(2).close()
        b.wait_status(LEASED=0)
        is_(b.lease(3).fields["COLD"], 1, "a third gets a cell")
        ok(b.status()["CELLS"] <= 2, "there are not more than IL_CELLS")
        again = b.lease(1)
        ok(again.fields["COLD"] == 1 and again.name() != name,
           "the one unused for the longest time made room")


def bounded():
    with Broker(IL_CELLS="2") as b:
        make(b, 1, 2, 3, 4)
        one, two = b.lease(1), b.lease(2)
        three = b.ask_lease(3)
        four = b.ask_lease(4)
        b.wait_status(WAITING=2)
        is_(len(b.containers()), 2, "the others wait")
        two.close()
        is_(three.answer()[0], "GRANTED", "who came first is served first")
        is_(b.status()["WAITING"], 1, "the next waits on")
        one.close()
        is_(four.answer()[0], "GRANTED", "until a place is free")


def not_blocked():
    with Broker(IL_CELLS="3", IL_TUNE_WARM_CELLS="3",
                IL_PIP_NETWORK=pip_network()) as b:
        make(b, 1, 2, 3)
        b.lease(2).close()
        b.wait_status(LEASED=0)
        first = b.lease(1)
        waiting = b.ask_lease(1, cls="pip")
        warm = b.lease(2)
        is_(warm.fields["COLD"], 0, "a warm cell is served past the queue")
        first.close()
        is_(waiting.answer()[0], "GRANTED", "who waited gets its turn")
        b.ask_lease(1)  # which waits for a second at most
        cold = b.lease(3)
        is_(cold.fields["COLD"], 1, "a free place is given past the queue too")


def withdrawn():
    with Broker(IL_CELLS="1") as b:
        make(b, 1, 2, 3)
        one = b.lease(1)
        two = b.ask_lease(2)
        three = b.ask_lease(3)
        b.wait_status(WAITING=2)
        two.close()
        b.wait_status(WAITING=1)
        ok(True, "hanging up leaves the queue")
        one.close()
        is_(three.answer()[0], "GRANTED", "the next one is served")


def warm():
    with Broker(IL_TUNE_WARM_CELLS="1", IL_TUNE_WARM_SECONDS="3") as b:
        make(b, 1, 2)
        one, two = b.lease(1), b.lease(2)
        began = time.monotonic()
        one.close()
        two.close()
        b.wait_status(CELLS=1)
        ok(True, "not more than IL_TUNE_WARM_CELLS stay")
        b.wait_status(CELLS=0)
        ok(2.5 < time.monotonic() - began < 45, "nor longer than told")
    with Broker(IL_TUNE_WARM_SECONDS="0") as b:
        make(b, 1)
        is_(b.lease(1).run("print(1)")[1], b"1\n", "no time to stay warm")
        b.asked[-1].close()
        b.wait_status(CELLS=0)
        ok(True, "the cell ends with its lease")


def pip_and_user():
    with Broker(IL_PIP_NETWORK=pip_network()) as b:
        make(b, 1)
        user = b.lease(1)
        name = user.name()
        user.close()
        b.wait_status(LEASED=0)
        pip = b.ask_lease(1, cls="pip")
        is_(pip.answer()[0], "GRANTED", "a pip lease ends the idle user cell")
        note("after %.0f ms" % pip.ms)
        is_(b.status()["CELLS"], 1, "which is gone")
        mounts = subprocess.run(
            [DOCKER, "inspect", "--format",
             "{{.HostConfig.NetworkMode}} {{range .Mounts}}{{.Destination}} "
             "{{end}}", pip.name()], stdout=subprocess.PIPE, check=True)
        words = mounts.stdout.decode().split()
        ok("/site" in words and "/workspace" not in words,
           "it sees the packages and not the workspace")
        ok(words[0] != "none", "it has network")
        pip.close()
        b.wait_status(CELLS=0)
        ok(True, "it is not used again")
        user = b.lease(1)
        ok(user.name() != name, "the user's next cell is a new one")
        is_(user.run("import socket\ntry:\n socket.create_connection("
                     "('1.1.1.1', 53), 2)\nexcept OSError as e: print('none')")
            [1], b"none\n", "without network")


def full():
    with Broker(IL_CELLS="1") as b:
        make(b, 1, 2)
        one = b.lease(1)
        waiting = [b.ask_lease(2) for _ in range(1024)]
        b.wait_status(WAITING=1024)
        is_(b.refusal(2), "FULL", "the queue is bounded")
        waiting[0].close()
        b.wait_status(WAITING=1023)
        b.ask_lease(2)
        b.wait_status(WAITING=1024)
        ok(True, "who leaves makes room")
        one.close()
        is_(waiting[1].answer()[0], "GRANTED", "and the oldest is served")


main(eviction, bounded, not_blocked, withdrawn, warm, pip_and_user, full)
