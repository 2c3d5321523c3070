# SPDX-License-Identifier: MIT
"""OP_RUN with PLAIN: `python ARGS`, as a shell would start it.

The two common forms, `-c CODE …` and `SCRIPT …`, are runs like any other: forks
of the warm interpreter, made to look as that start would.  Every other one
starts the real interpreter.
"""

import os
import stat
import sys
import _signal

import end
from end import last_module
from files import READ
from frames import ERROR_TOO_LARGE, Failure
from run import REHEARSAL, WORKSPACE, Run

# From 3.13 on, Python remembers the code after -c for its tracebacks.
linecache = None
if sys.version_info >= (3, 13):
    import linecache
    if not hasattr(linecache, "_register_code"):
        linecache = None

# What a request may call the interpreter is there in a run, too.
NAMES = "/snekbin/python/%s/bin"
SOURCE_MAX = 16 << 20
ORIGINAL = hasattr(sys, "orig_argv")
# What the kernel lets a new program have: a quarter of its stack's limit (8 MiB)
# for all words and the environment, with a pointer to each, and so much for one.
WORDS_MAX = (2 << 20) - (64 << 10)
WORD_MAX = 131071
COMMAND = "<string>"        # what Python calls the code after -c
ZIP_END = b"PK\5\6"         # a script with this in its end may be an archive
ZIP_REACH = 1 << 16

# Settings for the start of Python that a fork has already, or that are read
# from the environment when they are needed.
HARMLESS = {b"PYTHONUNBUFFERED", b"PYTHONDONTWRITEBYTECODE",
            b"PYTHONUSERBASE", b"PYTHON_COLORS", b"PYTHONNOUSERSITE",
            b"PYTHONIOENCODING", b"PYTHONBREAKPOINT"}
ENCODINGS = (b"", b"utf-8", b"utf8", b"utf-8:strict", b"utf8:strict")


def name_interpreter():
    """Its names as links, where the container has room for them."""
    version = "%d.%d" % sys.version_info[:2]
    if not os.path.ismount("/" + NAMES.split("/")[1]):
        return
    for name in ("default", version):
        os.makedirs(NAMES % name, 0o755)
        for end in ("", "3", version):
            os.symlink(sys.executable, NAMES % name + "/python" + end)


def plain_run(run_of, args, cwd, env, kind=None):
    """The Run for `python ARGS` in the folder of the descriptor cwd; one with
    words has to be executed.  kind: of one with -c, if no Command."""
    run = None
    if is_fast(env) and args:
        if args[0] == "-c" and len(args) > 1:
            run = command(run_of, args, kind or Command)
        elif args[0] and args[0][0] != "-" and sys.version_info >= (3, 9):
            run = script(run_of, args, cwd)
    if run is None:
        run = Run(*run_of)
        run.words = [sys.executable] + args
        check_words(run.words)
    return run


def check_words(words):
    """Can a program be started with them?"""
    sizes = [len(os.fsencode(word)) + 1 for word in words]
    if max(sizes) > WORD_MAX + 1 or sum(sizes) + 8 * len(sizes) > WORDS_MAX:
        raise Failure(ERROR_TOO_LARGE, "the arguments")


def is_fast(env):
    """Would a Python with this environment start as PID 1 has started?"""
    return (all(name in HARMLESS for name in env
                if name.startswith(b"PYTHON"))
            and env.get(b"PYTHONIOENCODING", b"") in ENCODINGS)


def command(run_of, args, kind):
    try:
        source = os.fsencode(args[1]).decode()
    except UnicodeDecodeError:
        return None
    if is_indented is not None and is_indented(source):
        return None
    run = kind(*run_of)
    run.source = source
    run.path = COMMAND
    run.is_file = True          # nothing to write anywhere
    run.argv = ["-c"] + args[2:]
    run.words_given = args
    return run


def is_indented(source):
    """From 3.14 on, the code may be so as a whole."""
    return source.lstrip("\n")[:1].isspace()


if sys.version_info < (3, 14):
    is_indented = None


def script(run_of, args, cwd):
    """None for what is no plain source: a folder, an archive, byte code."""
    try:
        fd = os.open(args[0], READ & ~os.O_NOFOLLOW, dir_fd=cwd)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(fd)
        if (not stat.S_ISREG(status.st_mode) or status.st_size > SOURCE_MAX
                or args[0].endswith(".pyc")):
            return None
        with open(fd, "rb", 0, closefd=False) as file:
            source = file.read()
    finally:
        os.close(fd)
    if ZIP_END in source[-ZIP_REACH:] or b"\0" in source:
        return None
    run = Script(*run_of)
    run.source = source
    run.is_file = True
    run.argv = args
    run.words_given = args
    return run


class Started(Run):
    """What the forms have in common."""

    argv = ()
    words_given = ()

    def set_arguments(self):
        sys.argv = list(self.argv)
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = [sys.executable, *self.words_given]


class Script(Started):

    def make_main(self):
        # The folder of the run is the current one by now.
        self.path = os.path.join(os.getcwd(), self.argv[0])
        Started.make_main(self)

    def set_path(self):
        sys.path.insert(0, os.path.dirname(os.path.realpath(self.path)))
        self.add_user_site()


class Command(Started):

    def make_main(self):
        Started.make_main(self)
        for name in ("__file__", "__cached__"):
            self.names.pop(name, None)
        self.names["__loader__"] = sys.modules[
            "_frozen_importlib"].BuiltinImporter

    def set_path(self):
        sys.path.insert(0, "")
        self.add_user_site()

    def compile(self):
        source, self.source = self.source, None
        code = compile(source, COMMAND, "exec", 0, True)
        if linecache is not None:
            sys.modules["linecache"] = linecache
            linecache._register_code(code, source, COMMAND)
            self.last_module = last_module()
        return [code]

    def rehearse(self):
        Started.rehearse(self)
        if linecache is not None:   # no other form has it, or this code
            linecache._interactive_cache.clear()
            if "linecache" not in self.bare:
                del sys.modules["linecache"]


class Ready(Command):
    """The run of a request that is still to come: `-c CODE`, or, after turn(),
    a program.  What only the one has is laid beside what only the other has."""

    def lay_out(self, name, env):
        """What a program of this name in the workspace has."""
        self.program = program = WORKSPACE + "/" + name
        self.program_loader = type(self.native["__loader__"])("__main__",
                                                              program)
        self.program_argv = [program]
        self.program_words = [sys.executable, program]
        self.program_data = env

    def begins(self, source):
        """Let it have its code; False: it may not."""
        if is_indented is not None and is_indented(source):
            return False
        self.source = source
        if ORIGINAL:
            sys.orig_argv[2] = source
        return True

    def turn(self, source, title, echo):
        """Be the program, whose environment C has put in its place."""
        self.source, self.title, self.echo = source, title, echo
        self.path = self.program
        names = self.names
        names["__loader__"] = self.program_loader
        names["__file__"] = self.program
        if "__cached__" in self.native:
            names["__cached__"] = None
        sys.path[0] = WORKSPACE
        sys.argv = self.program_argv
        if ORIGINAL:
            sys.orig_argv = self.program_words
        os.environ._data = os.environb._data = self.program_data

    def compile(self):
        if self.path is COMMAND:
            return Command.compile(self)
        return Run.compile(self)

    def rehearse(self):
        Command.rehearse(self)
        self.get_set()
        data = os.environ._data
        self.turn(REHEARSAL, "<stdin>", True)
        for code in self.compile():
            exec(code, self.names)
        end.rehearse()
        os.environ._data = os.environb._data = data
        self.undo()


def execute(words, env, script=None):
    """In the child: become another program.  script: bytes that it finds in
    the file of its first argument, "%d" being the descriptor."""
    if script is not None:
        fd = os.memfd_create("command", 0)
        with open(fd, "wb", closefd=False) as file:
            file.write(script)
        os.lseek(fd, 0, os.SEEK_SET)
        words = [words[0], words[1] % fd] + words[2:]
    # What Python ignores, a program that it starts would ignore as well.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    os.execvpe(words[0], words, env)
