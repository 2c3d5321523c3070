"""The supervisor of an api cell, as the interpreter sees it: libsupervisor.so, which is
sandbox/cell/supervisor (supervisor.h says what each function does), and what the process of
a run tells it.
"""

import ctypes
import marshal
import os

from files import unlock
from frames import (FRAME_REQUEST, TAG_COLLECT_BYTES, TAG_COLLECT_FILES,
                    TAG_COLLECT_HOW, TAG_COLLECT_MS, TAG_COLLECT_TOTAL, Frame,
                    frame)
from harvest import Harvest
from link import Lease
from shared import SUPERVISOR_DONE as DONE
from shared import SUPERVISOR_FAST as FAST
from shared import SUPERVISOR_FOLDERS as FOLDERS
from shared import SUPERVISOR_HARVEST as HARVEST
from shared import SUPERVISOR_ID as RUN_ID      # uid and gid in a jail
from shared import supervisor, supervisor_fast
from shared import supervisor_mount as Mount
from shared import supervisor_plan as Plan

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "libsupervisor.so")
WORDS = supervisor_fast.words.offset
ENV = supervisor_fast.env.offset

COLLECT = (("files", TAG_COLLECT_FILES), ("bytes", TAG_COLLECT_BYTES),
           ("total", TAG_COLLECT_TOTAL), ("how", TAG_COLLECT_HOW),
           ("ms", TAG_COLLECT_MS))
HOOKS = {"before_fork": "PyOS_BeforeFork", "in_parent": "PyOS_AfterFork_Parent",
         "in_child": "PyOS_AfterFork_Child"}
# As Pipes calls them: "in" is no name in Python.
STREAMS = {"in": "stdin", "out": "stdout", "err": "stderr"}


class Shared(ctypes.Structure):
    """struct supervisor."""

    _fields_ = [(STREAMS.get(name, name), kind)
                for name, kind in supervisor._fields_]


def load(path):
    """The library at a path, or a copy of it in memory where that file system
    is one that nothing may be executed from: /run, on Debian 13.
    """
    # PyDLL: who forks must not let go of the interpreter's lock.
    try:
        return ctypes.PyDLL(path)
    except OSError:
        copy = os.memfd_create("libsupervisor.so", os.MFD_CLOEXEC)
        try:
            with open(path, "rb", 0) as file:
                os.write(copy, file.read())
            return ctypes.PyDLL("/proc/self/fd/%d" % copy)
        finally:
            os.close(copy)


class Supervisor:
    """libsupervisor.so's functions, and the structure that they share with us."""

    def __init__(self, control, ooms, mounts, filter_head):
        """control: the connection to the broker; ooms: descriptor of the
        counter of memory kills, or None; mounts: (path, flags, options) of
        each file system that a jail gets anew."""
        self.library = load(LIBRARY)
        self.library.supervisor_size.restype = ctypes.c_size_t
        if self.library.supervisor_size() != ctypes.sizeof(Shared):
            raise OSError(0, "libsupervisor.so is of another version")
        # struct supervisor_fast, and not by ctypes: for a run that would mean to
        # copy a hundred pages.
        self.text = memoryview((ctypes.c_ubyte * ctypes.sizeof(
            supervisor_fast)).in_dll(self.library, "supervisor_fast")).cast("B")
        self.control = control
        self.shared = shared = Shared()
        shared.mounts = (Mount * len(mounts))(*(
            (path.encode(), options.encode(), flags)
            for path, flags, options in mounts))
        shared.mount_count = len(mounts)
        shared.filter = filter_head
        for name, hook in HOOKS.items():
            setattr(shared, name, ctypes.cast(getattr(
                ctypes.pythonapi, hook), ctypes.c_void_p))
        shared.uid, shared.gid = os.getuid(), os.getgid()
        shared.control = control.fd
        shared.ooms = -1 if ooms is None else ooms
        shared.proc = os.open("/proc",
                              os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in ("pids", "channel", "stdin", "stdout", "stderr", "feed",
                     "file", "lease", "folder"):
            setattr(shared, name, -1)

    def call(self, name, *args):
        """The role that supervisor_NAME() returns; OSError when it fails."""
        role = getattr(self.library, "supervisor_" + name)(
            ctypes.byref(self.shared), *args)
        if role < 0:
            step, _, code = self.shared.why.decode().rpartition(" ")
            raise OSError(int(code), step)
        return role

    def fast(self):
        """In a run that has a usual request: (its words, its environment)."""
        text = self.text
        words, env = (int.from_bytes(text[at:at + 8], "little")
                      for at in (0, 8))
        return (text[WORDS:WORDS + words - 1].tobytes().split(b"\0"), dict([
            entry.split(b"=", 1) for entry in text[
                ENV:ENV + env - 1].tobytes().split(b"\0")]))

    def imagine(self, words, env):
        """Make usual() return these, each with a NUL behind it."""
        for at, data in ((WORDS, words), (ENV, env)):
            self.text[at:at + len(data)] = data
        self.text[:WORDS] = b"".join(len(data).to_bytes(8, "little")
                                  for data in (words, env))

    def lease(self):
        """In the process of any other run: its lease, with what was received
        of the request.  The lease has come from the broker itself.  The supervisor
        could not always send it on: how many descriptors may be under way is
        counted by user, which is one for all code in the cell.
        """
        shared = self.shared
        return Lease(shared.lease, shared.channel, [
            ctypes.string_at(shared.packets[i], shared.packet_len[i])
            for i in range(shared.packet_count)])

    def give(self, stdin, notes):
        """In the run's process: (bytes of standard input that wait in the
        file, of the notes behind them)."""
        sent = 0
        try:
            if stdin:
                sent = os.write(self.shared.feed, stdin)
        except BlockingIOError:
            pass
        rest = memoryview(stdin)[sent:]
        for data in (rest, memoryview(notes)):
            while data:
                data = data[os.write(self.shared.file, data):]
        return len(rest), len(notes)

    def tell(self, **plan):
        """From here on this process is held to its limits."""
        os.write(self.shared.channel, bytes(Plan(**{
            name: min(value, 1 << 62) for name, value in plan.items()})))

    def send_files(self):
        """In the child of a HARVEST: what the run has left, and its result."""
        self.call("surrender", 1)
        shared = self.shared
        lease = Lease(shared.lease, self.control.fd)
        request = Frame(frame(FRAME_REQUEST, *(
            (tag, getattr(shared.plan, name)) for name, tag in COLLECT)))
        notes = os.pread(shared.file, shared.plan.notes, shared.plan.input)
        unlock(shared.folder)
        staged, skip = marshal.loads(notes) if notes else ({}, None)
        harvest = Harvest(shared.folder, request, staged, skip)
        fields = harvest.send(lease)
        lease.send(bytes(shared.result[:shared.result_len]) +
                   frame(0, *fields)[1:])
