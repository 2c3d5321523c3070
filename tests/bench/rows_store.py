# SPDX-License-Identifier: MIT
"""The store alone.  Its folder is in memory, or $BENCH_STORE: what a disk takes
for a flush is the disk's."""

import itertools
import json
import os
import subprocess
import tempfile

import place as p
from table import ms

PROGRAM = os.path.join(p.BUILD, "tests", "bench_store")
STEPS = ("insert", "claim", "start", "finish", "flush", "told")


def store(path, *words):
    done = subprocess.run([PROGRAM, path, *map(str, words)],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise p.Failed("bench_store: " + done.stderr[-500:])
    return json.loads(done.stdout) if done.stdout else None


def commands(table, path, count):
    took = store(path, "commands", count)
    table.add("Store: a command's six steps",
              ms(sum(took[step]["p50"] for step in STEPS)))
    table.note("n=%d; each (start, finish, flush and told are one): %s" % (
        count, "; ".join("%s %s" % (step, ms(took[step]["p50"]))
                         for step in STEPS)))


def store_rows(place, table):
    quick = place.settings.quick
    most = 1 if quick else 4
    with tempfile.TemporaryDirectory(
            prefix="bench-store-",
            dir=os.environ.get("BENCH_STORE", "/dev/shm")) as folder:
        numbers = itertools.count()

        def fresh():
            path = os.path.join(folder, f"{next(numbers)}.db")
            store(path, "migrate")
            return path

        commands(table, fresh(), 2 if quick else 500)
        for processes, group in ((1, 1), (4, 1), (4, 16))[:most]:
            took = store(fresh(), "fronts", processes, group,
                         1 if quick else 5)
            table.add("Store: %d fronts, groups of %d" % (processes, group),
                      "%.0f/s" % took["per_second"])
        for workers in (4, 16, 64)[:most]:
            took = store(fresh(), "claims", workers, 64 if quick else 4000, 0)
            table.add("Store: jobs of %d workers" % workers,
                      "%.0f/s" % took["per_second"])
