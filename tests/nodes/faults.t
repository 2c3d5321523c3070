#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""One of three nodes is cut off, killed, stands still, is slow, has a wrong
name or a wrong clock: its people are told in words, in time, and go on
afterwards; people of other nodes notice nothing; nothing is lost or done
twice."""

import glob
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter, wait_for  # noqa: E402

enter()
from load import DEADLINE, Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from slots import SLOTS, settled_owner  # noqa: E402
from tap import run, test  # noqa: E402

AWAY = "does not answer just now"
DIFFER = "do not agree yet"
AWAY_MS = 2000      # until its people are told
SLOW_MS = 1000 * DEADLINE   # where the connection itself takes long
PROGRAMS = ("ilctl", "nginx", "il-fcgi", "il-api", "il-worker", "il-sandboxd",
            "il-node")
LONG = "\n#" + 3000 * "x"
LIST = "import os\nprint(sorted(os.listdir()))"


def send(user, text, front=None):
    return nodes.discord.send_command("py", user=user, code=text,
                                      order=(front or nodes[0]).front)


def is_told(what, words=AWAY, most=AWAY_MS, text="print(1)"):
    """People of n2 are told in words, by each other front."""
    for front in others:
        for one in (send(alice, text, front),
                    send(nodes[1].person(), text, front)):
            one.wait_answered()
            assert one.state == "answered" and one.answer_type == 4, one
            assert words in str(one.answer), one.answer
            assert one.answer_ms < most, one
            figure(f"{what}: told by {front.name} after {one.answer_ms:.0f} ms")


def goes_on(user=None):
    """Until people of n2 are served again; their files are there."""
    for front in nodes:
        wait_for(lambda: "'kept'" in str(
            send(user or alice, LIST, front).wait_final().messages), 60,
            what=f"an answer by {front.name}")


def begin(user, seconds):
    """A job of somebody of n2 that runs; its sender was promised an end."""
    mark, one = promised.send(user, seconds)
    one.wait_answered()
    assert promised.is_acknowledged(mark, one), one
    wait_for(lambda: nodes[1].sql(
        f"SELECT 1 FROM jobs WHERE interaction_id = {one.id} AND "
        "state = 'started'"), what="its start")
    return one


@test
def a_node_is_cut_off():
    """What runs there runs on, and is told when the cable is back."""
    one = begin(bob, 4)
    nodes.hub.link("n2", False)
    is_told("cut off")
    said = nodes.discord.send_command("help", user=alice,
                                      order=nodes[0].front).wait_answered()
    assert said.answer_type == 4 and AWAY not in str(said.answer), said
    assert nodes.discord.send_command(
        "look", user=alice, focused="path", path="k", order=nodes[0].front
    ).wait_answered().choices == []
    nodes.hub.link("n2", True)
    one.wait_final(match="end of")
    goes_on()


@test
def all_its_programs_are_killed():
    """Its containers are left, and no process to end them."""
    one = begin(bob, 60)
    for _ in range(2):      # one may have been started meanwhile
        for program in PROGRAMS:
            nodes[1].host.kill(program)
    is_told("killed")
    nodes[1].start()
    one.wait_final(match="nterrupted")
    goes_on()


@test
def its_power_is_cut():
    one = begin(bob, 60)
    nodes[1].host.cut()
    is_told("without power")
    nodes[1].boot()
    refuses_a_name_that_is_not_in_the_table()
    nodes[1].start()
    one.wait_final(match="nterrupted")
    goes_on()


def refuses_a_name_that_is_not_in_the_table():
    status, said = nodes[1].ilctl("run", IL_NODE="n9")
    assert status == 78 and "n9" in said, (status, said)


@test
def it_stands_still():
    """What it has taken, and not answered in time, is never done."""
    assert nodes[1].host.kill("il-fcgi", signal.SIGSTOP) > 0
    before = nodes[1].sql("SELECT count(*) FROM jobs")
    is_told("stands still")
    nodes[1].host.kill("il-fcgi", signal.SIGCONT)
    assert nodes[1].sql("SELECT count(*) FROM jobs") == before
    goes_on()


@test
def it_is_slow():
    """A cable that takes half a second for a request is waited for; one that
    takes many seconds is not.
    """
    try:
        nodes.hub.slow("n2", "32kbit")
        one = send(alice, LIST + LONG).wait_final(match="'kept'")
        figure(f"slow: answered after {one.answer_ms:.0f} ms")
        nodes.hub.slow("n2", "2kbit")
        is_told("too slow", most=SLOW_MS, text=LONG)
    finally:
        nodes.hub.slow("n2", None)
    goes_on()


@test
def it_has_the_name_of_another_one():
    """Its database says whose it is: it does not start."""
    nodes[1].stop()
    status, said = nodes[1].ilctl("run", IL_NODE="n3")
    assert status == 78 and "of node n2, not of n3" in said, (status, said)
    is_told("named n3")


@test
def its_clock_is_ten_minutes_off():
    """What Discord signs is too old for it, or too new: it serves nobody."""
    for off in "+10m", "-10m":
        nodes[1].start(env={
            "LD_PRELOAD": faketime, "FAKETIME": off,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        try:
            is_told("clock " + off)
            one = send(carol, LIST, nodes[1]).wait_answered()
            assert one.http_status == 401, one
        finally:
            nodes[1].stop()
    nodes[1].start()
    goes_on()


@test
def two_tables_differ():
    """n1 gives all people of n2 to n3, which does not know of it."""
    slots = ",".join(str(slot) for slot in range(SLOTS)
                     if settled_owner(slot, nodes.settled) == "n2")
    nodes[0].share("table", nodes.table(f"slots {slots} n3"))
    wait_for(lambda: DIFFER in str(send(alice, "1").wait_answered().answer),
             what="the other table")
    for user in alice, carol:
        for front in nodes:
            one = send(user, LIST, front).wait_answered()
            assert one.state == "answered", one
    nodes[0].share("table", nodes.table())
    goes_on()


@test
def people_of_other_nodes_have_noticed_nothing():
    load.end()
    verdict = Verdict(load, nodes)
    assert len(verdict.known) == len(load.sent), "some were refused"
    verdict.assert_in_database()
    verdict.assert_told_once("results")
    figure("the slowest answer to people of other nodes: "
           f"{max(one.answer_ms for one in load.sent.values()):.0f} ms")


@test
def its_people_have_lost_nothing():
    verdict = Verdict(promised, nodes)
    verdict.assert_in_database()
    verdict.assert_told_once("results", "interrupted")
    for node in nodes:
        node.stop()
    marks = [mark for node in nodes for mark in node.marks()]
    for each in verdict, Verdict(load, nodes):
        each.assert_ran_once(marks)
    nodes.discord.assert_no_violations()


faketime = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[0]
with Nodes(3, IL_WORKERS="2", IL_CELLS="4", IL_TUNE_WARM_CELLS="4") as nodes:
    alice, bob, carol = nodes[1].person(), nodes[1].person(), nodes[2].person()
    others = nodes[0], nodes[2]
    for each in alice, bob, carol:
        send(each, "open('kept', 'w')").wait_final()
    nodes.discord.settings(deadline=DEADLINE)
    promised = Load(nodes.discord, {bob: nodes[0].front}, name="p")
    load = Load(nodes.discord, {nodes[0].person(): nodes[2].front,
                                nodes[2].person(): nodes[0].front},
                seconds=(0.2,))
    load.begin()
    run()
