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
from load import Load, figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

RATIO = 2.7         # what issue 14 asks for
WORKERS = 3
PEOPLE = 5          # of each node: there is always one who waits
SLEEP = 4
WINDOW = 48


def people(node):
    """Who is at home on a node, since their first command was sent there."""
    names = [f"{node.name}-{i}" for i in range(PEOPLE)]
    nodes.by(node)
    for one in [nodes.discord.send_command("py", code="print(1)", user=name)
                for name in names]:
        one.wait_final()
    nodes.by(None)
    return names


def rate(names, name):
    """Jobs that end in a second, when all cells are warm."""
    load = Load(nodes.discord, names, seconds=(SLEEP,), name=name)
    load.begin()
    load.wait_acknowledged(2 * len(names))
    begun = time.monotonic()
    before = len(load.told_at)
    while time.monotonic() < begun + WINDOW:
        time.sleep(0.05)
    count = len(load.told_at) - before
    load.end()
    return count / WINDOW


@test
def three_nodes_do_nearly_three_times_as_much_as_one():
    nodes[0].start()
    first = people(nodes[0])
    one = rate(first, "one")
    for node in nodes.nodes[1:]:
        node.start()
    others = [name for node in nodes.nodes[1:] for name in people(node)]
    three = rate(first + others, "three")
    figure(f"jobs that sleep {SLEEP} s, {WORKERS} workers a node: 1 node "
           f"{one:.2f} a second, 3 nodes {three:.2f}, ratio {three / one:.2f}")
    assert three / one >= RATIO, (one, three)


@test
def each_job_ran_where_its_user_is_at_home():
    for node in nodes:
        node.stop()
    found = [len(node.workspaces()) for node in nodes]
    assert found == [PEOPLE] * 3, found


with Nodes(3, start=False, IL_WORKERS=str(WORKERS),
           IL_CELLS=str(PEOPLE), IL_WARM_CELLS=str(PEOPLE)) as nodes:
    nodes[0].prepare()
    nodes[0].ilctl("migrate")
    run()
