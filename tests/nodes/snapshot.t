#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A node is lost whose sandboxes were saved: a person's next command finds the
files on another one, and says of what time they are."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import BUILD, enter, wait_for  # noqa: E402

if not os.path.exists(os.path.join(BUILD, "bin", "il-snapshot")):
    print("1..0 # SKIP il-snapshot is not built here (libzstd-dev)")
    sys.exit(0)
enter()
from load import figure  # noqa: E402
from node import Nodes  # noqa: E402
from tap import run, test  # noqa: E402

SHARED = "/srv/snapshots"       # as a file system that all hosts mount


lost = []       # the node that is


def saved():
    """The sandboxes of which there is a snapshot."""
    return sorted({folder for folder in os.listdir(SHARED)
                   if len(folder) == 32})


def say(code, user="alice"):
    """What a command answers."""
    return str(nodes.discord.send_command(
        "py", code=code, user=user).wait_final(timeout=300).messages)


def home():
    """The node that has the sandbox: whose worker came first."""
    name = nodes.postgres.sql("SELECT nodes.name FROM nodes JOIN sandboxes "
                              "ON sandboxes.home = nodes.number", "inline")
    return next(node for node in nodes if node.name == name.strip())


@test
def a_sandbox_is_saved_when_its_cell_has_ended():
    nodes.by(nodes[1])
    say("open('kept', 'w').write('still here')")
    sandbox = nodes.postgres.sql("SELECT id FROM sandboxes", "inline")
    wait_for(lambda: sandbox in saved(), 120,
             what=lambda: str(os.listdir(SHARED)))
    wait_for(lambda: any("manifest" in name for _, _, names in os.walk(
        os.path.join(SHARED, sandbox)) for name in names), 120,
        what=lambda: str(list(os.walk(SHARED))))


@test
def its_files_are_on_another_node_when_that_one_is_lost():
    lost.append(home())
    lost[0].host.cut()
    begun = time.monotonic()
    nodes.by(None)
    said = say("print(open('kept').read())")
    figure(f"answered on another node after {time.monotonic() - begun:.0f} s")
    assert "still here" in said, said


@test
def that_was_told_once_with_the_time():
    said = str([one["payload"] for one in nodes.discord.requests()])
    assert said.count(f"The host {lost[0].name} was lost") == 1, said[-2000:]
    assert "Its files are as of <t:" in said, said[-2000:]
    assert "was lost" not in say("print(open('kept').read())")


os.mkdir(SHARED)
with Nodes(2, IL_WORKERS="2", IL_WARM_SECONDS="2",
           IL_SNAPSHOTS=SHARED) as nodes:
    run()
