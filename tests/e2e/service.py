"""The whole service for a test: `ilctl run` in a folder of its own.

    with Service(IL_TIMEOUT_SECONDS="3") as service:
        run = service.discord.send_command("py", code="print(1)")
        run.wait_final(match="1")

Everything is real: engine, nginx, database, programs.  Discord is the stand-in
that `ilctl run` starts itself when it has no keys, reached through nginx.
"""

import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

from client import Standin  # noqa: E402  (needs the path above)

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
IMAGE = os.environ.get("SANDBOX_IMAGE", "inline-python:3.11")
DOCKER = os.environ.get("DOCKER_BINARY", "docker")
START_SECONDS = 60
STOP_SECONDS = 40


def free_port():
    """Return a TCP port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """`ilctl run`, its folder, its database and its stand-in."""

    def __init__(self, **settings):
        """`settings` are configuration keys; a value of None unsets one."""
        self.folder = tempfile.mkdtemp(prefix="inline-e2e-")
        self.port = free_port()
        self.settings = {
            "IL_STATE_DIR": os.path.join(self.folder, "state"),
            "IL_BASE_DIR": os.path.join(self.folder, "sandboxes"),
            "IL_HTTP_PORT": str(self.port),
            "SANDBOX_IMAGE": IMAGE,
            "SANDBOX_PULL_ON_STARTUP": "0",
            "IL_USER_RATE": "1000",
            **settings,
        }
        self.log = os.path.join(self.folder, "log")
        self.process = None
        self.discord = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close(show_log=True)
            raise

    def __exit__(self, kind, *_):
        self.close(show_log=kind is not None)

    @property
    def database(self):
        """The path of the database."""
        return os.path.join(self.settings["IL_STATE_DIR"], "inline.db")

    def environment(self):
        """Return the environment that the programs get."""
        made = {key: value for key, value in os.environ.items()
                if not key.startswith(("IL_", "SANDBOX_", "DISCORD_"))}
        made.update((key, str(value)) for key, value in self.settings.items()
                    if value is not None)
        return made

    def start(self):
        """Start the service; returns when it says that it is ready."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "bin", "ilctl"), "run"], cwd=ROOT,
                env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log)
        self._wait_ready()
        self.discord = Standin.attach(self._standin_port())
        return self

    def _standin_port(self):
        path = os.path.join(self.settings["IL_STATE_DIR"], "nginx.conf")
        with open(path) as file:
            return int(re.search(r"proxy_pass http://127.0.0.1:(\d+)",
                                 file.read())[1])

    def _wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        seen = b""
        while b"Inline is ready" not in seen:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(left, 0))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready \
                else b""
            if not piece:
                raise AssertionError("the service did not become ready")
            seen += piece

    def stop(self, number=signal.SIGTERM):
        """End `ilctl run` with a signal; returns its exit status."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("the service did not end when told to")
        finally:
            process.stdout.close()

    def close(self, show_log=False):
        """End everything and remove the folder."""
        try:
            self.stop()
        finally:
            if show_log and os.path.exists(self.log):
                with open(self.log, errors="replace") as log:
                    for line in log.readlines()[-80:]:
                        print("# " + line.rstrip(), flush=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    # What tests look at

    def sql(self, text, *values):
        """Run one SQL statement on the live database; returns the rows."""
        link = sqlite3.connect(self.database, timeout=10)
        try:
            with link:
                return link.execute(text, values).fetchall()
        finally:
            link.close()

    def instance(self):
        """Return the value of the label that all its containers carry."""
        path = os.path.join(self.settings["IL_STATE_DIR"], "instance")
        with open(path) as file:
            return file.read().strip()

    def containers(self, everything=True):
        """Return the names of its containers."""
        command = [DOCKER, "ps", "--format", "{{.Names}}", "--filter",
                   "label=inline.instance=" + self.instance()]
        if everything:
            command.insert(2, "-a")
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=30, check=True)
        return done.stdout.split()

    def pids(self, program):
        """Return the pids of a program of ours that `ilctl run` started."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    stat = file.read()
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            base = os.path.basename(words[0].decode(errors="replace"))
            if parent == self.process.pid and base.startswith(program):
                found.append(int(name))
        return found

    def assert_kept_discords_rules(self):
        """Nothing that Inline sent was against Discord's rules.

        An edit that overtakes the deferral on its way through nginx is not:
        Discord answers 404, and the worker tries again.
        """
        self.discord.assert_no_violations(ignore=("early",))

    # What people do

    def run(self, code=None, *, user="alice", timeout=60, **options):
        """Send `/il py` and return its final message's text."""
        if code is not None:
            options["code"] = code
        return self.say("py", user=user, timeout=timeout, **options)

    def say(self, command, *, user="alice", timeout=60, **options):
        """Send `/il command` and return its final message's text."""
        sent = self.discord.send_command(command, user=user, **options)
        sent.wait_final(timeout=timeout)
        return sent.original.text()

    def create(self, *users):
        """Make sandboxes."""
        for user in users or ("alice",):
            text = self.say("create", user=user)
            assert "sandbox" in text.lower(), text
