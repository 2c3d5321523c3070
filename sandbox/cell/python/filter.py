# SPDX-License-Identifier: MIT
"""The system calls of a run in an api cell: a filter on top of the container's.

The container's profile (seccomp-api.json) lets PID 1 make namespaces and
mounts.  What comes after must not: this filter is applied before the first
line of a client is read, and every process inherits it.  It is a program for
the kernel's classic BPF machine, assembled here: at start, once.
"""

import ctypes
import os

ALLOW = 0x7fff0000
ERRNO = 0x00050000
EPERM = ERRNO | 1
ENOSYS = ERRNO | 38
EAFNOSUPPORT = ERRNO | 97

# struct seccomp_data: offsets
NUMBER, ARCH, ARGUMENT, SECOND, THIRD, FOURTH, FIFTH = 0, 4, 16, 24, 32, 40, 48

LOAD, EQUAL, NOT_BELOW, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

NAMESPACES = 0x7e020000     # all of the CLONE_NEW* that clone() takes
AF_NETLINK = 16
SOL_IPV6, FLOW_LABELS = 41, 32
TIOCSETD = 0x5423
# A mount becomes read-only, with no other flag that matters: the last step with
# a privilege before a request is read (jail_narrow()).  Later the kernel refuses
# it, too.
READ_ONLY = 32 | 0x1000 | 1 | 2 | 4
NO_EXEC = 8
# Before that, a detached mount is attached (attach_proc()).  Later the kernel
# refuses that, too.
EMPTY_PATH = 4
X32 = 0x40000000            # numbers from here on: another ABI of x86-64
LEAF = 3                    # calls that are compared one by one

# AUDIT_ARCH_*, and the numbers of calls: (x86_64, aarch64)
MACHINES = ("x86_64", "aarch64")
ARCHITECTURE = (0xc000003e, 0xc00000b7)
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
SETSOCKOPT = (54, 208)
MOUNT = (165, 40)
MOVE_MOUNT = (429, 429)
IOCTL = (16, 29)

REFUSED = {
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "sethostname": (170, 161), "setdomainname": (171, 162),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    # objects that outlive a process, or that all of a user's processes share
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    "inotify_init": (253, 26), "inotify_init1": (294, 26),
    # large, and of no use here
    "bpf": (321, 280), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
}


def statement(code, value):
    return (code, 0, 0, value)


def jump(code, value, yes, no=0):
    """To the instruction `yes` steps further if the test holds, else `no`."""
    return (code, yes, no, value)


def refuse(call, answer):
    return [jump(EQUAL, call, 0, 1), statement(RETURN, answer)]


def refuse_when(call, argument, test, value, answer):
    """The answer to a call whose argument passes the test; else it may be."""
    return [jump(EQUAL, call, 0, 4),
            statement(LOAD, argument),
            jump(test, value, 0, 1),
            statement(RETURN, answer),
            statement(RETURN, ALLOW)]


def judgements(at):
    """{call: instructions that have the answer to it, and let others by}, for
    the at-th of MACHINES."""
    found = {numbers[at]: refuse(numbers[at], EPERM)
             for numbers in REFUSED.values()}
    found.update({
        # Processes and threads, but no namespace.  Where the flags are in
        # memory, no filter can look: libc falls back to clone.
        CLONE3[at]: refuse(CLONE3[at], ENOSYS),
        CLONE[at]: refuse_when(CLONE[at], ARGUMENT, ANY_BIT, NAMESPACES,
                               EPERM),
        # A lease of a flow label outlives its socket by a minute.
        SETSOCKOPT[at]: [
            jump(EQUAL, SETSOCKOPT[at], 0, 6),
            statement(LOAD, SECOND),
            jump(EQUAL, SOL_IPV6, 0, 3),
            statement(LOAD, THIRD),
            jump(EQUAL, FLOW_LABELS, 0, 1),
            statement(RETURN, EPERM),
            statement(RETURN, ALLOW)],
        MOUNT[at]: [
            jump(EQUAL, MOUNT[at], 0, 5),
            statement(LOAD, FOURTH),
            jump(EQUAL, READ_ONLY, 2),
            jump(EQUAL, READ_ONLY | NO_EXEC, 1),
            statement(RETURN, EPERM),
            statement(RETURN, ALLOW)],
        MOVE_MOUNT[at]: [
            jump(EQUAL, MOVE_MOUNT[at], 0, 4),
            statement(LOAD, FIFTH),
            jump(EQUAL, EMPTY_PATH, 1),
            statement(RETURN, EPERM),
            statement(RETURN, ALLOW)],
        # A line discipline is a module that the host would load.
        IOCTL[at]: refuse_when(IOCTL[at], SECOND, EQUAL, TIOCSETD, EPERM),
        # The counters of the loopback device tell of earlier runs.
        SOCKET[at]: refuse_when(SOCKET[at], ARGUMENT, EQUAL, AF_NETLINK,
                                EAFNOSUPPORT)})
    return found


def search(calls, found):
    """Instructions that find a call among these (sorted), or allow it.  The
    kernel goes through them for each call there is when a run begins: so the
    way is short."""
    if len(calls) <= LEAF:
        return [line for call in calls for line in found[call]] + [
            statement(RETURN, ALLOW)]
    half = len(calls) // 2
    below = search(calls[:half], found)
    return [jump(NOT_BELOW, calls[half], len(below)), *below,
            *search(calls[half:], found)]


def program(machine):
    """The filter's instructions for one of MACHINES."""
    at = MACHINES.index(machine)
    found = judgements(at)
    return [
        statement(LOAD, ARCH),
        jump(EQUAL, ARCHITECTURE[at], 1),
        statement(RETURN, EPERM),
        statement(LOAD, NUMBER),
        jump(NOT_BELOW, X32, 0, 1),
        statement(RETURN, EPERM),
        *search(sorted(found), found),
    ]


class Filter:
    """The filter of this machine, ready to be applied (sandbox/cell/supervisor)."""

    def __init__(self):
        """ValueError on a machine that it is not known for."""
        code = program(os.uname().machine)
        self.code = ctypes.create_string_buffer(b"".join(
            operation.to_bytes(2, "little") + bytes((yes, no)) +
            value.to_bytes(4, "little")
            for operation, yes, no, value in code))
        # struct sock_fprog: how many, and where
        self.head = ctypes.create_string_buffer(
            len(code).to_bytes(8, "little") +
            ctypes.addressof(self.code).to_bytes(8, "little"))
        self.address = ctypes.addressof(self.head)
