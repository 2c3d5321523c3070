# SPDX-License-Identifier: MIT
"""PID 1's conversation: leases from the broker, requests from their clients."""

import errno
import gc
import os
import select
import sys
import _signal

import archive
import display
import names
import packages
from files import (DIRECTORY, OWN_BLOCKS, OWN_FILES, Writer, disk, empty,
                   failure, list_directory, open_file, read_file, remove_path,
                   split, stat_path, unlock, walk)
from frames import (ACCESS_LOOK, ACCESS_TIDY, ERROR_NOT_EMPTY,
                    ERROR_REQUEST, ERROR_TOO_LARGE, FRAME_BYTES, FRAME_ENOUGH,
                    FRAME_GO, FRAME_INPUT, FRAME_REQUEST, FRAME_RESULT, FRAME_SIGNAL,
                    LIMIT_LOOK_MS, LIMIT_NAME, LIMIT_PART, LIMIT_WALL_MS,
                    OP_ARCHIVE, OP_LIST, OP_NAMES, OP_PACKAGES, OP_PIP, OP_READ, OP_REMOVE,
                    OP_RUN, OP_STAT, OP_UNINSTALL, OP_WRITE, PART_ARGS,
                    PART_CONTENT, PART_SOURCE, PART_STDIN, REASON_EXIT,
                    TAG_ARG, TAG_CA, TAG_COLLECT_FILES, TAG_CWD, TAG_DATA,
                    TAG_ECHO, TAG_INDEX_URL, TAG_KEEP, TAG_MERGE, TAG_NAME, TAG_OP,
                    TAG_OUTPUT_MAX, TAG_PART, TAG_PATH, TAG_REASON,
                    TAG_RECURSIVE, TAG_SDIST, TAG_STATUS, TAG_WALL_MS, Failure,
                    ProtocolError, frame)
from harvest import Changes
from kept import Kept
from link import Control, Gone, Lease, connect
from run import (CODE, NATIVE_ERRORS, WORKSPACE, Run, environment, get_ready,
                 protect, rehearse, trim)
from supervisor import (AHEAD, ALWAYS, BESIDE, COLLECT, FAST, FOLDERS, HARVEST,
                        IF_CHANGED, READS_NONE, READS_SOURCE, RUN, TIDY,
                        Supervisor, enter_child, open_oom_counter)

VERSION = "%d.%d.%d" % sys.version_info[:3]
SCRATCH = ("/tmp", "/dev/shm", CODE)
LOOK_OPS = (OP_LIST, OP_READ, OP_STAT, OP_PACKAGES, OP_ARCHIVE)
TIDY_OPS = LOOK_OPS + (OP_REMOVE, OP_NAMES, OP_UNINSTALL)
# Leases that are not for all of them; and what a cell of packages is for.
OPS = {ACCESS_LOOK: LOOK_OPS, ACCESS_TIDY: TIDY_OPS}
TIDY_SITE_OPS = (OP_REMOVE, OP_PACKAGES, OP_UNINSTALL)
SITE_OPS = (OP_PIP, OP_PACKAGES)


def give_back(root):
    """The host gets the blocks of what was removed when that is durable, and
    who removes on a full disk waits for just that."""
    fd = os.open(root, DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Cell:
    """The cell's state.  Each process of the cell leaves serve() with its role
    (sandbox/cell/supervisor); only one that has become a run returns from it,
    with its Run, and no code of the cell runs in that process after that."""

    errors = NATIVE_ERRORS      # of standard streams, as most runs want them
    own = OWN_FILES, OWN_BLOCKS # of a workspace
    compile_again = None        # compiles source that is no Python

    def __init__(self, socket, native, bare):
        self.is_pip = os.path.ismount(packages.SITE)
        self.root = packages.SITE if self.is_pip else WORKSPACE
        self.run_of = (native, bare)    # what a Run is made with
        # It was for this process: what a library's function is called by is
        # found once, not by each clone.
        os.environ.pop("LD_BIND_NOW", None)
        protect()
        self.control = Control(connect(socket))
        self.control.ooms = open_oom_counter()
        self.supervisor = None
        self.lease = None
        self.over = False       # no more requests of this lease

    def serve(self):
        """Serve leases for ever."""
        self.supervisor = Supervisor(
            self.control, self.own, lasts=1, tidies=int(self.is_pip),
            reads=READS_NONE if self.is_pip else READS_SOURCE)
        if not self.is_pip:
            os.environ.update(environment())
            display.begin()
            self.compile_again = display.compile_again
        self.get_ready()
        self.supervisor.call("supervisor_init")
        self.control.send_ready(VERSION)
        return self.play(self.supervisor.call("supervisor_keep"))

    def get_ready(self):
        """Prepare the interpreter once, before the first clone."""
        self.hidden = get_ready(self.run_of[1], self.errors)
        self.control.let_go()
        self.rehearse()
        # What is here now stays for good: no collector need look at it, which
        # would also copy its pages into every run.
        gc.collect()
        gc.freeze()
        trim()

    def rehearse(self):
        """Once is enough: a client waits for this cell."""
        for _ in rehearse(*self.run_of):
            pass

    # ---- the roles ----

    def play(self, role):
        """In a child of the supervisor's: the Run, in one that has become it."""
        if role == AHEAD:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
            enter_child(self.warm_up)
            role = enter_child(lambda: self.supervisor.call("run_process_start"))
        if role == FAST:
            return enter_child(self.fast_run)
        if role == HARVEST:
            enter_child(lambda: self.supervisor.harvest(self.collect))
        if role == TIDY:
            enter_child(self.clean)
        if role == BESIDE:
            enter_child(self.read_beside)
        if role == RUN:
            self.lease = self.supervisor.lease()
            run = self.converse()
            if run is not None:
                run.kept = self.kept()
                return run
        os._exit(0)

    def warm_up(self):
        """In the process of the next run, while nobody waits for it.  It looks
        at nothing that can change; and the rehearsal is broken off when
        somebody comes: it saves time, not work."""
        shared = self.supervisor.shared
        orders = select.poll()
        orders.register(shared.channel if shared.lease < 0 else shared.lease,
                        select.POLLIN)
        for _ in rehearse(*self.run_of):
            if orders.poll(0):
                break

    def fast_run(self):
        """The Run of a fast request, whose process the supervisor has made."""
        run = Run(*self.run_of)
        run.source, name, run.echo = self.supervisor.fast()
        run.path = CODE + "/" + os.fsdecode(name)
        run.compile_again = self.compile_again
        run.kept = self.kept()
        return run

    def kept(self):
        """What a run holds on to: the modules, as it would take long to let go
        of them.  The rest goes, and its collector finds nothing of it."""
        return self.hidden

    def collect(self, lease, root, request, notes, result):
        """Send the files of a run; returns fields of its result."""
        if not self.is_pip:
            return Changes(root, request, notes).send(lease)
        if (result.number(TAG_REASON) == REASON_EXIT and
                not result.number(TAG_STATUS)):
            packages.adopt()
        packages.discard()
        return ()

    def read_beside(self):
        """Serve one who looks while a run goes on.  Its code may do to this
        process what it may do to its own, and swaps files at any moment: so
        nothing is done here that it could not do itself."""
        _signal.alarm(-(-LIMIT_LOOK_MS // 1000))
        self.lease = Lease(self.supervisor.shared.lease, None)
        self.lease.access = ACCESS_LOOK
        self.converse()

    def clean(self):
        """Remove the remains of a lease.  An error here ends the cell."""
        if self.is_pip:
            packages.discard()
        for path in SCRATCH:
            if os.path.isdir(path):
                unlock(path)
                empty(os.open(path, DIRECTORY))

    # ---- requests, in the process that may become a run ----

    def converse(self):
        """Serve the requests of a lease, until its end."""
        try:
            while not self.over:
                run = self.request()
                if run is not None:
                    return run
        except (Gone, ProtocolError):
            pass
        return None

    def request(self):
        """Receive one request, perform it, send its result."""
        head = self.lease.receive()
        if head.kind in (FRAME_ENOUGH, FRAME_SIGNAL):   # too late for a run
            return None
        if head.kind != FRAME_REQUEST:
            raise ProtocolError("not a request")
        try:
            if self.lease.access != ACCESS_LOOK:
                self.unlock()
            fields = self.perform(head, self.receive_parts(head))
        except (Gone, ProtocolError):
            raise
        except Exception as error:
            fields = failure(error).fields()
        if isinstance(fields, Run):
            return fields
        self.lease.send(frame(FRAME_RESULT, *fields, *disk(self.root, self.own)))
        return None

    def unlock(self):
        """Nobody but its owner can open a root that is locked; where nothing
        can be written, not even that one."""
        try:
            unlock(self.root)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise

    def allow(self, op):
        """Failure for what the lease, or this kind of cell, is not for."""
        tidy = self.lease.access == ACCESS_TIDY
        if op not in OPS.get(self.lease.access, (op,)):
            raise Failure(ERROR_REQUEST, "not with this lease")
        if (op not in (TIDY_SITE_OPS if tidy else SITE_OPS) if self.is_pip
                else op in (OP_PIP, OP_UNINSTALL)):
            raise Failure(ERROR_REQUEST, "not in a cell of this class")

    # ---- pieces before GO ----

    def receive_parts(self, head):
        """The pieces of a request, until GO: {PART_*: bytes}.

        Files (PART_CONTENT) go to the disk as they come.  A piece that cannot
        be taken fails the request, after GO: the client sends all of it first.
        """
        parts = {PART_SOURCE: bytearray(), PART_STDIN: bytearray(),
                 PART_ARGS: bytearray()}
        writer = trouble = None
        try:
            try:
                self.allow(head.number(TAG_OP))
                if head.number(TAG_OP) == OP_WRITE:
                    writer = Writer(self.root, head.data(TAG_PATH, b""))
            except (Failure, OSError) as error:
                trouble = error
            while True:
                piece = self.lease.receive()
                if piece.kind == FRAME_GO:
                    break
                if trouble is not None:
                    continue
                try:
                    writer = self.take(piece, parts, writer)
                except (Failure, OSError) as error:
                    trouble = error
            if trouble is not None:
                raise trouble
            if writer is not None:
                writer.commit()
        finally:
            if writer is not None:
                writer.close()
        return parts

    def take(self, piece, parts, writer):
        """One piece.  Returns the file that is being received, if any."""
        if (piece.kind == FRAME_INPUT and not self.is_pip and
                self.lease.access not in OPS):
            if writer is not None:
                writer.commit()
            return Writer(self.root, piece.data(TAG_PATH, b""))
        if piece.kind != FRAME_BYTES:
            raise ProtocolError("a frame of kind %d" % piece.kind)
        part = piece.number(TAG_PART)
        data = piece.data(TAG_DATA, b"")
        if part in parts:
            if len(parts[part]) + len(data) > LIMIT_PART:
                raise Failure(ERROR_TOO_LARGE, "source or standard input")
            parts[part] += data
        elif part == PART_CONTENT and writer is not None:
            writer.write(data)
        else:
            raise ProtocolError("bytes without a place")
        return writer

    # ---- operations ----

    def perform(self, head, parts):
        """Do it; returns the result's fields, or the Run in a child."""
        op = head.number(TAG_OP)
        if op == OP_RUN:
            return self.run(head, parts)
        if op == OP_PIP:
            return self.pip(head)
        if op == OP_REMOVE and self.is_pip and not split(
                head.data(TAG_PATH, b"")):
            return self.discard_packages(head)
        simple = {OP_ARCHIVE: archive.send_archive,
                  OP_LIST: list_directory, OP_READ: read_file,
                  OP_REMOVE: remove_path, OP_STAT: stat_path,
                  OP_NAMES: names.send_names,
                  OP_PACKAGES: packages.send_packages,
                  OP_UNINSTALL: packages.uninstall_project,
                  OP_WRITE: lambda *_: ()}     # written as it came
        if op not in simple:
            raise Failure(ERROR_REQUEST, "operation %d" % op)
        fields = simple[op](self.root, self.lease, head)
        if op in (OP_REMOVE, OP_UNINSTALL):
            give_back(self.root)
        return ((TAG_REASON, REASON_EXIT), (TAG_STATUS, 0), *fields)

    def discard_packages(self, head):
        if not head.number(TAG_RECURSIVE):
            raise Failure(ERROR_NOT_EMPTY, "a mount point")
        empty(os.open(self.root, DIRECTORY), self.lease)
        give_back(self.root)
        return (TAG_REASON, REASON_EXIT), (TAG_STATUS, 0)

    def run(self, head, parts):
        limits_of(head)
        wanted = head.number(TAG_COLLECT_FILES) > 0
        return self.become(self.make_run(head, parts), head, parts[PART_STDIN],
                           None if wanted else b"", IF_CHANGED)

    def become(self, run, head, stdin, notes, after, **plan):
        """Let this process be the run."""
        wall_ms, output_max = limits_of(head)
        for name, tag in COLLECT:
            plan.setdefault(name, max(head.number(tag), 0))
        self.supervisor.become(
            run, self.lease, stdin, notes, head.number(TAG_MERGE) != 0,
            after=after, folder=FOLDERS.index(self.root), wall_ms=wall_ms,
            output_max=output_max, keep=int(run.keep),
            **{"drains": 0, **plan})
        return run

    def make_run(self, head, parts):
        run = Run(*self.run_of)
        if head.number(TAG_KEEP) and self.lease.terms.number(TAG_KEEP):
            run = Kept(*self.run_of, self.supervisor, display.end_of_run)
        run.echo = head.number(TAG_ECHO) != 0
        run.compile_again = self.compile_again
        run.args = [os.fsdecode(arg) for arg in head.every(TAG_ARG)]
        path = head.data(TAG_PATH)
        if path is None or os.path.isdir(CODE):     # of the run before
            unlock(CODE)
            empty(os.open(CODE, DIRECTORY))
        if path is None:
            run.source = bytes(parts[PART_SOURCE])
            run.path = "%s/%s" % (CODE, source_name(head))
        else:
            names = split(path)
            run.is_file = True
            run.path = "/".join([self.root] + names)
            run.source = read_source(self.root, names)
        names = split(head.data(TAG_CWD, b""))
        run.cwd = walk(self.root, names)
        run.folder = "/".join(names)
        return run

    def pip(self, head):
        limits = limits_of(head)
        requirements = head.every(TAG_ARG)
        if not requirements:
            raise Failure(ERROR_REQUEST, "no requirements")
        for word in requirements:
            packages.check_requirement(word)
        packages.refuse_without_pip()
        # Index, source builds and certificates are the operator's decision:
        # the broker says so, never the client.
        terms = self.lease.terms
        argv = packages.command(requirements, terms.number(TAG_SDIST),
                                terms.number(TAG_CA))
        env = packages.environment(terms.data(TAG_INDEX_URL))
        packages.prepare()
        run = Run(*self.run_of)
        run.cwd = os.open(self.root, DIRECTORY)
        self.become(run, head, b"", b"", ALWAYS, files=1)
        enter_child(lambda: packages.execute(argv, env))


def limits_of(head):
    """(wall clock in ms, bytes of output); Failure without a time limit."""
    wall = head.number(TAG_WALL_MS)
    output = head.number(TAG_OUTPUT_MAX)
    if not 0 < wall <= LIMIT_WALL_MS or output < 0:
        raise Failure(ERROR_REQUEST, "limits")
    return wall, output


def source_name(head):
    """The client's name for inline source, as a plain file name."""
    name = head.data(TAG_NAME, b"").rpartition(b"/")[2]
    if name in (b"", b".", b"..") or b"\0" in name or len(name) > LIMIT_NAME:
        name = b"main.py"
    return os.fsdecode(name)


def read_source(root, names):
    """The source in a file of the workspace."""
    fd, status = open_file(root, names)
    with open(fd, "rb") as file:
        if status.st_size > LIMIT_PART:
            raise Failure(ERROR_TOO_LARGE, "source", status.st_size)
        return file.read(LIMIT_PART)
