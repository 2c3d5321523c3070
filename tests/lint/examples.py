# SPDX-License-Identifier: MIT
"""The worked examples of .github/CONTRIBUTING.md, as patches.

A heading says how many files one may touch, the fence below it is the patch:

    ### A button: 2 files
    ```diff
    --- a/…
    ```
"""

import re
import subprocess

from source import read

PAGE = ".github/CONTRIBUTING.md"
EXAMPLE = re.compile(r"^### ([^\n]*): (\d+) files\n(?:(?!^###? ).)*?"
                     r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example:
    """One of them: title, limit, patch, and the paths that it touches."""

    def __init__(self, title, limit, patch):
        self.title = title
        self.limit = int(limit)
        self.patch = patch
        old = re.findall(r"^--- (\S+)$", patch, re.MULTILINE)
        new = re.findall(r"^\+\+\+ (\S+)$", patch, re.MULTILINE)
        self.paths = {name[2:] for name in old + new if name != "/dev/null"}

    def apply(self, folder):
        """Apply it to a copy of the tree; returns what is wrong, or ""."""
        return subprocess.run(
            ["git", "apply", "-"], cwd=folder, input=self.patch, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def examples():
    """All of them, in their order: each goes on where the last one ended."""
    return [Example(*found) for found in EXAMPLE.findall(read(PAGE))]
