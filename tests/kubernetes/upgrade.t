#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""An upgrade under load refuses nobody, loses nothing and cuts no answer; a
fourth node gets the people that are moved to it, and nobody else."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (NAME, UPGRADE, Load, Release, node_of,  # noqa: E402
                     split_image, spread, wait_for)
from tap import run, test  # noqa: E402

NODES = 3
NEW = f"{NAME}-{NODES}"


@test
def an_upgrade_under_load_refuses_nobody_and_cuts_nothing():
    before = [release.pod(node)["metadata"]["uid"] for node in range(NODES)]
    values = {"podAnnotations": {"test": "upgrade"}}
    if UPGRADE:
        values["image__tag"] = split_image(UPGRADE)[1]
    with Load(release, list(people), programs=2) as load:
        release.upgrade(**values)
        release.wait_ready()
    for node in range(NODES):
        assert release.pod(node)["metadata"]["uid"] != before[node], node
    load.assert_answered()
    load.assert_told_once("results")
    load.assert_ran_once()
    load.assert_not_cut()


@test
def a_fourth_node_has_nobody_at_first():
    release.upgrade(replicaCount=NODES + 1)
    release.wait_ready()
    for node in range(NODES):  # the kubelet brings it within a minute or so
        wait_for(lambda: f"node {NEW} " in table(node), 180,
                 what="the new table")
    assert release.sql(NODES, "SELECT count(*) FROM sandboxes") == [[0]]
    for user, home in people.items():
        assert at(user, range(NODES + 1)) == home, user


def table(node):
    """The table of nodes as this one has it."""
    return release.run_in(node, "cat", "/etc/inline/nodes/table")


def at(user, nodes):
    """Where this person's commands are done, with the files of before."""
    one = release.discord.send_command("py", user=user, code="import os\n"
                                       "print(os.listdir())")
    one.wait_final(match="'here'")
    return node_of(release, one, nodes)


@test
def a_quarter_is_moved_and_nobody_else():
    lines = []
    for node in range(NODES):
        plan = release.run_in(node, "ilctl", "nodes", "plan", "--add", NEW)
        for command in re.findall(f"on {NAME}-{node}:\n\t(ilctl nodes move "
                                  f".* --to {NEW})", plan):
            said = release.run_in(node, *command.split(), timeout=600)
            lines += re.findall(r"^\s*(slots \S+ \S+)$", said, re.M)
    assert lines
    slots = slots_of(lines)
    print(f"# {len(slots)} of 1024 slots have moved", flush=True)
    assert abs(len(slots) - 1024 / (NODES + 1)) < 64, len(slots)
    release.upgrade(nodes__slots="\n".join(lines) + "\n")
    moved = {user: at(user, range(NODES + 1)) for user in people}
    print(f"# {people} -> {moved}", flush=True)
    for user, node in moved.items():
        assert node in (people[user], NODES), user
    people.update(moved)


def slots_of(lines):
    """The numbers that lines of the table name."""
    found = set()
    for line in lines:
        for part in line.split()[1].split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


@test
def settled_it_needs_no_lines_and_nobody_moves():
    release.upgrade(nodes__slots="", nodes__settled=NODES + 1)
    for node in range(NODES + 1):
        wait_for(lambda: "joining" not in table(node), 180,
                 what="the new table")
    for user, node in people.items():
        assert at(user, range(NODES + 1)) == node, user


@test
def a_node_with_people_is_not_removed():
    try:
        release.upgrade(replicaCount=NODES, nodes__settled=None)
    except Exception as error:
        assert "nodes have people" in str(error), error
    else:
        raise AssertionError("it was removed")
    assert len(release.pods()) == NODES + 1


with Release(NODES) as release:
    people = spread(release, NODES, each=4)
    run()
