#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Makes the pictures of .github/ anew: those that PICTURES.md and the README
show, as the browser tests take them.

    BUILD=$PWD/build SANDBOX_IMAGE=inline-python:3.11 tests/e2e/pictures.py

It needs pngquant (Debian's package): a picture with a palette is a third as
large.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDER = os.path.join(ROOT, ".github")
TESTS = "browser.t", "browser_small.t"


def shown():
    """The names of the pictures that the two documents show."""
    names = []
    for path in ".github/PICTURES.md", "README.md":
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            names += re.findall(r"""pictures/([a-z-]+)\.png[)"]""",
                                file.read())
    return sorted(set(names))


def main():
    os.makedirs(os.path.join(FOLDER, "pictures"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="inline-pictures-") as taken:
        for test in TESTS:
            subprocess.run([os.path.join(HERE, test)], check=True,
                           stdin=subprocess.DEVNULL,
                           env={**os.environ, "SCREENSHOTS": taken})
        for name in shown():
            path = os.path.join(FOLDER, "pictures", name + ".png")
            subprocess.run(["pngquant", "--force", "--strip", "--output", path,
                            os.path.join(taken, name + ".png")], check=True)
            print(f"{path}: {os.path.getsize(path)} bytes")


sys.exit(main())
