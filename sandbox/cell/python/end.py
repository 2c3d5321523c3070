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
from _weakref import ref

import bottom

callbacks = gc.callbacks
modules = sys.modules   # of the interpreter, whatever a run has there
standard = {}           # {id: stream} that we have opened, for good
# An interpreter lets go of these names in sys at its end.
GONE = ("path", "argv", "last_exc", "last_type", "last_value",
        "last_traceback", "path_hooks", "path_importer_cache", "meta_path")
# INERT are the types whose objects end unseen, in whatever order, and BASES
# those that a class with such objects may be made of.  They are kept by their
# addresses, as a class can say what it equals.
INERT = frozenset(map(id, (
    list, dict, tuple, set, frozenset, staticmethod, classmethod, property,
    type(lambda: None), type((lambda x: lambda: x)(0).__closure__[0]), type(id),
    type(type.__dict__["__dict__"]), type(type.__dict__["__base__"]))))
BASES = frozenset(map(id, (
    object, int, float, str, bytes, list, dict, tuple, set, BaseException,
    Exception, ValueError, TypeError, LookupError, KeyError)))
MOST = 5000     # objects: with more, the collector is no slower than a look


def finish(run):
    """Returns only where the interpreter itself must go on."""
    if run.status is None or _thread._count() > 0 or not is_written():
        return
    if left_nothing(run):
        os._exit(run.status)
    atexit._clear()
    take_apart(run)
    flush_files()
    held, callbacks[:] = callbacks[:], ()   # the last collection calls nobody
    bottom.word(bottom.record.value + bottom.offset).value = None
    gc.collect()
    os._exit(run.status)


def rehearse():
    """Run these steps before the clones: the first time writes to pages, the
    later ones do not."""
    is_written()
    then = gc.get_objects()

    class Sample:
        pass

    sample = [Sample()]
    left_inert(then, gc.get_objects())
    flush_files()
    bottom.left.value = bottom.left.value


def is_written():
    """Has all printed output been written?  If not, the interpreter flushes the
    streams that are used, and reports lost output; the others are flushed here.

    No object of this function is left when left_nothing() counts."""
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
    if len(now) == len(then) + 1 and all(map(_operator.is_, then, now)):
        return True
    return (0 < len(then) < len(now) < len(then) + MOST and
            last_module() == run.last_module and
            not callbacks and not gc.get_debug() and
            left_inert(then, now))


def left_inert(then, now):
    """Is the end of every new object invisible, as that of functions and of
    objects of plain classes?"""
    known = set(map(id, then))
    known.add(id(then))
    new = [one for one in now if id(one) not in known]
    if len(now) - len(new) != len(known):
        return False        # some are hidden from us
    made = {id(one): one for one in new if type(one) is type}
    for one in made.values():
        for base in one.__mro__:
            if id(base) not in BASES and (
                    id(base) not in made or "__del__" in base.__dict__):
                return False
    for one in new:
        kind = type(one)
        if not (id(kind) in INERT or id(kind) in made or kind is type or
                kind is ref and one.__callback__ is None):
            return False
    return True


def last_module():
    """The last one and their number: reading each would copy the page of its
    name."""
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
