"""Files that a run made or changed: found by comparing two looks at a folder.

Counted is what a person would call a result: regular files below the folder
that the run started in, at any depth, without names that begin with a dot
(caches, settings, .site-packages; at any depth) and without __pycache__.
"""

import os
import time

from files import READ, join, send_file, walk
from frames import (FRAME_LEFT_OUT, LEFT_OUT_COUNT, LEFT_OUT_SIZE,
                    LEFT_OUT_TOTAL, LEFT_OUT_UNREADABLE, LIMIT_LEFT_OUT,
                    LIMIT_PATH, TAG_COLLECT_BYTES,
                    TAG_COLLECT_FILES, TAG_COLLECT_TOTAL, TAG_PATH, TAG_SIZE,
                    TAG_TOTAL, TAG_WHY, Failure, frame)

SCAN_MAX = 10000        # entries that one look takes in
DEPTH_MAX = 32


class Collector:
    """Made before a run; sends what has changed after it."""

    def __init__(self, root, folder, request):
        """Take the first look at folder, names below root; not when the
        request wants no files."""
        self.root = root
        self.folder = folder
        self.files = request.number(TAG_COLLECT_FILES)
        self.bytes = request.number(TAG_COLLECT_BYTES)
        self.total = request.number(TAG_COLLECT_TOTAL)
        self.before = {}
        if self.files > 0:
            # The clock that stamps files.  It decides about what the first
            # look had no room for.
            self.began = time.clock_gettime_ns(time.CLOCK_REALTIME) - 10000000
            self.cut = False
            for path, mark, _ in self.scan():
                self.before[path] = mark
            self.whole = not self.cut

    def send(self, lease):
        """FILEs and LEFT_OUTs, by path; returns result fields."""
        if self.files <= 0:
            return ()
        changed = sorted((path, size) for path, mark, size in self.scan()
                         if self.is_new(path, mark))
        left_out = 0
        for path, size in changed:
            why = self.send_one(lease, path, size)
            if why and left_out < LIMIT_LEFT_OUT:
                left_out += 1
                lease.send(frame(FRAME_LEFT_OUT, (TAG_PATH, path),
                                 (TAG_SIZE, size), (TAG_WHY, why)))
        return ((TAG_TOTAL, len(changed)),)

    def is_new(self, path, mark):
        if path in self.before:
            return self.before[path] != mark
        return self.whole or mark[-1] >= self.began

    def send_one(self, lease, path, size):
        """Send a file, or say why not (LEFT_OUT_*)."""
        if size > self.bytes:
            return LEFT_OUT_SIZE
        if self.files == 0:
            return LEFT_OUT_COUNT
        if size > self.total:
            return LEFT_OUT_TOTAL
        names = os.fsdecode(path).split("/")
        try:
            parent = walk(self.root, names[:-1])
            try:
                fd = os.open(names[-1], READ, dir_fd=parent)
            finally:
                os.close(parent)
        except (Failure, OSError):
            return LEFT_OUT_UNREADABLE
        try:
            self.files -= 1
            self.total -= size
            send_file(lease, fd, path, size, os.fstat(fd))
        finally:
            os.close(fd)
        return 0

    def scan(self):
        """Every regular file: (path, mark, size).  Equal marks, same file."""
        folders = [self.folder]
        room = SCAN_MAX
        while folders:
            names = folders.pop()
            try:
                fd = walk(self.root, names)
            except (Failure, OSError):  # the run has removed or locked it
                continue
            try:
                for item in os.scandir(fd):
                    room -= 1
                    if room < 0:
                        self.cut = True
                        return
                    path = names + [item.name]
                    if item.name.startswith(".") or len(join(path)) > LIMIT_PATH:
                        continue
                    if is_folder(item) and len(path) < DEPTH_MAX:
                        folders.append(path)
                    elif item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        yield join(path), mark_of(status), status.st_size
            finally:
                os.close(fd)


def is_folder(item):
    return (item.is_dir(follow_symlinks=False) and item.name != "__pycache__")


def mark_of(status):
    return (status.st_ino, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns)
