# SPDX-License-Identifier: MIT
"""OP_ARCHIVE: a directory of the workspace as a zip.

First it lists the entries, and refuses a directory that is too large before it
opens a file.  Then it makes the zip in memory, within MAX_BYTES, and sends it
when it is whole.  Nothing is followed and nothing blocks (files.py): what is no
regular file, or cannot be read, is left out and told.  The packages are not in
it.
"""

import os
import stat
import time

from files import (PACKAGES, is_lost_and_found, open_file, send_bytes, split,
                   join, walk)
from frames import (ERROR_TOO_LARGE, FRAME_LEFT_OUT, LEFT_OUT_COUNT,
                    LEFT_OUT_KIND, LEFT_OUT_PATH, LEFT_OUT_UNREADABLE,
                    LIMIT_LEFT_OUT, LIMIT_PATH, TAG_COUNT, TAG_MAX_BYTES,
                    TAG_PATH, TAG_SIZE, TAG_TOTAL, TAG_WHY, Failure, frame)

DEPTH_MAX = 64
PIECE = 1 << 16
READ_MAX = 1 << 28          # bytes of files, which may be sparse
EARLIEST = (1980, 1, 1, 0, 0, 0)    # that a zip can tell
LATEST = 4354819199         # 2107-12-31


class Archive:
    """A zip under way."""

    def __init__(self, root, lease, names, request):
        import io
        import zipfile
        try:
            import zlib  # noqa: F401
            how = zipfile.ZIP_DEFLATED
        except ImportError:
            how = zipfile.ZIP_STORED
        self.info = zipfile.ZipInfo
        self.root = root
        self.lease = lease
        self.names = names
        self.most = request.number(TAG_MAX_BYTES)
        self.count = request.number(TAG_COUNT)
        self.left_out = 0
        self.entries = {}       # name in the zip -> (path, its head)
        self.size = 0           # of their files
        self.read = 0
        self.file = io.BytesIO()
        self.zip = zipfile.ZipFile(self.file, "w", how)
        self.how = how

    def leave_out(self, names, why, size=0):
        """A path that is too long for a frame: a folder above is reported."""
        self.left_out += 1
        while len(join(names)) > LIMIT_PATH:
            names = names[:-1]
        if self.left_out <= LIMIT_LEFT_OUT:
            self.lease.send(frame(FRAME_LEFT_OUT, (TAG_PATH, join(names)),
                                  (TAG_SIZE, size), (TAG_WHY, why)))

    def list_all(self):
        """Walk the tree, a folder's entries by name."""
        folders = [self.names]
        while folders:
            names = folders.pop()
            self.lease.check()
            try:
                fd = walk(self.root, names)
            except OSError:     # its owner has locked it
                if names == self.names:
                    raise
                self.leave_out(names, LEFT_OUT_UNREADABLE)
                continue
            try:
                with os.scandir(fd) as entries:
                    items = sorted(
                        (item.name, item.is_dir(follow_symlinks=False))
                        for item in entries if not is_lost_and_found(item))
                if not items and names != self.names:
                    self.list_entry(names, os.fstat(fd))
                below = []
                for name, is_folder in items:
                    path = names + [name]
                    if path == [PACKAGES]:
                        continue
                    if len(path) > DEPTH_MAX or len(join(path)) > LIMIT_PATH:
                        self.leave_out(path, LEFT_OUT_PATH)
                    elif is_folder:
                        below.append(path)
                    else:
                        self.list_file(path, fd)
            finally:
                os.close(fd)
            folders += reversed(below)

    def list_file(self, names, parent):
        try:
            status = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
        except OSError:
            self.leave_out(names, LEFT_OUT_UNREADABLE)
            return
        if stat.S_ISREG(status.st_mode):
            self.list_entry(names, status)
        else:
            self.leave_out(names, LEFT_OUT_KIND)

    def list_entry(self, names, status):
        """Two names can become one entry: the first name has it."""
        is_file = stat.S_ISREG(status.st_mode)
        size = status.st_size if is_file else 0
        info = self.head(names, status)
        if len(self.entries) >= self.count:
            self.leave_out(names, LEFT_OUT_COUNT, size)
        elif info.filename in self.entries:
            self.leave_out(names, LEFT_OUT_PATH)
        else:
            self.entries[info.filename] = (names, info)
            self.size += size
            if self.size > READ_MAX:
                raise Failure(ERROR_TOO_LARGE, "a zip of it")

    def head(self, names, status):
        """The entry of a path: a name that is no UTF-8 is told with escapes.
        On Windows a backslash would lead out of the folder."""
        name = b"/".join(map(os.fsencode, names[len(self.names):])).decode(
            "utf-8", "backslashreplace").replace("\\", "_")
        when = EARLIEST
        if 315532800 <= status.st_mtime <= LATEST:
            when = time.gmtime(status.st_mtime)[:6]
        info = self.info(name + ("/" if stat.S_ISDIR(status.st_mode) else ""),
                         max(when, EARLIEST))
        info.external_attr = (status.st_mode & 0o170777) << 16  # no setuid
        info.compress_type = self.how
        return info

    def add_all(self):
        for names, info in self.entries.values():
            if info.is_dir():
                self.zip.writestr(info, b"")
            else:
                self.add_file(names, info)

    def add_file(self, names, info):
        try:
            fd, _ = open_file(self.root, names)
        except Failure:
            self.leave_out(names, LEFT_OUT_KIND)
            return
        except OSError:
            self.leave_out(names, LEFT_OUT_UNREADABLE)
            return
        try:
            with self.zip.open(info, "w") as out:
                self.copy(fd, out)
        finally:
            os.close(fd)

    def copy(self, fd, out):
        while True:
            data = os.read(fd, PIECE)
            if not data:
                return
            self.read += len(data)
            out.write(data)
            self.lease.check()
            self.bound()

    def bound(self):
        if self.read > READ_MAX or self.file.tell() > self.most:
            raise Failure(ERROR_TOO_LARGE, "a zip of it")

    def send(self):
        """Send the zip, or nothing where it has no entry."""
        if not self.zip.filelist:
            return
        self.zip.close()
        self.bound()
        name = self.names[-1] if self.names else "files"
        send_bytes(self.lease, os.fsencode(name) + b".zip",
                   self.file.getbuffer())


def send_archive(root, lease, request):
    """Answer OP_ARCHIVE; TOTAL is how many were left out."""
    archive = Archive(root, lease, split(request.data(TAG_PATH, b"")), request)
    try:
        archive.list_all()
        archive.add_all()
        archive.send()
    finally:
        # a zip that is not whole ends without a word
        archive.zip.fp = None
    return ((TAG_TOTAL, archive.left_out),)
