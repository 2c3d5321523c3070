# SPDX-License-Identifier: MIT
"""The supervisor of a cell, as the interpreter sees it: libsupervisor.so, which
is sandbox/cell/supervisor (supervisor.h says what each function does), and what
the process of a run tells it.
"""

import ctypes
import os

from files import disk, failure
from frames import (FRAME_REQUEST, FRAME_RESULT, TAG_COLLECT_BYTES,
                    TAG_COLLECT_FILES, TAG_COLLECT_HOW, TAG_COLLECT_MS,
                    TAG_COLLECT_TOTAL, Frame, frame)
from kept import pack
from link import Gone, Lease
from shared import SUPERVISOR_AHEAD as AHEAD
from shared import SUPERVISOR_ALWAYS as ALWAYS
from shared import SUPERVISOR_BESIDE as BESIDE
from shared import SUPERVISOR_COMMAND as COMMAND
from shared import SUPERVISOR_DONE as DONE
from shared import SUPERVISOR_FAST as FAST
from shared import SUPERVISOR_FOLDERS as FOLDERS
from shared import SUPERVISOR_HARVEST as HARVEST
from shared import SUPERVISOR_ID as RUN_ID      # uid and gid in a jail
from shared import SUPERVISOR_IF_ANY as IF_ANY
from shared import SUPERVISOR_IF_CHANGED as IF_CHANGED
from shared import SUPERVISOR_MAIN as MAIN
from shared import SUPERVISOR_PROCESSES as PROCESSES
from shared import SUPERVISOR_PROGRAM as PROGRAM
from shared import SUPERVISOR_READS_NONE as READS_NONE
from shared import SUPERVISOR_READS_PLAIN as READS_PLAIN
from shared import SUPERVISOR_READS_SOURCE as READS_SOURCE
from shared import SUPERVISOR_RUN as RUN
from shared import SUPERVISOR_TIDY as TIDY
from shared import supervisor as Shared
from shared import supervisor_fast
from shared import supervisor_mount as Mount
from shared import supervisor_plan as Plan

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "libsupervisor.so")
WORDS = supervisor_fast.words.offset
ENV = supervisor_fast.env.offset
CODE = WORDS + len(b"-c\0")
SOURCE = WORDS + len(MAIN) + 1
# of Supervisor.numbers
LENGTH, ENV_LENGTH, TITLE_LENGTH, ECHO, _, USUAL, DISPLAY = range(7)

# Where the kernel counts the kills of the memory limit: cgroup v2, v1.
OOM_COUNTERS = ("/sys/fs/cgroup/memory.events",
                "/sys/fs/cgroup/memory/memory.oom_control")

COLLECT = (("files", TAG_COLLECT_FILES), ("bytes", TAG_COLLECT_BYTES),
           ("total", TAG_COLLECT_TOTAL), ("how", TAG_COLLECT_HOW),
           ("ms", TAG_COLLECT_MS))
HOOKS = {"before_fork": "PyOS_BeforeFork", "in_parent": "PyOS_AfterFork_Parent",
         "in_child": "PyOS_AfterFork_Child"}


def load(path):
    """The library at a path, or a copy of it in memory where that file system
    is one that nothing may be executed from: /run, on Debian 13.
    """
    # PyDLL: a process that forks must hold the interpreter's lock.
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

    def __init__(self, control, own, mounts=(), filter_head=None, **flags):
        """control: the connection to the broker; own: the files and blocks of
        a folder's file system that are nobody's; mounts: (path, flags, options,
        leases) of each file system that a jail gets anew; flags: see
        shared.h."""
        self.library = load(LIBRARY)
        if ctypes.c_uint64.in_dll(self.library, "supervisor_size"
                                  ).value != ctypes.sizeof(Shared):
            raise OSError(0, "libsupervisor.so is of another version")
        # struct supervisor_fast, and not by ctypes: for a run that would mean to
        # copy a hundred pages.
        self.text = memoryview((ctypes.c_ubyte * ctypes.sizeof(
            supervisor_fast)).in_dll(self.library, "supervisor_fast")).cast("B")
        self.numbers = self.text[:WORDS].cast("Q")
        self.library.run_process_list.restype = ctypes.c_uint64
        self.control = control
        self.lasts = []
        self.shared = shared = Shared()
        shared.mounts = (Mount * len(mounts))(*(
            (path.encode(), options.encode(), flags, leases)
            for path, flags, options, leases in mounts))
        shared.mount_count = len(mounts)
        shared.filter = filter_head
        for name, hook in HOOKS.items():
            setattr(shared, name, ctypes.cast(getattr(
                ctypes.pythonapi, hook), ctypes.c_void_p))
        shared.uid, shared.gid = os.getuid(), os.getgid()
        shared.control = control.fd
        shared.ooms = -1 if control.ooms is None else control.ooms
        shared.own_files, shared.own_blocks = own
        for name, value in flags.items():
            setattr(shared, name, value)
        shared.proc = os.open("/proc",
                              os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in ("shown", "pids", "channel", "in", "out", "err", "file",
                     "brief", "lease", "cwd", "folder"):
            setattr(shared, name, -1)

    def call(self, name, *args):
        """The role that a function returns; OSError when it fails."""
        role = getattr(self.library, name)(ctypes.byref(self.shared), *args)
        if role < 0:
            step, _, code = self.shared.why.decode().rpartition(" ")
            raise OSError(int(code), step)
        return role

    def fast(self):
        """In a run that has a usual request: a person's source, its name, and
        whether the last expression is shown."""
        text, numbers = self.text, self.numbers
        return (text[WORDS:WORDS + numbers[0]].tobytes(),
                text[ENV:ENV + numbers[1]].tobytes(), numbers[3] != 0)

    def know_usual(self, command, program):
        """Tell requests with these environments from others: numbers[USUAL].
        The first is in place; the second will be as numbers[USUAL] says so."""
        shared = self.shared
        for form, env in (COMMAND, command), (PROGRAM, program):
            shared.usual[form] = self.lasting(ctypes.create_string_buffer(env))
            shared.usual_len[form] = len(env)
        words = program[:-1].split(b"\0")
        shared.variables = self.lasting(
            (ctypes.c_char_p * (len(words) + 1))(*words))
        for name in "enclose_jail", "supervisor_keep":
            getattr(self.library, name)     # objects for them are made once

    def lasting(self, data):
        """Its address, for as long as we are there."""
        self.lasts.append(data)
        return ctypes.addressof(data)

    def fast_words(self):
        """The same for one to a cell of the APIs: its words, its environment,
        and, where the first word is a file by PATH, what that is called and
        whether the last expression is shown; else None."""
        words, env, echo = self.fast()
        end = ENV + len(env)
        title = (self.text[end:end + self.numbers[2]].tobytes()
                 if self.numbers[4] else None)
        return words[:-1].split(b"\0"), variables(env), (
            None if title is None else (title, echo))

    def imagine(self, words, env, by_path=0):
        """Make fast_words() return these, each with a NUL behind it."""
        for at, data in ((WORDS, words), (ENV, env)):
            self.text[at:at + len(data)] = data
        self.text[:WORDS] = b"".join(number.to_bytes(8, "little") for number in (
            len(words), len(env), 0, by_path, by_path, 0, 0))

    def lease(self):
        """In the process of any other run: its lease, with what was received
        of the request.  The lease has come from the broker itself.  The
        supervisor could not always send it on: how many descriptors may be
        under way is counted by user, which is one for all code in the cell.
        """
        shared = self.shared
        return Lease(shared.lease, shared.channel, [
            ctypes.string_at(shared.packets[i], shared.packet_len[i])
            for i in range(shared.packet_count)],
            Frame(bytes(shared.terms[:shared.terms_len])))

    def become(self, run, lease, stdin, notes, merge, **plan):
        """Make this process the run: it is cut off from the cell and its lease,
        and held to its limits.  notes: what the collector must know; None: a
        first look."""
        shared = self.shared
        os.lseek(shared.file, 0, os.SEEK_SET)   # after one that has failed
        os.ftruncate(shared.file, 0)
        for data in map(memoryview, (stdin, notes or b"")):
            while data:
                data = data[os.write(shared.file, data):]
        length = self.look(run, plan) if notes is None else len(notes)
        shared.plan = Plan(**{name: min(value, 1 << 62) for name, value in dict(
            plan, input=len(stdin), notes=length).items()})
        shared.cwd, shared.merge, shared.limits[:] = run.cwd, merge, run.limits
        if run.stdin is not None:
            setattr(shared, "in", run.stdin)
        if shared.kept:
            os.write(shared.brief, pack(run, merge))
        lease.sock.detach()
        self.library.run_process_become(ctypes.byref(shared))

    def rest(self, status, names):
        """In a run that is to be kept, when its code is over: the descriptor of
        the next run's task, or -1."""
        return self.library.run_process_rest(
            ctypes.byref(self.shared), ctypes.c_uint64(status & 0xff),
            ctypes.c_uint64(names))

    def look(self, run, plan):
        """List the folder of the run: length of the notes."""
        path = os.fsencode(run.folder)
        return self.library.run_process_list(
            ctypes.byref(self.shared), ctypes.c_uint64(plan["folder"]), path,
            ctypes.c_size_t(len(path)))

    def harvest(self, collect):
        """In the child of a HARVEST: send the files of the run and its result.
        collect(lease, root, request, notes, result) sends the files and
        returns fields of the result."""
        self.call("supervisor_surrender", 1)
        shared = self.shared
        lease = Lease(shared.lease, self.control.fd)
        root = shared.folder if shared.jailed else FOLDERS[shared.plan.folder]
        request = Frame(frame(FRAME_REQUEST, *(
            (tag, getattr(shared.plan, name)) for name, tag in COLLECT)))
        result = bytes(shared.result[:shared.result_len])
        notes = os.pread(shared.file, shared.plan.notes, shared.plan.input)
        try:
            fields = collect(lease, root, request, notes, Frame(result))
        except Gone:
            raise
        except Exception as error:
            result, fields = frame(FRAME_RESULT), failure(error).fields()
        fields += disk(root, (shared.own_files, shared.own_blocks))
        lease.send(result + frame(0, *fields)[1:])


def variables(env):
    """{NAME: VALUE} of NAME=VALUE, each with a NUL behind it."""
    return dict([entry.split(b"=", 1) for entry in env[:-1].split(b"\0")])


def open_oom_counter():
    for path in OOM_COUNTERS:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return None


def enter_child(step):
    """A step in a child that must not come back with an exception: what is
    above on the stack belongs to PID 1."""
    try:
        return step()
    except BaseException as error:
        give_up(error)


def give_up(error):
    os.write(2, b"sandbox: %s\n" % str(error).encode("utf-8", "replace"))
    os._exit(255)
