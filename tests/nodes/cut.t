#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A node's cable is pulled while it runs a job: its job is told as interrupted
by another one, and what it has to say when the cable is back is ignored."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter, wait_for  # noqa: E402

enter()
from load import Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

SECONDS = 20
seen = {}


@test
def its_job_is_told_as_interrupted_by_another_node():
    nodes.by(nodes[1])
    nodes.discord.send_command("py", user="alice",
                               code="print(1)").wait_final()
    one = load.send("alice", SECONDS)[1].wait_answered()
    wait_for(lambda: nodes.postgres.sql(
        "SELECT count(*) FROM jobs WHERE state = 'started'", "inline") == "1")
    seen["job"] = nodes.postgres.sql(
        "SELECT id FROM jobs WHERE state = 'started'", "inline")
    nodes.hub.link("n2", False)
    begun = time.monotonic()
    one.wait_final(match="nterrupted", timeout=240)
    figure(f"told {time.monotonic() - begun:.0f} s after the cable was pulled")


@test
def the_others_go_on_meanwhile():
    nodes.by(None)
    one = nodes.discord.send_command("py", user="bob", code="print(6 * 7)")
    assert "42" in str(one.wait_final().messages)


@test
def its_late_end_is_ignored():
    """The run has long ended there; the worker tells the database when it
    reaches it, and takes jobs again.
    """
    nodes.hub.link("n2", True)
    nodes.by(nodes[1])
    wait_for(lambda: "42" in str(nodes.discord.send_command(
        "py", user="carol", code="print(6 * 7)").wait_final().messages))
    Verdict(load, nodes.postgres).assert_told_once("interrupted")
    rows = nodes.postgres.sql(
        "SELECT state || ' ' || outcome FROM jobs WHERE interaction_id = "
        f"{next(iter(load.sent.values())).id}", "inline")
    assert rows == "delivered interrupted", rows
    assert f"exit 0 job={seen['job']}" in nodes[1].host.said("inline", 400)


with Nodes(3, IL_WORKERS="2") as nodes:
    load = Load(nodes.discord, ["alice"])
    run()
