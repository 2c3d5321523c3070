#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two nodes of the Helm chart, and Discord in a pod beside them: an interaction to
each node for people of each, a node that is away, and that comes back."""

import os
import re
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
for folder in "chart", "kubernetes":
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
from house import (IMAGE, INLINE, SETTINGS, docker, free_port,  # noqa: E402
                   wait_for)
from chart import NAMESPACE, Chart, yaml  # noqa: E402
from client import Standin  # noqa: E402
from discord import BALANCER, STANDIN, make_keys, to  # noqa: E402
from pods import Namespace  # noqa: E402
from tap import run, test  # noqa: E402

START_SECONDS = 300
NODES = 2
people = {}


def jobs(node, one):
    """How many jobs of an interaction a node has."""
    return int(nodes[node].run_in(
        "inline", "python3", "-c", "import sqlite3, sys\nprint(sqlite3.connect("
        "'/srv/inline/database/inline.db').execute('SELECT count(*) FROM jobs "
        f"WHERE interaction_id = {one.id}').fetchone()[0])"))


def py(user, node, code="print('h' + 'ere')"):
    """A command of somebody's, brought to a node."""
    return discord.send_command("py", user=user, code=code, order=to(node))


def start_discord():
    """Its pod; returns what it is told by."""
    port = free_port()
    name = space.mark + "-discord"
    docker("run", "--detach", "--name", name, "--network", space.mark,
           "--network-alias", "discord", "--publish", f"127.0.0.1:{port}:9000",
           "--entrypoint", "sleep", INLINE, "infinity")
    containers.append(name)
    for each in yaml.safe_load(STANDIN % {"image": INLINE})["spec"][
            "containers"]:
        containers.append(f"{name}-{each['name']}")
        docker("run", "--detach", "--name", containers[-1], "--network",
               "container:" + name, "--mount", f"type=bind,src={place},dst=/key",
               "--mount", f"type=bind,src={place},dst=/conf,readonly",
               "--entrypoint", each["command"][0], INLINE,
               *each["command"][1:])
    standin = Standin()
    standin.port = port
    return standin


@test
def each_node_takes_interactions_of_each_ones_people():
    for pod in nodes:
        wait_for(lambda: pod.says_yes("inline", "startupProbe"), START_SECONDS)
    for number in range(20):
        user = f"person{number}"
        homes = []
        for node in range(NODES):
            one = py(user, node).wait_final(match="'here'")
            homes.append([jobs(each, one) for each in range(NODES)])
        assert homes in ([[1, 0]] * NODES, [[0, 1]] * NODES), (user, homes)
        people.setdefault(homes[0].index(1), user)
        if len(people) == NODES:
            return
    raise AssertionError(f"all people are on one node: {people}")


@test
def what_a_node_says_of_a_person_is_so():
    assert people
    for node, user in people.items():
        known = py(user, node).wait_final().view["user"]
        for pod in nodes:
            said = pod.run_in("inline", "ilctl", "user", str(known))
            assert re.search(rf"inline-{node}\b", said), said


@test
def people_of_a_node_that_is_away_are_told_within_two_seconds():
    docker("kill", nodes[1].network + "-inline")
    begun = time.monotonic()
    one = py(people[1], 0).wait_answered()
    took = time.monotonic() - begun
    assert "does not answer just now" in str(one.answer), one
    assert took < 2.0, took
    py(people[0], 0).wait_final(match="'here'")
    assert nodes[0].says_yes("inline", "readinessProbe")


@test
def it_comes_back_with_its_people():
    docker("start", nodes[1].network + "-inline")
    wait_for(lambda: nodes[1].says_yes("inline", "startupProbe"), START_SECONDS)
    py(people[1], 0).wait_final(match="'here'")
    discord.assert_no_violations()


containers = []
with tempfile.TemporaryDirectory(prefix="inline-container-") as place:
    os.chmod(place, 0o755)
    docker("save", "--output", place + "/python.tar", IMAGE)
    keys = make_keys(place + "/key")
    with open(place + "/nginx.conf", "w") as file:
        file.write(BALANCER % {"name": "inline", "space": NAMESPACE,
                               "edge": "127.0.0.1:1"})
    chart = Chart(
        replicaCount=NODES, discord__publicKey=keys["DISCORD_PUBLIC_KEY"],
        discord__applicationId=keys["DISCORD_APPLICATION_ID"],
        settings={**SETTINGS, "IL_CELLS": 2, "IL_API_CELLS": 1,
                  "IL_API_SESSIONS": 1, "IL_MEMORY": "64m", "IL_WORKERS": 1,
                  "IL_TUNE_PIP_MEMORY": "64m", "IL_USER_RATE": 1000,
                  "IL_TUNE_DISCORD_API_BASE": "http://discord:9000/api/v10"},
        extraVolumes=[{"name": "images", "hostPath": {"path": place}}],
        extraVolumeMounts=[{"name": "images", "mountPath": "/images",
                            "readOnly": True}])
    with Namespace(chart) as space:
        try:
            discord = start_discord()
            nodes = [space.start("StatefulSet", f"inline-{node}")
                     for node in range(NODES)]
            run()
        finally:
            for name in reversed(containers):
                docker("rm", "--force", name, check=False)
