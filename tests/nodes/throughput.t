#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Jobs that sleep, on one node and on three: what waits for workers goes nearly
three times as fast.  It says nothing of jobs that compute: all nodes here share
this machine's processors."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter  # noqa: E402

enter()
from load import Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

RATIO = 2.9
WORKERS = 3
PEOPLE = 5          # of each node: there is always one who waits
SLEEP = 4
WINDOW = 48
loads = []


def people(node):
    """People of a node, each with a sandbox there."""
    users = dict.fromkeys(node.person() for _ in range(PEOPLE))
    for one in [nodes.discord.send_command("py", code="print(1)", user=user)
                for user in users]:
        one.wait_final()
    return users


def rate(users, name):
    """Jobs that end in a second, when all cells are warm."""
    load = Load(nodes.discord, users, seconds=(SLEEP,), name=name)
    load.begin()
    load.wait_acknowledged(2 * len(users))
    begun = time.monotonic()
    before = len(load.told_at)
    while time.monotonic() < begun + WINDOW:
        time.sleep(0.05)
    count = len(load.told_at) - before
    load.end()
    loads.append(load)
    return count / WINDOW


@test
def three_nodes_do_nearly_three_times_as_much_as_one():
    nodes[0].start()
    first = people(nodes[0])
    one = rate(first, "one")
    for node in nodes.nodes[1:]:
        node.start()
    three = rate({**first, **people(nodes[1]), **people(nodes[2])}, "three")
    figure(f"jobs that sleep {SLEEP} s, {WORKERS} workers a node: 1 node "
           f"{one:.2f} a second, 3 nodes {three:.2f}, ratio {three / one:.2f}")
    assert three / one >= RATIO, (one, three)


@test
def each_job_ran_once_and_was_told_once():
    verdicts = [Verdict(load, nodes) for load in loads]
    for verdict in verdicts:
        verdict.assert_in_database()
        verdict.assert_told_once("results")
    for node in nodes:
        node.stop()
    found = [len(node.workspaces()) for node in nodes]
    assert found == [PEOPLE] * 3, f"people who have a sandbox: {found}"
    marks = [mark for node in nodes for mark in node.marks()]
    for verdict in verdicts:
        verdict.assert_ran_once(marks)


with Nodes(3, start=False, IL_WORKERS=str(WORKERS),
           IL_CELLS=str(PEOPLE), IL_TUNE_WARM_CELLS=str(PEOPLE)) as nodes:
    run()
