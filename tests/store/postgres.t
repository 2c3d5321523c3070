#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The store's unit tests on PostgreSQL: the same programs as on SQLite, each on
a database of its own."""

import os
import subprocess
import sys

from cluster import Cluster, skip_unless_installed

BUILD = os.environ["BUILD"]
TESTS = ["command_id", "sandbox", "view", "names", "job", "rule", "group",
         "race", "pg", "pg_session", "node"]

skip_unless_installed()
failed = 0
with Cluster(["wal_writer_delay=10s"]) as cluster:
    for number, name in enumerate(TESTS, 1):
        address = cluster.database("test_" + name)
        done = subprocess.run(
            [f"{BUILD}/tests/test_store_{name}"],
            env=dict(os.environ, TEST_STORE=address),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=120)
        text = done.stdout.decode(errors="replace").splitlines()
        good = done.returncode == 0 and not any(
            line.startswith("not ok") for line in text)
        failed += not good
        points = sum(line.startswith("ok") for line in text)
        print(f"{'ok' if good else 'not ok'} {number} - test_store_{name}: "
              f"{points} points", flush=True)
        if not good:
            print("\n".join("# " + line for line in text), flush=True)
print(f"1..{len(TESTS)}")
sys.exit(failed != 0)
