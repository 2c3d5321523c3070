"""Cells of the HTTP APIs: everything they hold is in memory.

    api         one run for each lease.  Where the host lets it, every lease is
                served in a jail of its own (jail.py) and the cell goes on;
                elsewhere this one run is the cell's only one.
    session     one lease, with files and commands, and then the end.
"""

import gc
import marshal
import os
import resource
import _signal

import plain
from children import Pipes, Watch
from files import failure, split, walk
from frames import (ERROR_FAILED, ERROR_REQUEST, FRAME_INPUT, FRAME_REQUEST,
                    FRAME_STARTED, ISOLATION_CELL, ISOLATION_RUN, OP_BASH,
                    OP_RUN, OP_STAGE, OUTPUT_DRAIN, PART_ARGS, PART_SOURCE,
                    PART_STDIN, REASON_EXIT, REASON_MEMORY, REASON_OUTPUT,
                    REASON_SIGNAL, REASON_TIME, TAG_CWD, TAG_ENV, TAG_FOLDER,
                    TAG_LIMIT_CPU, TAG_LIMIT_FILES, TAG_LIMIT_MEMORY,
                    TAG_LIMIT_PROCESSES, TAG_MERGE, TAG_NAME, TAG_OP,
                    TAG_OUTPUT_MODE, TAG_PATH, TAG_PLAIN, TAG_REASON,
                    TAG_SIGNAL, TAG_STATUS, TAG_WALL_MS, Failure, Frame,
                    ProtocolError, frame)
from harvest import Harvest, Staged
from jail import MountTable
from supervisor import COLLECT, DONE, FOLDERS, HARVEST, FAST
from run import WORKSPACE, Run, get_ready, import_ahead, reseed
from serve import VERSION, Cell, enter_child, limits_of

HOME = "/home"
ISOLATION = "IL_CELL_ISOLATION"     # environment: 1 keeps us from more
PRELOAD = "IL_CELL_PRELOAD"         # and modules to import
SIGNALS_MAX = 256           # that wait: all cells together have some thousands
ARGUMENT_MAX = 131071               # bytes that the kernel takes in one word

LIMITS = ((TAG_LIMIT_MEMORY, resource.RLIMIT_AS),
          (TAG_LIMIT_FILES, resource.RLIMIT_NOFILE),
          (TAG_LIMIT_CPU, resource.RLIMIT_CPU))


# The request that is rehearsed: see ApiCell.rehearse().  With this encoding the
# standard streams stay those of get_ready(), which have never seen a file.
REHEARSED = (b"-c\0print(end='')\0", b"PYTHONIOENCODING=utf-8:strict\0" +
             b"".join(b"NAME%d=value\0" % number for number in range(12)))
TIMES = 20


class MemoryCell(Cell):
    """What the two have in common."""

    keeps_spare = False
    folders = (WORKSPACE,)
    supervisor = None       # in a jail: who made it

    def __init__(self, socket, native, bare):
        Cell.__init__(self, socket, native, bare)
        self.isolation = os.environ.pop(ISOLATION, "")
        self.preload = os.environ.pop(PRELOAD, "")
        self.staged = {}        # of the request of the moment
        self.staging = None     # path of the file that is coming in
        self.retire = False     # the last run has ended badly

    # ---- what comes before GO ----

    def receive_parts(self, head):
        folder = head.data(TAG_FOLDER, WORKSPACE.encode()).decode("ascii",
                                                                  "replace")
        if folder not in self.folders:
            raise ProtocolError("not a folder of this cell")
        self.root = folder
        self.staged = {}
        self.staging = None
        try:
            return Cell.receive_parts(self, head)
        except OSError as error:
            fault = failure(error)
        except Failure as error:
            fault = error
        fault.path = self.staging
        raise fault

    def take(self, piece, parts, writer):
        if piece.kind != FRAME_INPUT:
            return Cell.take(self, piece, parts, writer)
        if writer is not None:
            writer.commit()
        self.staging = piece.data(TAG_PATH, b"")
        return Staged(self.root, self.staging, piece, self.staged)

    # ---- operations ----

    def perform(self, head, parts):
        op = head.number(TAG_OP)
        if op == OP_STAGE:
            return ((TAG_REASON, REASON_EXIT), (TAG_STATUS, 0))
        if op == OP_BASH:
            return self.bash(head, parts)
        return Cell.perform(self, head, parts)

    def run(self, head, parts):
        skip = head.data(TAG_PATH)
        if skip:
            skip = "/".join(split(skip)).encode("utf-8", "surrogateescape")
        if self.supervisor is not None:
            return self.become(head, parts, skip)
        harvest = Harvest(self.root, head, self.staged, skip)
        fields = self.start(head, parts, self.make_run(head, parts))
        if isinstance(fields, Run):
            return fields
        return fields + harvest.send(self.lease)

    def become(self, head, parts, skip):
        """In a jail: this process will be the run.  The supervisor holds it to
        its limits, and sends what it leaves."""
        wall_ms, output_max = limits_of(head)
        run = self.make_run(head, parts)
        notes = (marshal.dumps((self.staged, skip))
                 if self.staged or skip else b"")
        rest, length = self.supervisor.give(parts[PART_STDIN], notes)
        if head.number(TAG_MERGE):
            self.supervisor.shared.stderr = self.supervisor.shared.stdout
        self.lease.send(frame(FRAME_STARTED))
        self.supervisor.tell(
            wall_ms=wall_ms, output_max=output_max, input=rest, notes=length,
            drains=head.number(TAG_OUTPUT_MODE) == OUTPUT_DRAIN,
            folder=FOLDERS.index(self.root),
            **{name: max(head.number(tag), 0) for name, tag in COLLECT})
        enter_child(lambda: self.leave_cell(run))
        return run

    def leave_cell(self, run):
        """What is left of the cell's is not ours any more."""
        self.lease.sock.detach()
        run.isolate(self.supervisor.shared)
        if run.words:
            plain.execute(run.words, dict(os.environ) if run.env is None
                          else run.env, run.script)

    def bash(self, head, parts):
        run = Run(*self.run_of)
        script = bytes(parts[PART_SOURCE])
        if b"\0" in script:
            raise Failure(ERROR_REQUEST, "a NUL in the command")
        shell = find_shell()
        run.words = [shell, "-c", os.fsdecode(script)]
        if len(script) > ARGUMENT_MAX:
            run.words, run.script = [shell, "/dev/fd/%d"], script
        run.cwd = walk(self.root, split(head.data(TAG_CWD, b"")))
        self.dress(run, head, environment(head))
        return self.start(head, parts, run)

    def start(self, head, parts, run):
        """Run it: the result's fields, or the Run in the child."""
        pipes = Pipes(parts[PART_STDIN], head.number(TAG_MERGE))
        self.retire = True      # unless it comes to a good end
        if self.fork(run, pipes):
            if run.words:
                enter_child(lambda: plain.execute(
                    run.words, dict(os.environ) if run.env is None
                    else run.env, run.script))
            return run
        fields = Watch(self.lease, self.children, pipes, *limits_of(head),
                       head.number(TAG_OUTPUT_MODE) == OUTPUT_DRAIN).run()
        self.retire = (is_bad(dict(fields)) or
                       self.children.count_ooms() > self.children.ooms)
        return fields

    def make_run(self, head, parts):
        limits_of(head)
        env = environment(head)
        if head.number(TAG_PLAIN):
            args = bytes(parts[PART_ARGS]).split(b"\0")
            if args.pop():
                raise Failure(ERROR_REQUEST, "arguments without an end")
            cwd = walk(self.root, split(head.data(TAG_CWD, b"")))
            run = plain.plain_run(self.run_of, list(map(os.fsdecode, args)),
                                  cwd, env or {})
            run.cwd = cwd
        else:
            run = Cell.make_run(self, head, parts)
            if run.is_file and head.data(TAG_NAME):
                run.title = os.fsdecode(head.data(TAG_NAME))
        self.dress(run, head, env)
        return run

    def dress(self, run, head, env):
        """What the request says about the process."""
        self.dress_with(run, env)
        limits = [(limit, head.number(tag)) for tag, limit in LIMITS]
        if self.supervisor is not None and COUNTS_IN_NAMESPACES:
            limits.append((resource.RLIMIT_NPROC,
                           head.number(TAG_LIMIT_PROCESSES)))
            limits.append((resource.RLIMIT_SIGPENDING, SIGNALS_MAX))
        run.limits = [(limit, at_most(limit, value))
                      for limit, value in limits if value > 0]

    def dress_with(self, run, env):
        run.env = env
        run.ready = self.supervisor is not None
        if env and env.get(b"PYTHONIOENCODING") in plain.ENCODINGS[1:]:
            run.errors = "strict"


class SessionCell(MemoryCell):
    """A workspace for a while."""


class ApiCell(MemoryCell):
    """One run for each lease."""

    folders = (HOME, WORKSPACE)

    def perform(self, head, parts):
        if head.number(TAG_OP) != OP_RUN:
            raise Failure(ERROR_REQUEST, "not in a cell of this class")
        fields = MemoryCell.perform(self, head, parts)
        self.over = True
        return fields

    def serve(self):
        mounts = MountTable(self.control, self.children.oom_fd)
        supervisor = mounts.supervisor
        supervisor.shared.counts = COUNTS_IN_NAMESPACES
        why = ("asked for" if self.isolation == "1" else
               mounts.trouble())
        if why:
            return self.serve_once(supervisor, why)
        mounts.settle()
        bare = self.run_of[1]
        self.hidden = get_ready(bare)
        trouble = import_ahead(self.preload.split(","), bare)
        self.supervisor = supervisor
        self.control.let_go()
        self.rehearse()
        gc.collect()
        gc.freeze()
        role = supervisor.call("enclose")
        if role == DONE:
            self.control.send_ready(VERSION, ISOLATION_RUN, trouble)
            role = supervisor.call("keep")
        if role == HARVEST:
            status = 1
            try:
                supervisor.send_files()
                status = 0
            finally:
                os._exit(status)
        return self.serve_in_jail(role)

    def serve_once(self, supervisor, why):
        """Without jails: one lease, then the broker replaces the cell."""
        supervisor.call("surrender", 0)
        os.close(supervisor.shared.proc)
        gc.collect()
        gc.freeze()
        self.control.send_ready(VERSION, ISOLATION_CELL, why)
        self.lease = self.control.next_lease()
        run = self.converse()
        if run is not None:
            return run
        self.lease.close()
        self.clean()
        self.control.send_idle(1)
        self.control.next_lease()       # there is none: the broker hangs up
        os._exit(0)

    def rehearse(self):
        """Before the first clone: what a usual run does is done some times, so
        that each clone finds it done for the first time."""
        for _ in range(TIMES):
            self.supervisor.imagine(*REHEARSED)
            self.fast_run(*self.supervisor.fast()).rehearse()

    def fast_run(self, words, env):
        """The Run of a usual request, whose process the supervisor has made."""
        run = plain.plain_run(self.run_of, list(map(os.fsdecode, words)), None,
                              env)
        self.dress_with(run, env)
        return run

    def enter_usual(self):
        run = self.fast_run(*self.supervisor.fast())
        if run.words:
            plain.execute(run.words, run.env)
        run.kept = self
        return run

    def serve_in_jail(self, role):
        """In the process that becomes the run."""
        reseed()
        if role == FAST:
            return enter_child(self.enter_usual)
        self.lease = self.supervisor.lease()
        run = self.converse()
        if run is not None:
            return run
        os._exit(0)


CELLS = {"api": ApiCell, "session": SessionCell}


def is_bad(fields):
    """Did a run end by a limit or a kill?"""
    return (fields[TAG_REASON] in (REASON_TIME, REASON_MEMORY, REASON_OUTPUT)
            or fields[TAG_REASON] == REASON_SIGNAL
            and fields[TAG_SIGNAL] == _signal.SIGKILL)


def find_shell():
    for name in ("bash", "sh"):
        for folder in os.environ.get("PATH", os.defpath).split(":"):
            if os.access(folder + "/" + name, os.X_OK):
                return folder + "/" + name
    raise Failure(ERROR_FAILED, "there is no shell in this image")


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


def counts_in_namespaces():
    """Before 5.14, RLIMIT_NPROC counted all processes of a user's, whatever
    namespace they were in: those of other cells, too."""
    numbers = os.uname().release.replace("-", ".").split(".")[:2]
    return all(n.isdigit() for n in numbers) and tuple(
        map(int, numbers)) >= (5, 14)


COUNTS_IN_NAMESPACES = counts_in_namespaces()


def at_most(limit, value):
    hard = resource.getrlimit(limit)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
