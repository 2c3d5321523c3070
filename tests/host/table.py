#!/usr/bin/python3 -B
"""The table of results in tests/README.md, out of the last runs' logs
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
        self.figures = []
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
        elif line.startswith("# figure "):
            self.figures.append(f"{group}: {line[len('# figure '):]}")
        elif line.startswith("# Debian "):
            self.versions = line[2:]
        elif line.startswith(f"# {self.suite}, commit "):
            self.head = line[2:]
        return group


def render(logs):
    """The text between the marks."""
    lines = []
    for log in logs:
        passed = list(log.results.values()).count("yes")
        lines.append(f"- {log.head}: {passed} of {len(log.results)} passed; "
                     f"{log.versions}")
    lines += ["", "| group | what | " +
              " | ".join(log.suite for log in logs) + " |",
              "|---|---|" + "---|" * len(logs)]
    names = list(dict.fromkeys(name for log in logs for name in log.results))
    groups = list(dict.fromkeys(group for group, _ in names))
    for group, what in sorted(names, key=lambda one: groups.index(one[0])):
        marks = " | ".join(log.results.get((group, what), "-")
                           for log in logs)
        what = what.replace("|", "\\|")
        lines.append(f"| {group} | {what} | {marks} |")
    lines.append("")
    lines += [f"- {log.suite}, {text}" for log in logs
              for text in log.figures]
    return "\n".join(lines)


def fill():
    """Put the table in its place."""
    logs = [Log(suite) for suite in SUITES
            if os.path.exists(os.path.join(cache(), suite + ".log"))]
    path = os.path.join(ROOT, "tests", "README.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(BEGIN) + len(BEGIN)
    end = text.index(END, begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + render(logs) + "\n" + text[end:])


if __name__ == "__main__":
    sys.exit(fill())
