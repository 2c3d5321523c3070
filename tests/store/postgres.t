#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The store's unit tests on PostgreSQL: the same programs as on SQLite, each on
a database of its own."""

import glob
import os
import subprocess
import sys

from cluster import Cluster, skip_unless_installed

BUILD = os.environ["BUILD"]
# Hosts whose clocks are ten minutes apart from the server's, and so from each
# other's: only the database's counts.
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1") +
                     glob.glob("/usr/lib*/faketime/libfaketime.so.1")), None)
APART = {"node ahead": "+600", "node behind": "-600", "node fast": "+0 x10"}
TESTS = ["command_id", "sandbox", "view", "names", "job", "rule", "group",
         "race", "pg", "pg_session", "node", "response"]

skip_unless_installed()
failed = 0
with Cluster(["wal_writer_delay=10s"]) as cluster:
    for number, test in enumerate([*TESTS, *APART], 1):
        name = test.split()[0]
        address = cluster.database("test_" + test.replace(" ", "_"))
        env = dict(os.environ, TEST_STORE=address)
        if test in APART and FAKETIME is None:
            print(f"ok {number} - test_store_{test} # SKIP no libfaketime")
            continue
        if test in APART:
            # with the sanitizers theirs is not the first any more
            env.update(LD_PRELOAD=FAKETIME, FAKETIME=APART[test],
                       ASAN_OPTIONS="verify_asan_link_order=0",
                       **({"TEST_FAST": "1"} if "x" in APART[test] else
                          {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}))
        done = subprocess.run(
            [f"{BUILD}/tests/test_store_{name}"], env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=120)
        text = done.stdout.decode(errors="replace").splitlines()
        good = done.returncode == 0 and not any(
            line.startswith("not ok") for line in text)
        failed += not good
        points = sum(line.startswith("ok") for line in text)
        print(f"{'ok' if good else 'not ok'} {number} - test_store_{test}: "
              f"{points} points", flush=True)
        if not good:
            print("\n".join("# " + line for line in text), flush=True)
print(f"1..{len(TESTS) + len(APART)}")
sys.exit(failed != 0)
