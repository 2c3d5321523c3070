#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The README's examples of the HTTP APIs, run as they are written there."""

import os
import re
import subprocess

from served import Served
from tap import run, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


COMMANDS = "curl ", "echo ", "id="


def examples():
    """Return [(commands, what they are to print, "…" for anything)]."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        section = file.read().split("## From programs", 1)[1].split("\n## ")[0]
    found = []
    for block in re.findall(r"(?:^    .*\n)+", section, re.M):
        lines = block.replace("\n    ", "\n")[4:].splitlines()
        commands = [line for line in lines if line.startswith(COMMANDS)]
        if commands:
            found.append(("\n".join(commands),
                          "\n".join(lines[len(commands):]).strip()))
    return found


@test
def the_examples_do_what_they_say():
    found = examples()
    assert len(found) == 6, found
    with Served() as served:
        for command, want in found:
            here = command.replace("localhost:8080",
                                   "127.0.0.1:%d" % served.port)
            assert here != command, command
            done = subprocess.run(["sh", "-c", here], capture_output=True,
                                  text=True, timeout=60)
            pattern = re.escape(want).replace("\\\n", "\n").replace("…", ".*")
            assert done.returncode == 0 and re.fullmatch(
                pattern, done.stdout.strip(), re.S), (command, done.stdout)


run()
