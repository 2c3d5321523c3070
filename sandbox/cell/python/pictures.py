# SPDX-License-Identifier: MIT
"""Pictures that a run displays: files beside its inline source, which is no
part of the workspace.  harvest.py sends them when the run is over, whatever is
in them by then: who runs could write there without us.  For an API's run they
are files of the workspace, like any other.

These functions are the run's: what goes wrong is told to its user.
"""

import atexit
import io
import os
import sys

# Where they are, and how their names begin: display.py says so.
FOLDER = BEGINNING = ""

MOST = 10               # in one answer
PIXELS_MAX = 16000000   # 64 MB, and twice that while matplotlib saves them

taken = 0               # pictures of this process, shown or not
before = 0              # number of the last one of an earlier run
more = 0                # that came after the last one


def count_on():
    """Pictures of earlier runs are still there and keep their names: count on."""
    global before
    for name in os.listdir(FOLDER):
        digits = name[len(BEGINNING):].partition(".")[0]
        if name.startswith(BEGINNING) and digits.isdecimal():
            before = max(before, int(digits[:9]))


class NoRoom(Exception):
    """The picture is larger than what is left for pictures."""


class Sink(io.BytesIO):
    """The file that a picture is written to, in memory."""

    def __init__(self, room):
        io.BytesIO.__init__(self)
        self.room = room

    def write(self, data):
        if self.tell() + len(data) > self.room:
            raise NoRoom
        return io.BytesIO.write(self, data)


def show(write, ending, width=0, height=0):
    """A picture of so many pixels, if that is known: write(file) makes it."""
    global taken, more
    if taken >= MOST:
        if not more:
            atexit.register(tell_more)
        more += 1
        return
    taken += 1
    if width * height > PIXELS_MAX:
        tell("has %d x %d pixels, more than %d million" % (
            width, height, PIXELS_MAX // 1000000))
        return
    status = os.statvfs(FOLDER)
    sink = Sink(status.f_bavail * status.f_frsize)
    try:
        write(sink)
    except NoRoom:
        tell("is too large")
        return
    try:
        save(sink.getbuffer(), ending)
    except OSError as error:
        tell("has no place (%s)" % error.strerror)


def save(data, ending):
    """Whole or not at all, under the next name that is free: a process and
    those that it has forked count alike."""
    global taken
    while True:
        path = "%s/%s%d.%s" % (FOLDER, BEGINNING, before + taken, ending)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL |
                         os.O_CLOEXEC, 0o600)
            break
        except FileExistsError:
            taken += 1
    try:
        while data:
            data = data[os.write(fd, data):]
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def end_of_run():
    """The interpreter is kept: the next run has an answer of its own."""
    global taken, more
    atexit.unregister(tell_more)
    if more:
        tell_more()
    taken = more = 0


def tell(what):
    print("Picture %d %s: it is not shown." % (taken, what), file=sys.stderr)


def tell_more():
    print("%d more picture%s not shown: an answer has %d at most." % (
        more, " is" if more == 1 else "s are", MOST), file=sys.stderr)
