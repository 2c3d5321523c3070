"""PID 1's conversation: leases from the broker, requests from their clients."""

import errno
import gc
import os
import sys

import packages
from ahead import Spare
from children import Children, Pipes, Watch, enter_child
from collect import Collector
from files import (DIRECTORY, Writer, disk, empty, failure, list_directory,
                   open_file, read_file, remove_path, split, stat_path, unlock,
                   walk)
from frames import (ACCESS_TIDY, ERROR_FAILED, ERROR_NOT_EMPTY, ERROR_REQUEST,
                    ERROR_TOO_LARGE, FRAME_BYTES, FRAME_ENOUGH, FRAME_GO, FRAME_INPUT, FRAME_REQUEST,
                    FRAME_RESULT, LIMIT_NAME, LIMIT_PART, LIMIT_WALL_MS, OP_LIST, OP_PIP, OP_READ, OP_REMOVE, OP_RUN,
                    OP_STAT, OP_WRITE, PART_ARGS, PART_CONTENT, PART_SOURCE,
                    PART_STDIN, REASON_EXIT, TAG_ARG, TAG_CA,
                    TAG_COLLECT_FILES, TAG_CWD, TAG_DATA, TAG_ECHO,
                    TAG_INDEX_URL, TAG_MERGE, TAG_NAME, TAG_OP,
                    TAG_OUTPUT_MAX, TAG_PART, TAG_PATH, TAG_REASON,
                    TAG_RECURSIVE, TAG_SDIST, TAG_STATUS, TAG_WALL_MS, Failure, Frame, ProtocolError,
                    frame)
from link import Control, Gone, connect
from run import CODE, WORKSPACE, Run, protect, trim

VERSION = "%d.%d.%d" % sys.version_info[:3]
REHEARSAL = frame(
    FRAME_REQUEST, (TAG_OP, OP_RUN), (TAG_WALL_MS, 1), (TAG_OUTPUT_MAX, 1),
    (TAG_COLLECT_FILES, 1), (TAG_CWD, b""), (TAG_NAME, b"main.py"))
# An answer is on its way then, and it is not to wait for what comes after it: a
# processor that forks lets nobody else run.
DELIVERY_MS = 2
SCRATCH = ("/tmp", "/dev/shm", CODE)
TIDY = (OP_LIST, OP_READ, OP_STAT, OP_REMOVE)


def give_back(root):
    """The host gets the blocks of what was removed when that is durable, and
    who removes on a full disk waits for just that."""
    fd = os.open(root, DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Cell:
    """The cell's state.  Methods that fork return the Run in the child, and
    None in PID 1: a Run is handed down to cell.py and no code of the cell
    runs in that process after that."""

    keeps_spare = True      # a process ahead, for the next run

    def __init__(self, socket, native, bare):
        self.is_pip = os.path.ismount(packages.SITE)
        self.root = packages.SITE if self.is_pip else WORKSPACE
        self.run_of = (native, bare, *protect())    # what a Run is made with
        self.control = Control(connect(socket))
        self.children = Children(self.control.fd)
        self.control.ooms = self.children.oom_fd
        self.spare = None       # the process ahead
        self.lease = None
        self.over = False       # no more requests of this lease

    def serve(self):
        """Serve leases for ever."""
        # What is here now stays for good: no collector need look at it, which
        # would also copy its pages into every run.
        gc.collect()
        gc.freeze()
        trim()
        self.control.send_ready(VERSION)
        while True:
            run = self.fork_ahead()
            if run is not None:
                return run
            self.lease = self.control.next_lease()
            run = self.converse()
            if run is not None:
                return run
            self.lease.close()
            self.clean()
            self.control.send_idle()

    def converse(self):
        """Meet the requests of a lease, until its end."""
        try:
            while not self.over:
                run = self.request()
                if run is not None:
                    return run
        except (Gone, ProtocolError):
            pass
        return None

    def clean(self):
        """Leave nothing of a lease behind.  An error here ends the cell."""
        self.drop_spare()
        if self.is_pip:
            packages.discard()
        for path in SCRATCH:
            if os.path.isdir(path):
                empty(os.open(path, DIRECTORY))

    def request(self):
        """Receive one request, meet it, send its result."""
        head = self.lease.receive()
        if head.kind == FRAME_ENOUGH:       # the run was over by then
            return None
        if head.kind != FRAME_REQUEST:
            raise ProtocolError("not a request")
        try:
            self.unlock()
            fields = self.perform(head, self.receive_parts(head))
        except (Gone, ProtocolError):
            raise
        except Failure as error:
            fields = error.fields()
        except OSError as error:
            fields = failure(error).fields()
        except Exception as error:      # a fault of ours is told, too
            fields = Failure(ERROR_FAILED, repr(error)).fields()
        if isinstance(fields, Run):
            return fields
        self.lease.send(frame(FRAME_RESULT, *fields, *disk(self.root)))
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
        if tidy and op not in TIDY:
            raise Failure(ERROR_REQUEST, "not with this lease")
        if (op != (OP_REMOVE if tidy else OP_PIP) if self.is_pip
                else op == OP_PIP):
            raise Failure(ERROR_REQUEST, "not in a cell of this class")

    # ---- what comes before GO ----

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
                self.lease.access != ACCESS_TIDY):
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
        if self.is_pip and not split(head.data(TAG_PATH, b"")):
            return self.discard_packages(head)
        simple = {OP_LIST: list_directory, OP_READ: read_file,
                  OP_REMOVE: remove_path, OP_STAT: stat_path,
                  OP_WRITE: lambda *_: ()}     # written as it came
        if op not in simple:
            raise Failure(ERROR_REQUEST, "operation %d" % op)
        fields = simple[op](self.root, self.lease, head)
        if op == OP_REMOVE:
            give_back(self.root)
        return ((TAG_REASON, REASON_EXIT), (TAG_STATUS, 0), *fields)

    def discard_packages(self, head):
        if not head.number(TAG_RECURSIVE):
            raise Failure(ERROR_NOT_EMPTY, "a mount point")
        empty(os.open(self.root, DIRECTORY), self.lease)
        give_back(self.root)
        return (TAG_REASON, REASON_EXIT), (TAG_STATUS, 0)

    def run(self, head, parts):
        limits = limits_of(head)
        collector = Collector(self.root, split(head.data(TAG_CWD, b"")), head)
        run = self.make_run(head, parts)
        stdin, merge = parts[PART_STDIN], head.number(TAG_MERGE)
        pipes = self.give(run, stdin, merge)
        if pipes is None:
            pipes = Pipes(stdin, merge)
            if self.fork(run, pipes):
                return run
        watch = Watch(self.lease, self.children, pipes, *limits)
        return watch.run() + collector.send(self.lease)

    def fork_ahead(self):
        """Fork the process of the next run, if there is time: the Run in it,
        when it has become that.  There may be none: fork() is always there."""
        if (not self.keeps_spare or self.is_pip or
                self.control.is_waiting(DELIVERY_MS)):
            return None
        try:
            spare = Spare()
        except OSError:
            return None
        try:
            if self.children.fork() == 0:
                run = Run(*self.run_of)
                enter_child(self.control.sock.detach)
                enter_child(lambda: spare.become(run))
                return run
            self.spare = spare
        except OSError:
            spare.close_ours()
        spare.close_theirs()
        if not self.control.is_waiting():
            self.rehearse()
        return None

    def rehearse(self):
        """Meet the usual request, without a client and without a run: after a
        fork, the first write to each page is ours to pay for, too.  Not in the
        workspace, which may be large, and locked by its owner."""
        root, self.root = self.root, CODE
        try:
            head = Frame(REHEARSAL)
            limits_of(head)
            collector = Collector(CODE, [], head)
            os.close(self.make_run(head, {PART_SOURCE: b"print(1)"}).cwd)
            collector.send(None)
            frame(FRAME_RESULT, (TAG_REASON, REASON_EXIT), *disk(CODE))
        except OSError:
            pass
        finally:
            self.root = root

    def give(self, run, stdin, merge):
        """Let the process ahead be the run: its Pipes.  None when there is no
        such process, or it has died: nobody is left of it then."""
        if self.spare is None:
            return None
        self.children.reap()
        if self.children.status is None and self.spare.give(run, stdin, merge):
            pipes = self.spare.pipes
            os.close(self.spare.ours)
            os.close(run.cwd)
            self.spare = None
            return pipes
        self.drop_spare()
        return None

    def drop_spare(self):
        """End whatever there is."""
        self.children.kill_all()
        if self.spare is not None:
            self.spare.close_ours()
            self.spare = None

    def fork(self, run, pipes):
        """True in the child, which is isolated then."""
        try:
            if self.children.fork() == 0:
                enter_child(self.lease.sock.detach)
                enter_child(self.control.sock.detach)
                enter_child(lambda: run.isolate(pipes))
                return True
        except OSError:
            pipes.close_ours()
            raise
        finally:
            if os.getpid() == 1:
                os.close(run.cwd)
                pipes.close_theirs()
        return False

    def make_run(self, head, parts):
        run = Run(*self.run_of)
        run.echo = head.number(TAG_ECHO) != 0
        run.args = [os.fsdecode(arg) for arg in head.every(TAG_ARG)]
        path = head.data(TAG_PATH)
        if path is None:
            run.source = bytes(parts[PART_SOURCE])
            run.path = "%s/%s" % (CODE, source_name(head))
            if self.spare is None:      # else nothing has run since clean()
                empty(os.open(CODE, DIRECTORY))
        else:
            names = split(path)
            run.is_file = True
            run.path = "/".join([self.root] + names)
            run.source = read_source(self.root, names)
        names = split(head.data(TAG_CWD, b""))
        run.cwd = walk(self.root, names)
        run.folder = "/".join([self.root] + names)
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
        pipes = Pipes(b"", True)
        if self.fork(run, pipes):
            enter_child(lambda: packages.execute(argv, env))
        fields = Watch(self.lease, self.children, pipes, *limits).run()
        if fields[:2] == ((TAG_REASON, REASON_EXIT), (TAG_STATUS, 0)):
            packages.adopt()
        packages.discard()
        return fields


def limits_of(head):
    """(wall clock in ms, bytes of output); Failure without a time limit."""
    wall = head.number(TAG_WALL_MS)
    output = head.number(TAG_OUTPUT_MAX)
    if not 0 < wall <= LIMIT_WALL_MS or output < 0:
        raise Failure(ERROR_REQUEST, "limits")
    return wall, output


def source_name(head):
    """What the client calls inline source, as a plain file name."""
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
