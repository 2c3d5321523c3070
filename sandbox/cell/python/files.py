# SPDX-License-Identifier: MIT
"""Files of the workspace, for the client: list, read, write, remove.

These run in the process that may become the next run (PID 1 has made it for
that), because no other process exists while they do: everything that a run
started is dead before its result is sent.  So nothing can swap a path under
them, and nothing they touch can block.  What earlier runs left behind is
hostile all the same: links, FIFOs, names of any bytes, trees of any depth.
Only who looks beside a run has its code for company, and has but the rights of
that; whatever is swapped under it leads nowhere else, and never blocks.
Hence every path is walked component by component from the workspace's own
descriptor, following nothing.

Names are str in the file system's encoding (surrogateescape); frames carry
their bytes.
"""

import errno
import os
import stat

from frames import (DISK_FULL_BYTES, DISK_FULL_FILES, ENTRY_DIRECTORY,
                    ENTRY_FILE, ENTRY_LINK, ENTRY_OTHER,
                    ERROR_FAILED, ERROR_IS_DIRECTORY, ERROR_NOT_DIRECTORY,
                    ERROR_NOT_EMPTY, ERROR_NOT_FOUND, ERROR_NOT_INSIDE,
                    ERROR_NOT_REGULAR, ERROR_NO_SPACE, ERROR_PERMISSION,
                    ERROR_READ_ONLY, ERROR_REQUEST, ERROR_TOO_LARGE,
                    FRAME_BYTES, FRAME_CHUNK, FRAME_ENTRY, FRAME_FILE,
                    LIMIT_NAME, LIMIT_PATH, PART_CONTENT, TAG_COUNT, TAG_CUT,
                    TAG_DATA, TAG_DISK_FULL, TAG_KIND, TAG_MAX_BYTES,
                    TAG_MTIME, TAG_NAME, TAG_OFFSET, TAG_PART, TAG_PATH,
                    TAG_RECURSIVE, TAG_SIZE, TAG_TOTAL, TAG_USED_BYTES,
                    TAG_USED_FILES, TAG_USED_PACKAGES, Failure, frame, head_of)

PACKAGES = ".site-packages"
# The files of a new workspace (sandbox/broker/workspace.c): ten
# inodes of ext4's own, the mount point, the blocks of that and of the root.
OWN_FILES = 11
OWN_BLOCKS = 2
OWN_PACKAGES = 1        # blocks of the root of the packages' volume

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

CODES = {
    errno.ENOENT: ERROR_NOT_FOUND,
    errno.EISDIR: ERROR_IS_DIRECTORY,
    errno.ENOTDIR: ERROR_NOT_DIRECTORY,
    errno.ELOOP: ERROR_NOT_INSIDE,
    errno.ENAMETOOLONG: ERROR_NOT_INSIDE,
    errno.ENOTEMPTY: ERROR_NOT_EMPTY,
    errno.ENOSPC: ERROR_NO_SPACE,
    errno.EDQUOT: ERROR_NO_SPACE,
    errno.EFBIG: ERROR_TOO_LARGE,
    errno.EACCES: ERROR_PERMISSION,
    errno.EPERM: ERROR_PERMISSION,
    errno.EROFS: ERROR_READ_ONLY,
}


def failure(error):
    """The Failure for an exception; our own faults are reported, too."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, OSError):
        return Failure(CODES.get(error.errno, ERROR_FAILED), str(error))
    return Failure(ERROR_FAILED, repr(error))


# ---- paths ----

def split(path):
    """The components of a path of a client; Failure if it is not inside."""
    if path.startswith(b"/") or b"\0" in path or len(path) > LIMIT_PATH:
        raise Failure(ERROR_NOT_INSIDE, "absolute, too long or with a NUL")
    names = [name for name in path.split(b"/") if name not in (b"", b".")]
    if any(name == b".." or len(name) > LIMIT_NAME for name in names):
        raise Failure(ERROR_NOT_INSIDE, "a component leads out")
    return [os.fsdecode(name) for name in names]


def join(names):
    """The path of components as a client sees it."""
    return os.fsencode("/".join(names))


def kind_of(mode):
    if stat.S_ISREG(mode):
        return ENTRY_FILE
    if stat.S_ISDIR(mode):
        return ENTRY_DIRECTORY
    return ENTRY_LINK if stat.S_ISLNK(mode) else ENTRY_OTHER


def look(name, parent):
    """lstat() of a name in a directory; None when there is no such name."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def refuse_link(name, parent):
    """Failure if name is a symbolic link: it may lead anywhere."""
    status = look(name, parent)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise Failure(ERROR_NOT_INSIDE, "a link on the way")


def enter(name, parent):
    """Open a directory in a directory."""
    try:
        return os.open(name, DIRECTORY, dir_fd=parent)
    except NotADirectoryError:
        refuse_link(name, parent)
        raise


def walk(root, names, make=False):
    """The descriptor of a directory below root, a path or a descriptor.  With
    make, what is missing is made."""
    fd = (os.open(".", DIRECTORY, dir_fd=root) if isinstance(root, int)
          else os.open(root, DIRECTORY))
    try:
        for name in names:
            if make and look(name, fd) is None:
                os.mkdir(name, 0o755, dir_fd=fd)
            fd, parent = enter(name, fd), fd
            os.close(parent)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Parent:
    """with Parent(root, names) as fd: the directory that holds the last name,
    as a descriptor."""

    def __init__(self, root, names, make=False):
        self.fd = walk(root, names[:-1], make)

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)


# ---- operations: each takes (root, lease, request), returns result fields ----

def stat_path(root, lease, request):
    """OP_STAT: one ENTRY; the workspace itself is called "."."""
    names = split(request.data(TAG_PATH, b""))
    if not names:
        status = os.stat(root)
        lease.send(entry(".", status))
        return ()
    with Parent(root, names) as parent:
        lease.send(entry(names[-1], os.stat(names[-1], dir_fd=parent,
                                            follow_symlinks=False)))
    return ()


def entry(name, status):
    return frame(FRAME_ENTRY, (TAG_NAME, os.fsencode(name)),
                 (TAG_KIND, kind_of(status.st_mode)),
                 (TAG_SIZE, status.st_size), (TAG_MTIME, int(status.st_mtime)))


def list_directory(root, lease, request):
    """OP_LIST: a stretch of a directory, directories first, then by name."""
    offset = max(0, request.number(TAG_OFFSET))
    count = max(0, request.number(TAG_COUNT))
    names = split(request.data(TAG_PATH, b""))
    fd = walk(root, names)
    try:
        found = []
        with os.scandir(fd) as entries:
            for item in entries:
                if not (is_lost_and_found(item) or
                        not names and is_unused_packages(item, fd)):
                    found.append((not item.is_dir(follow_symlinks=False),
                                  os.fsencode(item.name)))
        found.sort()
        for _, name in found[offset:offset + count]:
            status = look(name, fd)
            if status is not None:
                lease.send(entry(name, status))
    finally:
        os.close(fd)
    return ((TAG_TOTAL, len(found)),)


def is_lost_and_found(item):
    """Is it ext4's own folder?  It is root's, with mode 0700."""
    return (item.name == "lost+found" and
            item.stat(follow_symlinks=False).st_uid == 0)


def is_unused_packages(item, parent):
    """Is it the packages' mount point, with nothing installed?"""
    if item.name != PACKAGES or not item.is_dir(follow_symlinks=False):
        return False
    try:
        fd = enter(item.name, parent)
    except OSError:         # locked by its owner, who may see that
        return False
    try:
        with os.scandir(fd) as entries:
            return all(map(is_lost_and_found, entries))
    finally:
        os.close(fd)


def read_file(root, lease, request):
    """OP_READ: FILE with the number of bytes that follow; TOTAL in the result
    is the file's whole size."""
    names = split(request.data(TAG_PATH, b""))
    most = request.number(TAG_MAX_BYTES)
    fd, status = open_file(root, names)
    try:
        size = status.st_size
        if size > most and not request.number(TAG_CUT):
            raise Failure(ERROR_TOO_LARGE, "%d bytes" % size, size)
        wanted = min(size, most)
        sent = send_file(lease, fd, join(names), wanted, status)
    finally:
        os.close(fd)
    return ((TAG_TOTAL, size if sent == wanted else sent),)


def open_file(root, names):
    """A regular file for reading, and its status.  Never blocks."""
    if not names:
        raise Failure(ERROR_IS_DIRECTORY, "the workspace itself")
    with Parent(root, names) as parent:
        status = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
        refuse_kind(status.st_mode)
        fd = os.open(names[-1], READ, dir_fd=parent)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):    # it was swapped in between
        os.close(fd)
        refuse_kind(status.st_mode)
    return fd, status


def refuse_kind(mode):
    """Failure for anything but a regular file."""
    kind = kind_of(mode)
    if kind == ENTRY_DIRECTORY:
        raise Failure(ERROR_IS_DIRECTORY, "a directory")
    if kind == ENTRY_LINK:
        raise Failure(ERROR_NOT_INSIDE, "a link")
    if kind == ENTRY_OTHER:
        raise Failure(ERROR_NOT_REGULAR, "neither file nor directory")


def send_file(lease, fd, path, size, status, *more):
    """Send FILE, and exactly size bytes of it; more: fields.  Of a small file
    that a run has cut meanwhile send the rest.  Returns the number of bytes."""
    data = os.read(fd, min(FRAME_CHUNK, size))
    if size <= FRAME_CHUNK:
        size = len(data)
    lease.send(frame(FRAME_FILE, (TAG_PATH, path), (TAG_SIZE, size),
                     (TAG_MTIME, int(status.st_mtime)), *more))
    left = size
    before = frame(FRAME_BYTES, (TAG_PART, PART_CONTENT))
    while left > 0:
        if not data:    # cut, by a run beside us; else the disk is broken
            raise OSError(errno.EIO, "the file is shorter than it was")
        lease.send((before + head_of(TAG_DATA, len(data)), data))
        left -= len(data)
        data = os.read(fd, min(FRAME_CHUNK, left))
    return size


def send_bytes(lease, path, data):
    """Send a file that is in memory."""
    lease.send(frame(FRAME_FILE, (TAG_PATH, path), (TAG_SIZE, len(data))))
    before = frame(FRAME_BYTES, (TAG_PART, PART_CONTENT))
    for at in range(0, len(data), FRAME_CHUNK):
        piece = data[at:at + FRAME_CHUNK]
        lease.send((before + head_of(TAG_DATA, len(piece)), piece))


class Writer:
    """A file that is being received: whole under its name, or not at all.

    The bytes go to a new file beside it, which takes its place in the end.
    """

    def __init__(self, root, path):
        names = split(path)
        if not names:
            raise Failure(ERROR_IS_DIRECTORY, "the workspace itself")
        self.parent = walk(root, names[:-1], make=True)
        self.name = names[-1]
        self.temporary = None
        self.fd = None
        mode = 0o644
        try:
            status = look(self.name, self.parent)
            if status is not None:
                refuse_kind(status.st_mode)
                mode = stat.S_IMODE(status.st_mode)
            temporary = ".il-" + os.urandom(8).hex()
            self.fd = os.open(temporary, CREATE, mode, dir_fd=self.parent)
            self.temporary = temporary
        except BaseException:
            self.close()
            raise

    def write(self, data):
        data = memoryview(data)
        while data:
            data = data[os.write(self.fd, data):]

    def commit(self):
        os.rename(self.temporary, self.name, src_dir_fd=self.parent,
                  dst_dir_fd=self.parent)
        self.temporary = None
        self.close()

    def close(self):
        """Close it; an uncommitted file is removed.  Harmless when repeated."""
        if self.temporary is not None:
            os.unlink(self.temporary, dir_fd=self.parent)
            self.temporary = None
        for fd in (self.fd, self.parent):
            if fd is not None:
                os.close(fd)
        self.fd = self.parent = None


def remove_path(root, lease, request):
    """OP_REMOVE: a file, a link (itself), an empty directory; with RECURSIVE
    any directory.  A mount point (.site-packages) is emptied and stays."""
    names = split(request.data(TAG_PATH, b""))
    if not names:
        raise Failure(ERROR_REQUEST, "the workspace itself stays")
    with Parent(root, names) as parent:
        name = names[-1]
        if request.number(TAG_RECURSIVE):
            remove_all(name, parent, lease)
        elif stat.S_ISDIR(os.stat(name, dir_fd=parent,
                                  follow_symlinks=False).st_mode):
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    raise Failure(ERROR_NOT_EMPTY, "a mount point")
                raise
        else:
            os.unlink(name, dir_fd=parent)
    return ()


def disk(root, own):
    """Result fields for a folder's file system and for the packages' in it; own:
    files and blocks of an empty one."""
    try:
        fs = os.statvfs(root)
    except OSError:
        return ()
    full = (DISK_FULL_BYTES if fs.f_bavail * fs.f_frsize < 65536 else
            DISK_FULL_FILES if fs.f_favail == 0 else None)
    return ((TAG_USED_BYTES,
             max(fs.f_blocks - fs.f_bfree - own[1], 0) * fs.f_frsize),
            (TAG_USED_FILES, max(fs.f_files - fs.f_ffree - own[0], 0)),
            (TAG_DISK_FULL, full),
            (TAG_USED_PACKAGES, used_packages(root)))


def used_packages(root):
    """Return what is used of the file system that is mounted in the workspace,
    in bytes; None: there is none."""
    path = "%s/%s" % (root, PACKAGES)
    if not os.path.ismount(path):
        return None
    fs = os.statvfs(path)
    return max(fs.f_blocks - fs.f_bfree - OWN_PACKAGES, 0) * fs.f_frsize


# ---- removing trees ----

def enter_any(name, parent):
    """Open a directory to empty it, also one that its owner has locked."""
    try:
        return unlocked(enter(name, parent))
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        return enter(name, parent)


def unlocked(fd):
    """Make a directory of ours writable; another user's stays as it is."""
    status = os.fstat(fd)
    if status.st_mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
        os.fchmod(fd, 0o700)
    return fd


def empty(fd, lease=None):
    """Remove everything below a directory, whose descriptor is closed.

    Neither recursion nor a descriptor for each level: a tree may be 10,000
    levels deep.  The way back up is "..", which nobody can move meanwhile.
    Gone when a lease is given and its client has left.
    """
    left = []               # directories still to do, for each level above
    try:
        todo = sweep(fd)
        while True:
            if todo:
                child = enter_any(todo[-1], fd)
                left.append(todo)
                todo = None
            elif left:
                child = os.open("..", DIRECTORY, dir_fd=fd)
            else:
                return
            os.close(fd)
            fd = child
            if todo is None:
                todo = sweep(fd)
            else:
                todo = left.pop()
                remove_directory(todo.pop(), fd)
            if lease is not None:
                lease.check()
    finally:
        os.close(fd)


def unlock(root):
    """Open a root that its owner, who runs this, has locked."""
    status = os.stat(root)
    if status.st_mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
        os.chmod(root, stat.S_IMODE(status.st_mode) | 0o700)


def remove_all(name, parent, lease=None):
    """Remove the entry of that name, with all that is below it."""
    if stat.S_ISDIR(os.stat(name, dir_fd=parent,
                            follow_symlinks=False).st_mode):
        empty(enter_any(name, parent), lease)
        remove_directory(name, parent)
    else:
        os.unlink(name, dir_fd=parent)


def remove_directory(name, parent):
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno != errno.EBUSY:      # a mount point, now empty
            raise


def sweep(fd):
    """Unlink all but the directories in a directory; the names of those."""
    directories = []
    with os.scandir(fd) as entries:
        for item in list(entries):
            if not item.is_dir(follow_symlinks=False):
                os.unlink(item.name, dir_fd=fd)
            elif not is_lost_and_found(item):
                directories.append(item.name)
    return directories
