# SPDX-License-Identifier: MIT
"""What Docker's AppArmor profile denies to a container, tried one by one; and,
named "cell: ...", the steps that a cell makes for its runs' namespaces.

Prints a line for each: its name, and "ok" or the error's name.  Everything
beyond the user namespace is tried inside one, with all capabilities over it.
"""

import ctypes
import errno
import os

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT = 1, 2, 4, 8, 32
BIND, MOVE, RECURSIVE, PRIVATE, SHARED = 0x1000, 0x2000, 0x4000, 0x40000, \
    0x100000
FLAGS = NO_SUID | NO_DEVICES | NO_EXEC
# Those of memory file systems that a cell makes; and all that its rules name.
MEMORY = (NO_SUID | NO_DEVICES, FLAGS)
ALL_FLAGS = MEMORY + (0, READ_ONLY, READ_ONLY | FLAGS, READ_ONLY | NO_SUID |
                      NO_EXEC)
PLACES = ("/tmp", "/home", "/workspace", "/dev/shm")
COVERED = ("/proc", "/sys", "/dev/mqueue", "/run/cell")


def say(name, function, *arguments):
    """Try something; a failure of the C library's kind is an OSError."""
    try:
        function(*arguments)
        how = "ok"
    except OSError as error:
        how = errno.errorcode.get(error.errno, str(error.errno))
    print(name, how, flush=True)


def call(name, *arguments):
    """A call of the C library."""
    if getattr(LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def mount(source, target, kind, flags):
    """mount(2)"""
    call("mount", source and source.encode(), target.encode(),
         kind and kind.encode(), ctypes.c_ulong(flags), None)


def write(path, text=""):
    """Open for writing; nothing is written but what is harmless."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        if text:
            os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read(path):
    """Open for reading."""
    os.close(os.open(path, os.O_RDONLY))


def become_root():
    """All capabilities, in a user namespace of one's own."""
    uid, gid = os.getuid(), os.getgid()
    call("unshare", NEW_USER | NEW_MOUNTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                       ("gid_map", f"0 {gid} 1")):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)


def forbidden():
    """What must be refused under either profile."""
    for kind in ("proc", "sysfs", "cgroup2", "overlay", "fuse", "ramfs",
                 "mqueue", "binfmt_misc", "devpts", "tmpfs"):
        for place in PLACES + COVERED + ("/dev", "/dev/pts", "/etc", "/"):
            for flags in ALL_FLAGS:
                if kind == "tmpfs" and place in PLACES and flags in MEMORY:
                    continue
                say(f"{kind} on {place}, flags {flags}", mount, kind, place,
                    kind, flags)
    for place in PLACES + COVERED + ("/dev", "/dev/pts", "/"):
        for flags in ALL_FLAGS:
            say(f"tmpfs from /tmp on {place}, flags {flags}", mount, "/tmp",
                place, "tmpfs", flags)
    for place in PLACES + COVERED + ("/dev", "/dev/pts", "/etc", "/"):
        for flags, name in ((BIND, "bind"), (BIND | RECURSIVE, "rbind"),
                            (MOVE, "move"), (SHARED, "share"),
                            (BIND | READ_ONLY, "read-only bind")):
            say(f"{name} /usr on {place}", mount, "/usr", place, None, flags)
        say(f"writable again {place}", mount, None, place, None,
            REMOUNT | BIND)
        say(f"umount {place}", call, "umount2", place.encode(), 2)
    say("pivot_root", call, "syscall", 155, b"/tmp", b"/tmp")
    say("write /proc/sys/kernel/core_pattern", write,
        "/proc/sys/kernel/core_pattern")
    say("write /proc/sys/kernel/hostname", write, "/proc/sys/kernel/hostname",
        "x")
    say("write /proc/sys/vm/drop_caches", write, "/proc/sys/vm/drop_caches")
    say("write /proc/sys/net/ipv4/ip_forward", write,
        "/proc/sys/net/ipv4/ip_forward")
    say("write /proc/sysrq-trigger", write, "/proc/sysrq-trigger")
    say("read /proc/sysrq-trigger", read, "/proc/sysrq-trigger")
    say("read /proc/kcore", read, "/proc/kcore")
    say("write /proc/mtrr", write, "/proc/mtrr")
    say("read /sys/firmware", read, "/sys/firmware/memmap")
    say("read /sys/kernel/security", read, "/sys/kernel/security/lsm")
    say("write /sys/kernel/mm", write, "/sys/kernel/mm/ksm/run")
    say("write /sys/power/state", write, "/sys/power/state")
    say("write the cgroup's limit", write, "/sys/fs/cgroup/memory.max")
    say("be under no profile", write, "/proc/self/attr/apparmor/exec",
        "exec unconfined")
    say("change the profile", write, "/proc/self/attr/apparmor/current",
        "changeprofile unconfined")
    say("AF_ALG", lambda: call("socket", 38, 5, 0))


def steps_of_a_cell():
    """What a cell does, with what it may do it to."""
    say("cell: mounts become private", mount, None, "/", None,
        RECURSIVE | PRIVATE)
    for place in PLACES:
        say(f"cell: tmpfs on {place}", mount, "tmpfs", place, "tmpfs",
            NO_SUID | NO_DEVICES)
    for place in COVERED:
        say(f"cell: a cover for {place}", mount, "tmpfs", "/tmp", "tmpfs",
            FLAGS)
        say(f"cell: read-only, for {place}", mount, None, "/tmp", None,
            REMOUNT | BIND | READ_ONLY | FLAGS)
        say(f"cell: moved to {place}", mount, "/tmp", place, None, MOVE)


try:
    become_root()
    print("cell: a user namespace ok", flush=True)
except OSError as error:
    print("cell: a user namespace", errno.errorcode[error.errno], flush=True)
forbidden()
steps_of_a_cell()
