# SPDX-License-Identifier: MIT
"""`ilctl` in a folder of its own: real nginx and stand-in, played programs."""

import http.client
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

from ports import free_port  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
PROGRAMS = ("il-sandboxd", "il-worker", "il-fcgi", "il-api")
WAIT = 120


def is_alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_gone(pid, timeout=WAIT):
    """Wait until a process that is not our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], timeout)[0])
    finally:
        os.close(fd)


class House:
    """A folder with ilctl, played programs beside it, and what they tell."""

    def __init__(self, do="", leave_out=(), **settings):
        self.folder = tempfile.mkdtemp(prefix="inline-ctl-")
        self.state = os.path.join(self.folder, "state")
        self.port = free_port()
        self.process = None
        self.output = b""
        self._told = b""
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        os.symlink(os.path.join(BUILD, "lib"),
                   os.path.join(self.folder, "lib"))
        shutil.copy(os.path.join(BUILD, "bin", "ilctl"), programs)
        for name in set(PROGRAMS) - set(leave_out):
            shutil.copy(os.path.join(HERE, "fake.py"),
                        os.path.join(programs, name))
        # The played programs may be other users.
        os.chmod(self.folder, 0o755)
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        self.fifo = os.open(fifo, os.O_RDWR)
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("IL_", "SANDBOX_", "DISCORD_"))}
        self.environment = {
            **clean, "FAKE_LOG": fifo, "FAKE_DO": do,
            "IL_STATE_DIR": self.state, "IL_HTTP_PORT": str(self.port),
            "IL_BASE_DIR": os.path.join(self.folder, "sandboxes"),
            "IL_TUNE_API_WARM": "0",
            "IL_WORKERS": "2", **settings}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process is not None:
            self.process.stdout.close()
            self.process.stderr.close()
        os.close(self.fifo)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ilctl(self, *arguments, **environment):
        """Run ilctl to its end; returns (code, stdout, stderr)."""
        done = subprocess.run(
            [os.path.join(self.folder, "bin", "ilctl"), *arguments],
            env={**self.environment, **environment}, cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60)
        return done.returncode, done.stdout, done.stderr

    def start(self):
        """Start `ilctl run`."""
        self.output = b""
        self.process = subprocess.Popen(
            [os.path.join(self.folder, "bin", "ilctl"), "run"],
            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stderr.fileno(), False)
        return self

    def wait_ready(self):
        """Wait until it says that it is ready."""
        deadline = time.monotonic() + WAIT
        while b"Ctrl-C" not in self.output:
            left = deadline - time.monotonic()
            ready = select.select([self.process.stdout], [], [], max(left, 0))
            piece = os.read(self.process.stdout.fileno(), 4096) \
                if ready[0] else b""
            assert piece, "not ready: " + self.errors()
            self.output += piece
        # nginx listens, and notes its pid, before it has made its workers.
        while not any(line.startswith("nginx: worker")
                      for line in self.descendants().values()):
            assert time.monotonic() < deadline, "nginx has no workers"
            time.sleep(0.01)
        return self

    def errors(self):
        """Return what was written to standard error since the last call."""
        text = b""
        while True:
            try:
                piece = os.read(self.process.stderr.fileno(), 65536)
            except BlockingIOError:
                break
            if not piece:
                break
            text += piece
        return text.decode(errors="replace")

    def next_word(self, timeout=WAIT):
        """Return the next line that a played program told, as words."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._told:
            left = deadline - time.monotonic()
            if not select.select([self.fifo], [], [], max(left, 0))[0]:
                return None
            self._told += os.read(self.fifo, 65536)
        line, self._told = self._told.split(b"\n", 1)
        return line.decode().split()

    def wait_word(self, *words):
        """Wait for a line that begins with the words; returns it."""
        while True:
            line = self.next_word()
            assert line is not None, ("never told", words, self.errors())
            if line[:len(words)] == list(words):
                return line

    def wait_starts(self, names):
        """Wait until these programs have started; returns their lines."""
        names = list(names)
        lines = []
        while names:
            line = self.wait_word("start")
            names.remove(line[1])
            lines.append(line)
        return lines

    def stop(self, number=signal.SIGTERM):
        """Send a signal and wait; returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        """Wait until it ends; returns the exit code."""
        return self.process.wait(60)

    def children(self):
        """Return {pid: command line} of the children of ilctl."""
        return self.descendants(depth=1)

    def descendants(self, depth=9):
        """Return {pid: command line} of everything that it started."""
        parents = {}
        lines = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(
                        file.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    lines[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
        found = {self.process.pid}
        for _ in range(depth):
            found |= {pid for pid, up in parents.items() if up in found}
        return {pid: lines.get(pid, "") for pid in
                found - {self.process.pid}}

    def connect(self):
        """Return a connection to nginx."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path="/"):
        """Return (status, text) of a page."""
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}{path}", timeout=60) as page:
                return page.status, page.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
