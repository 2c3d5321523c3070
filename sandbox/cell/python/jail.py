# SPDX-License-Identifier: MIT
"""The base of all jails of an api cell: mounts, made once by the process that
becomes their supervisor.  The jails themselves are made by sandbox/cell/supervisor, which
also says what is where.
"""

import ctypes
import errno
import os
import stat
import _signal

from filter import Filter
from supervisor import FOLDERS, PROCESSES, RUN_ID, Supervisor

NEW_MOUNTS, NEW_USER, NEW_PIDS = 0x20000, 0x10000000, 0x20000000
SUPERVISOR = NEW_USER | NEW_MOUNTS | NEW_PIDS

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 0x1000, 0x4000, 0x40000
MOVE = 0x2000

PR_SET_DUMPABLE = 4

# Files that programs need of a covered file system; read once, at start.
COPIES = {"/proc": ("cpuinfo", "version", "filesystems"),
          "/sys": ("devices/system/cpu/online", "devices/system/cpu/possible",
                   "devices/system/cpu/present"),
          "/dev/mqueue": (),
          # /mnt/data, another name of the workspace.
          "/mnt": (),
          # All runs of the cell have these files: a lock that a run leaves on
          # one could be seen by the next.  (/run/inline is empty as soon as the
          # cell has connected.)
          "/run/cell": ()}
LINKS = {"data": "/workspace"}      # below /mnt
# A run of /v1 sees its processes in /proc, too: they are mounted in a folder of
# it (sandbox/cell/supervisor/jail.c), and reached by links.  A process with a
# higher number has the link `self` alone.
PIDS = 400
PROC_LINKS = {name: os.path.basename(PROCESSES) + "/" + name
              for name in ("self", "thread-self", *map(str, range(2, PIDS)))}
PROC_LINKS.update(mounts="self/mounts", net="self/net")
PROC_COPIES = ("stat",)
# A process that may write to a device may also set its times, which the next
# run would see.
DEVICES = ("/dev", "/dev/pts")
NAMES = "/snekbin"          # of the interpreter: plain.py
INSTALLED = "/snekbox/"     # below it, packages that all cells mount
EMPTY = "/run/cell"         # when it is covered
# Leases that may write: one for /home (/eval), one for /workspace.
LEASES = {path: 1 << FOLDERS.index(folder)
          for path, folder in (("/home", "/home"), ("/workspace", "/workspace"),
                               ("/tmp", "/workspace"))}
ALL_LEASES = (1 << 64) - 1
# Where a cover is filled before it is put in its place: AppArmor judges by path,
# and forbids files to be made below /proc and /sys whatever is mounted there.
STAGING = "/tmp"
COPY_MAX = 256 << 10
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class System:
    """The calls that Python has not.  OSError when one fails."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)

    def call(self, name, *args, step=None):
        """`step` names the call when it fails."""
        function = getattr(self.libc, name)
        if function(*args) != 0:
            raise OSError(ctypes.get_errno(), step or name)

    def prctl(self, option, value):
        self.call("prctl", ctypes.c_int(option), *map(ctypes.c_ulong,
                                                      (value, 0, 0, 0)))

    def unshare(self, flags):
        self.call("unshare", ctypes.c_int(flags))

    def mount(self, step, source, target, flags, options=None):
        """A file system (source: its kind), a change of a mount (None), or its
        move from another path.
        """
        self.call("mount", source, target.encode(),
                  source if source in (b"tmpfs", b"overlay") else None,
                  ctypes.c_ulong(flags), options and options.encode(),
                  step="mount %s %s" % (step, target))


class MountTable:
    """The namespaces and mounts that all jails of a cell start from."""

    def __init__(self, control, own):
        """control, own: see Supervisor."""
        self.system = System()
        self.shared_locks = ""      # why runs see others' locks: describe()
        self.filter = Filter()      # the kernel is told where it lies
        self.supervisor = Supervisor(control, own, [
            tmpfs_like(path) for path in writable_mounts()],
            self.filter.address, jailed=1)

    def settle(self, shows):
        """Become the supervisor, in a process of its own with which the caller
        ends, and with the mounts that all jails start from.  shows: runs of
        /v1 have a /proc."""
        copies = {path: {name: read_some(path + "/" + name) for name in names}
                  for path, names in COPIES.items() if os.path.isdir(path)}
        copies["/proc"]["meminfo"] = memory_info()
        copies.get("/mnt", {}).update(LINKS)
        stat = {name: read_some("/proc/" + name) for name in PROC_COPIES}
        installed = mounts_below(INSTALLED)
        self.system.unshare(SUPERVISOR)
        self.supervisor.call("supervisor_map_user")
        # by a path that AppArmor knows: that of our own mount
        shared = self.supervisor.shared
        os.close(shared.proc)
        shared.proc = os.open("/proc",
                              os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.system.mount("private", None, "/", RECURSIVE | PRIVATE)
        if shows:
            self.cover("/proc", dict(copies["/proc"], **stat, **PROC_LINKS),
                       PROCESSES)
            shared.shown = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
        for path, files in copies.items():
            self.cover(path, files)
        for path in filter(os.path.ismount, DEVICES):
            self.system.mount("read-only", None, path, REMOUNT | BIND |
                              READ_ONLY | NO_SUID | NO_EXEC)
        if os.path.ismount(NAMES):
            self.system.mount("read-only", None, NAMES, REMOUNT | BIND |
                              READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)
        for path in installed:
            self.give_inodes(path)
        self.system.prctl(PR_SET_DUMPABLE, 0)
        supervisor = os.fork()
        if supervisor != 0:
            self.supervisor.call("supervisor_surrender", 0)
            os._exit(int(os.waitpid(supervisor, 0)[1] != 0))
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        self.supervisor.call("supervisor_init")

    def cover(self, path, files, folder=None):
        """Hide what the kernel shows there; nobody can take it off again,
        since no later namespace owns the mount.  files: bytes, or where a link
        leads; folder: one in it, for another mount."""
        flags = NO_SUID | NO_DEVICES | NO_EXEC
        self.system.mount("tmpfs", b"tmpfs", STAGING, flags, "size=1m,"
                          "mode=755,uid=%d,gid=%d" % (os.getuid(),
                                                      os.getgid()))
        if folder is not None:
            os.mkdir(STAGING + folder[len(path):], 0o755)
        for name, text in files.items():
            target = STAGING + "/" + name
            os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
            if isinstance(text, str):
                os.symlink(text, target)
                continue
            with open(target, "wb") as file:
                file.write(text)
        self.system.mount("read-only", None, STAGING,
                          REMOUNT | BIND | READ_ONLY | flags)
        self.system.mount("move to", STAGING.encode(), path, MOVE)

    def give_inodes(self, path):
        """Give the cell inodes of its own for files that all cells mount: a
        lock that a run has on one of them is seen in no other cell.  Linux
        before 5.11 lets no cell do that; such runs see each other's locks
        there, which READY tells."""
        try:
            self.system.mount("overlay", b"overlay", path, NO_SUID | NO_DEVICES,
                              "lowerdir=%s:%s" % (path, EMPTY))
        except OSError as error:
            self.shared_locks = describe(error).decode()

    def trouble(self, shows):
        """Try all of it once, in a child, since a host may forbid any of the
        steps: what does not work here, or "" when all does."""
        out, into = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            why = b"?"
            try:
                self.settle(shows)
                self.supervisor.shared.tries = 1
                self.supervisor.shared.shows = int(shows)
                # The run's process waits there for a lease, to its end.
                self.supervisor.call("enclose_jail")
                self.supervisor.library.enclose_end(
                    ctypes.byref(self.supervisor.shared))
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


def mount_points():
    for line in read_some("/proc/self/mounts").splitlines():
        yield line.split()[1].decode("unicode_escape")


def mounts_below(folder):
    return [path for path in mount_points() if path.startswith(folder)]


def writable_mounts():
    """Everything in the container that a run could write to, and so has to
    get anew: file systems in memory, since the root is read-only."""
    covered = tuple(path + "/" for path in (*COPIES, NAMES))
    for path in mount_points():
        if (not (path + "/").startswith(covered) and os.access(path, os.W_OK)
                and not stat.S_ISCHR(os.stat(path).st_mode)):
            yield path


def tmpfs_like(path):
    """(path, flags, options, leases) for a mount as large as the one that is
    there."""
    there = os.statvfs(path)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return (path, NO_SUID | NO_DEVICES | there.f_flag & NO_EXEC,
            "size=%d,nr_inodes=%d,mode=%o,uid=%d,gid=%d" % (
                there.f_blocks * there.f_frsize, there.f_files, mode,
                RUN_ID, RUN_ID),
            LEASES.get(path, ALL_LEASES))


def read_some(path):
    """The beginning of a file; of a missing one nothing."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(COPY_MAX)
    except OSError:
        return b""


# Read at the start: /proc is covered when a step fails.
CONFINED = read_some("/proc/self/attr/apparmor/current")


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
    """The failed step, the error, and the profile of AppArmor, if any:
    "mount tmpfs /tmp: EACCES, profile docker-default".
    """
    step = ("open " + error.filename if isinstance(error.filename, str)
            else error.strerror)
    text = "%s: %s" % (step, errno.errorcode.get(error.errno, error.errno))
    profile = CONFINED.split()
    if profile and profile[0] != b"unconfined":
        text += ", profile " + profile[0].decode("ascii", "replace")
    return text.encode("ascii", "replace")
