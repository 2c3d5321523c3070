# SPDX-License-Identifier: MIT
"""Modules that are imported before the first clone of an api cell, and used
once: a first use costs each run the same."""

import gc
import os
import resource
import sys

# A thread does not come along into a fork, so a pool of them must not begin.
ONE_THREAD = {name + "_NUM_THREADS": "1"
              for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}


def import_ahead(names, room, bare):
    """Import modules for all runs, which find them, and what they import, in
    sys.modules; until this process has so many bytes of memory (0: however
    many).  Returns what went wrong, or None, and which are there: bit i for the
    i-th.  Called after get_ready(): they must not get modules of the cell's,
    which a run would import a second time."""
    trouble, imported = [], 0
    saved = dict(os.environ)
    os.environ.update(ONE_THREAD)
    for i, name in enumerate(names):
        if room and most_resident() > room:
            trouble.append("%s: no memory" % name)
            continue
        try:
            __import__(name)
            imported |= 1 << i
        except BaseException as error:
            trouble.append("%s: %s" % (name, type(error).__name__))
    try:
        draw_ahead()
    except BaseException as error:
        trouble.append("a drawing: %s" % type(error).__name__)
    os.environ.clear()
    os.environ.update(saved)
    bare.update(sys.modules)
    generators[:] = find_generators()
    return ", ".join(trouble)[:150] or None, imported & 0xffffffff


def draw_ahead():
    """Where pyplot is there, draw a figure that is none of its figures: the
    first one imports the rest of matplotlib and fills caches.  No word is on
    it: a font that has been used stays open."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    from io import BytesIO
    from warnings import catch_warnings
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    with catch_warnings():
        figure = Figure()
        axes = figure.add_subplot()
        axes.plot([0, 1])
        axes.tick_params(labelbottom=False, labelleft=False)
        FigureCanvasAgg(figure).print_png(BytesIO())


def most_resident():
    """Bytes of memory that this process has had at most.  /proc is covered."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


generators = []     # of random numbers, that modules keep: sympy does


def find_generators():
    """Random generators but the module random's own, which each clone seeds."""
    random = sys.modules.get("random")
    if random is None:
        return []
    own = random.seed.__self__
    return [one for one in gc.get_objects()
            if type(one) is random.Random and one is not own]


def are_random():
    """Are there any, or those of numpy?  An image may import modules at each
    start of Python, without our asking."""
    return bool(generators) or "numpy.random" in sys.modules


def reseed():
    """In the clone that becomes a run: its random numbers must not be those of
    other clones."""
    for one in generators:
        one.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
