# SPDX-License-Identifier: MIT
"""Packages of the public indexes, for tests: each in a folder of its own, which
goes with the test.  INLINE_TEST_CLIENTS names a folder where they are kept.

    clients = Clients()
    python = clients.python_with("mcp<2", "mcp1")       # or the test is skipped
    clients.close()
"""

import os
import shutil
import subprocess
import sys
import tempfile

import served  # noqa: F401 (it knows where the next one is)
from tap import Skip

INSTALL_SECONDS = 120


def command(*words, timeout=INSTALL_SECONDS, cwd=None):
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd,
                          stdin=subprocess.DEVNULL, timeout=timeout)


def fetch(what, *words):
    """Install it, or skip the test."""
    try:
        done = command(*words)
    except subprocess.TimeoutExpired:
        raise Skip(what + ": it takes too long to come") from None
    if done.returncode != 0:
        raise Skip(what + ": " + done.stderr.strip().split("\n")[0][:200])


class Clients:
    def __init__(self):
        self.kept = os.environ.get("INLINE_TEST_CLIENTS")
        self.folder = self.kept or tempfile.mkdtemp(prefix="inline-clients-")

    def close(self):
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def python_with(self, requirement, name):
        """The Python that has a package."""
        folder = os.path.join(self.folder, name)
        python = os.path.join(folder, "bin", "python")
        if not os.path.exists(os.path.join(folder, "whole")):
            fetch("venv", sys.executable, "-m", "venv", folder)
            fetch(requirement, python, "-m", "pip", "-q", "install",
                  requirement)
            open(os.path.join(folder, "whole"), "w").close()
        return python

    def node_with(self, package, name):
        """The folder with a package of npm's."""
        folder = os.path.join(self.folder, name)
        if shutil.which("npm") is None:
            raise Skip("there is no npm")
        if not os.path.exists(os.path.join(folder, "whole")):
            os.makedirs(folder, exist_ok=True)
            fetch(package, "npm", "install", "--no-save", "--no-audit",
                  "--prefix", folder, package)
            open(os.path.join(folder, "whole"), "w").close()
        return folder
