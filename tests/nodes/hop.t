#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What a hop costs: the same command of the same person by the front of the
person's own node and by another one's, in turns."""

import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter  # noqa: E402

enter()
from load import figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

HOP_MS = 1.0
TURNS = 500         # interactions by each front
RUNS = 60


def in_turns(turns, send):
    """{node: milliseconds until each answer}, the home's and another's."""
    took = {home: [], other: []}
    for turn in range(2 * turns):
        node = (home, other)[turn % 2]
        one = send(node.front)
        assert one.state == "answered", one
        took[node].append(one.answer_ms)
    return took


def compare(what, took):
    """The difference of the medians, which is told as well."""
    own, hop = (statistics.median(took[node]) for node in (home, other))
    figure(f"{what}: {len(took[home])} by the own front, p50 {own:.2f} ms; "
           f"{len(took[other])} by another one, p50 {hop:.2f} ms; "
           f"a hop costs {hop - own:.2f} ms")
    return hop - own


@test
def a_hop_costs_a_millisecond_at_most():
    """What il-fcgi answers itself shows a hop best: choices for a path."""
    def send(front):
        return nodes.discord.send_command(
            "look", user=user, focused="path", path="a",
            order=front).wait_answered()

    in_turns(20, send)
    cost = compare("choices of a path", in_turns(TURNS, send))
    assert cost <= HOP_MS, cost


@test
def a_hop_costs_no_rest_call():
    def send(front):
        return nodes.discord.send_command(
            "py", user=user, code="print(1)", order=front).wait_final()

    before = len(nodes.discord.requests())
    compare("a run", in_turns(RUNS, send))
    calls = len(nodes.discord.requests()) - before
    figure(f"REST calls for {2 * RUNS} runs: {calls}")
    assert calls == 0, nodes.discord.requests()[before:]


@test
def all_of_it_was_done_at_the_home():
    jobs = {node.name: node.sql("SELECT count(*) FROM jobs")[0][0]
            for node in nodes}
    assert jobs == {node.name: (2 * RUNS + 1) * (node is home)
                    for node in nodes}, jobs
    nodes.discord.assert_no_violations()


with Nodes(3, IL_WORKERS="1", IL_CELLS="2", IL_TUNE_WARM_CELLS="2") as nodes:
    home, other = nodes[1], nodes[0]
    user = home.person()
    nodes.discord.send_command("py", user=user, code="open('ab.txt', 'w')"
                               ).wait_final()
    run()
