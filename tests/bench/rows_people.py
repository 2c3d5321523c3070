# SPDX-License-Identifier: MIT
"""Many people, each of whom sends a command now and then."""

import os

import place as p
from rows_size import memory, mib
from table import ms

PEOPLE = 200
MINUTE_MS = 60000
GIB = 1 << 30
FOUND = (b"leased cold", b"leased warm")


def leases(service):
    """How many waited for the start of a cell, and how many did not."""
    with open(service.log, "rb") as file:
        text = file.read()
    return [text.count(what) for what in FOUND]


def weigh(service):
    """(programs, cells, how many cells): PSS, only root sees it.  Docker is asked
    once for all of them: cells do not wait for long to be weighed."""
    cells = p.docker("inspect", "--format", "{{.State.Pid}}",
                     *service.cell_ids()).split()
    return (memory(service.processes())[0],
            memory([pid for cell in cells for pid in p.family(int(cell))])[0],
            len(cells))


def tell_weight(weight):
    return "programs %s and %d cells %s" % (
        mib(weight[0]), weight[2], mib(weight[1]))


def people(place, table):
    """On a machine that is meant for them: a cell for each stays warm.  All have
    a sandbox before, and in the first minute, which is not counted, a first
    command."""
    quick = place.settings.quick
    count = 4 if quick else PEOPLE
    every = 500 if quick else MINUTE_MS
    seconds = float(os.environ.get("BENCH_PEOPLE_SECONDS", "60"))
    rounds = 1 if quick else max(1, round(1000 * seconds / every))
    with place.service(IL_TUNE_SPARE_CELLS="1", IL_CELLS=str(count + 8),
                       IL_TUNE_WARM_CELLS=str(count)) as service:
        for first in range(0, count, 10):
            place.load("burst", min(10, count - first),
                       place.create(service, p.USER + first))
        spec = place.command(service)
        place.load("people", count, every, 1, spec)
        before, light = leases(service), weigh(service)
        whole = place.load("people", count, every, rounds, spec)[0]["whole"]
        after, heavy = leases(service), weigh(service)
    cold, warm = (now - then for now, then in zip(after, before))
    table.add("%d people, a command a minute each, p95" % count,
              ms(whole["p95"]), "", None, "<= 250 ms", whole["p95"] <= 250)
    table.note("IL_CELLS=%d IL_TUNE_WARM_CELLS=%d; %d minute(s), n=%d, p50 %s p99 %s, the longest %s; %d waited"
               " for a cell to start, %d did not" % (
                   count + 8, count, rounds, whole["n"], ms(whole["p50"]), ms(whole["p99"]),
                   ms(whole["max"]), cold, warm))
    if os.geteuid() != 0:
        return
    table.add("the same, memory at the end", mib(sum(heavy[:2])), "", None,
              "<= 4 GiB", sum(heavy[:2]) <= 4 * GIB)
    table.note("PSS: %s; before, %s" % (tell_weight(heavy),
                                        tell_weight(light)))
