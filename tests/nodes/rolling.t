#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""All nodes are restarted, one after the other, while people and programs use
them: each interaction has its answer in time, nothing is lost, nothing is done
twice, and no answer is cut."""

import json
import os
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import HUB, enter  # noqa: E402

enter()
from load import DEADLINE, Load, Verdict, figure  # noqa: E402
from node import BALANCER, Nodes  # noqa: E402
from tap import run, test  # noqa: E402

AWAY = "does not answer just now"
PEOPLE = 2          # of each node
PROGRAMS = 2


class Programs:
    """Programs that run code through the balancer, one run after the other."""

    def __init__(self):
        self.ended = threading.Event()
        self.answers = []
        self.threads = [threading.Thread(target=self.run_on, daemon=True)
                        for _ in range(PROGRAMS)]
        for thread in self.threads:
            thread.start()

    def run_on(self):
        code = {"input": "import time; time.sleep(1); print('whole')"}
        while not self.ended.is_set():
            request = urllib.request.Request(
                f"http://127.0.0.1:{BALANCER}/eval", json.dumps(code).encode(),
                {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.answers.append(json.loads(answer.read())["stdout"])
            except (OSError, ValueError) as error:
                self.answers.append(repr(error))

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


@test
def all_nodes_are_restarted_under_load():
    load.begin()
    programs = Programs()
    load.wait_acknowledged(2 * len(people))
    for node in [*nodes, *nodes]:
        begun = time.monotonic()
        node.stop()
        stopped = time.monotonic()
        node.start()
        figure(f"{node.name}: stopped in {stopped - begun:.1f} s, ready again "
               f"{time.monotonic() - stopped:.1f} s later")
        load.wait_acknowledged(len(people))
    load.end()
    programs.end()
    figure(f"{len(programs.answers)} runs of programs")
    cut = [said for said in programs.answers if said != "whole\n"]
    assert programs.answers and not cut, cut


@test
def each_interaction_had_its_answer():
    """People of the node that is away are told so; nobody is told more."""
    refused = [one for one in load.sent.values() if one.state != "answered"]
    assert load.sent and not refused, refused
    known = load.acknowledged()
    words = [one for mark, one in load.sent.items() if mark not in known]
    figure(f"{len(words)} of {len(load.sent)} were told that the node is away")
    assert all(AWAY in str(one.answer) for one in words), words
    assert len(words) < len(load.sent) / 2, "hardly anybody was served"


@test
def nothing_is_lost_and_nothing_is_done_twice():
    verdict = Verdict(load, nodes)
    verdict.assert_in_database()
    verdict.assert_told_once("results")
    for node in nodes:
        node.stop()
    verdict.assert_ran_once([mark for node in nodes for mark in node.marks()])
    nodes.discord.assert_no_violations()


with Nodes(3, IL_WORKERS="2", IL_CELLS="4", IL_TUNE_WARM_CELLS="3",
           IL_HTTP_TRUST=HUB) as nodes:
    people = [node.person() for node in nodes for _ in range(PEOPLE)]
    nodes.discord.settings(deadline=DEADLINE)
    load = Load(nodes.discord, dict.fromkeys(people))
    run()
