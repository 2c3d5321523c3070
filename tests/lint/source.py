# SPDX-License-Identifier: MIT
"""What the checks of this folder share: the tree's files and TAP.

A check is a function that yields complaints, "FILE:LINE: what" or any other
text; no complaint is a pass.

    check("no function is too long", too_long())
    finish()
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
_results = []


def files(*suffixes, tests=True):
    """Paths of the tree's files (not ignored ones) that end so, sorted."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        paths = [p for p in listed.stdout.decode().split("\0") if p]
    else:
        paths = list(_walk())
    return sorted(
        p for p in set(paths)
        if p.endswith(suffixes or "") and os.path.isfile(os.path.join(ROOT, p))
        and (tests or not p.startswith("tests/")))


def _walk():
    """All files, where this is an unpacked archive and not a clone."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in ("build", "__pycache__")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    """The text of a file of the tree."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def words_of(path):
    """How many words a page has, without results that a program puts in."""
    text = re.sub(r"<!-- make .*?<!-- it ends -->", "", read(path),
                  flags=re.S)
    return sum(1 for word in text.split() if re.search(r"\w", word))


def code_lines(path):
    """(number, line) of a C file, comments and literals blanked."""
    def blank(match):
        text = match.group(0)
        if text.startswith("/"):
            return re.sub(r"[^\n]", " ", text)
        return text[0] + text[-1]
    text = re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
        blank, read(path), flags=re.DOTALL)
    return enumerate(text.split("\n"), 1)


def check(name, complaints):
    """Record one check."""
    _results.append((name, list(complaints)))


def finish():
    """Print TAP for all checks; exits with 1 when there was a complaint."""
    print(f"1..{len(_results)}")
    for number, (name, complaints) in enumerate(_results, 1):
        print(f"{'not ' if complaints else ''}ok {number} - {name}")
        for complaint in complaints[:50]:
            print(f"# {complaint}")
    sys.exit(1 if any(c for _, c in _results) else 0)
