#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""`make check-nodes`: each tests/nodes/*.t, one after the other.  README.md
says how it is used; with FILL=1 what came of it is put in there."""

import glob
import os
import re
import subprocess
import sys
import time

from hosts import cache, sweep, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN = "<!-- make check-nodes FILL=1 begins -->"
END = "<!-- it ends -->"
# In this order; what is not named comes last.
FIRST = ("throughput", "hop", "faults", "rolling", "move")
MOST_SECONDS = 1200


def groups():
    """The names of the tests, or of those that ROWS asks for."""
    there = [os.path.basename(path)[:-2]
             for path in sorted(glob.glob(os.path.join(HERE, "*.t")))]
    rows = os.environ.get("ROWS", "").replace(",", " ").split()
    return sorted((name for name in there if not rows or name in rows),
                  key=lambda name: FIRST.index(name) if name in FIRST else 99)


def log_of(name):
    """Where the last output of a test is kept."""
    return os.path.join(cache(), name + ".log")


def take(name):
    """Run one: its output goes to standard output and into its log."""
    begun = time.monotonic()
    with subprocess.Popen(
            ["timeout", "-k", "10", str(MOST_SECONDS),
             os.path.join(HERE, name + ".t")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace") as process, open(log_of(name), "w") as log:
        print(f"# commit {output('git', 'rev-parse', '--short', 'HEAD')}",
              file=log)
        for line in process.stdout:
            print(line, end="", flush=True)
            log.write(line)
        code = process.wait()
        print(f"# {time.monotonic() - begun:.0f} s, status {code}", file=log)
        left = wait_for_nothing()
        if left:
            print(f"not ok 0 - it leaves nothing: {left}", file=log)


def wait_for_nothing():
    """What a test has left; the kernel takes a moment to end a namespace."""
    try:
        wait_for(lambda: not sweep(), 10)
    except AssertionError:
        pass
    return sweep()


class Log:
    """What the last run of a test has told."""

    def __init__(self, name):
        self.results = []       # (passed, what)
        self.figures = []
        self.commit = self.seconds = ""
        if not os.path.exists(log_of(name)):
            return
        with open(log_of(name), encoding="utf-8", errors="replace") as file:
            for line in file:
                found = re.match(r"(not )?ok \d+ (?:- )?(.*)", line)
                skipped = re.match(r"1\.\.0 # (SKIP .*)", line)
                ended = re.match(r"# (\d+ s), status (\d+)$", line)
                if found:
                    self.results.append((found[1] is None, found[2]))
                elif skipped:   # what did not run has proved nothing
                    self.results.append((False, skipped[1]))
                elif line.startswith("# figure "):
                    self.figures.append(line[len("# figure "):].strip())
                elif line.startswith("# commit "):
                    self.commit = line.split()[2]
                elif ended:
                    self.seconds = ended[1]
                    if ended[2] != "0" and all(ok for ok, _ in self.results):
                        self.results.append((False, "status " + ended[2]))

    @property
    def passed(self):
        """How many of its tests passed."""
        return sum(good for good, _ in self.results)


def output(*words):
    """The first line that a command prints."""
    return subprocess.run(words, capture_output=True, text=True,
                          cwd=HERE).stdout.split("\n")[0].strip()


def versions():
    """What was used."""
    return output("dpkg-query", "-W", "-f", "${Package} ${Version}",
                  "docker.io") + ", Linux " + os.uname().release


def render():
    """The text between the marks: the last run of each."""
    logs = {name: Log(name) for name in groups()}
    lines = [f"- {os.cpu_count()} processors; " + versions(), "",
             "| test | commit | passed | took |", "|---|---|---|---|"]
    lines += [f"| {name} | {log.commit} | {log.passed} of "
              f"{len(log.results)} | {log.seconds} |" if log.commit else
              f"| {name} | not run | | |" for name, log in logs.items()]
    lines.append("")
    lines += [f"- {name}: {'' if good else 'failed: '}{what}"
              for name, log in logs.items()
              for good, what in log.results if not good or "SKIP" in what]
    lines += [f"- {name}: {text}" for name, log in logs.items()
              for text in log.figures]
    return "\n".join(lines)


def fill(text):
    """Put it in its place in README.md."""
    path = os.path.join(HERE, "README.md")
    with open(path, encoding="utf-8") as file:
        old = file.read()
    begin = old.index(BEGIN) + len(BEGIN)
    end = old.index(END, begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write(old[:begin] + "\n" + text + "\n" + old[end:])


def main():
    """All of it; 1 when something has failed."""
    for name in groups():
        print(f"# ---- {name} ----", flush=True)
        take(name)
    logs = [Log(name) for name in groups()]
    print(render())
    if os.environ.get("FILL"):
        os.environ.pop("ROWS", None)
        fill(render())
    return any(not good for log in logs for good, _ in log.results)


if __name__ == "__main__":
    sys.exit(main())
