"""Cells of the HTTP APIs: everything they hold is in memory.

    api         one run for each lease.  Where the host lets it, every lease is
                served in a jail of its own (jail.py) and the cell goes on;
                elsewhere this one run is the cell's only one.
    session     one lease, with files and commands, and then the end.
"""

import gc
import os
import resource

import plain
from children import Children, Pipes, Watch
from files import failure, split, walk
from frames import (ERROR_FAILED, ERROR_REQUEST, FRAME_INPUT, ISOLATION_CELL, ISOLATION_RUN,
                    OP_BASH, OP_RUN, OP_STAGE, OUTPUT_DRAIN, PART_ARGS,
                    PART_SOURCE, PART_STDIN, REASON_EXIT, REASON_MEMORY,
                    REASON_OUTPUT, REASON_SIGNAL, REASON_TIME, TAG_CWD,
                    TAG_ENV, TAG_FOLDER, TAG_LIMIT_CPU, TAG_LIMIT_FILES,
                    TAG_LIMIT_MEMORY, TAG_LIMIT_PROCESSES, TAG_MERGE,
                    TAG_NAME, TAG_OP, TAG_OUTPUT_MODE, TAG_PATH, TAG_PLAIN,
                    TAG_REASON, TAG_SIGNAL, TAG_STATUS, Failure,
                    ProtocolError)
from harvest import Harvest, Staged
from jail import Keeper, hindrance
from link import Control
from run import WORKSPACE, Run
from serve import VERSION, Cell, enter_child, limits_of

HOME = "/home"
ISOLATION = "IL_CELL_ISOLATION"     # environment: 1 keeps us from more
ARGUMENT_MAX = 131071               # bytes that the kernel takes in one word
SIGKILL = 9

LIMITS = ((TAG_LIMIT_MEMORY, resource.RLIMIT_AS),
          (TAG_LIMIT_FILES, resource.RLIMIT_NOFILE),
          (TAG_LIMIT_CPU, resource.RLIMIT_CPU))


class MemoryCell(Cell):
    """What the two have in common."""

    folders = (WORKSPACE,)
    jailed = False      # are we the init of a jail?
    proc = None         # descriptor of the covered /proc

    def __init__(self, socket, native, bare):
        Cell.__init__(self, socket, native, bare)
        self.isolation = os.environ.pop(ISOLATION, "")
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
        harvest = Harvest(self.root, head, self.staged,
                          skip and "/".join(split(skip)).encode(
                              "utf-8", "surrogateescape"))
        fields = self.start(head, parts, self.make_run(head, parts))
        if isinstance(fields, Run):
            return fields
        return fields + harvest.send(self.lease)

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
        self.dress(run, head)
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
        if head.number(TAG_PLAIN):
            env = environment(head) or {}
            args = bytes(parts[PART_ARGS]).split(b"\0")
            if args.pop():
                raise Failure(ERROR_REQUEST, "arguments without an end")
            cwd = walk(self.root, split(head.data(TAG_CWD, b"")))
            run = plain.plain_run(self.run_of, list(map(os.fsdecode, args)),
                                  cwd, env)
            run.cwd = cwd
        else:
            run = Cell.make_run(self, head, parts)
            if run.is_file and head.data(TAG_NAME):
                run.title = os.fsdecode(head.data(TAG_NAME))
        self.dress(run, head)
        return run

    def dress(self, run, head):
        """What the request says about the process."""
        run.env = environment(head)
        run.proc = self.proc
        if (run.env or {}).get(b"PYTHONIOENCODING") in plain.ENCODINGS[1:]:
            run.errors = "strict"
        limits = [(limit, head.number(tag)) for tag, limit in LIMITS]
        if self.jailed and counts_in_namespaces():
            # The jail's init is one of them.
            processes = head.number(TAG_LIMIT_PROCESSES)
            limits.append((resource.RLIMIT_NPROC, processes and processes + 1))
        run.limits = [(limit, at_most(limit, value))
                      for limit, value in limits if value > 0]


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
        keeper = Keeper(self.control, self.children)
        why = "asked for" if self.isolation == "1" else hindrance(keeper)
        if why:
            return self.serve_once(keeper, why)
        self.proc = keeper.proc
        keeper.furnish()
        gc.collect()
        gc.freeze()
        told = False
        retire = False
        while True:
            if keeper.enclose():
                return self.serve_in_jail(keeper)
            if told:
                self.control.send_idle(retire or None)
            else:
                self.control.send_ready(VERSION, ISOLATION_RUN)
            told = True
            retire = keeper.serve_one()

    def serve_once(self, keeper, why):
        """Without jails: one lease, then the broker replaces the cell."""
        keeper.system.drop_capabilities()
        keeper.filter.apply()
        os.close(keeper.proc)
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

    def serve_in_jail(self, keeper):
        self.jailed = True
        self.lease = keeper.take_lease()
        self.control = Control(keeper.channel)
        self.children = Children(self.control.fd, self.children.oom_fd)
        run = self.converse()
        if run is not None:
            return run
        os._exit(int(self.retire))


CELLS = {"api": ApiCell, "session": SessionCell}


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
    pairs = [entry.partition(b"=") for entry in head.every(TAG_ENV)]
    if any(not name or not equals or b"\0" in name + value
           for name, equals, value in pairs):
        raise Failure(ERROR_REQUEST, "environment")
    return {name: value for name, _, value in pairs}


def is_bad(fields):
    """Did a run end by a limit or a kill?"""
    return (fields[TAG_REASON] in (REASON_TIME, REASON_MEMORY, REASON_OUTPUT)
            or fields[TAG_REASON] == REASON_SIGNAL
            and fields[TAG_SIGNAL] == SIGKILL)


def counts_in_namespaces():
    """Before 5.14, RLIMIT_NPROC counted all processes of a user's, whatever
    namespace they were in: those of other cells, too."""
    numbers = os.uname().release.replace("-", ".").split(".")[:2]
    return all(n.isdigit() for n in numbers) and tuple(
        map(int, numbers)) >= (5, 14)


def at_most(limit, value):
    hard = resource.getrlimit(limit)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
