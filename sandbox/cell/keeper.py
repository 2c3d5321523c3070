"""The keeper of an api cell: makes jails, gives each lease to one, holds its
run to its limits and says how it ended.

A run's process is there before its lease.  It takes the lease, reads the
request and becomes the run (api.py); what the keeper must know of that is
told in a few numbers, the plan.  No byte of a client's is looked at here:
output passes through one buffer, which is wiped, standard input goes from file
to pipe within the kernel, and files that a run leaves are sent by a child.
"""

import marshal
import os
import select
import _signal
import _socket

from children import Children, Pipes, Watch
from files import disk, unlock
from frames import (ERROR_FAILED, FRAME_CHUNK, FRAME_ENOUGH, FRAME_REQUEST,
                    FRAME_RESULT, REASON_ERROR, REASON_MEMORY, REASON_OUTPUT,
                    REASON_SIGNAL, REASON_TIME, TAG_CODE, TAG_COLLECT_BYTES,
                    TAG_COLLECT_FILES, TAG_COLLECT_HOW, TAG_COLLECT_MS,
                    TAG_COLLECT_TOTAL, TAG_REASON, TAG_SIGNAL, TAG_TOTAL,
                    Frame, ProtocolError, frame)
from harvest import Harvest
from jail import Grounds, describe
from link import Gone, leave

FOLDERS = ("/home", "/workspace")
WALL_MAX_MS = 86400000
FIRST_REST_NS = 2000000
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# The plan: numbers of eight bytes each.  input and notes: bytes in the file
# that the two share, of standard input and of what harvest.py must know.
PLAN = ("wall_ms", "output_max", "drains", "folder", "input", "notes", "files",
        "bytes", "total", "how", "ms")
COLLECT = (("files", TAG_COLLECT_FILES), ("bytes", TAG_COLLECT_BYTES),
           ("total", TAG_COLLECT_TOTAL), ("how", TAG_COLLECT_HOW),
           ("ms", TAG_COLLECT_MS))


def pack_plan(**fields):
    return b"".join(min(fields[name], 1 << 62).to_bytes(8, "little")
                    for name in PLAN)


def unpack_plan(packet):
    numbers = [int.from_bytes(packet[at:at + 8], "little")
               for at in range(0, len(packet), 8)]
    plan = dict(zip(PLAN, numbers))
    if (len(numbers) != len(PLAN) or plan["folder"] >= len(FOLDERS) or
            plan["wall_ms"] > WALL_MAX_MS):
        raise ProtocolError("a plan")
    return plan


class Inmates(Children):
    """The children of the keeper: the jail's init, and the run."""

    init = 0

    def reap(self):
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return False
                self.note(pid, status, usage)
        except ChildProcessError:
            return True

    def note(self, pid, status, usage):
        if pid == self.main:
            self.status = status
            self.cpu = usage.ru_utime + usage.ru_stime
            self.rss = usage.ru_maxrss
        elif pid == self.init:
            self.init = 0

    def kill_all(self):
        """End the jail: with its init, the kernel ends all that is in it."""
        if self.init:
            os.kill(self.init, _signal.SIGKILL)
        try:
            while True:
                self.note(*os.wait4(-1, 0))
        except ChildProcessError:
            pass


class JailPipes(Pipes):
    """Standard streams that are there before the request.  What does not fit
    into the pipe of standard input comes from a file."""

    def __init__(self):
        self.stdin, self.feed = os.pipe2(os.O_CLOEXEC)
        out, self.stdout = os.pipe2(os.O_CLOEXEC)
        err, self.stderr = os.pipe2(os.O_CLOEXEC)
        self.outputs = {out: 1, err: 2}
        for fd in (self.feed, out, err):
            os.set_blocking(fd, False)
        self.file = os.memfd_create("input", os.MFD_CLOEXEC)
        self.at = self.end = 0

    def give(self, stdin, notes):
        """In the run's process: (bytes that wait in the file, of the notes
        behind them)."""
        sent = 0
        try:
            if stdin:
                sent = os.write(self.feed, stdin)
        except BlockingIOError:
            pass
        rest = memoryview(stdin)[sent:]
        for data in (rest, memoryview(notes)):
            while data:
                data = data[os.write(self.file, data):]
        return len(rest), len(notes)

    def feed_some(self):
        try:
            while self.at < self.end:
                sent = os.sendfile(self.feed, self.file, self.at,
                                   self.end - self.at)
                if sent == 0:
                    break
                self.at += sent
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass
        os.close(self.feed)
        self.feed = None

    def close_ours(self):
        Pipes.close_ours(self)
        if self.file is not None:
            os.close(self.file)
            self.file = None


class Guard(Watch):
    """A run that is held to its limits by one who must not see its output."""

    def __init__(self, lease, inmates, pipes, plan, buffer):
        Watch.__init__(self, lease, inmates, pipes, plan["wall_ms"],
                       plan["output_max"], plan["drains"] != 0)
        # Most runs are over by then, and their output is passed on at once.
        self.rest = self.started + FIRST_REST_NS
        self.buffer = memoryview(buffer)
        self.most = 0           # bytes of it that were ever used

    def announce(self):
        """The run's process has done so."""

    def take(self, fd):
        length = os.readv(fd, (self.buffer,))
        self.most = max(self.most, length)
        return self.buffer[:length]

    def hear(self):
        """What the client says in the course of a run: its kind is enough."""
        said = self.lease.sock.recv(1)
        if said != bytes((FRAME_ENOUGH,)):
            raise ProtocolError("a request in the course of a run")
        self.over = True

    def wipe(self):
        self.buffer[:self.most] = bytes(self.most)


class Keeper(Grounds):
    """Makes jails, and gives each lease to one."""

    def __init__(self, control):
        Grounds.__init__(self)
        self.control = control
        self.buffer = bytearray(FRAME_CHUNK)
        self.channel = None     # to the run's process; there, to the keeper
        self.folders = ()       # descriptors: FOLDERS, and all its mounts
        self.pipes = None
        self.inmates = None
        self.away = False       # are our next children in a jail?

    def settle(self, oom_fd):
        """Go on as the keeper, in a process of its own."""
        self.furnish()
        self.inmates = Inmates(self.control.fd, oom_fd)

    # ---- one jail after another ----

    def enclose(self):
        """Make a jail.  True in the process of its run, which has of the
        keeper's but its end of self.channel, self.pipes, and the broker's
        socket until take_lease()."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX,
                                          _socket.SOCK_SEQPACKET)
        self.pipes = JailPipes()
        inmates = self.inmates
        inmates.reset()
        self.come_back()
        self.away = True
        inmates.init = self.open_jail()
        inmates.main = os.fork()
        if inmates.main == 0:
            try:
                inmates.close()
                ours.close()
                self.channel = theirs
                self.confine()
                theirs.send(os.readlink("self", dir_fd=self.proc).encode())
                os.close(self.proc)
            except OSError as error:
                theirs.send(b"!" + describe(error))
                os._exit(1)
            return True
        theirs.close()
        self.channel = ours
        self.pipes.close_theirs()
        self.await_jail()
        return False

    def come_back(self):
        """Our next child is beside us again."""
        if self.away:
            self.leave_jail()
        self.away = False

    def await_jail(self):
        """OSError when it does not come up."""
        said = self.hear(0)
        if not said.isdigit():
            raise OSError(0, said[1:].decode() or "a jail did not come up")
        place = said.decode() + "/root"
        self.folders = [os.open(place + path, FOLDER, dir_fd=self.proc)
                        for path in FOLDERS]
        # To take its mounts apart waits for all processors, and the end of the
        # run would wait for that: with this it is release() that does.
        self.folders.append(os.open(said.decode() + "/ns/mnt",
                                    os.O_RDONLY | os.O_CLOEXEC,
                                    dir_fd=self.proc))

    def hear(self, events):
        """What the run's process says; b"" when it has ended.  events: those
        of the broker that end the wait, and the cell, beside its end."""
        poller = select.poll()
        poller.register(self.control.fd, events)
        poller.register(self.channel.fileno(), select.POLLIN)
        if any(fd == self.control.fd for fd, _ in poller.poll()):
            leave()
        return self.channel.recv(256)

    def release(self):
        """Nothing of the jail is left."""
        self.inmates.kill_all()
        self.pipes.close_ours()
        self.channel.close()
        for fd in self.folders:
            os.close(fd)

    def serve_one(self):
        """Hand the next lease to the jail, and wait for the jail's end.  True
        when the cell should not be used again; None when the lease still
        waits, as the run's process was not there any more."""
        lease = self.control.next_lease(_socket.MSG_PEEK)
        try:
            if not self.wake():
                return None
            plan = self.hear(0)
            if plan:
                return self.oversee(lease, unpack_plan(plan))
            self.inmates.kill_all()
            if os.WIFSIGNALED(self.inmates.status):
                self.explain(lease)
            return self.inmates.status != 0
        except (Gone, ProtocolError):
            return True
        finally:
            self.release()
            lease.close()

    def wake(self):
        """False when the run's process is gone: a host that has no memory
        left takes it first."""
        try:
            self.channel.send(b"1")
        except BrokenPipeError:
            return False
        return True

    def take_lease(self):
        """In the run's process: wait for its lease.  It comes from the broker
        itself.  The keeper could not always send it on: how many descriptors
        may be under way is counted by user, which is one for the code of all
        cells.
        """
        if not self.channel.recv(1):
            leave()
        lease = self.control.next_lease()
        lease.control = self.channel.fileno()
        self.control.sock.close()
        return lease

    def oversee(self, lease, plan):
        """A run, from its start to its result."""
        pipes, inmates = self.pipes, self.inmates
        pipes.end = plan["input"]
        pipes.feed_some()
        guard = Guard(lease, inmates, pipes, plan, self.buffer)
        file = os.dup(pipes.file)       # it outlives the pipes
        try:
            fields = guard.run()
            retire = (is_bad(dict(fields)) or
                      inmates.count_ooms() > inmates.ooms)
            folder = self.folders[plan["folder"]]
            fields += disk(folder)
            if plan["files"] > 0 and not is_empty(folder):
                return not self.harvest(lease, plan, folder, file,
                                        fields) or retire
            if plan["files"] > 0:
                fields += ((TAG_TOTAL, 0),)
            lease.send(frame(FRAME_RESULT, *fields))
            return retire
        finally:
            guard.wipe()
            os.close(file)

    def harvest(self, lease, plan, folder, file, fields):
        """Send what the run has left, and the result, from a child.  False
        when that went wrong."""
        self.come_back()
        inmates = self.inmates
        inmates.main = os.fork()
        if inmates.main == 0:
            status = 1
            try:
                self.go_first()
                self.surrender()
                send_files(lease, plan, folder, file, fields)
                status = 0
            finally:
                os._exit(status)
        inmates.status = None
        poller = select.poll()
        poller.register(self.control.fd, select.POLLIN)
        poller.register(inmates.wake, select.POLLIN)
        while not inmates.reap():
            if any(fd == self.control.fd for fd, _ in poller.poll()):
                leave()
            inmates.hush()
        return inmates.status == 0

    def explain(self, lease):
        """The run's process was killed before it became the run."""
        inmates = self.inmates
        memory = inmates.count_ooms() > inmates.ooms
        result = ((TAG_REASON, REASON_MEMORY),) if memory else (
            (TAG_REASON, REASON_ERROR), (TAG_CODE, ERROR_FAILED))
        lease.try_send(frame(FRAME_RESULT, *result))


def send_files(lease, plan, folder, file, fields):
    request = Frame(frame(FRAME_REQUEST, *((tag, plan[name])
                                           for name, tag in COLLECT)))
    notes = os.pread(file, plan["notes"], plan["input"])
    unlock(folder)
    staged, skip = marshal.loads(notes) if notes else ({}, None)
    harvest = Harvest(folder, request, staged, skip)
    fields += harvest.send(lease)
    lease.send(frame(FRAME_RESULT, *fields))


def hindrance(keeper, oom_fd):
    """Try all of it once, in a child, since a host may forbid any of the
    steps: what does not work here, or "" when all does."""
    out, into = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        why = b"?"
        try:
            keeper.settle(oom_fd)
            if keeper.enclose():
                why = b""       # it is the keeper's to say
                keeper.channel.recv(1)
                os._exit(0)
            keeper.release()
            why = b""
        except OSError as error:
            why = describe(error)
        finally:
            os.write(into, why)
            os._exit(0)
    os.close(into)
    why = b""
    while len(why) < 200:
        more = os.read(out, 200)
        if not more:
            break
        why += more
    os.close(out)
    status = os.waitpid(pid, 0)[1]
    return why.decode("ascii", "replace") or ("it died" if status else "")


def is_empty(folder):
    """Is there nothing but the folder itself?  Every name in it takes one of
    the file system's inodes, links as well."""
    there = os.fstatvfs(folder)
    return there.f_files - there.f_ffree == 1


def is_bad(fields):
    """Did a run end by a limit or a kill?"""
    return (fields[TAG_REASON] in (REASON_TIME, REASON_MEMORY, REASON_OUTPUT)
            or fields[TAG_REASON] == REASON_SIGNAL
            and fields[TAG_SIGNAL] == _signal.SIGKILL)
