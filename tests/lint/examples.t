#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The worked examples of CONTRIBUTING.md fit the tree, and none takes more
files than a thing of its kind may take.  tests/e2e/examples.t builds them."""

import os
import shutil
import tempfile

from examples import examples
from source import ROOT, check, finish

# The most files that each may take: this is a promise.
MOST = {"A slash command": 6, "A button": 2, "An API route": 4, "A contract": 7,
        "A configuration key": 3, "An operation of a cell": 4}
found = examples()


def missing():
    if [one.title for one in found] != list(MOST):
        yield f"{[one.title for one in found]}, not {list(MOST)}"


def too_many():
    for one in found:
        if len(one.paths) != one.limit:
            yield f"{one.title}: says {one.limit}, has {sorted(one.paths)}"
        if len(one.paths) > MOST.get(one.title, 0):
            yield f"{one.title}: {sorted(one.paths)}"
        for path in one.paths:
            if path.startswith("sql/"):
                yield f"{one.title}: a migration: {path}"


def unfit():
    with tempfile.TemporaryDirectory(prefix="inline-lint-") as folder:
        for path in set().union(*(one.paths for one in found)):
            if os.path.exists(os.path.join(ROOT, path)):
                os.makedirs(os.path.join(folder, os.path.dirname(path)),
                            exist_ok=True)
                shutil.copy(os.path.join(ROOT, path),
                            os.path.join(folder, path))
        for one in found:
            wrong = one.apply(folder)
            if wrong:
                yield f"{one.title}: {wrong}"


check("there is an example of each", missing())
check("each touches as many files as it says, and may", too_many())
check("they can be applied, one after the other", unfit())
finish()
