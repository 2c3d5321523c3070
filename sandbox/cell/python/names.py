# SPDX-License-Identifier: MIT
"""OP_NAMES: what there is in the workspace, for who completes a half-typed path.

The nearest first, as far as the client's limits and the time go.  What is below
a directory with a dot before its name, packages too, and in __pycache__, nobody
types.
"""

import os
import time

from files import (is_lost_and_found, is_unused_packages, join, walk)
from frames import (FRAME_CHUNK, FRAME_OUTPUT, TAG_COUNT, TAG_DATA,
                    TAG_MAX_BYTES, TAG_OUTPUT_MAX, TAG_STREAM, Failure, frame)

# To look for them: the next lease of the sandbox waits for that.
SECONDS = 0.05
HIDDEN = "__pycache__"


class Told:
    """A text for the client, within what it takes."""

    def __init__(self, request):
        self.left = request.number(TAG_COUNT)
        self.room = request.number(TAG_OUTPUT_MAX)
        self.text = bytearray()

    def add(self, letter, name):
        """False when it does not fit any more."""
        if len(self.text) + len(name) + 2 > self.room:
            return False
        self.text += letter + name + b"\0"
        return True

    def add_counted(self, letter, name):
        if self.left <= 0 or not self.add(letter, name):
            return False
        self.left -= 1
        return True

    def send(self, lease):
        for at in range(0, len(self.text), FRAME_CHUNK):
            lease.send(frame(FRAME_OUTPUT, (TAG_STREAM, 1),
                             (TAG_DATA, bytes(self.text[at:at + FRAME_CHUNK]))))


def send_names(root, lease, request):
    """As every operation: sends its events, returns more of the result."""
    told = Told(request)
    look_around(root, told, request.number(TAG_MAX_BYTES),
                time.process_time() + SECONDS)
    told.send(lease)
    return ()


def look_around(root, told, most, until):
    """Level by level."""
    level = [()]
    while level:
        deeper = []
        for folder in level:
            for name, is_folder in entries(root, folder, until):
                names = (*folder, name)
                path = join(names)
                if len(path) > most:
                    continue
                if not told.add_counted(b"d" if is_folder else b"f", path):
                    return
                if is_folder and not name.startswith("."):
                    deeper.append(names)
        level = deeper


def entries(root, folder, until):
    """(name, is it a directory?) of all in a folder, in order; as many as there
    is time for, and none of one that its owner has locked."""
    found = []
    try:
        fd = walk(root, folder)
    except (Failure, OSError):
        return found
    try:
        with os.scandir(fd) as all_of_it:
            for item in all_of_it:
                if time.process_time() > until:
                    break
                if (item.name == HIDDEN or is_lost_and_found(item) or
                        not folder and is_unused_packages(item, fd)):
                    continue
                found.append((item.name, item.is_dir(follow_symlinks=False)))
    except OSError:
        pass
    finally:
        os.close(fd)
    return sorted(found)
