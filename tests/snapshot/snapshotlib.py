# SPDX-License-Identifier: MIT
"""An il-snapshot of a test's own: its folders, its state, its socket; volumes
as the broker makes them, without an engine."""

import atexit
import concurrent.futures
import functools
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "standin")]
from tap import Skip, run, test  # noqa: E402,F401
from wire import N, pack, unpack  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
PROGRAM = os.path.join(BUILD, "bin", "il-snapshot")
PATIENCE = 60
FIELDS = ("told_ms", "sandboxes", "waiting", "oldest_ms", "failing_ms",
          "saved", "bytes", "failures", "restored", "forgotten", "files",
          "files_failing_ms")
CODES = {2: "INPUT", 4: "CONFLICT", 5: "LIMIT", 9: "UNAVAILABLE",
         12: "CONFIG", 1: "SYSTEM", 8: "TIMEOUT"}
MIB = 1 << 20
UID = 0x78000001
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

if not os.path.exists(PROGRAM):
    print("1..0 # SKIP il-snapshot is built where libzstd is")
    sys.exit()


def wait_for(question, what="it"):
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)


together = concurrent.futures.ThreadPoolExecutor(16)


def aside(function):
    """A test that waits most of its time, with nodes of its own: it begins now,
    beside the others, and is told of in its place."""
    future = together.submit(function)

    @functools.wraps(function)
    def told():
        future.result()
    return test(told)


def sandbox_id(n):
    return "%032x" % n


class Snapshotter:
    """A node: its folders, and an il-snapshot."""

    def __init__(self, snapshots=None, start=True, **settings):
        # in memory: all that others write is flushed with what is ours
        self.folder = tempfile.mkdtemp(prefix="inline-snapshot-",
                                       dir=MEMORY)
        atexit.register(self.close)
        self.base = os.path.join(self.folder, "base")
        self.state = os.path.join(self.folder, "state")
        self.store = snapshots or os.path.join(self.folder, "store")
        for path in (self.base, self.state) + (
                () if snapshots else (self.store,)):
            os.mkdir(path)
        self.settings = settings
        self.log = os.path.join(self.folder, "log")
        self.process = None
        if start:
            self.start()

    def environment(self):
        return {"PATH": os.environ["PATH"], "IL_STATE_DIR": self.state,
                "IL_BASE_DIR": self.base, "IL_SNAPSHOTS": self.store,
                **{key: os.environ[key] for key in ("ASAN_OPTIONS",)
                   if key in os.environ}, **self.settings}

    def start(self):
        count = self.logged().count("saves to ")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-v"], env=self.environment(), stderr=log)
        wait_for(lambda: self.logged().count("saves to ") > count or
                 self.process.poll() is not None, "a start")
        return self

    def logged(self):
        try:
            with open(self.log) as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process = None
        return code

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}"
                  "/children") as file:
            return [int(pid) for pid in file.read().split()]

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def told(self):
        """What the state file says."""
        with open(os.path.join(self.state, next(
                name for name in os.listdir(self.state)
                if name.startswith("snapshot-"))), "rb") as file:
            return dict(zip(FIELDS, struct.unpack(
                f"={len(FIELDS)}q", file.read())))

    def wait_saved(self):
        """Until nothing waits to be saved."""
        wait_for(lambda: (lambda t: t["waiting"] == 0 and
                          t["sandboxes"] > 0)(self.told()), "a snapshot")

    # ---- volumes ----

    def path(self, n, volume="workspace"):
        return os.path.join(self.base, sandbox_id(n), volume + ".ext4")

    def make(self, n, mib=20, volumes=("workspace",)):
        """A sandbox, which gets its name when it is whole."""
        draft = os.path.join(self.base, f".new-{n}")
        os.mkdir(draft)
        for name in volumes:
            path = os.path.join(draft, name + ".ext4")
            with open(path, "wb") as file:
                file.truncate(mib << 20)
            subprocess.run(
                ["mkfs.ext4", "-q", "-F", "-b", "4096", "-I", "256", "-m",
                 "0", "-J", "size=4", "-O", "^resize_inode", "-E",
                 f"root_owner={UID}:{UID},lazy_itable_init=1,nodiscard", path],
                check=True)
        count = self.told()["sandboxes"] if self.process else -1
        os.rename(draft, os.path.join(self.base, sandbox_id(n)))
        if self.process:
            wait_for(lambda: self.told()["sandboxes"] > count)

    def write(self, n, at, data, volume="workspace"):
        """As who had it mounted, and lets go of it."""
        with open(self.path(n, volume), "r+b") as file:
            file.seek(at)
            file.write(data)
        if self.process:
            wait_for(lambda: self.told()["waiting"])

    def drop(self, n):
        """The broker removes a sandbox."""
        count = self.told()["sandboxes"]
        shutil.rmtree(os.path.dirname(self.path(n)))
        wait_for(lambda: self.told()["sandboxes"] < count)

    def read(self, n, volume="workspace"):
        with open(self.path(n, volume), "rb") as file:
            return file.read()

    # ---- what is stored, in a folder ----

    def stored(self, n):
        """{path: bytes} of a sandbox's objects."""
        found = {}
        for folder, _, names in os.walk(
                os.path.join(self.store, sandbox_id(n))):
            for name in names:
                path = os.path.join(folder, name)
                try:    # it may be removed, or get its name, meanwhile
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, self.store)] = file.read()
                except FileNotFoundError:
                    pass
        return found

    def blocks(self, n):
        return {path for path in self.stored(n) if "/blocks/" in path}

    # ---- asking ----

    def ask(self, packet):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(PATIENCE)
        path = os.path.join(self.state, "broker/worker/snapshot.sock")
        sock.connect(path)
        sock.send(packet)
        return sock

    @staticmethod
    def answer(sock):
        """Seconds of what was restored, or None; or an error's name."""
        with sock:
            packet = sock.recv(65536)
        kind, fields = unpack(packet)
        if kind == "REFUSED":
            return CODES.get(fields["CODE"], fields["CODE"])
        assert kind == "GRANTED", kind
        return fields.get("MTIME")

    def restore(self, from_n, to_n):
        return self.answer(self.ask(pack(
            "RESTORE", ("SANDBOX", sandbox_id(to_n)),
            ("NAME", sandbox_id(from_n)))))

    def forget(self, n):
        return self.answer(self.ask(pack("FORGET",
                                         ("SANDBOX", sandbox_id(n)))))
