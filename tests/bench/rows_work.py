# SPDX-License-Identifier: MIT
"""Real work: what importing large packages takes, for who comes first, for the
next, and with IL_PRELOAD; and what having them imported costs others."""

import os

import place as p
from rows_contracts import PLOT
from rows_eval import describe, rate_of
from rows_size import MIB, bare_container, memory, mib, pids_of
from table import ms

MODULES = "numpy,pandas,matplotlib.pyplot"
FRAME = ("import numpy, pandas\n"
         "frame = pandas.DataFrame({'k': numpy.arange(1000) % 7, 'v': 1.0})\n"
         "print(len(frame.groupby('k').v.mean()))")
WORK = (("numpy, pandas, a groupby", FRAME, ("numpy", "pandas"), "7\n", 0.5,
         None),
        ("a plot as PNG", PLOT, ("matplotlib.pyplot",), "1\n", 0.7, 0.15))


def work(place, table):
    if os.geteuid() != 0:
        table.add(WORK[0][0] + ", p50", "only root sees a container's files")
        return
    image = p.scientific_image(table, WORK[0][0] + ", p50")
    if image is None:
        return
    with place.service(SANDBOX_IMAGE=image, IL_PRELOAD="none") as plain, \
            place.service(SANDBOX_IMAGE=image) as usual, \
            place.service(SANDBOX_IMAGE=image, IL_PRELOAD=MODULES) as loaded:
        imports(place, table, image, plain, usual, loaded)
        throughput(place, table, plain, loaded)
    each_more(place, table, image)


def imports(place, table, image, plain, usual, loaded):
    """Beside the image's interpreter, started in a container's files."""
    root = "/proc/%d/root" % p.pid_of(bare_container(place, image))
    count = place.settings.count(20)
    for what, code, modules, expected, most, most_loaded in WORK:
        specs = (*(place.eval(service, code, expected)
                   for service in (plain, usual, loaded)),
                 place.spawn("/usr/bin/python3", "-c", "exec(%r)" % code,
                             expected=expected))  # one line
        place.load("alternate", place.settings.count(3), 1, 0, *specs,
                   root=root)
        usual.wait_imports(modules)
        one, two, three, bare = place.load("alternate", count, 2, 0, *specs,
                                           root=root)
        for how, ours, limit in ((", who comes first", one, None),
                                 ("", two, most),
                                 (", IL_PRELOAD", three, most_loaded)):
            beside = bare["whole"]["p50"]
            if limit is None:
                table.add(what + how + ", p50", ms(ours["whole"]["p50"]),
                          ms(beside) + " bare", ours["whole"]["p50"] / beside)
            else:
                table.at_most(what + how + ", p50", ours["whole"]["p50"],
                              beside, limit, with_what="bare")
        table.note("n=%d each, in turns; IL_PRELOAD=%s" % (count, MODULES))


def throughput(place, table, plain, loaded):
    """print(1) where it does not need what was imported."""
    specs = place.eval(loaded), place.eval(plain)
    short = place.settings.ms(4000)
    for spec in specs:
        place.load("sustain", 8, 1, place.settings.ms(2000), spec)
    for lanes in (1, 8, 32):
        ours, theirs = place.load("sustain", lanes, 2,
                                  "%d,%d" % (short, short), *specs)
        table.at_least("print(1), IL_PRELOAD, %d in flight" % lanes,
                       rate_of(ours), rate_of(theirs), 0.8,
                       with_what="without")
        table.note("n=%d, %s" % (ours["counted"], describe(ours)))


def each_more(place, table, image):
    """What one more cell takes beside those with them and without."""
    sizes = []
    for warm in 2, 3:
        with place.service(SANDBOX_IMAGE=image, IL_PRELOAD=MODULES,
                           IL_TUNE_API_WARM=str(warm),
                           IL_API_CELLS=str(warm)) as service:
            place.load("alternate", 10, 1, 0, place.eval(service))
            service.wait_cells(warm)
            sizes.append(memory([pid for one in service.cell_ids()
                                 for pid in pids_of(one)])[0])
    more = sizes[1] - sizes[0]
    table.add("one more cell with IL_PRELOAD", mib(more), mib(sizes[0]) +
              " of two", None, "<= 40 MiB", more <= 40 * MIB)
