#!/usr/bin/python3
"""README, manual page and example agree with the table in the code."""

import os
import re
import subprocess

from source import ROOT, check, finish, read

ILCTL = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")),
                     "bin", "ilctl")


def table():
    """The rows that `ilctl config` prints, as lines."""
    try:
        result = subprocess.run([ILCTL, "config"], stdout=subprocess.PIPE,
                                text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Bail out! ilctl config: {error}")
        raise SystemExit(1) from error
    return [line for line in result.stdout.split("\n") if line]


def keys(rows):
    found = []
    for row in rows:
        match = re.match(r"\|\s*`?([A-Z][A-Z_]+)`?\s*\|", row)
        if match:
            found.append(match.group(1))
    return found


def not_in_readme(rows):
    lines = set(read("README.md").split("\n"))
    for row in rows:
        if re.match(r"\|\s*`?[A-Z]", row) and row not in lines:
            yield f"README.md lacks the row {row}"


def only_in_readme(rows):
    in_readme = keys(read("README.md").split("\n"))
    for key in set(in_readme) - set(keys(rows)):
        yield f"README.md describes {key}, which does not exist"


def not_in_manual(rows):
    path = "sandbox/base/inline.conf.5"
    if not os.path.exists(os.path.join(ROOT, path)):
        yield f"{path} is missing"
        return
    text = read(path)
    for key in keys(rows):
        if key not in text:
            yield f"{path} lacks {key}"


def tests_that_are_gone():
    for name in re.findall(r"`([a-z0-9_]+/[a-z0-9_]+\.[a-z]+)`",
                           read("tests/README.md")):
        if not os.path.exists(os.path.join(ROOT, "tests", name)):
            yield f"tests/README.md: there is no {name}"


def unknown_in_example(rows):
    for line in read("systemd/inline.env.example").split("\n"):
        key = line.split("=")[0]
        if key and not key.startswith("#") and key not in keys(rows):
            yield f"systemd/inline.env.example: unknown {key}"


settings = table()
check("ilctl prints a table", [] if len(keys(settings)) > 20 else ["no rows"])
check("the README has every row", not_in_readme(settings))
check("the README has no other key", only_in_readme(settings))
check("inline.conf(5) has every key", not_in_manual(settings))
check("the example has no other key", unknown_in_example(settings))
check("the tests that are spoken of exist", tests_that_are_gone())
finish()
