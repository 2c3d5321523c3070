# SPDX-License-Identifier: MIT
"""The whole service for a test: `ilctl run` in a folder of its own.

    with Service(IL_TIMEOUT_SECONDS="3") as service:
        run = service.discord.send_command("py", code="print(1)")
        run.wait_final(match="1")

Everything is real: engine, nginx, database, programs.  Discord is the stand-in
that `ilctl run` starts itself when it has no keys, reached through nginx.
"""

import atexit
import contextlib
import ctypes
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
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

from client import OPENAPI, Standin  # noqa: E402  (needs the path above)
from ports import free_port  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
IMAGE = os.environ.get("SANDBOX_IMAGE", "inline-python:3.11")
DOCKER = os.environ.get("DOCKER_BINARY", "docker")
START_SECONDS = 180
STOP_SECONDS = 120


def wait_for(question, seconds=120, pause=0.02):
    """Ask until it is so: for what cannot be waited on, with a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(pause)


def children(parents):
    """Return the pids of the children of these processes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and int(fields[1]) in parents:
            found.append(int(name))
    return found


def docker(*words, check=True):
    """Run the Docker CLI; returns what it printed."""
    done = subprocess.run([DOCKER, *words], capture_output=True, text=True,
                          timeout=180)
    if check and done.returncode != 0:
        raise AssertionError(f"docker {words}: {done.stderr}")
    return done.stdout


def own_mounts():
    """Give this process and its children mounts of their own, which are gone
    with the last of them, whatever ends it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    recursive_private = 0x4000 | 0x40000
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None,
                                           recursive_private, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")


class Service:
    """`ilctl run`, its folder, its database and its stand-in."""

    def __init__(self, port=None, **settings):
        """`settings` are configuration keys; a value of None unsets one."""
        self.folder = tempfile.mkdtemp(prefix="inline-e2e-")
        self.port = port or free_port()
        self.settings = {
            "IL_STATE_DIR": os.path.join(self.folder, "state"),
            "IL_BASE_DIR": os.path.join(self.folder, "sandboxes"),
            "IL_TUNE_API_WARM": "0",
            "IL_TUNE_SPARE_CELLS": "0",
            "IL_HTTP_PORT": str(self.port),
            "SANDBOX_IMAGE": IMAGE,
            "SANDBOX_PULL_ON_STARTUP": "0",
            "IL_TUNE_DERIVE": "0",
            "IL_USER_RATE": "1000",
            **settings,
        }
        self.log = os.path.join(self.folder, "log")
        self.command = [os.path.join(BUILD, "bin", "ilctl"), "run"]
        self.process = None
        self.discord = None
        self.mounts = []

    def mount_memory(self, name, size):
        """Mount a small disk in the folder; needs own_mounts()."""
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700",
                        "inline-e2e", path], check=True)
        self.mounts.append(path)
        return path

    def mount_disk(self, name, mib):
        """The same with an ext4 on a loop device, which can be really full."""
        path = os.path.join(self.folder, name)
        image = path + ".ext4"
        os.mkdir(path)
        with open(image, "w") as file:
            file.truncate(mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop,discard", image, path],
                       check=True)
        self.mounts.append(path)
        return path

    def __enter__(self):
        # also of a test that fails before its `with`
        atexit.register(self.close)
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
        return self.settings.get("IL_DATABASE") or os.path.join(
            self.settings["IL_STATE_DIR"], "inline.db")

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
                self.command, cwd=ROOT, env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self._wait_ready()
        self.discord = Standin.attach(self._standin_port())
        return self

    def wait_serving(self):
        """Wait until il-fcgi answers behind nginx.  Without a signature that
        is 401, and none of the stand-in's business.
        """
        url = f"http://127.0.0.1:{self.port}/interactions"

        def refuses():
            try:
                urllib.request.urlopen(url, b"{}", timeout=30).close()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code == 401
            except OSError:
                return False
        wait_for(refuses)

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
            while self.mounts:
                subprocess.run(["umount", "--lazy", self.mounts.pop()],
                               check=False)
            shutil.rmtree(self.folder, ignore_errors=True)

    # What tests look at

    def sql(self, text, *values):
        """Run one SQL statement on the live database; returns the rows."""
        link = sqlite3.connect(self.database, timeout=60)
        try:
            with link:
                return link.execute(text, values).fetchall()
        finally:
            link.close()

    def wait_logged(self, pattern):
        """Wait until the log has it: a line may come after the answer."""
        def logged():
            with open(self.log, errors="replace") as file:
                return re.search(pattern, file.read())
        wait_for(logged)

    def instance(self):
        """Return the value of the label that all its containers carry."""
        path = os.path.join(self.settings["IL_STATE_DIR"], "instance")
        with open(path) as file:
            return file.read().strip()

    def containers(self, everything=True):
        """Return the names of its containers."""
        return docker("ps", *["-a"] * everything, "--format", "{{.Names}}",
                      "--filter",
                      "label=inline.instance=" + self.instance()).split()

    def ilctl(self, *words, timeout=120, **settings):
        """Run another ilctl beside it, with other settings where they are
        given; returns (code, stdout, stderr).
        """
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), *words], cwd=ROOT,
            env=dict(self.environment(), **settings), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout)
        return done.returncode, done.stdout, done.stderr

    def kill(self, program):
        """kill -9 all processes of a program, and wait for their end and that
        of their children; returns their pids.
        """
        pids = self.pids(program)
        assert pids, program
        gone = [os.pidfd_open(pid) for pid in [*pids, *children(pids)]]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for fd in gone:
            assert select.select([fd], [], [], 60)[0], program
            os.close(fd)
        return pids

    def left_over(self):
        """Return what should not be there after the end: containers, volumes,
        loop devices, processes that know the folder.
        """
        label = "label=inline.instance=" + self.instance()
        found = docker("ps", "-aq", "--filter", label).split()
        found += docker("volume", "ls", "-q", "--filter", label).split()
        for name in os.listdir("/sys/block"):
            try:
                with open(f"/sys/block/{name}/loop/backing_file") as file:
                    if self.folder in file.read():
                        found.append(name)
            except OSError:
                continue
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    ours = self.folder.encode() in file.read()
                with open(f"/proc/{name}/cmdline") as file:
                    line = file.read().replace("\0", " ")
            except OSError:
                continue
            if ours and int(name) != os.getpid():
                found.append(f"{name}: {line}")
        return found

    def serving(self, name):
        """Return the pids of the processes of il-api that serve a socket."""
        path = os.path.join(self.settings["IL_STATE_DIR"], name)
        with open("/proc/net/unix") as file:
            links = {f"socket:[{line.split()[6]}]" for line in file
                     if line.split()[-1] == path}
        found = []
        for pid in children(self.pids("il-api")):
            folder = f"/proc/{pid}/fd"
            # What has ended meanwhile serves nothing.
            with contextlib.suppress(OSError):
                if links & {os.readlink(f"{folder}/{fd}")
                            for fd in os.listdir(folder)}:
                    found.append(pid)
        return found

    def leave_no_descriptor(self, name):
        """Whoever of il-api serves a socket can accept nobody any more."""
        for pid in self.serving(name):
            with open(f"/proc/{pid}/status") as file:
                ids = {line.split()[0]: int(line.split()[1]) for line in file
                       if line.startswith(("Uid:", "Gid:"))}
            done = subprocess.run(
                ["prlimit", "--pid", str(pid), "--nofile=3:"],
                user=ids["Uid:"], group=ids["Gid:"])
            assert done.returncode == 0 or pid not in self.serving(name)

    def pids(self, program):
        """Return the pids of a program that `ilctl run` started."""
        found = []
        for pid in children([self.process.pid]):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if os.path.basename(words[0]).startswith(program):
                found.append(pid)
        return found

    def assert_kept_discords_rules(self, ignore=()):
        """Nothing that Inline sent was against Discord's rules.

        An edit leaves a quarter of a second after its deferral
        (worker/first.t); on a machine that is busy for longer it may still be
        seen first.  Where Discord's OpenAPI description is at hand, every body
        fits it.
        """
        if os.path.exists(OPENAPI):
            assert self.discord.settings()["openapi"], "bodies not checked"
        self.discord.assert_no_violations(ignore=("early", *ignore))

    # What people do

    def run(self, code=None, *, user="alice", **options):
        """Send `/il py` and return its final message's text."""
        if code is not None:
            options["code"] = code
        return self.say("py", user=user, **options)

    def say(self, command, *, user="alice", **options):
        """Send `/il command` and return its final message's text."""
        sent = self.discord.send_command(command, user=user, **options)
        # on a busy host a sentence may stand there for a while
        sent.wait_final(match=r"\A(?!Something on our side does not work just "
                        "now, so this takes|Many commands wait just now)")
        return sent.original.text()

    def create(self, *users):
        """Make sandboxes."""
        for user in users or ("alice",):
            text = self.say("create", user=user)
            assert "sandbox" in text.lower(), text
