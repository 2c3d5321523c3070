# SPDX-License-Identifier: MIT
"""The Debian packages of a commit, and those of the version after it, made on
this machine; and a machine without Inline that is given both.
"""

import glob
import os
import re
import shutil
import subprocess
import tarfile

from house import House, cache, output
from machine import clean, end_on_signals, overlay
from session import Session
from steps import content

# What the version after it brings: old programs must bear it for a while.
MIGRATION = """-- SPDX-License-Identifier: MIT
CREATE TABLE next_version (id INTEGER PRIMARY KEY) STRICT;
PRAGMA user_version = {number};
"""


def version_of(commit):
    """The version that a commit has."""
    return re.search(r"(?m)^VERSION := (\S+)",
                     content(commit, "GNUmakefile"))[1]


def made(commit):
    """(packages, those of the next version, the next schema's number); made
    once for each commit.
    """
    folder = os.path.join(cache(), "deb-" + commit[:12])
    tree = os.path.join(folder, "tree")
    version = version_of(commit)
    if not os.path.exists(os.path.join(folder, "complete")):
        print("# making packages", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(tree)
        archive = os.path.join(folder, "tree.tar")
        output("git", "archive", "-o", archive, commit)
        with tarfile.open(archive) as tar:
            tar.extractall(tree)
        make(tree, folder + "/this", version)
        number = 1 + len(glob.glob(tree + "/sql/migrations/*.sql"))
        with open(f"{tree}/sql/migrations/{number:03}-next.sql", "w",
                  encoding="ascii") as file:
            file.write(MIGRATION.format(number=number))
        make(tree, folder + "/next", version + "+1")
        with open(os.path.join(folder, "complete"), "w",
                  encoding="ascii"):
            pass
    return (glob.glob(folder + "/this/deb/*.deb"),
            glob.glob(folder + "/next/deb/*.deb"),
            len(glob.glob(tree + "/sql/migrations/*.sql")))


def make(tree, out, version):
    """Run `make deb` there."""
    done = subprocess.run(
        ["make", "-s", "deb", "O=" + out, "VERSION=" + version], cwd=tree,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"})
    assert done.returncode == 0, done.stdout + done.stderr


class Bare(Session):
    """A machine with nothing of Inline on it, and both versions' packages among
    its payload.
    """

    def __init__(self):
        end_on_signals()
        self.house = House(os.environ["HOST_SUITE"],
                           os.environ.get("HOST_COMMIT", "HEAD"))
        this, following, self.schema = made(self.house.commit)
        folder = os.path.join(self.house.session, "package")
        clean(folder)
        os.makedirs(folder)
        disk = os.path.join(folder, "disk.qcow2")
        overlay(disk, os.path.join(self.house.base, "base.img"), "raw")
        self.payload = self.house.payload()
        with tarfile.open(self.payload, "a") as tar:
            for name, files in ("this", this), ("next", following):
                for path in files:
                    tar.add(path, f"{name}/{os.path.basename(path)}")
        self.machine = self.house.machine(disk, folder, self.payload)
        self.discord = self.configured = None
        self.settings, self.ours = {}, True

    def __enter__(self):
        try:
            self.machine.boot("unsafe")
            self.discord = self.house.standin(
                self.house.endpoint(self.machine),
                **self.house.name_of(self.machine))
            self.discord.start()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.machine.cut()
        os.unlink(self.payload)
        if self.discord:
            self.discord.stop()
