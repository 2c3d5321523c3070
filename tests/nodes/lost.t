#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A node is killed with jobs in every state: each is reported once, none runs
twice, its users go on elsewhere, and its return harms nothing of theirs."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter, wait_for  # noqa: E402

enter()
from load import Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

PEOPLE = [f"person{i}" for i in range(7)]
STATES = ("queued", "claimed", "started", "finished")
seen = {}


def states():
    """{state: how many jobs of the node that is to be killed are in it}."""
    said = nodes.postgres.sql(
        "SELECT state, count(*) FROM jobs WHERE open GROUP BY 1", "inline")
    return {line.split("|")[0]: int(line.split("|")[1])
            for line in said.splitlines()}


def begin(user, seconds, state):
    """A command, until it is there."""
    load.send(user, seconds)[1].wait_answered()
    wait_for(lambda: states().get(state), what=states)


@test
def a_node_is_killed_with_jobs_in_every_state():
    """Each has its own person, all at home on n2, which has three workers: one
    job whose answer Discord does not take, one that runs, one that waits for
    its cell, as il-sandboxd stands still, others that wait for a worker.
    """
    nodes.by(nodes[1])
    for one in [nodes.discord.send_command("py", code="print(1)", user=user)
                for user in PEOPLE]:
        one.wait_final()
    nodes.discord.fault("status", "edit", status=503, count=0)
    begin(PEOPLE[0], 2, "finished")
    begin(PEOPLE[1], 25, "started")
    assert nodes[1].host.kill("il-sandboxd", signal.SIGSTOP) > 0
    begin(PEOPLE[2], 0, "claimed")
    for user in PEOPLE[3:]:
        begin(user, 0, "queued")
    seen.update(states())
    nodes[1].host.cut()
    nodes.discord.clear_faults()
    seen["begun"] = time.monotonic()
    figure("jobs when the node was killed: " + ", ".join(
        f"{seen[state]} {state}" for state in STATES if state in seen))
    assert set(STATES) <= set(seen), seen


@test
def each_is_told_once():
    nodes.by(None)
    nodes.discord.wait_many(list(load.sent.values()), "final", 240)
    figure("the last of them was told "
           f"{time.monotonic() - seen['begun']:.0f} s after that")
    verdict = Verdict(load, nodes.postgres)
    verdict.assert_in_database()
    ends = verdict.assert_told_once("results", "interrupted")
    assert ends.get("interrupted") and ends.get("results"), ends


@test
def its_users_go_on_elsewhere_and_are_told():
    one = nodes.discord.send_command(
        "py", user=PEOPLE[0], code="open('newer', 'w').write('kept')")
    said = str(one.wait_final().messages)
    assert "n2" in said, said


@test
def when_it_comes_back_nothing_newer_is_touched():
    nodes[1].boot()
    nodes[1].start()
    for node in nodes:
        nodes.by(node)
        one = nodes.discord.send_command("py", user=PEOPLE[0],
                                         code="print(open('newer').read())")
        said = str(one.wait_final().messages)
        assert "kept" in said, (node.name, said)
    nodes.by(nodes[1])
    one = nodes.discord.send_command("py", user="new", code="print(6 * 7)")
    assert "42" in str(one.wait_final().messages)


@test
def nothing_ran_twice():
    for node in nodes:
        node.stop()
    marks = [mark for node in nodes for mark in node.marks()]
    twice = sorted({mark for mark in marks if marks.count(mark) > 1})
    figure(f"{len(marks)} runs have left their mark on the disks")
    assert marks and not twice, twice


with Nodes(3, IL_WORKERS="3") as nodes:
    load = Load(nodes.discord, PEOPLE)
    run()
