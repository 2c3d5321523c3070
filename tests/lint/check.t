#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check.sh: what was red is told at the end, and run again where CI asks."""

import os
import shutil
import subprocess
import sys
import tempfile

from source import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
from tap import run, test  # noqa: E402

# Red, until there is a file that it has made itself.
FIRST = "[ -e once ] || { touch once; echo '# in the way'; false; }"


def check(again, **files):
    """Run such tests in a tree of their own; returns (status, output)."""
    with tempfile.TemporaryDirectory() as tree:
        shutil.copytree(os.path.join(ROOT, "sandbox/setup"),
                        os.path.join(tree, "sandbox/setup"))
        for folder in "tests/store", "build/tests":
            os.makedirs(os.path.join(tree, folder))
        for name in "rules.yml", "one.sh":
            shutil.copy(os.path.join(ROOT, "tests", name),
                        os.path.join(tree, "tests"))
        for name, line in files.items():
            path = os.path.join(tree, f"tests/store/{name}.t")
            with open(path, "w") as file:
                file.write("#!/bin/sh\necho 1..1\n"
                           f"{line} && echo ok 1 || echo not ok 1\n")
            os.chmod(path, 0o755)
        done = subprocess.run(
            ["sandbox/setup/check.sh", "fast", "build"], cwd=tree, text=True,
            env={"PATH": os.environ["PATH"], "TEST_AGAIN": again},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        return done.returncode, done.stdout


@test
def what_is_green_says_so():
    status, text = check("1", good="true")
    assert status == 0 and "red" not in text, text


@test
def a_red_file_fails_and_its_output_is_at_the_end():
    status, text = check("0", good="true", bad="! echo '# the reason' >&2",
                         first=FIRST)
    assert status == 1 and "once more" not in text, text
    end = text[text.index("Result: FAIL"):]
    assert "tests/store/bad.t (fast) ----\n1..1\n# the reason\nnot ok 1\n" \
        in end and "# in the way" in end, text
    # in the order in which they ended
    told = text.splitlines()[-1].partition("red (fast): ")[2]
    assert sorted(told.split()) == ["tests/store/bad.t",
                                    "tests/store/first.t"], text


@test
def asked_to_it_runs_red_ones_again_and_names_those_green_then():
    status, text = check("1", good="true", first=FIRST)
    assert status == 0 and "# in the way" in text, text
    assert text.endswith("red beside others, green alone: "
                         "tests/store/first.t\n"), text


@test
def what_is_red_twice_fails():
    status, text = check("1", bad="false", first=FIRST)
    assert status == 1 and "green alone" not in text, text
    assert text.endswith("red (fast-again): tests/store/bad.t\n"), text


# The second one ends with the first, and is nobody's zombie then.
LEFT = """python3 -c '
import os, subprocess
one = subprocess.Popen(["sleep", "7421"], stdout=subprocess.PIPE)
two = subprocess.Popen(["cat"], stdin=one.stdout)
one.stdout.close(); os.close(1); os.close(2)
two.wait()' &
true"""


@test
def what_a_test_leaves_behind_is_named_ended_and_red():
    status, text = check("0", left=LEFT)
    assert status == 1 and "# left behind: " in text, text
    assert "sleep 7421" in text, text


@test
def what_ends_soon_after_its_test_is_green():
    status, text = check("0", soon="{ sleep 1 & }")
    assert status == 0, text


run()
