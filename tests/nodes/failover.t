#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""PostgreSQL's primary is killed, and cut off from its standbys, under load:
what was acknowledged is in the database, ran once and was told once; the
service goes on by itself."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter, wait_for  # noqa: E402

enter()
from load import DEADLINE, Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

PEOPLE = [f"person{i}" for i in range(9)]


def routes(host, change):
    """Between a server and the other servers: nothing, or all again."""
    for other in nodes.postgres.hosts:
        if other is not host:
            host.run("ip", "route", change, "blackhole", other.address)


def goes_on(name, old, begun):
    """Until another one is the primary and commands are acknowledged."""
    new = wait_for(lambda: nodes.postgres.primary(old), 120,
                   what="a new primary")
    took = time.monotonic() - begun
    load.wait_acknowledged(len(PEOPLE))
    figure(f"primary {name}: another one after {took:.0f} s; nothing was "
           f"acknowledged for {load.longest_gap(begun):.0f} s")
    return new


@test
def a_primary_that_is_killed_under_load_is_replaced():
    load.begin()
    load.wait_acknowledged(2 * len(PEOPLE))
    old = nodes.postgres.primary()
    begun = time.monotonic()
    old.cut()
    goes_on("killed", old, begun)
    nodes.postgres.boot(old)
    wait_for(nodes.postgres.in_order, 120, what="three servers again")


@test
def a_primary_that_is_cut_off_from_its_standbys_is_replaced():
    """The nodes still reach it, and it still takes what they send."""
    load.wait_acknowledged(len(PEOPLE))
    old = nodes.postgres.primary()
    begun = time.monotonic()
    routes(old, "add")
    goes_on("cut off", old, begun)
    routes(old, "del")
    wait_for(nodes.postgres.in_order, 120, what="three servers again")
    load.wait_acknowledged(len(PEOPLE))
    load.end()


@test
def what_was_acknowledged_is_in_the_database():
    Verdict(load, nodes.postgres).assert_in_database()


@test
def each_was_told_once():
    Verdict(load, nodes.postgres).assert_told_once("results", "interrupted",
                                                   "not run")


@test
def with_a_standby_alone_people_are_told_so():
    """It reads only; two of three are away, and none may become the primary."""
    primary = wait_for(nodes.postgres.primary, 60, what="a primary")
    away = [primary] + [one for one in nodes.postgres.hosts
                        if one is not primary][:1]
    for host in away:
        host.cut()
    said = nodes.discord.send_command("py", code="print(1)", user="other")
    said.wait_answered()
    assert said.state == "answered" and said.answer_type == 4, said
    assert "on our side" in str(said.answer), said.answer
    figure(f"a standby alone: refused in words after {said.answer_ms} ms")
    for host in away:
        nodes.postgres.boot(host)
    wait_for(nodes.postgres.in_order, 120, what="three servers again")
    wait_for(lambda: "42" in str(nodes.discord.send_command(
        "py", code="print(42)", user="other").wait_final().messages), 60)


@test
def nothing_ran_twice():
    for node in nodes:
        node.stop()
    marks = [mark for node in nodes for mark in node.marks()]
    Verdict(load, nodes.postgres).assert_ran_once(marks)


with Nodes(3) as nodes:
    nodes.discord.settings(deadline=DEADLINE)
    load = Load(nodes.discord, PEOPLE)
    run()
