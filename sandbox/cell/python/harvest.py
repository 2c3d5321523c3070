# SPDX-License-Identifier: MIT
"""The files that a run leaves, and the files that it was given.

Everything in the folder of an API's run was staged by the client or made by the
run.  What counts as made is said by the request (frame.h, enum collect_how).
Neither a mode nor a name hides a file, unless the request says so: what is not
sent is told.

Of a person's run, what has changed is what two looks tell apart (Changes).  The
pictures that it has displayed (pictures.py) go before that: they are lost else.
"""

import os
import stat
import time

from _blake2 import blake2b

from files import READ, Writer, enter_any, join, send_file, unlock, walk
from frames import (COLLECT_BYTES, COLLECT_GONE, COLLECT_LINKS, COLLECT_MTIME,
                    COLLECT_NO_DOT, COLLECT_NO_UNDERSCORE, ERROR_FAILED,
                    FRAME_LEFT_OUT, LEFT_OUT_COUNT, LEFT_OUT_GONE,
                    LEFT_OUT_KIND, LEFT_OUT_PATH, LEFT_OUT_SIZE, LEFT_OUT_TIME,
                    LEFT_OUT_TOTAL, LEFT_OUT_UNREADABLE, LIMIT_LEFT_OUT,
                    LIMIT_LEFT_OUT_TAKEN, LIMIT_PATH, TAG_ALWAYS, TAG_COLLECT_BYTES, TAG_COLLECT_FILES,
                    TAG_COLLECT_HOW, TAG_COLLECT_MS, TAG_COLLECT_TOTAL,
                    TAG_CUT, TAG_DISPLAYED, TAG_MODE, TAG_MTIME, TAG_PATH,
                    TAG_SIZE, TAG_TOTAL, TAG_WHY, Failure, frame)
from shared import SUPERVISOR_CODE, SUPERVISOR_LISTING_CUT, SUPERVISOR_PICTURE

IMAGES = (b".png", b".jpg", b".jpeg", b".gif", b".webp")
DEPTH_MAX = 64
PIECE = 1 << 16
DEFAULT_MS = 5000
MARGIN_NS = 10000000


class Staged(Writer):
    """A file of the client's on its way in.  When it is there it is noted in
    staged: {path: (mark, digest, send it in any case)}."""

    def __init__(self, root, path, head, staged, how):
        Writer.__init__(self, root, path)
        self.path = path
        self.head = head
        self.staged = staged
        self.digest = blake2b() if how & COLLECT_BYTES else None

    def write(self, data):
        Writer.write(self, data)
        if self.digest is not None:
            self.digest.update(data)

    def commit(self):
        os.fchmod(self.fd, self.head.number(TAG_MODE, 0o644) & 0o777)
        if self.head.data(TAG_MTIME) is not None:
            time_s = self.head.number(TAG_MTIME)
            os.utime(self.fd, (time_s, time_s))
        names = [name for name in self.path.split(b"/")
                 if name not in (b"", b".")]
        fd = os.dup(self.fd)
        try:
            Writer.commit(self)
            self.staged[b"/".join(names)] = (
                mark_of(os.fstat(fd)),
                self.digest.digest() if self.digest is not None else None,
                self.head.number(TAG_ALWAYS) != 0)
        finally:
            os.close(fd)


class Harvest:
    """The files that are sent from one folder, after its run is dead."""

    def __init__(self, root, request, staged, skip, since=0):
        """skip: the path of a file that is never sent.  since: a file whose
        status changed before that time is not sent either."""
        self.root = root
        self.staged = staged
        self.skip = skip
        self.since = since
        self.how = request.number(TAG_COLLECT_HOW)
        self.files = request.number(TAG_COLLECT_FILES)
        self.bytes = request.number(TAG_COLLECT_BYTES)
        self.total = request.number(TAG_COLLECT_TOTAL)
        self.time = request.number(TAG_COLLECT_MS) or DEFAULT_MS
        self.cut = None         # 1: there may be more than we have seen
        self.left_out = 0
        self.more = ()          # fields that each frame of the moment has
        self.last = None        # of those that are not told

    def send(self, lease):
        """FILEs and LEFT_OUTs, by path; returns result fields."""
        if self.files <= 0:
            return ()
        self.deadline = time.monotonic_ns() + self.time * 1000000
        self.unlock()
        self.send_pictures(lease)
        found = self.in_order(self.scan(lease))
        sent = 0
        for path, mark in found:
            if mark is None:
                self.leave_out(lease, path, 0, LEFT_OUT_KIND)
                continue
            if not self.is_made(path, mark):
                continue
            sent += 1
            self.offer(lease, path, mark[1])
        if self.how & COLLECT_GONE and not self.cut:
            self.tell_gone(lease, {path for path, _ in found})
        return ((TAG_TOTAL, sent), (TAG_CUT, self.cut))

    def tell_gone(self, lease, found):
        """Report staged files that are missing; all others were reported."""
        gone = sorted(path for path in self.staged
                      if path not in found and path != self.skip)
        for path in gone[:LIMIT_LEFT_OUT_TAKEN - LIMIT_LEFT_OUT]:
            lease.send(frame(FRAME_LEFT_OUT, (TAG_PATH, path), (TAG_SIZE, 0),
                             (TAG_WHY, LEFT_OUT_GONE)))

    def unlock(self):
        unlock(self.root)

    def send_pictures(self, lease):
        """Send the pictures of a run: a run of an API has none."""

    def offer(self, lease, path, size):
        """Send a file, or report that it is not sent."""
        why = self.send_one(lease, path, size)
        if why:
            self.leave_out(lease, path, size, why)

    def leave_out(self, lease, path, size, why):
        """A path that is too long for a frame: a folder above is reported."""
        self.left_out += 1
        while len(path) > LIMIT_PATH:
            path = path[:path.rindex(b"/")]
        if self.left_out <= LIMIT_LEFT_OUT:
            lease.send(frame(FRAME_LEFT_OUT, (TAG_PATH, path),
                             (TAG_SIZE, size), (TAG_WHY, why), *self.more))
        else:
            self.cut = 1
            self.last = path, size, why

    def in_order(self, found):
        return sorted(found)

    def is_late(self):
        return time.monotonic_ns() >= self.deadline

    # ---- listing ----

    def scan(self, lease):
        """Every file that a request of this kind asks for: (path, mark).  The
        mark of what is no regular file is None."""
        folders = [[]]
        while folders:
            names = folders.pop()
            lease.check()
            if self.is_late() and names:
                self.leave_out(lease, join(names), 0, LEFT_OUT_TIME)
                self.cut = 1
                return
            try:
                fd = self.enter(names)
            except OSError:     # not ours: the run cannot have written there
                continue
            try:
                with os.scandir(fd) as entries:
                    for item in entries:
                        path = names + [item.name]
                        if item.is_dir(follow_symlinks=False):
                            if not self.is_hidden(item.name, True):
                                self.go_down(lease, folders, path)
                        elif not self.is_hidden(item.name, False):
                            yield from self.file(item, path)
            finally:
                os.close(fd)

    def enter(self, names):
        """A folder, also one that its owner has locked."""
        fd = walk(self.root, names[:-1])
        if not names:
            return fd
        try:
            return enter_any(names[-1], fd)
        finally:
            os.close(fd)

    def go_down(self, lease, folders, path):
        if len(path) > DEPTH_MAX or len(join(path)) > LIMIT_PATH:
            self.leave_out(lease, join(path), 0, LEFT_OUT_PATH)
        else:
            folders.append(path)

    def is_hidden(self, name, is_folder):
        return (self.how & COLLECT_NO_DOT and name.startswith(".") or
                self.how & COLLECT_NO_UNDERSCORE and not is_folder and
                name.startswith("_"))

    def file(self, item, path):
        follow = self.how & COLLECT_LINKS != 0
        try:
            status = item.stat(follow_symlinks=follow)
        except OSError:         # a link into nowhere
            status = None
        if status is not None and status.st_ctime_ns < self.since:
            return
        if status is None or not stat.S_ISREG(status.st_mode):
            yield join(path), None
        elif join(path) != self.skip:
            yield join(path), mark_of(status)

    # ---- sending ----

    def is_made(self, path, now):
        if path not in self.staged:
            return True
        mark, digest, always = self.staged[path]
        if always:
            return True
        if self.how & COLLECT_BYTES:
            return now[1] != mark[1] or self.digest(path) != digest
        if self.how & COLLECT_MTIME:
            return now[2] != mark[2]
        return now != mark

    def digest(self, path):
        """The digest of the present content; None: it cannot be read."""
        digest = blake2b()
        try:
            fd = self.open(path)
        except OSError:
            return None
        try:
            while True:
                data = os.read(fd, PIECE)
                if not data:
                    return digest.digest()
                digest.update(data)
        finally:
            os.close(fd)

    def open(self, path):
        """A file for reading, also one that its owner has locked."""
        names = os.fsdecode(path).split("/")
        flags = READ & ~os.O_NOFOLLOW if self.how & COLLECT_LINKS else READ
        parent = walk(self.root, names[:-1])
        try:
            try:
                return os.open(names[-1], flags, dir_fd=parent)
            except PermissionError:
                os.chmod(names[-1], 0o600, dir_fd=parent)
                return os.open(names[-1], flags, dir_fd=parent)
        finally:
            os.close(parent)

    def send_one(self, lease, path, size):
        """Send a file, or report the reason why not (LEFT_OUT_*)."""
        if len(path) > LIMIT_PATH:
            return LEFT_OUT_PATH
        if size > self.bytes:
            return LEFT_OUT_SIZE
        if self.files == 0:
            return LEFT_OUT_COUNT
        if size > self.total:
            return LEFT_OUT_TOTAL
        if self.is_late():
            return LEFT_OUT_TIME
        try:
            fd = self.open(path)
        except (Failure, OSError):
            return LEFT_OUT_UNREADABLE
        try:
            self.files -= 1
            self.total -= size
            send_file(lease, fd, path, size, os.fstat(fd), *self.more)
        finally:
            os.close(fd)
        return 0


def mark_of(status):
    return (status.st_ino, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns)


class Changes(Harvest):
    """The files that are sent from a person's folder: regular files below the
    folder that the run began in, without names that begin with a dot (caches,
    settings, packages) and without __pycache__.  Locked folders stay locked."""

    def __init__(self, root, request, notes):
        """notes: of two listings (../supervisor/fast_path.h)."""
        self.began, before, self.whole, at = take_look(notes, 0)
        Harvest.__init__(self, root, request, before, None)
        self.found = take_look(notes, at)[1]

    def send(self, lease):
        """The last file beyond the limit is reported, too: the client finds the
        folder of all of them by that."""
        fields = Harvest.send(self, lease)
        if self.last is not None:
            path, size, why = self.last
            lease.send(frame(FRAME_LEFT_OUT, (TAG_PATH, path),
                             (TAG_SIZE, size), (TAG_WHY, why)))
        return fields[:1]

    def in_order(self, found):
        """Images first: all of them are shown, as far as there is room."""
        return sorted(found, key=lambda one: (
            not one[0].lower().endswith(IMAGES), one[0]))

    def send_pictures(self, lease):
        folder, self.root = self.root, SUPERVISOR_CODE
        self.more = ((TAG_DISPLAYED, 1),)
        for path, size in list_pictures():
            self.offer(lease, path, size)
        self.root, self.more = folder, ()

    def unlock(self):
        pass

    def is_late(self):
        return False

    def scan(self, lease):
        return self.found.items()

    def is_made(self, path, mark):
        if path in self.staged:
            return self.staged[path] != mark
        return self.whole or mark[3] >= self.began - MARGIN_NS

    def open(self, path):
        names = os.fsdecode(path).split("/")
        parent = walk(self.root, names[:-1])
        try:
            return os.open(names[-1], READ, dir_fd=parent)
        finally:
            os.close(parent)


def list_pictures():
    """(name, size) of each, in the order of their numbers.  They lie beside
    inline source, and a run may have put anything there: regular files go."""
    found = []
    unlock(SUPERVISOR_CODE)
    with os.scandir(SUPERVISOR_CODE) as entries:
        for item in entries:
            if (item.name.startswith(SUPERVISOR_PICTURE) and
                    item.is_file(follow_symlinks=False)):
                found.append((os.fsencode(item.name), item.stat(
                    follow_symlinks=False).st_size))
    return sorted(found, key=lambda one: (len(one[0]), one[0]))


def take_look(notes, at):
    """(when it began, {path: mark}, are those all?, where it ends)."""
    began, at = take_number(notes, at, 8)
    length, at = take_number(notes, at, 2)
    at += length            # the path of the folder
    found = {}
    while True:
        length, at = take_number(notes, at, 2)
        if length in (0, SUPERVISOR_LISTING_CUT):
            return began, found, length == 0, at
        path, at = notes[at:at + length], at + length
        found[path] = tuple(take_number(notes, at + i, 8)[0]
                            for i in range(0, 32, 8))
        at += 32


def take_number(notes, at, size):
    if at + size > len(notes):
        raise Failure(ERROR_FAILED, "a look at the folder has failed")
    return int.from_bytes(notes[at:at + size], "little"), at + size
