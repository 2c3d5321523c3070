# SPDX-License-Identifier: MIT
"""A run whose interpreter is kept for the next one of its owner's: variables,
imports and the current directory live on.

When its code is over, the process says so and waits; ../supervisor/kept.h says
what becomes of it then.  The next request is read by another process, as ever,
which writes down here (pack) what this one is to do.
"""

import atexit
import marshal
import os
import sys
import _signal

from end import flush_files, flush_streams
from run import WORKSPACE, Run, open_standard_streams

# Attributes of a Run that a request sets anew.
TOLD = "source", "path", "is_file", "echo", "args", "folder", "errors", "keep"


def pack(run, merge):
    """The task of the kept process, as bytes."""
    return marshal.dumps([merge] + [getattr(run, name) for name in TOLD])


class Kept(Run):
    """A run in a kept interpreter: the first one, then each of the others."""

    keep = True
    number = 0              # of the runs before it
    own = None              # first of sys.path, if it is ours

    def __init__(self, native, bare, supervisor, end_of_display):
        """end_of_display: what display.py does after each run."""
        Run.__init__(self, native, bare)
        self.supervisor = supervisor
        self.end_of_display = end_of_display
        self.pid = os.getpid()
        self.sources = {}   # of its runs: {path: bytes}
        self.begun_in = ""  # the folder of the request before

    # ---- a run ----

    def leave(self):
        pass                # it was not to end: finish() is not registered

    def prepare(self):
        if self.number == 0:
            self.begun_in = self.folder
            codes = Run.prepare(self)
            atexit.unregister(self.finish)      # not before the last one
            self.main = sys.modules["__main__"]
            self.streams = sys.stdin, sys.stdout, sys.stderr
            return codes
        sys.modules["__main__"] = self.main
        sys.stdin, sys.stdout, sys.stderr = self.streams
        open_standard_streams(self.errors)
        self.streams = sys.stdin, sys.stdout, sys.stderr
        self.names["__file__"] = self.path
        self.set_arguments()
        self.set_folder()
        self.remember_sources()
        if not self.is_file:
            self.write_source()
        return self.compile()

    def set_path(self):
        Run.set_path(self)
        self.own = sys.path[0]

    def set_folder(self):
        """The first of sys.path as for a run of its own; the current folder
        only if the client is in another one by now."""
        own = os.path.dirname(self.path) if self.is_file else ""
        if sys.path[:1] == [self.own]:
            sys.path[0] = own
        elif own not in sys.path:
            sys.path.insert(0, own)
        self.own = own
        if self.folder != self.begun_in:
            self.begun_in = self.folder
            os.chdir(os.path.join(WORKSPACE, self.folder))

    def compile(self):
        if not self.is_file:
            self.sources[self.path] = self.source
        return Run.compile(self)

    def remember_sources(self):
        """Inline source of earlier runs is in no file any more: tracebacks
        and inspect find it where they look first."""
        cache = from_library("linecache").cache
        for path, source in self.sources.items():
            lines = source.decode("utf-8", "replace").splitlines(True)
            cache[path] = len(source), None, lines, path

    # ---- its end ----

    def again(self, error=None):
        """The code is over, by an error or not.  True: self is the next run.
        False: the interpreter is to end as any other.  SystemExit: the same,
        and what had to be shown was."""
        if not self.keep or os.getpid() != self.pid:
            return False
        self.status = 0
        try:
            self.tell(error)
            self.settle()
        except BaseException as fault:
            self.status = 1
            sys.__excepthook__(type(fault), fault, fault.__traceback__)
        del error
        self.flush()
        fd = self.supervisor.rest(self.status, self.count_names())
        if fd < 0:
            raise SystemExit(self.status)
        self.begin(fd)
        return True

    def tell(self, error):
        """Show the output of an interpreter's end."""
        if error is None:
            return
        if isinstance(error, SystemExit):
            self.exits(error)
            if self.status == 1 and not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
            return
        native = getattr(sys, "excepthook", None) is sys.__excepthook__
        if native and self.number:
            sys.excepthook = show_error
        self.fails(error)
        self.status = 1
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            if native:
                sys.excepthook = sys.__excepthook__

    def settle(self):
        """The other steps of an interpreter's end: wait for threads, but for
        daemons; show figures."""
        threading = sys.modules.get("threading")
        if threading is not None:
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and (
                        not thread.daemon):
                    thread.join()
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        self.end_of_display()

    def flush(self):
        try:
            if not flush_streams():
                self.status = 120
        except AttributeError:
            pass            # they are not there any more
        flush_files()

    def count_names(self):
        return sum(not name.startswith("_") for name in list(self.names))

    # ---- the next one ----

    def begin(self, fd):
        """Adopt the fields of the next request."""
        with open(fd, "rb") as file:
            file.seek(0)
            merge, *told = marshal.loads(file.read())
        if merge:
            os.dup2(1, 2)
        self.number += 1
        for name, value in zip(TOLD, told):
            setattr(self, name, value)
        self.waits = False
        if not self.is_file:
            name, ending = os.path.splitext(self.path)
            self.path = "%s-%d%s" % (name, self.number + 1, ending)


def from_library(name):
    """Import a module of the library, not of the workspace."""
    path = sys.path[:]
    sys.path[:] = [place for place in path
                   if place and not place.startswith(WORKSPACE)]
    try:
        return __import__(name)
    finally:
        sys.path[:] = path


def show_error(kind, error, trace):
    """Print a traceback: the interpreter itself knows only sources in files."""
    try:
        from_library("traceback").print_exception(kind, error, trace)
    except Exception:
        sys.__excepthook__(kind, error, trace)
