"""Namespaces for the runs of an api cell: the system calls, and what is where.

    PID 1, the warden       has nothing to do but to end with the keeper
      +- the keeper         in a user, a mount and a pid namespace of its own,
           |                where /proc and /sys are covered (keeper.py)
           +- a jail's init     in a fresh pid namespace; it waits for ever
           +- the run           in the same, and in fresh user, mount, ipc and
                                uts namespaces with memory file systems of its
                                own; and all that it starts

The run is a clone of the keeper, which has never seen a byte of any client's.
It is as unprivileged as it will ever be when the first one is read: without a
capability, and under the filter of filter.py.
"""

import ctypes
import errno
import os
import stat
import _signal

from filter import Filter

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x20000, 0x4000000, 0x8000000
NEW_USER, NEW_PIDS = 0x10000000, 0x20000000
KEEPER = NEW_USER | NEW_MOUNTS | NEW_PIDS
INMATE = NEW_USER | NEW_MOUNTS | NEW_IPC | NEW_UTS
SHARE_MEMORY, SHARE_FILES = 0x100, 0x400

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 0x1000, 0x4000, 0x40000

CAPABILITY_VERSION = 0x20080522
SYS_ADMIN = 1 << 21
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
STACK = 16384           # of a process that only waits

# What programs look for in what is covered; read once, at start.
COPIES = {"/proc": ("cpuinfo", "version", "filesystems"),
          "/sys": ("devices/system/cpu/online", "devices/system/cpu/possible",
                   "devices/system/cpu/present"),
          "/dev/mqueue": (),
          # All cells have these files from one folder: a lock on one would be
          # seen in the others.  (/run/inline is each cell's own, and gone from
          # the host as soon as the cell has connected.)
          "/run/cell": ()}
# Who may write to a device may also set its times, for the next run to see.
DEVICES = ("/dev", "/dev/pts")
COPY_MAX = 256 << 10
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class System:
    """The calls that Python has not.  OSError when one fails."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        # A clone() must not let go of the interpreter's lock.
        locked = ctypes.PyDLL(None, use_errno=True)
        self.clone = locked.clone
        self.clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
                               ctypes.c_void_p)
        self.many_prctl = locked.prctl
        self.many_prctl.argtypes = (ctypes.c_int,) + (ctypes.c_ulong,) * 4
        self.stack = ctypes.create_string_buffer(STACK)
        self.pause = ctypes.cast(self.libc.pause, ctypes.c_void_p).value

    def call(self, name, *args):
        function = getattr(self.libc, name)
        if function(*args) != 0:
            raise OSError(ctypes.get_errno(), name)

    def prctl(self, option, value, more=0):
        self.call("prctl", ctypes.c_int(option), ctypes.c_ulong(value),
                  ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))

    def unshare(self, flags):
        self.call("unshare", ctypes.c_int(flags))

    def setns(self, fd, kind):
        self.call("setns", ctypes.c_int(fd), ctypes.c_int(kind))

    def mount(self, kind, target, flags, options=None):
        """A memory file system, or a change of a mount (kind: None)."""
        self.call("mount", kind, target.encode(), kind,
                  ctypes.c_ulong(flags), options and options.encode())

    def spawn_init(self):
        """Start a process that does nothing, the init of a pid namespace.

        Since no line of Python runs in it, it can share our memory, and costs
        next to nothing.  SIGCHLD is ignored there: the kernel reaps for it."""
        top = (ctypes.addressof(self.stack) + STACK) & ~15
        handler = _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
        pid = self.clone(self.pause, top, SHARE_MEMORY | SHARE_FILES |
                         _signal.SIGCHLD, None)
        error = ctypes.get_errno()
        _signal.signal(_signal.SIGCHLD, handler)
        if pid < 0:
            raise OSError(error, "clone")
        return pid

    def drop_capabilities(self, keep=0):
        """All of them but keep, in this user namespace and for good."""
        capability = 0
        while self.many_prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
            capability += 1     # to the last one, or there are none to drop
        head = CAPABILITY_VERSION.to_bytes(4, "little") + bytes(4)
        word = keep.to_bytes(4, "little")
        self.call("capset", head, word + word + bytes(16))


def write_file(path, text, folder=None):
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


class Grounds:
    """What the jails of a cell stand on."""

    def __init__(self):
        self.uid, self.gid = os.getuid(), os.getgid()
        self.system = System()
        self.filter = Filter(self.system.prctl)
        self.proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.mounts = [tmpfs_like(path) for path in writable_mounts()]
        self.pids = None        # descriptor of our pid namespace

    def furnish(self):
        """Become the keeper, with the mounts that all jails start from.  It
        goes on in a child, with which the caller ends."""
        copies = {path: {name: read_some(path + "/" + name) for name in names}
                  for path, names in COPIES.items() if os.path.isdir(path)}
        copies["/proc"]["meminfo"] = memory_info()
        self.system.unshare(KEEPER)
        self.map_user()
        self.system.mount(None, "/", RECURSIVE | PRIVATE)
        for path, files in copies.items():
            self.cover(path, files)
        for path in filter(os.path.ismount, DEVICES):
            self.system.mount(None, path, REMOUNT | BIND | READ_ONLY |
                              NO_SUID | NO_EXEC)
        self.system.prctl(PR_SET_DUMPABLE, 0)
        keeper = os.fork()
        if keeper != 0:
            self.surrender()
            os._exit(int(os.waitpid(keeper, 0)[1] != 0))
        # For pid namespaces, which the keeper enters itself.
        self.system.drop_capabilities(keep=SYS_ADMIN)
        self.pids = os.open("self/ns/pid", os.O_RDONLY | os.O_CLOEXEC,
                            dir_fd=self.proc)

    def map_user(self):
        """In a new user namespace, be who we were.  Leaves us dumpable: our
        /proc/self is ours then."""
        self.system.prctl(PR_SET_DUMPABLE, 1)
        write_file("self/setgroups", b"deny", self.proc)
        write_file("self/uid_map", b"%d %d 1" % (self.uid, self.uid), self.proc)
        write_file("self/gid_map", b"%d %d 1" % (self.gid, self.gid), self.proc)

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

    def open_jail(self):
        """A fresh pid namespace for our next children; the pid of its init."""
        self.system.unshare(NEW_PIDS)
        return self.system.spawn_init()

    def leave_jail(self):
        """Our next children are beside us again."""
        self.system.setns(self.pids, NEW_PIDS)

    def confine(self):
        """In a child: the last privileged steps, then none is left.  It can
        be looked into by the keeper (/proc/PID/root) from here on."""
        self.system.unshare(INMATE)
        self.map_user()
        self.go_first()
        for path, flags, options in self.mounts:
            self.system.mount(b"tmpfs", path, flags, options)
        self.surrender()

    def go_first(self):
        """When memory runs out, be the one that goes, not the keeper."""
        self.system.prctl(PR_SET_DUMPABLE, 1)   # /proc/self is ours then
        write_file("self/oom_score_adj", b"1000", self.proc)

    def surrender(self):
        self.system.drop_capabilities()
        self.filter.apply()


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


def describe(error):
    """What failed, and how: "mount: EPERM"."""
    name = errno.errorcode.get(error.errno)
    text = "%s: %s" % (error.strerror, name) if name else error.strerror
    return text.encode("ascii", "replace")
