# SPDX-License-Identifier: MIT
"""attach.py SOCKET: mounts a sandbox's volumes in a cell that has waited
without them (sandbox/broker/attach.h).

It is PID 1 of a container of its own and the only program of ours there: root,
with the rights to mount, without network, without a file of the host's.  It
does what the broker says on the socket at SOCKET, and ends with it.  Nothing
of a volume is opened here but the place where the next one goes, whose path is
fixed; and nothing that runs in a cell can reach it.

The kernel makes a mount that is nowhere yet (fsmount), gives its files the
cell's user (an ID map), and then a child that has entered the cell's mount
namespace puts it in its place (move_mount): no path of the host's ever leads
there.
"""

import ctypes
import errno
import os
import sys

from frames import (ACCESS_WRITE, FRAME_ATTACH, FRAME_ATTACHED, FRAME_READY,
                    TAG_ACCESS, TAG_CODE, TAG_COUNT, TAG_OWNER, TAG_PART,
                    TAG_TEXT, TAG_USER, TAG_WHY, Frame, ProtocolError, frame)
from link import connect, receive

# linux/mount.h, sched.h, fcntl.h; these calls have one number everywhere.
MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, OPENAT2, MOUNT_SETATTR = (
    429, 430, 431, 432, 437, 442)
SET_FLAG, SET_STRING, CREATE = 0, 1, 6
READ_ONLY, NOSUID, NODEV, ID_MAP = 1, 2, 4, 0x00100000
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
HERE, EMPTY_PATH, NO_SYMLINKS = -100, 0x1000, 4
FROM_EMPTY_TO_EMPTY = 0x04 | 0x40
ROOM = 20                       # bytes: one descriptor
TARGETS = "/workspace", "/workspace/.site-packages"
VOLUME, HOST = 1, 2             # what failed: TAG_WHY
# What tells of the volume when it is mounted; and of the volume, or of a cell
# that has ended, when it is put there.  All else is the host's.
DAMAGE = errno.EUCLEAN, errno.EIO, errno.EBADMSG
OF_MOUNT = *DAMAGE, errno.EINVAL
OF_PLACE = *DAMAGE, errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.ESRCH

libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """Which of the two failed, its errno, at what."""


def call(function, *words):
    """A call of the C library's; OSError."""
    result = function(*words)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def system(number, *words):
    return call(libc.syscall, ctypes.c_long(number), *(
        ctypes.c_long(word) if isinstance(word, int) else word
        for word in words))


def structure(*words):
    """So many u64."""
    return (ctypes.c_uint64 * len(words))(*words)


def new_mount(kind, flags, options, read_only):
    """The descriptor of a mount that is nowhere."""
    fs = system(FSOPEN, kind, 1)
    try:
        for name, value in options:
            system(FSCONFIG, fs, SET_STRING, name, value, 0)
        for name in flags:
            system(FSCONFIG, fs, SET_FLAG, name, None, 0)
        system(FSCONFIG, fs, CREATE, None, None, 0)
        return system(FSMOUNT, fs, 1,
                      NOSUID | NODEV | (READ_ONLY if read_only else 0))
    finally:
        os.close(fs)


def of_volume(device, read_only):
    """As docker_run.c has them mounted."""
    return new_mount(b"ext4", (b"ro",) if read_only else
                     (b"discard", b"noinit_itable"),
                     ((b"source", b"/proc/self/fd/%d" % device),), read_only)


def of_nothing(user):
    """Where no packages are there."""
    return new_mount(b"tmpfs", (), ((b"size", b"4k"), (b"mode", b"0755"),
                                    (b"uid", b"%d" % user),
                                    (b"gid", b"%d" % user)), True)


def child(work):
    """Fork; work() is done there, and what it raises is raised here."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            work()
            status = 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise OSError(abs(status), os.strerror(abs(status)))


def users(owner, user):
    """A user namespace in which owner is user: the descriptor."""
    made, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(done[1])
            call(libc.unshare, NEW_USERS)
            os.write(made[1], b"\n")
            os.read(done[0], 1)         # until the other end is closed
        finally:
            os._exit(0)
    try:
        os.close(made[1])
        if not os.read(made[0], 1):
            raise OSError(1, "no user namespace")
        for name in ("uid_map", "gid_map"):
            with open("/proc/%d/%s" % (pid, name), "w") as file:
                file.write("%d %d 1" % (owner, user))
        return os.open("/proc/%d/ns/user" % pid, os.O_RDONLY)
    finally:
        for fd in (made[0], *done):
            os.close(fd)
        os.waitpid(pid, 0)


def give(mount, namespace):
    """Its files are that user's."""
    system(MOUNT_SETATTR, mount, b"", EMPTY_PATH,
           structure(ID_MAP, 0, 0, namespace), 32)


def put(process, mounts):
    """In a child: into the cell, each to its place, the outer one first."""
    call(libc.setns, process, NEW_MOUNTS)
    for path, mount in zip(TARGETS, mounts):
        how = structure(os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, 0,
                        NO_SYMLINKS)
        place = system(OPENAT2, HERE, path.encode(), how, 24)
        system(MOVE_MOUNT, mount, b"", place, b"", FROM_EMPTY_TO_EMPTY)


def attach(head, process, devices):
    """Both volumes, or what stands for packages that are not there."""
    owner, user = head.number(TAG_OWNER), head.number(TAG_USER)
    read_only = head.number(TAG_ACCESS) != ACCESS_WRITE
    mounts, namespace = [], -1
    try:
        try:
            for number, device in enumerate(devices):
                mounts.append(of_nothing(user) if device is None else
                              of_volume(device, number > 0 or read_only))
        except OSError as error:
            raise Failed(VOLUME if error.errno in OF_MOUNT else HOST, error,
                         "mount")
        try:
            namespace = users(owner, user)
            for mount, device in zip(mounts, devices):
                if device is not None:
                    give(mount, namespace)
        except OSError as error:
            raise Failed(HOST, error, "give")
        try:
            child(lambda: put(process, mounts))
        except OSError as error:
            raise Failed(VOLUME if error.errno in OF_PLACE else HOST, error,
                         "attach")
    finally:
        for fd in (*mounts, namespace):
            if fd >= 0:
                os.close(fd)


def serve(sock):
    """One request: a packet for the cell, one for each volume."""
    received = []
    try:
        for part in range(1 + len(TARGETS)):
            packet, fd = receive(sock, ROOM)
            if not packet:
                return False
            received.append(fd)
            piece = Frame(packet)
            if (piece.kind != FRAME_ATTACH or piece.number(TAG_PART) != part or
                    (fd is None and part < len(TARGETS))):
                raise ProtocolError("not a piece of a request")
            head = piece
        why, code, text = 0, 0, ""
        try:
            attach(head, received[0], received[1:])
        except Failed as failed:
            why, error, what = failed.args
            code, text = error.errno, "%s: %s" % (what, error.strerror)
        sock.send(frame(FRAME_ATTACHED, (TAG_COUNT, head.number(TAG_COUNT)),
                        (TAG_CODE, code), (TAG_WHY, why),
                        (TAG_TEXT, text.encode())))
        return True
    finally:
        for fd in received:
            if fd is not None:
                os.close(fd)


def main():
    """READY tells that this kernel and these rights are enough to mount."""
    sock = connect(sys.argv[1])
    os.close(of_nothing(1))
    os.close(users(1, 2))
    sock.send(frame(FRAME_READY))
    while serve(sock):
        pass


main()
