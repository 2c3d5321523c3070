# SPDX-License-Identifier: MIT
"""Cells of the HTTP APIs: all of their files are in memory.

    api         one run for each lease.  Where the host lets it, every lease is
                served in a jail of its own (jail.py) and the cell goes on;
                elsewhere this one run is the cell's only one.
    session     one lease, with files and commands, and then the end.
"""

import gc
import marshal
import os
import stat
import time

import display
import plain
from ahead import are_random, import_ahead, reseed
from files import READ, failure, split, walk
from frames import (COLLECT_NEW, ERROR_FAILED, ERROR_REQUEST, FRAME_INPUT, ISOLATION_CELL,
                    ISOLATION_RUN, LIMIT_PART, OP_BASH, OP_RUN, OP_STAGE, OUTPUT_DRAIN,
                    PART_ARGS, PART_SOURCE, PART_STDIN, REASON_EXIT, TAG_ARG,
                    TAG_COLLECT_HOW,
                    TAG_CWD, TAG_DISPLAY, TAG_END_ALL, TAG_ENV, TAG_FOLDER, TAG_LIMIT_CPU, TAG_LIMIT_FILES,
                    TAG_LIMIT_MEMORY, TAG_LIMIT_PROCESSES, TAG_LIVE, TAG_NAME,
                    TAG_OP,
                    TAG_OUTPUT_MODE, TAG_PATH, TAG_PLAIN, TAG_REASON,
                    TAG_STATUS, Failure, ProtocolError)
from harvest import MARGIN_NS, Harvest, Staged
from jail import LINKS, MountTable
from link import ONE_DESCRIPTOR
from run import WORKSPACE, Run, environment as usual_environment
from serve import VERSION, Cell, limits_of
from supervisor import (CODE, COMMAND, DISPLAY, DONE, ECHO, ENV, ENV_LENGTH,
                        FAST, IF_ANY, LENGTH, MAIN, READS_PLAIN, SOURCE,
                        TITLE_LENGTH, USUAL, WORDS, Supervisor, enter_child,
                        give_up, variables)

HOME = "/home"
ISOLATION = "IL_CELL_ISOLATION"     # environment: 1 keeps us from more
PRELOAD = "IL_CELL_PRELOAD"         # and modules to import,
PRELOAD_MEMORY = "IL_CELL_PRELOAD_MEMORY"   # until we have so many bytes
ARGUMENT_MAX = 131071               # bytes that the kernel takes in one word
TIMES = 20                          # of a rehearsal

# In the order of enum fast_limit.
LIMITS = (TAG_LIMIT_MEMORY, TAG_LIMIT_FILES, TAG_LIMIT_CPU, TAG_LIMIT_PROCESSES)

# The request that is rehearsed: see ApiCell.rehearse().  With this encoding the
# standard streams stay those of get_ready(), which have never seen a file.  The
# environment is that of POST /eval (tests/lint/protocol.t): a run that has it
# finds it there.
REHEARSED = (b"-c\0print(end='')\0",
             b"LANG=en_US.UTF-8\0HOME=/home\0"
             b"PATH=/usr/local/bin:/usr/bin:/bin\0"
             b"PYTHONIOENCODING=utf-8:strict\0PYTHONUNBUFFERED=true\0"
             b"PYTHONDONTWRITEBYTECODE=true\0"
             b"PYTHONUSERBASE=/snekbox/user_base\0PYTHON_COLORS=1\0"
             b"OMP_NUM_THREADS=15\0OPENBLAS_NUM_THREADS=15\0"
             b"MKL_NUM_THREADS=15\0VECLIB_MAXIMUM_THREADS=15\0"
             b"NUMEXPR_NUM_THREADS=15\0")
# The environment of POST /v1/execute, which is prepared likewise.
BESIDE_IT = (b"LANG=C.UTF-8\0HOME=/workspace\0"
             b"PATH=/usr/local/bin:/usr/bin:/bin\0"
             b"PYTHONUNBUFFERED=1\0PYTHONDONTWRITEBYTECODE=1\0"
             b"PYTHONIOENCODING=utf-8\0"
             b"PYTHONUSERBASE=/snekbox/user_base\0"
             b"MPLCONFIGDIR=/tmp/matplotlib\0"
             b"XDG_CACHE_HOME=/tmp/cache\0XDG_CONFIG_HOME=/tmp/config\0"
             b"OMP_NUM_THREADS=4\0OPENBLAS_NUM_THREADS=4\0")


class MemoryCell(Cell):
    """The common part of both classes."""

    errors = "strict"
    folders = (WORKSPACE,)
    own = 1, 0              # the root of the file system

    def __init__(self, socket, native, bare):
        Cell.__init__(self, socket, native, bare)
        self.isolation = os.environ.pop(ISOLATION, "")
        self.preload = os.environ.pop(PRELOAD, "")
        self.room = int(os.environ.pop(PRELOAD_MEMORY, "0"))
        self.staged = {}        # of the request of the moment
        self.staging = None     # path of the file that is coming in
        display.keep_sources()
        # Without jails; a jail covers /mnt with the same.
        for name, target in LINKS.items():
            try:
                os.symlink(target, "/mnt/" + name)
            except OSError:
                pass

    def warm_up(self):
        pass

    # ---- pieces before GO ----

    def receive_parts(self, head):
        folder = head.data(TAG_FOLDER, WORKSPACE.encode()).decode("ascii",
                                                                  "replace")
        if folder not in self.folders:
            raise ProtocolError("not a folder of this cell")
        self.root = folder
        self.staged = {}
        self.lease.room = ONE_DESCRIPTOR if head.number(TAG_LIVE) else 0
        self.staging = None
        self.how = head.number(TAG_COLLECT_HOW)
        self.since = (time.time_ns() - MARGIN_NS if self.how & COLLECT_NEW
                      else 0)
        try:
            return Cell.receive_parts(self, head)
        except (Failure, OSError) as error:
            fault = failure(error)
        fault.path = self.staging
        raise fault

    def take(self, piece, parts, writer):
        if piece.kind != FRAME_INPUT:
            return Cell.take(self, piece, parts, writer)
        if writer is not None:
            writer.commit()
        self.staging = piece.data(TAG_PATH, b"")
        return Staged(self.root, self.staging, piece, self.staged, self.how)

    # ---- operations ----

    def perform(self, head, parts):
        op = head.number(TAG_OP)
        if op == OP_STAGE:
            return ((TAG_REASON, REASON_EXIT),
                    (TAG_STATUS, int(find_program("bash") is None)))
        if op == OP_BASH:
            return self.bash(head, parts)
        return Cell.perform(self, head, parts)

    def run(self, head, parts):
        skip = head.data(TAG_PATH)
        if skip:
            skip = "/".join(split(skip)).encode("utf-8", "surrogateescape")
        return self.start(self.make_run(head, parts), head, parts,
                          self.notes(skip))

    def notes(self, skip):
        if self.staged or skip or self.since:
            return marshal.dumps((self.staged, skip, self.since))
        return b""

    def start(self, run, head, parts, notes=b"", **plan):
        """Let this process be the run, or the program with its words."""
        if head.number(TAG_LIVE):
            run.stdin = pipe_end(self.lease.passed, parts[PART_STDIN])
        self.become(run, head, parts[PART_STDIN], notes, IF_ANY, drains=int(
            head.number(TAG_OUTPUT_MODE) == OUTPUT_DRAIN),
            end_all=int(head.number(TAG_END_ALL) != 0), **plan)
        if run.words:
            enter_child(lambda: plain.execute(
                run.words, dict(os.environ) if run.env is None else run.env,
                run.script))
        return run

    def collect(self, lease, root, request, notes, result):
        return Harvest(root, request, *read_notes(notes)).send(lease)

    def bash(self, head, parts):
        run = Run(*self.run_of)
        script = bytes(parts[PART_SOURCE])
        if b"\0" in script:
            raise Failure(ERROR_REQUEST, "a NUL in the command")
        shell = find_shell()
        run.words = [shell, "-c", os.fsdecode(script)]
        if head.number(TAG_PLAIN):
            run.words[1:] = words_of(parts)
            plain.check_words(run.words)
        elif len(script) > ARGUMENT_MAX:
            run.words, run.script = [shell, "/dev/fd/%d"], script
            if not os.path.isdir("/dev/fd"):    # a jail has none
                run.words, run.script = [shell, keep_script(script)], None
        args = list(map(os.fsdecode, head.every(TAG_ARG)))
        if args:
            run.words += [shell] * (run.words[1] == "-c") + args
            plain.check_words(run.words)
        run.cwd = walk(self.root, split(head.data(TAG_CWD, b"")))
        self.dress(run, head, environment(head))
        return self.start(run, head, parts, self.notes(None))

    def make_run(self, head, parts):
        limits_of(head)
        env = environment(head)
        if head.number(TAG_PLAIN):
            cwd = walk(self.root, split(head.data(TAG_CWD, b"")))
            run = plain.plain_run(self.run_of, words_of(parts), cwd, env or {})
            run.cwd = cwd
        else:
            run = Cell.make_run(self, head, parts)
            if run.is_file and head.data(TAG_NAME):
                run.title = os.fsdecode(head.data(TAG_NAME))
            if head.number(TAG_DISPLAY):
                let_display(run, self.root)
        self.dress(run, head, env)
        return run

    def dress(self, run, head, env):
        """Set the environment and limits of the request."""
        self.dress_with(run, env)
        run.limits = tuple(max(head.number(tag), 0) for tag in LIMITS)

    def dress_with(self, run, env):
        if env is None and not run.words:
            env = dict(os.environ._data)
            env.update((os.fsencode(name), os.fsencode(value)) for name, value
                       in usual_environment().items())
        run.env = env
        if env and env.get(b"PYTHONIOENCODING") in plain.ENCODINGS[1:]:
            run.errors = "strict"


class SessionCell(MemoryCell):
    """A workspace for a while."""

    def serve(self):
        self.supervisor = Supervisor(self.control, self.own, lasts=1,
                                     once=1)
        self.get_ready()
        self.supervisor.call("supervisor_init")
        self.control.send_ready(VERSION)
        return self.play(self.supervisor.call("supervisor_keep"))

    def rehearse(self):
        pass


class ApiCell(MemoryCell):
    """One run for each lease."""

    folders = (HOME, WORKSPACE)
    ready = None            # the next run, if it is as the one rehearsed
    seeds = False           # random numbers of modules that are there already

    def perform(self, head, parts):
        if head.number(TAG_OP) not in (OP_RUN, OP_BASH):
            raise Failure(ERROR_REQUEST, "not in a cell of this class")
        fields = MemoryCell.perform(self, head, parts)
        self.over = True
        return fields

    def serve(self):
        plain.name_interpreter()
        # kept: a run would take long to let go of it
        mounts = self.mounts = MountTable(self.control, self.own)
        self.supervisor = supervisor = mounts.supervisor
        supervisor.shared.reads = READS_PLAIN
        unseen = None       # why no run has a /proc
        why = "asked for" if self.isolation == "1" else ""
        if not why:
            unseen = mounts.trouble(True)
            why = unseen and mounts.trouble(False)
        isolation = ISOLATION_CELL if why else ISOLATION_RUN
        if why:
            # One lease, and then the broker replaces the cell.
            supervisor.shared.jailed, supervisor.shared.once = 0, 1
            supervisor.call("supervisor_surrender", 0)
            supervisor.call("supervisor_init")
        else:
            mounts.settle(not unseen)
        self.get_ready()
        role = DONE
        if not why:
            role = supervisor.call("enclose_jail")
        if role == DONE:
            self.control.send_ready(
                VERSION, isolation, why or unseen or mounts.shared_locks or None,
                self.imported, self.trouble)
            role = supervisor.call("supervisor_keep")
        if self.seeds:
            reseed()
        return self.play(role)

    def get_ready(self):
        self.trouble, self.imported = None, 0
        MemoryCell.get_ready(self)
        run = self.imagine()
        if run.user_site()[1] is None:  # .pth files are the run's to read
            run.get_set()
            self.supervisor.know_usual(REHEARSED[1], BESIDE_IT)
            self.ready = run
            gc.freeze()
            # the collector must see what a run leaves there
            run.make_main()

    def play(self, role):
        """A request of the usual kind is begun here and at once: each function
        on the way costs a run some pages."""
        if role == FAST and self.supervisor.numbers[USUAL]:
            try:
                if self.begin():
                    return self.ready
            except UnicodeDecodeError:
                pass
            except BaseException as error:
                give_up(error)
        return MemoryCell.play(self, role)

    def begin(self):
        text, numbers = self.supervisor.text, self.supervisor.numbers
        end = WORDS + numbers[LENGTH]
        if numbers[USUAL] == COMMAND:
            return self.ready.begins(str(text[CODE:end - 1], "utf-8"))
        at = ENV + numbers[ENV_LENGTH]
        self.ready.turn(text[SOURCE:end].tobytes(), str(
            text[at:at + numbers[TITLE_LENGTH]], "utf-8",
            "surrogateescape") or None, numbers[ECHO] != 0)
        if numbers[DISPLAY]:
            let_display(self.ready, WORKSPACE)
        return True

    def converse(self):
        self.undo()
        return MemoryCell.converse(self)

    def undo(self, environment=True):
        """The next run is another one."""
        if self.ready is not None:
            self.ready.undo(environment)
            self.ready = None

    def rehearse(self):
        """Rehearse usual runs before the first clone, so that no clone does a
        step for the first time."""
        self.trouble, self.imported = import_ahead(
            [name for name in self.preload.split(",") if name],
            self.room, self.run_of[1])
        self.seeds = are_random()
        for _ in range(TIMES):
            display.rehearse(WORKSPACE)     # first: the interpreter adapts to it
            self.imagine().rehearse()
        display.get_ready()

    def imagine(self):
        """A run like most runs."""
        self.supervisor.imagine(*REHEARSED)
        run = self.take_fast(plain.Ready)
        run.lay_out(MAIN, variables(BESIDE_IT))
        return run

    def fast_run(self):
        self.undo(False)    # a fast request has one
        return self.take_fast()

    def take_fast(self, kind=None):
        words, env, by_path = self.supervisor.fast_words()
        words = list(map(os.fsdecode, words))
        if by_path is None:
            run = plain.plain_run(self.run_of, words, None, env, kind)
        else:
            run = program(Run(*self.run_of), words, *by_path)
            if self.supervisor.numbers[DISPLAY]:
                let_display(run, os.getcwd())
        self.dress_with(run, env)
        if run.words:
            plain.execute(run.words, run.env)
        run.counts = not self.preload   # whose objects may be of other kinds
        run.kept = self
        return run

    def kept(self):
        return self     # with the modules: this takes long as well


def let_display(run, folder):
    """It is as in a notebook, and its pictures are files in the folder."""
    run.compile_again, run.display = display.compile_again, folder


def program(run, words, title, echo):
    """The run of a file in the current folder."""
    fd = os.open(words[0], READ)
    run.source = os.read(fd, LIMIT_PART)
    os.close(fd)
    run.path = "%s/%s" % (os.getcwd(), words[0])
    run.title = os.fsdecode(title) or None
    run.is_file = True
    run.args = words[1:]
    run.echo = echo
    return run


def read_notes(notes):
    """The notes for a Harvest: (staged, skip), and since, if it is known."""
    if notes[:1] not in (b"H", b"S"):       # not fast_path.h's
        return marshal.loads(notes) if notes else ({}, None)
    end = 1 + 4 * 8
    if notes[:1] == b"H":
        return {}, notes[end:]
    mark = tuple(int.from_bytes(notes[at:at + 8], "little")
                 for at in range(1, end, 8))
    return {notes[end:]: (mark, None, False)}, None


CELLS = {"api": ApiCell, "session": SessionCell}


def pipe_end(fd, stdin):
    """The descriptor that came with the last frame of a request: nothing but
    the end of a pipe is standard input."""
    if fd is None or stdin or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        raise Failure(ERROR_REQUEST, "no pipe for standard input")
    return fd


def words_of(parts):
    """The words of a plain request."""
    words = bytes(parts[PART_ARGS]).split(b"\0")
    if words.pop():
        raise Failure(ERROR_REQUEST, "arguments without an end")
    return list(map(os.fsdecode, words))


def find_shell():
    shell = find_program("bash") or find_program("sh")
    if shell is None:
        raise Failure(ERROR_FAILED, "there is no shell in this image")
    return shell


def find_program(name):
    """Its path; None: the image has none."""
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        if os.access(folder + "/" + name, os.X_OK):
            return folder + "/" + name


def keep_script(script):
    """In a jail, whose /tmp is the run's own: the path of a file with it."""
    path = "/tmp/script.sh"
    with open(path, "xb", 0) as file:
        file.write(script)
    return path


def environment(head):
    """The environment of the request; None when it gives none."""
    if TAG_ENV not in head.fields:
        return None
    env = {}
    for entry in head.every(TAG_ENV):
        name, equals, value = entry.partition(b"=")
        if not name or not equals or b"\0" in entry:
            raise Failure(ERROR_REQUEST, "environment")
        env[name] = value
    return env
