# SPDX-License-Identifier: MIT
"""The child of a fork becomes a run: a Python process like any other.

    run = Run(...)      in the child, which the supervisor has made
    ...                 run_process_become() in ../supervisor cuts it off from
                        the cell; all of the cell's frames return, to cell.py
    run.prepare()       from here on the process looks like a fresh Python
    exec(...)           the code, called by cell.py's last lines
    run.finish()        called last by the end of the interpreter

What the run can see of the cell afterwards: the command line in /proc, nothing
else (tests/cell/same.t).
"""

import atexit
import gc
import io
import os
import resource
import sys
import _ast
import _signal

import ctypes

import bottom
import display
import end
from end import last_module

WORKSPACE = "/workspace"
PACKAGES = WORKSPACE + "/.site-packages"
CODE = "/code"          # inline source lies here while it runs
HERE = os.path.dirname(os.path.abspath(__file__))

PARSE_ONLY = 0x400      # ast.PyCF_ONLY_AST
FUTURES = 0x1ffe000     # where co_flags keeps "from __future__ import ..."
ECHO_MAX = 256 << 10    # longer source is not taken apart: trees are large
NATIVE_ERRORS = sys.stdin.errors    # as this interpreter has opened them
FD_MAX = 64             # PID 1's own limit: it cannot have a higher one open
PR_SET_DUMPABLE = 4
# A run of the usual kind.  It shows nothing, imports nothing.
REHEARSAL = b"def f(x): return [x, 1.5, 'a' 'b']\nprint(end='')\nNone\n"

opened = NATIVE_ERRORS  # with which errors standard streams are open


class Run:
    """What is to be run, and the steps towards it."""

    def __init__(self, native, bare):
        """native: the names that this Python gives a script; bare: the modules
        of a bare interpreter."""
        self.native = native
        self.bare = bare
        self.source = b""
        self.path = ""          # of the source, in tracebacks and __file__
        self.is_file = False    # a file of the workspace, not inline
        self.echo = False
        self.compile_again = None   # source that is no Python: magics.py
        self.display = None     # where its pictures go, if it shows any
        self.waits = False      # it has an await at top level
        self.args = []
        self.cwd = None         # descriptor
        self.folder = ""        # the path of that, below the root
        self.limits = 0, 0, 0, 0    # of enum fast_limit; 0: none
        self.env = None         # bytes: all of the environment, if given
        self.errors = NATIVE_ERRORS     # of stdin and stdout
        self.title = None       # of the source in tracebacks; else its path
        self.words = None       # a program to become instead
        self.script = None      # bytes for that program to read
        self.stdin = None       # descriptor; None: what the supervisor feeds
        self.names = None       # of __main__
        self.last_module = None # when it began
        self.kept = None        # what it would take time to let go of
        self.before = None      # what get_set() has changed
        self.callbacks = 0      # of atexit's, with our own
        self.counts = False     # what it leaves is looked for by the collector
        self.tracked = ()       # objects that were there
        self.status = 0         # exit status

    keep = False                # it is a Kept: kept.py

    def again(self, error=None):
        """After the code, and its error if there was one: is this another run
        now?"""
        return False

    # ---- in the child, with only cell.py's frame left ----

    def prepare(self):
        """Make the process a fresh Python; returns the code objects to run,
        one after another, in self.names."""
        if self.before is None:
            self.dress()
        if self.display is not None:
            display.begin_in_run(self.display)
        if not self.is_file:
            self.write_source()
        codes = self.compile()
        if self.counts:
            self.tracked = gc.get_objects()
        return codes

    def dress(self):
        if self.errors != opened:
            open_standard_streams(self.errors)
        self.set_environment()
        self.make_main()
        self.set_path()
        self.set_arguments()
        atexit.register(self.finish)    # the first to come is the last to go
        self.callbacks = atexit._ncallbacks()

    def rehearse(self):
        """Do all of it in the process that runs will be clones of, and undo
        it: what is written on the first of many times, is not written by each
        clone again."""
        self.get_set()
        for code in self.compile():
            exec(code, self.names)
        end.rehearse()
        gc.collect()
        self.undo()

    def get_set(self):
        """All that does not need the code."""
        self.before = (sys.modules["__main__"], sys.path[:], sys.argv,
                       getattr(sys, "orig_argv", sys.argv),
                       dict(os.environ._data))
        self.dress()

    def undo(self, environment=True):
        """Of get_set(), so that another run can be prepared; one that has an
        environment need not find the old one."""
        main, path, argv, orig_argv, self.env = self.before
        atexit.unregister(self.finish)
        sys.modules["__main__"], sys.path[:], sys.argv = main, path, argv
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = orig_argv
        if environment:
            self.set_environment()

    def set_environment(self):
        if self.env is None:
            if os.path.isdir(PACKAGES):
                os.environ["PYTHONPATH"] = PACKAGES
            return
        # By itself, os.environ takes a hundred times as long.
        data = os.environ._data
        for name in data:
            os.unsetenv(name)
        for name, value in self.env.items():
            os.putenv(name, value)
        data.clear()
        data.update(self.env)

    def set_arguments(self):
        sys.argv = [self.path] + self.args
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = [sys.executable] + sys.argv

    def make_main(self):
        """A fresh __main__, with the names that a script's always has."""
        main = type(sys)("__main__")
        self.names = main.__dict__
        self.names.update(self.native)
        self.names["__doc__"] = None
        self.names["__file__"] = self.path
        self.names["__loader__"] = type(self.native["__loader__"])(
            "__main__", self.path)
        if "__annotations__" in self.names:
            self.names["__annotations__"] = {}
        sys.modules["__main__"] = main
        self.last_module = last_module()

    def set_path(self):
        """sys.path: the script's folder (inline: the current one), the
        library, the user's packages, the image's packages."""
        own = os.path.dirname(self.path) if self.is_file else ""
        sys.path.insert(0, own)
        if self.env is not None:
            self.add_user_site()
        elif os.path.isdir(PACKAGES):
            self.add_packages(PACKAGES)

    def add_packages(self, folder):
        at = 1
        while at < len(sys.path) and not sys.path[at].endswith("-packages"):
            at += 1
        images, sys.path[at:] = sys.path[at:], []
        sys.modules["site"].addsitedir(folder)      # reads .pth files, too
        sys.path += images

    def add_user_site(self):
        """What the operator has installed for the runs of the APIs, as the
        start of Python would find it."""
        base, folder = self.user_site()
        if folder is not None:
            site = sys.modules["site"]
            site.USER_BASE, site.USER_SITE = base, folder
            site.ENABLE_USER_SITE = True
            self.add_packages(folder)

    def user_site(self):
        """(PYTHONUSERBASE, the folder of packages there), or None for it."""
        base = (self.env or {}).get(b"PYTHONUSERBASE")
        if not base or b"PYTHONNOUSERSITE" in self.env:
            return None, None
        base = os.fsdecode(base)
        folder = "%s/lib/python%d.%d%s/site-packages" % (
            base, *sys.version_info[:2], getattr(sys, "abiflags", ""))
        return base, folder if os.path.isdir(folder) else None

    def write_source(self):
        """Put inline source where tracebacks, inspect and multiprocessing
        look for it.  Without room for it, they show less."""
        try:
            with open(self.path, "wb") as file:
                file.write(self.source)
        except OSError:
            pass

    def compile(self):
        """The code as it stands; or, to echo the last expression, the code
        before it and then the expression, compiled as the REPL does."""
        source, self.source = self.source, None
        name = self.title or self.path
        try:
            return self.compile_python(source, name)
        except SyntaxError as error:
            if not self.compile_again or len(source) > ECHO_MAX:
                raise
            wrong = error
        code = self.compile_again(source, name, self.echo)
        if code is None:
            raise wrong
        return [code]

    def compile_python(self, source, name):
        if not self.echo or len(source) > ECHO_MAX:
            return [compile(source, name, "exec", 0, True)]
        tree = compile(source, name, "exec", PARSE_ONLY, True)
        last = None
        if tree.body and isinstance(tree.body[-1], _ast.Expr):
            last = tree.body.pop()
        code = compile(tree, name, "exec", 0, True)
        if last is None:
            return [code]
        return [code, compile(_ast.Interactive([last]), name, "single",
                              code.co_flags & FUTURES, True)]

    def wait(self, coroutine):
        import asyncio
        self.waits = True
        asyncio.run(coroutine)

    # ---- when the code has ended ----

    def leave(self):
        """After code that ended well: where nothing is to be done before
        finish(), go there at once, by way of atexit, as any end does."""
        if (atexit._ncallbacks() == self.callbacks and
                "threading" not in end.modules):
            atexit._run_exitfuncs()

    def exits(self, end):
        """The code has ended with SystemExit: what its status will be."""
        code = getattr(end, "code", None)
        if code is None:
            self.status = 0
        elif isinstance(code, int):
            self.status = code & 0xff if -1 << 63 <= code < 1 << 63 else 0xff
        else:
            self.status = 1     # and the interpreter prints it

    def fails(self, error):
        """The code has ended with an exception, which the interpreter is about
        to show: without the cell's frames."""
        # What dies of SIGINT does so after the interpreter's full end.
        self.status = None if isinstance(error, KeyboardInterrupt) else 1
        shown = getattr(sys, "excepthook", sys.__excepthook__)

        def excepthook(kind, error, trace):
            sys.excepthook = shown
            trace = self.user_frames(trace)
            error.__traceback__ = sys.last_traceback = trace
            try:
                # by way of C: with us not below it
                bottom.word(bottom.record.value + bottom.offset).value = None
                tuple(map(shown, (kind,), (error,), (trace,)))
            except BaseException as fault:
                if isinstance(fault, SystemExit):
                    self.exits(fault)
                fault.__traceback__ = fault.__traceback__.tb_next
                raise

        sys.excepthook = excepthook

    def user_frames(self, trace):
        """A traceback without the cell's frames; where they wait for a
        coroutine, it begins in that."""
        first = last = None
        begun = not self.waits
        while trace:
            code = trace.tb_frame.f_code
            begun = begun or code.co_filename == (self.title or self.path)
            if begun and not code.co_filename.startswith(HERE + "/"):
                if last is None:
                    first = trace
                elif last.tb_next is not trace:
                    last.tb_next = trace
                last = trace
            trace = trace.tb_next
        if last is not None and last.tb_next is not None:
            last.tb_next = None
        return first

    def finish(self):
        """The end of the interpreter, cut short where that is not seen."""
        end.finish(self)


def protect():
    """Make PID 1 untouchable for what it will start, which undoes that for
    itself.

    A process that is not dumpable cannot be traced, nor its memory, its
    descriptors or its environment read, by one of the same user.  A PID 1
    without a handler for it gets no signal from inside its container.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    # The interpreter's C code borrows the dictionary of its first __main__ to
    # the end; make_main() takes that module's place, and must not free it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(sys.modules["__main__"]))
    if prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (FD_MAX, most))


def trim():
    """Give memory back that is free: what there is costs each fork, and each
    end of a process, its time.  musl does so by itself."""
    trim_malloc = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim_malloc is not None:
        trim_malloc(0)


def rehearse(native, bare):
    """Go the way of a run, step by step: what is written on the first of many
    times, is not written by each clone again.  Nothing may come of it that a
    run could see, and nothing in the workspace is looked at: it will be another
    by then."""
    main, argv = sys.modules["__main__"], sys.argv
    orig_argv = getattr(sys, "orig_argv", argv)
    dry = Run(native, bare)
    dry.path = os.devnull
    dry.echo = True
    dry.source = REHEARSAL
    dry.make_main()
    dry.set_arguments()
    yield
    dry.write_source()
    yield
    codes = dry.compile()
    yield
    for code in codes:
        exec(code, dry.names)
    end.rehearse()
    yield
    sys.modules["__main__"], sys.argv = main, argv
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = orig_argv
    del dry, codes
    gc.collect()


def hide_cell(bare):
    """Take the cell out of the run's sight.  Hidden, not freed: that would
    take longer, for nothing."""
    for path in (HERE, HERE + "/cell.py"):
        sys.path_importer_cache.pop(path, None)
    return [sys.modules.pop(name) for name in set(sys.modules) - bare]


def get_ready(bare, errors):
    """Do once, before the forks, what does not depend on a run: it will have
    pipes for standard streams, and most have these errors.  Nothing can be
    imported by the cell after."""
    global opened
    opened = errors
    old = [os.dup(fd) for fd in range(3)]
    ends = os.pipe()
    for fd in range(3):
        os.dup2(ends[fd > 0], fd)
    open_standard_streams(errors)
    for fd in range(3):
        os.dup2(old[fd], fd)
    for fd in (*old, *ends):
        os.close(fd)
    return hide_cell(bare)


def environment():
    """What a run's environment has beside the container's own.  The PYTHON*
    hand the flags that PID 1 was started with down to a Python that the run
    starts itself."""
    path = os.environ.get("PATH", os.defpath)
    return {"HOME": WORKSPACE, "PATH": path + ":" + PACKAGES + "/bin",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1",
            "PYTHONUNBUFFERED": "1"}


def open_standard_streams(errors):
    """sys.stdin, stdout and stderr as the interpreter opens them with -u, with
    which PID 1 was started: everything is written at once, so that the order
    of the streams is the true one."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw = io.FileIO(fd, "rb" if fd == 0 else "wb", closefd=False)
        raw.name = "<%s>" % name
        stream = io.TextIOWrapper(io.BufferedReader(raw) if fd == 0 else raw,
                                  old.encoding,
                                  errors if fd < 2 else old.errors, newline="\n",
                                  write_through=True)
        stream.mode = "r" if fd == 0 else "w"
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)
        end.standard[id(stream)] = stream
