# SPDX-License-Identifier: MIT
"""The commands of systemd/INSTALL.md, in the order in which people follow them;
those of "From source" in the place of the first step, which needs packages.

Names and addresses of the examples are replaced, everything else stays as it
is written.  Whoever changes the documentation changes what is tested.
"""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
NAME = "inline.host.test"
NAMES = {"inline.example.org": NAME, "YOUR.NAME": NAME, "your.host": NAME}
PAGE = "systemd/INSTALL.md"
STEPS = "## Step by step"
SOURCE = "## From source"
SOURCE_STEP = "INSTALL.md, from source"


def content(commit, path):
    """A commit's file; of no commit: as it is here."""
    if commit is None:
        with open(os.path.join(ROOT, path)) as file:
            return file.read()
    return subprocess.run(["git", "show", f"{commit}:{path}"], cwd=ROOT,
                          check=True, capture_output=True, text=True).stdout


def section(commit, path, title):
    """The lines under a heading of a commit's file that begins so."""
    text = content(commit, path)
    start = text.index("\n" + title)
    body = text[text.index("\n", start + 1):]
    return body.split("\n## ", 1)[0].split("\n")


def items(lines):
    """The text of each item of a numbered list, by its number."""
    found = {}
    number = None
    for line in lines:
        begins = re.match(r"(\d+)\. ", line)
        if begins:
            number = int(begins[1])
            line = line[begins.end():]
        elif line and not line.startswith("   "):
            number = None
        if number is not None:
            found.setdefault(number, []).append(line)
    return found


def blocks(lines):
    """The indented lines of an item: commands as they are typed."""
    return [line.strip() for line in lines if line.startswith(" " * 7)]


def spans(lines):
    """What stands in back-ticks in an item and is a command: more than one
    word.
    """
    text = " ".join(line.strip() for line in lines)
    return [span for span in re.findall(r"`([^`]+)`", text) if " " in span]


def named(command):
    """A command with our names in the places of the examples'."""
    for example, ours in NAMES.items():
        command = re.sub(re.escape(example), ours, command)
    return command


def production(commit="HEAD"):
    """Return [(where, command)]; all of it, in order."""
    steps = [(SOURCE_STEP, line.strip())
             for line in section(commit, PAGE, SOURCE)
             if line.startswith("    ")]
    assert steps, SOURCE
    listed = items(section(commit, PAGE, STEPS))
    for number, lines in sorted(listed.items())[1:]:
        where = f"INSTALL.md, step {number}"
        found = blocks(lines) or spans(lines)
        assert found, f"{where}: no command"
        # Where `make install` has put it.
        steps += [(where, re.sub("/usr/((?:share/doc|lib)/inline/)",
                                 r"/usr/local/\1", named(one)))
                  for one in found]
    return steps


if __name__ == "__main__":
    for one in production():
        print("%s: %s" % one)
