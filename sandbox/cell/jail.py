"""Namespaces of their own for each run of an api cell.

    PID 1, the keeper       in a user and a mount namespace of its own, where
      |                     /proc and /sys are covered; speaks to the broker
      +- init of a jail     PID 1 of fresh user, mount, pid, ipc and uts
           |                namespaces with memory file systems of its own;
           |                speaks to one client, then ends
           +- the run       and all that it starts

A jail is made before it is asked for, by a clone of the keeper, which has
never seen a byte of any client's.  Its init is as unprivileged as the run when
the client's first byte is read: no capability, and the filter of filter.py.
When it ends, the kernel ends all else in there and forgets the mounts.
"""

import ctypes
import errno
import os
import select
import stat
import _signal
import _socket

from filter import Filter
from frames import (ERROR_FAILED, FRAME_RESULT, REASON_ERROR, REASON_MEMORY,
                    TAG_CODE, TAG_REASON, frame)
from link import Gone, leave

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x20000, 0x4000000, 0x8000000
NEW_USER, NEW_PIDS = 0x10000000, 0x20000000
JAIL = NEW_USER | NEW_MOUNTS | NEW_PIDS | NEW_IPC | NEW_UTS

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 0x1000, 0x4000, 0x40000

CLONE = {"x86_64": 56, "aarch64": 220}
CAPABILITY_VERSION = 0x20080522
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24

# What programs look for in what is covered; read once, at start.
COPIES = {"/proc": ("cpuinfo", "version", "filesystems"),
          "/sys": ("devices/system/cpu/online", "devices/system/cpu/possible",
                   "devices/system/cpu/present"),
          "/dev/mqueue": ()}
COPY_MAX = 256 << 10
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class System:
    """The calls that Python has not.  OSError when one fails."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        # A clone() must not let go of the interpreter's lock.
        self.locked = ctypes.PyDLL(None, use_errno=True)
        self.locked.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4

    def call(self, name, *args):
        function = getattr(self.libc, name)
        if function(*args) != 0:
            raise OSError(ctypes.get_errno(), name)

    def prctl(self, option, value, more=0):
        self.call("prctl", ctypes.c_int(option), ctypes.c_ulong(value),
                  ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))

    def mount(self, kind, target, flags, options=None):
        """A memory file system, or a change of a mount (kind: None)."""
        self.call("mount", kind, target.encode(), kind,
                  ctypes.c_ulong(flags), options and options.encode())

    def clone(self, flags):
        """os.fork() with namespaces."""
        python = ctypes.pythonapi
        number = CLONE[os.uname().machine]
        python.PyOS_BeforeFork()
        pid = self.locked.syscall(
            ctypes.c_long(number), ctypes.c_ulong(flags | _signal.SIGCHLD),
            ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0),
            ctypes.c_ulong(0))
        if pid == 0:
            python.PyOS_AfterFork_Child()
            return 0
        error = ctypes.get_errno()
        python.PyOS_AfterFork_Parent()
        if pid < 0:
            raise OSError(error, "clone")
        return pid

    def drop_capabilities(self):
        """All of them, in this user namespace and for good."""
        capability = 0
        prctl = self.locked.prctl       # many calls: what is shortest
        while prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
            capability += 1     # to the last one, or there are none to drop
        head = CAPABILITY_VERSION.to_bytes(4, "little") + bytes(4)
        self.call("capset", head, bytes(24))


def write_file(path, text, folder=None):
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


class Keeper:
    """Makes jails, and hands each lease on to one."""

    def __init__(self, control, children):
        self.control = control
        self.children = children
        self.uid, self.gid = os.getuid(), os.getgid()
        self.system = System()
        self.filter = Filter(self.system.prctl)
        self.proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.mounts = [tmpfs_like(path) for path in writable_mounts()]
        self.channel = None     # to the jail's init; in it, to the keeper

    def furnish(self):
        """Give the keeper the mounts that all jails start from.  When this
        fails, half of it may have happened: the process is of no use then."""
        copies = {path: {name: read_some(path + "/" + name) for name in names}
                  for path, names in COPIES.items() if os.path.isdir(path)}
        copies["/proc"]["meminfo"] = memory_info()
        self.enter(NEW_USER | NEW_MOUNTS)
        for path, files in copies.items():
            self.cover(path, files)
        self.system.drop_capabilities()

    def enter(self, flags=0):
        """Become somebody in a new user namespace: the one we were."""
        if flags:
            self.system.call("unshare", ctypes.c_int(flags))
        self.system.prctl(PR_SET_DUMPABLE, 1)   # our /proc/self is ours then
        write_file("self/setgroups", b"deny", self.proc)
        write_file("self/uid_map", b"%d %d 1" % (self.uid, self.uid), self.proc)
        write_file("self/gid_map", b"%d %d 1" % (self.gid, self.gid), self.proc)
        self.system.prctl(PR_SET_DUMPABLE, 0)
        if flags:
            self.system.mount(None, "/", RECURSIVE | PRIVATE)

    def cover(self, path, files):
        """Hide what the kernel shows there; nobody can take it off again,
        since no later namespace owns the mount."""
        flags = NO_SUID | NO_DEVICES | NO_EXEC
        self.system.mount(b"tmpfs", path, flags, "size=1m,mode=755,uid=%d,"
                          "gid=%d" % (os.getuid(), os.getgid()))
        for name, text in files.items():
            target = path + "/" + name
            os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
            with open(target, "wb") as file:
                file.write(text)
        self.system.mount(None, path, REMOUNT | BIND | READ_ONLY | flags)

    # ---- one jail after another ----

    def enclose(self):
        """Make a jail.  True in its init, which has nothing of the keeper's
        then but its own end of self.channel, and the broker's socket until
        take_lease()."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX,
                                          _socket.SOCK_SEQPACKET)
        self.children.reset()
        self.children.main = self.system.clone(JAIL)
        if self.children.main == 0:
            self.children.close()
            ours.close()
            self.channel = theirs
            self.become_init()
            theirs.send(b"1")
            return True
        theirs.close()
        self.channel = ours
        self.await_init()
        return False

    def become_init(self):
        """In the clone: the last privileged steps, then none is left."""
        self.enter()
        for path, flags, options in self.mounts:
            self.system.mount(b"tmpfs", path, flags, options)
        self.system.drop_capabilities()
        self.filter.apply()

    def await_init(self):
        """Until the jail is ready, or has taken its lease.  OSError when it
        does not come up."""
        poller = select.poll()
        poller.register(self.control.fd, 0)     # there may be a lease in it
        poller.register(self.channel.fileno(), select.POLLIN)
        if any(fd == self.control.fd for fd, _ in poller.poll()):
            leave()
        if not self.channel.recv(1):
            raise OSError(errno.ECHILD, "a jail did not come up")

    def serve_one(self):
        """Hand the next lease to the jail, and wait for the jail's end.  True
        when the cell should not be used again."""
        lease = self.control.next_lease(_socket.MSG_PEEK)
        try:
            self.channel.send(b"1")
            self.await_init()
            self.await_end()
            if os.WIFSIGNALED(self.children.status):
                self.explain(lease)
            return self.children.status != 0
        finally:
            self.channel.close()
            lease.close()

    def take_lease(self):
        """In the jail: wait for its lease.  It comes from the broker itself.
        The keeper could not always send it on: how many descriptors may be
        under way is counted by user, which is one for the code of all cells.
        """
        if not self.channel.recv(1):
            leave()
        lease = self.control.next_lease()
        lease.control = self.channel.fileno()
        self.control.sock.close()
        self.channel.send(b"1")
        return lease

    def await_end(self):
        poller = select.poll()
        poller.register(self.control.fd, select.POLLIN)
        poller.register(self.children.wake, select.POLLIN)
        while not self.children.reap():
            if any(fd == self.control.fd for fd, _ in poller.poll()):
                leave()
            self.children.hush()

    def explain(self, lease):
        """The jail's init was killed: say so in its place."""
        children = self.children
        memory = children.count_ooms() > children.ooms
        result = ((TAG_REASON, REASON_MEMORY),) if memory else (
            (TAG_REASON, REASON_ERROR), (TAG_CODE, ERROR_FAILED))
        try:
            lease.try_send(frame(FRAME_RESULT, *result))
        except Gone:
            pass


def hindrance(keeper):
    """Try all of it once, in a child, since a host may forbid any of the
    steps: what does not work here, or "" when all does."""
    out, into = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        why = b"?"
        try:
            keeper.furnish()
            if keeper.system.clone(JAIL) == 0:
                why = try_jail(keeper)
                os.write(into, why)
                os._exit(0)
            why = b"" if os.wait()[1] == 0 else b"the jail was killed"
        except OSError as error:
            why = describe(error)
        finally:
            os.write(into, why)
            os._exit(0)
    os.close(into)
    why = b""
    while True:
        more = os.read(out, 200)
        if not more:
            break
        why += more
    os.close(out)
    os.waitpid(pid, 0)
    return why.decode("ascii", "replace")[:200]


def try_jail(keeper):
    try:
        keeper.become_init()
    except OSError as error:
        return describe(error)
    return b""


def describe(error):
    """What failed, and how: "mount: EPERM"."""
    return ("%s: %s" % (error.strerror, errno.errorcode.get(
        error.errno, error.errno))).encode("ascii", "replace")


def writable_mounts():
    """Everything in the container that a run could write to, and so has to
    get anew: file systems in memory, since the root is read-only."""
    covered = tuple(path + "/" for path in COPIES)
    for line in read_some("/proc/self/mounts").splitlines():
        path = line.split()[1].decode("unicode_escape")
        if (not (path + "/").startswith(covered) and os.access(path, os.W_OK)
                and not stat.S_ISCHR(os.stat(path).st_mode)):
            yield path


def tmpfs_like(path):
    """(path, flags, options) for a mount as large as the one that is there."""
    there = os.statvfs(path)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return (path, NO_SUID | NO_DEVICES | there.f_flag & NO_EXEC,
            "size=%d,nr_inodes=%d,mode=%o,uid=%d,gid=%d" % (
                there.f_blocks * there.f_frsize, there.f_files, mode,
                os.getuid(), os.getgid()))


def read_some(path):
    """The beginning of a file; nothing of one that is not there."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(COPY_MAX)
    except OSError:
        return b""


def memory_info():
    """/proc/meminfo as the container's limit has it."""
    total = int(read_some("/proc/meminfo").split()[1])
    for path in MEMORY_LIMITS:
        limit = read_some(path).strip()
        if limit.isdigit():
            total = min(total, int(limit) >> 10)
    return b"".join(b"%-16s%8d kB\n" % (name + b":", size) for name, size in (
        (b"MemTotal", total), (b"MemFree", total), (b"MemAvailable", total),
        (b"Buffers", 0), (b"Cached", 0), (b"SwapTotal", 0), (b"SwapFree", 0)))
