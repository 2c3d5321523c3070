# SPDX-License-Identifier: MIT
"""The end of an interpreter, cut short.

Threads are joined and atexit's callbacks have run: the interpreter would now
take itself apart, which takes longer than most runs.  What can be seen of that
is done here, in the same order, with nothing below it on the stack; then the
process ends.
"""

import atexit
import builtins
import gc
import io
import os
import sys
import _operator
import _thread

import bottom

modules = sys.modules   # of the interpreter, whatever a run has there
standard = {}           # {id: stream} that we have opened, for good
# Of sys: what an interpreter that ends lets go of.
GONE = ("path", "argv", "last_exc", "last_type", "last_value",
        "last_traceback", "path_hooks", "path_importer_cache", "meta_path")


def finish(run):
    """Returns only where the interpreter itself must go on."""
    if run.status is None or _thread._count() > 0 or not is_written():
        return
    if left_nothing(run):
        os._exit(run.status)
    atexit._clear()
    take_apart(run)
    flush_files()
    bottom.word(bottom.record.value + bottom.offset).value = None
    gc.collect()
    os._exit(run.status)


def is_written():
    """Is all out that was printed?  If not, the interpreter flushes the streams
    that are used, and says what is lost: here it is done for the others.

    Nothing of this is there any more when left_nothing() counts."""
    out, err = getattr(sys, "stdout", None), getattr(sys, "stderr", None)
    if id(out) in standard and id(err) in standard:
        for stream in standard.values():
            if not stream.write_through:
                break
        else:
            return True
    flush([one for one in standard.values() if one is not out and
           one is not err])
    return False


def take_apart(run):
    # From here on no function of Python's is called but the user's.
    bottom.word(bottom.record.value + bottom.offset).value = None
    if gc.isenabled():
        gc.collect()
    builtins._ = None
    for name in GONE:
        setattr(sys, name, None)
    if (next(reversed(modules), None), len(modules)) != run.last_module:
        for name in set(modules) - run.bare:
            modules.pop(name, None)
    # Tracebacks of what fails from now on show no source.
    modules.pop("io", None)
    modules.pop("__main__", None)
    run.names = None


def left_nothing(run):
    """Is every object that the collector knows one of those before the code?
    Then there is nothing to finalise: what it does not know holds no other, and
    is in memory alone."""
    then, run.tracked = run.tracked, ()
    now = gc.get_objects() if then else ()
    return len(now) == len(then) + 1 and all(map(_operator.is_, then, now))


def last_module():
    """Which one came last, and how many there are: to look at each would copy
    the page of each one's name."""
    return next(reversed(modules), None), len(modules)


def flush_streams():
    """Flush sys.stdout and sys.stderr, and what was there before a run put
    others in their places; False when output of the former is lost."""
    used = getattr(sys, "stdout", None), getattr(sys, "stderr", None)
    whole = flush(used)
    flush(standard.values())
    return whole


def flush(streams):
    whole = True
    for stream in streams:
        try:
            # what we have opened keeps nothing, unless that was changed
            if stream is not None and not getattr(stream, "closed", False) and (
                    id(stream) not in standard or not stream.write_through):
                stream.flush()
        except BaseException:
            whole = False
    return whole


def flush_files():
    """Flush the files that the user has left open: the collector closes what
    is below a stream's buffer first, when both are garbage."""
    for thing in gc.get_objects():
        if issubclass(type(thing), (io.TextIOWrapper, io.BufferedWriter)):
            try:
                thing.flush()
            except Exception:
                pass
