#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The table of results in README.md, out of the last runs' logs
(build/host/SUITE.log): what `make check-host FILL=1` ends with, and, by hand,
what has been run one suite at a time.
"""

import os
import re
import sys

from house import SUITES, cache
from steps import ROOT

BEGIN = "<!-- make check-host FILL=1 begins -->"
END = "<!-- it ends -->"


class Log:
    """What a suite's log tells."""

    def __init__(self, suite):
        self.suite = suite
        self.head = self.versions = ""
        self.results = {}       # (group, what): "yes" or "NO"
        group = "steps"
        path = os.path.join(cache(), suite + ".log")
        with open(path, encoding="utf-8") as file:
            for line in file.read().split("\n"):
                group = self.take(line, group)

    def take(self, line, group):
        """Take a line in; returns the group that the next one is of."""
        begins = re.match(rf"# {self.suite}: (\w+)$", line)
        if begins:
            return begins[1]
        result = re.match(r"(not )?ok \d+ - (.*)", line)
        if result:
            # A step's seconds are one run's.
            what = re.sub(r" \(\d+ s\)(, done before)?$", "", result[2])
            self.results[group, what] = "NO" if result[1] else "yes"
        elif line.startswith("# Debian "):
            self.versions = line[2:]
        elif line.startswith(f"# {self.suite}, commit "):
            self.head = line[2:]
        return group


def counted(log, group):
    """How many of a group's tests passed; "-": it was not run."""
    marks = [mark for (one, _), mark in log.results.items() if one == group]
    return f"{marks.count('yes')} of {len(marks)}" if marks else "-"


def render(logs):
    """The text between the marks: a row for each group, and what failed."""
    lines = []
    for log in logs:
        passed = list(log.results.values()).count("yes")
        lines.append(f"- {log.head}: {passed} of {len(log.results)} passed; "
                     f"{log.versions}")
    lines += ["", "| group | " + " | ".join(log.suite for log in logs) + " |",
              "|---|" + "---|" * len(logs)]
    for group in dict.fromkeys(group for log in logs
                               for group, _ in log.results):
        lines.append(f"| {group} | " + " | ".join(
            counted(log, group) for log in logs) + " |")
    lines.append("")
    lines += [f"- {log.suite}, {group}: failed: {what}" for log in logs
              for (group, what), mark in log.results.items() if mark == "NO"]
    return "\n".join(lines)


def fill():
    """Put the table in its place."""
    logs = [Log(suite) for suite in SUITES
            if os.path.exists(os.path.join(cache(), suite + ".log"))]
    path = os.path.join(ROOT, "tests", "host", "README.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(BEGIN) + len(BEGIN)
    end = text.index(END, begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + render(logs) + "\n" + text[end:])


if __name__ == "__main__":
    sys.exit(fill())
