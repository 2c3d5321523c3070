"""All processes of the container but PID 1: start, watch, end them."""

import os
import select
import time
import _signal

from frames import (FRAME_CHUNK, FRAME_ENOUGH, FRAME_OUTPUT, FRAME_STARTED,
                    REASON_EXIT, REASON_MEMORY, REASON_OUTPUT, REASON_SIGNAL,
                    REASON_TIME, TAG_CPU_US, TAG_DATA, TAG_MAX_RSS, TAG_REASON,
                    TAG_SIGNAL, TAG_STATUS, TAG_STREAM, TAG_WALL_US,
                    ProtocolError, frame, head_of)
from link import ENDED, Gone, leave

# After a small piece of output the pipes rest for so long, and what comes
# meanwhile travels in one frame: the run writes every print() at once.
REST_NS = 5000000

# Where the kernel counts the kills of the memory limit: cgroup v2, v1.
OOM_COUNTERS = ("/sys/fs/cgroup/memory.events",
                "/sys/fs/cgroup/memory/memory.oom_control")


class Children:
    """Forks, reaps and kills.  There is one of it, in PID 1."""

    def __init__(self, control):
        self.control = control
        self.oom_fd = open_oom_counter()
        self.wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # The only signal that is not ignored.  All it does is to end a poll:
        # a run that sends it to us gains nothing.
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.reset()

    def reset(self):
        self.main = 0
        self.status = None      # wait status of main, once it has ended
        self.cpu = 0.0          # seconds, of everything that was reaped
        self.rss = 0            # KiB, of the largest process among them
        self.ooms = self.count_ooms()

    def count_ooms(self):
        """How many processes the memory limit has killed so far."""
        if self.oom_fd is None:
            return 0
        for line in os.pread(self.oom_fd, 4096, 0).splitlines():
            if line.startswith(b"oom_kill "):
                return int(line[9:])
        return 0

    def fork(self):
        """os.fork(); what is counted starts anew."""
        self.reset()
        self.main = os.fork()
        return self.main

    def reap(self):
        """Take every dead child.  True when there is none left, dead or alive.

        Orphans of the run become ours: they are reaped here, too, so that
        they do not fill up the container's process limit.
        """
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.cpu += usage.ru_utime + usage.ru_stime
            self.rss = max(self.rss, usage.ru_maxrss)
            if pid == self.main:
                self.status = status

    def hush(self):
        """Forget the wake-ups that have come."""
        try:
            while len(os.read(self.wake, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def kill_all(self):
        """End every process, and return when they are gone.

        One kill(-1) reaches all of them: the kernel walks the list under the
        lock that fork() needs to add to it, and a process with a pending
        SIGKILL cannot fork.  The loop is for what is born after a fork that
        was past that check.
        """
        poller = select.poll()
        poller.register(self.wake, select.POLLIN)
        poller.register(self.control, select.POLLIN)
        while True:
            try:
                os.kill(-1, _signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.hush()
            if self.reap():
                return
            if any(fd == self.control for fd, _ in poller.poll(1000)):
                leave()


def open_oom_counter():
    for path in OOM_COUNTERS:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return None


def make_pipes(count):
    """Pairs of descriptors.  All of them, or none."""
    pairs = []
    try:
        while len(pairs) < count:
            pairs.append(os.pipe2(os.O_CLOEXEC))
    except OSError:
        for fd in [fd for pair in pairs for fd in pair]:
            os.close(fd)
        raise
    return pairs


class Pipes:
    """Standard input, output and error of a child, made before the fork."""

    def __init__(self, stdin, merge):
        """stdin: all of standard input; None: supply() tells later."""
        (self.stdin, self.feed), *others = make_pipes(2 if merge else 3)
        self.outputs = {pair[0]: at for at, pair in enumerate(others, 1)}
        self.stdout = others[0][1]
        self.stderr = others[-1][1]
        for fd in (self.feed, *self.outputs):
            os.set_blocking(fd, False)
        if stdin is not None:
            self.supply(stdin, False)

    def supply(self, stdin, merge):
        """Standard input; with merge, there is no standard error either."""
        self.input = memoryview(stdin)
        self.feed_some()
        if merge:
            fd = max(self.outputs, key=self.outputs.get)
            del self.outputs[fd]
            os.close(fd)

    def feed_some(self):
        """Write what fits of standard input; close it after the last byte."""
        try:
            while self.input:
                self.input = self.input[os.write(self.feed, self.input):]
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass
        os.close(self.feed)
        self.feed = None

    def close_theirs(self):
        """In PID 1, after the fork: the child has its ends, drop ours."""
        for fd in {self.stdin, self.stdout, self.stderr}:
            os.close(fd)

    def close_ours(self):
        for fd in self.outputs:
            os.close(fd)
        self.outputs = {}
        if self.feed is not None:
            os.close(self.feed)
            self.feed = None


class Watch:
    """A running child: passes its output on and holds it to its limits.

    While the client is slow, one frame waits and the pipes are not read: the
    child is held up, the clock is not.
    """

    def __init__(self, lease, children, pipes, wall_ms, output_max,
                 drains=False):
        """output_max: bytes of both streams, then the child is ended; with
        drains, of each stream, and what comes after them is dropped."""
        self.lease = lease
        self.children = children
        self.pipes = pipes
        self.started = time.monotonic_ns()
        self.deadline = self.started + wall_ms * 1000000
        self.rest = 0           # when the pipes may be read again
        self.drains = drains
        # bytes of output that may still come
        self.left = {1: output_max, 2: output_max}
        self.pending = None     # a frame that the client had no room for
        self.over = False       # there was more output than is wanted

    def run(self):
        """Until the child has ended and all it started is gone: the fields of
        its result.  Gone when the client hangs up; then nothing is left of
        the child either."""
        children = self.children
        try:
            self.lease.send(frame(FRAME_STARTED))
            reason = self.watch()
            wall = time.monotonic_ns() - self.started
            children.kill_all()
            self.drain()
        finally:
            children.kill_all()
            self.pipes.close_ours()
        if reason is None and self.over:
            reason = REASON_OUTPUT
        return (*ending(children, reason),
                (TAG_WALL_US, wall // 1000),
                (TAG_CPU_US, int(children.cpu * 1000000)),
                (TAG_MAX_RSS, children.rss * 1024))

    def watch(self):
        """Until the child has ended (None) or must end (a REASON_*)."""
        while self.children.status is None:
            now = time.monotonic_ns()
            if now >= self.deadline:
                return REASON_TIME
            ready = self.poll(now)
            if self.lease.control in ready:
                leave()
            if ready.get(self.lease.fd, 0) & ENDED:
                raise Gone
            if ready.get(self.lease.fd, 0) & select.POLLIN:
                self.hear()
            if self.children.wake in ready:
                self.children.hush()
                self.children.reap()
            if self.pipes.feed in ready:
                self.pipes.feed_some()
            if self.pending and ready.get(self.lease.fd, 0) & select.POLLOUT:
                self.pass_on(self.pending)
            for fd in [fd for fd in self.pipes.outputs if fd in ready]:
                if self.pending is None:
                    self.read(fd)
            if self.over:
                return REASON_OUTPUT
        return None

    def hear(self):
        """What the client says in the course of a run: one thing only."""
        if self.lease.receive().kind != FRAME_ENOUGH:
            raise ProtocolError("a request in the course of a run")
        self.over = True

    def poll(self, now):
        """Wait for whatever comes first: {fd: events}."""
        pipes = self.pipes
        until = self.deadline
        poller = select.poll()
        poller.register(self.children.wake, select.POLLIN)
        poller.register(self.lease.control, select.POLLIN)
        poller.register(self.lease.fd, select.POLLIN |
                        (select.POLLOUT if self.pending else 0))
        if pipes.feed is not None:
            poller.register(pipes.feed, select.POLLOUT)
        if self.pending is None and now < self.rest:
            until = min(until, self.rest)
        elif self.pending is None:
            for fd in pipes.outputs:
                poller.register(fd, select.POLLIN)
        # Rounded up: a poll that returns too early would only be repeated.
        return dict(poller.poll((until - now + 999999) // 1000000))

    def read(self, fd):
        """Pass on one piece of output.  False when there is none to be had."""
        try:
            data = os.read(fd, FRAME_CHUNK)
        except BlockingIOError:
            return False
        if not data:
            os.close(fd)
            del self.pipes.outputs[fd]
            return False
        stream = self.pipes.outputs[fd]
        left = self.left[stream]
        if len(data) > left and not self.drains:
            self.over = True
        data = data[:left]
        for other in (stream,) if self.drains else (1, 2):
            self.left[other] -= len(data)
        if len(data) < FRAME_CHUNK // 2:
            self.rest = time.monotonic_ns() + REST_NS
        if data:
            self.pass_on((frame(FRAME_OUTPUT, (TAG_STREAM, stream)),
                          head_of(TAG_DATA, len(data)), data))
        return True

    def pass_on(self, packet):
        self.pending = None if self.lease.try_send(packet) else packet

    def drain(self):
        """What the dead have left in the pipes: bounded by the pipes."""
        for fd in list(self.pipes.outputs):
            while not self.over and self.flush() and self.read(fd):
                pass
        self.flush()

    def flush(self):
        if self.pending:
            self.lease.send(self.pending)
            self.pending = None
        return True


def enter_child(step):
    """A step in a child that must not come back with an exception: what is
    above on the stack belongs to PID 1."""
    try:
        return step()
    except BaseException as error:
        os.write(2, b"sandbox: %s\n" % str(error).encode("utf-8", "replace"))
        os._exit(255)


def ending(children, reason):
    """How a child ended, as fields: by itself (reason None), or by us."""
    status = children.status
    if reason is not None:
        return ((TAG_REASON, reason),)
    if os.WIFEXITED(status):
        return ((TAG_REASON, REASON_EXIT), (TAG_STATUS, os.WEXITSTATUS(status)))
    number = os.WTERMSIG(status)
    if number == _signal.SIGKILL and children.count_ooms() > children.ooms:
        return ((TAG_REASON, REASON_MEMORY), (TAG_SIGNAL, number))
    return ((TAG_REASON, REASON_SIGNAL), (TAG_SIGNAL, number))
