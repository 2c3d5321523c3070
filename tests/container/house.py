# SPDX-License-Identifier: MIT
"""A container of Inline for a test, with a folder or a volume of its own.

    with House(OUTSIDE) as house:
        assert house.evaluate("print(1)") == "1\n"

The image is `inline` of `make container`.  Everything is real: the engine of
this machine, or the one in the container; Discord is the stand-in in there,
reached through the published port.
"""

import atexit
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from service import BUILD, IMAGE, docker, free_port, wait_for  # noqa: E402
from client import Standin  # noqa: E402

# A test whose time is over leaves nothing, either.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

INLINE = "inline"
SOCKET = "/var/run/docker.sock"
START_SECONDS = 300
# README.md has the same.
OUTSIDE = ["--volume", f"{SOCKET}:{SOCKET}",
           "--device-cgroup-rule", "c 10:237 rwm",
           "--device-cgroup-rule", "b 7:* rwm"]
# And this, with an engine inside.
NEAR = {"INLINE_PUBLISHED": "127.0.0.1"}
SETTINGS = {"SANDBOX_IMAGE": IMAGE, "SANDBOX_IMAGES": "3.11=" + IMAGE,
            "IL_QUOTA": "16m", "IL_TUNE_API_WARM": "1", "IL_TUNE_SPARE_CELLS": "0"}


def start(*words, name, env=(), entry=(), command=()):
    """docker run with these options; returns its result."""
    pairs = [word for key, value in dict(env).items()
             for word in ("--env", f"{key}={value}")]
    return subprocess.run(
        ["docker", "run", "--name", name, *words, *pairs, *entry, INLINE,
         *command], capture_output=True, text=True, timeout=120)


def inside():
    """Options for an engine in the container: --privileged.  Where this machine
    itself has not got all that this gives (a container may not), all the rest
    of it; returns (options, entry, command).
    """
    if subprocess.run(["docker", "run", "--rm", "--privileged", "--entrypoint",
                       "true", INLINE], capture_output=True).returncode == 0:
        return ["--privileged"], (), ()
    names = ("audit_control audit_read audit_write block_suspend chown "
             "dac_override dac_read_search fowner fsetid ipc_lock ipc_owner "
             "kill lease linux_immutable mac_admin mac_override mknod "
             "net_admin net_bind_service net_broadcast net_raw setfcap setgid "
             "setpcap setuid sys_admin sys_boot sys_chroot sys_module sys_nice "
             "sys_pacct sys_ptrace sys_rawio sys_time sys_tty_config syslog "
             "wake_alarm")
    options = [word for each in names.split()
               for word in ("--cap-add", each.upper())]
    for each in "seccomp", "apparmor", "systempaths":
        options += ["--security-opt", each + "=unconfined"]
    options += ["--device-cgroup-rule", "a *:* rwm"]
    writable = ("for m in $(grep -o ' /sys[^ ]* ro' /proc/self/mountinfo | "
                "cut -d ' ' -f 2); do mount -o remount,rw,bind $m; done; "
                "exec tini -s -- /opt/inline/systemd/container/entry.sh")
    return options, ("--entrypoint", "sh"), ("-c", writable)


def left_over(mark, instance=None):
    """What should not be there after the end: containers and volumes of that
    instance, loop devices and mounts with the mark in their path.
    """
    found = []
    if instance:
        label = "label=inline.instance=" + instance
        found += docker("ps", "-aq", "--filter", label).split()
        found += docker("volume", "ls", "-q", "--filter", label).split()
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file") as file:
                if mark in file.read():
                    found.append(name)
        except OSError:
            continue
    with open("/proc/mounts") as file:
        found += [line for line in file if mark in line]
    return found


def fetch(url, body=None, headers=(), context=None, timeout=120):
    """(status, text) of a request."""
    request = urllib.request.Request(
        url, None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(request, timeout=timeout,
                                    context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def begin(url, code, headers=()):
    """Send code, and do not wait; the future has (status, text), or why not."""
    return ThreadPoolExecutor(1).submit(fetch, url, {"input": code}, headers)


class House:
    """A container, from its start to its removal."""

    def __init__(self, options, entry=(), command=(), volume=False,
                 host_name=None, **settings):
        self.folder = tempfile.mkdtemp(prefix="inline-container-")
        os.chmod(self.folder, 0o755)  # its programs are users of their own
        self.name = os.path.basename(self.folder).replace("_", "-")
        self.port = free_port()
        self.home = f"/srv/{self.name}" if volume else self.folder
        self.volume = volume
        self.entry, self.command = entry, command
        publish = ["--publish", f"127.0.0.1:{self.port}:8080"]
        # A network of that name's that outlives the container, as in a pod.
        self.pod = [self.name + "-pod", "--hostname", host_name, "--detach",
                    *publish] if host_name else []
        self.options = [
            *options, "--detach", "--stop-timeout", "90",
            *(["--network", "container:" + self.pod[0]] if host_name
              else publish), "--volume",
            f"{self.name if volume else self.folder}:{self.home}"]
        self.settings = {
            "IL_STATE_DIR": self.home + "/run",
            "IL_BASE_DIR": self.home + "/sandboxes",
            "IL_DATABASE": self.home + "/database/inline.db",
            "IL_API_FILES": self.home + "/files", **SETTINGS, **settings}
        self.instance = None

    def __enter__(self):
        atexit.register(self.close)
        if self.pod:
            done = start(*self.pod[1:], name=self.pod[0],
                         entry=("--entrypoint", "sleep"),
                         command=("infinity",))
            assert done.returncode == 0, done.stderr
        try:
            return self.start()
        except BaseException:
            self.close(show_log=True)
            raise

    def start(self):
        """Make the container, and wait until it is ready."""
        done = start(*self.options, name=self.name, env=self.settings,
                     entry=self.entry, command=self.command)
        assert done.returncode == 0, done.stderr
        return self.wait_ready()

    def __exit__(self, kind, error, _):
        ended = isinstance(error, SystemExit) and not error.code
        self.close(show_log=kind is not None and not ended)

    def wait_ready(self):
        """Follow its words until it says that it is ready."""
        since = docker("inspect", "--format", "{{.State.StartedAt}}",
                       self.name).strip()
        with subprocess.Popen(
                ["docker", "logs", "--follow", "--since", since, self.name],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as logs:
            deadline = time.monotonic() + START_SECONDS
            seen = b""
            while b"Inline is ready" not in seen:
                left = max(deadline - time.monotonic(), 0)
                ready, _, _ = select.select([logs.stdout], [], [], left)
                piece = os.read(logs.stdout.fileno(), 4096) if ready else b""
                if not piece:
                    logs.kill()
                    raise AssertionError("the container did not become ready")
                seen += piece
            logs.kill()
        self.instance = self.run_in("cat", self.home + "/run/instance").strip()
        self.__dict__.pop("discord", None)
        return self

    @functools.cached_property
    def discord(self):
        """The stand-in of this start."""
        return Standin.attach(self.port)

    def run_in(self, *words):
        """What a command in the container prints."""
        return docker("exec", self.name, *words)

    def url(self, path):
        """The published port."""
        return f"http://127.0.0.1:{self.port}{path}"

    def evaluate(self, code):
        """What it prints, by /eval."""
        status, text = fetch(self.url("/eval"), {"input": code})
        assert status == 200, text
        return json.loads(text)["stdout"]

    def py(self, code):
        """What /il py answers, in chat."""
        run = self.discord.send_command("py", code=code)
        return run.wait_final().content

    def state(self, field):
        """What the engine says of the container."""
        return docker("inspect", "--format", "{{.State.%s}}" % field,
                      self.name).strip()

    def logs(self):
        """The last of what it has said."""
        done = subprocess.run(["docker", "logs", "--tail", "200", self.name],
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def stop(self):
        """docker stop; returns its exit status."""
        docker("stop", self.name)
        return int(self.state("ExitCode"))

    def wait_nothing_left(self):
        """What the kernel still lets go of is waited for."""
        wait_for(lambda: not left_over(self.name, self.instance))

    def close(self, show_log=False):
        """Remove all of it."""
        atexit.unregister(self.close)
        if show_log:
            for line in self.logs().splitlines()[-60:]:
                print("# " + line, flush=True)
        subprocess.run(["docker", "stop", self.name], capture_output=True)
        subprocess.run(["docker", "rm", "--force", "--volumes", self.name,
                        *self.pod[:1]], capture_output=True)
        if self.volume:
            subprocess.run(["docker", "volume", "rm", "--force", self.name],
                           capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
