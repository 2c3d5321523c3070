# SPDX-License-Identifier: MIT
"""What each tests/host/*.t begins with: a machine whose disk is as after the
documentation's steps, booted, with Discord beside it.

    with Session() as host:
        host.create("alice")
        assert "42" in host.say("py", code="print(42)")
"""

import json
import os
import ssl
import sys
import time

from house import ANSWER_SECONDS, ENV, House
from machine import HOST, end_on_signals
from steps import NAME

from client import Standin
from tap import run, test  # noqa: F401  (tests take them from here)

READY_SECONDS = 300
WAIT = 180      # seconds until an answer must be there: it is slow here


def figure(text):
    """Something that was measured, for the table."""
    print("# figure " + text, flush=True)


def note(text):
    """Something for who reads the output."""
    for line in str(text).rstrip().split("\n"):
        print("# " + line, flush=True)


class Session:
    """A machine and its Discord, for a test.

    check.py has both for all tests (HOST_MACHINE says where); by hand, or
    with `alone`, which a test needs that ends the machine, it has its own.
    """

    def __init__(self, alone=False, **settings):
        """settings: keys of the configuration, besides those of the steps."""
        end_on_signals()
        self.house = House(os.environ["HOST_SUITE"],
                           os.environ.get("HOST_COMMIT", "HEAD"))
        assert self.house.is_installed, "make check-host makes its disk"
        self.settings = settings
        self.configured = None      # the file of settings, before the test
        running = os.environ.get("HOST_MACHINE")
        self.ours = alone or not running
        if self.ours:
            self.machine = self.house.fresh("alone" if alone else "")
            self.discord = self.house.standin()
        else:
            running = json.loads(running)
            self.machine = self.house.machine(None, running["folder"])
            self.machine.ports = running["ports"]
            self.discord = Standin.attach(running["discord"])

    def __enter__(self):
        try:
            if self.ours:
                self.discord.start()
                self.boot()
                self.settings.update(
                    IL_TUNE_DISCORD_API_BASE=f"http://{HOST}:{self.discord.port}"
                                     "/api/v10")
            else:
                self.discord.reset()
                self.discord.settings(deadline=ANSWER_SECONDS)
            self.configured = self.sh("cat " + ENV)
            if self.settings:
                self.configure(**self.settings)
            self.wait_ready()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.ours:
            self.machine.cut()
            self.discord.stop()
        elif self.configured and self.sh("cat " + ENV) != self.configured:
            self.machine.write(ENV, self.configured + "\n", "600")
            self.restart()

    def boot(self):
        """Start the machine; Discord hears of its address."""
        begun = time.monotonic()
        self.machine.boot()
        self.discord.settings(endpoint=self.house.endpoint(self.machine))
        return time.monotonic() - begun

    # The service

    def sh(self, script, **more):
        """Run a script in the guest, as root."""
        return self.machine.sh(script, **more)

    def configure(self, **keys):
        """Set keys (None: unset) and start the service again with them."""
        text = self.sh("cat " + ENV)
        lines = [line for line in text.split("\n")
                 if line.partition("=")[0] not in keys]
        lines += [f"{key}={value}" for key, value in keys.items()
                  if value is not None]
        self.machine.write(ENV, "\n".join(lines) + "\n", "600")
        self.restart()

    def restart(self):
        """Stop all of it, start all of it, and wait until it serves."""
        self.sh("systemctl stop inline.target il-fcgi il-api il-sandboxd "
                "'il-worker@*' il-fcgi.socket il-api.socket; "
                "systemctl reset-failed; systemctl start inline.target")
        self.wait_ready()

    def wait_ready(self, seconds=READY_SECONDS):
        """Until the API's first cell has said how it isolates its runs."""
        self.wait_for(lambda: self.health().get("isolation"), seconds)

    def health(self):
        """What /health says of Inline; {} when it says nothing."""
        status, text = self.machine.run(
            "curl -s -m 10 http://127.0.0.1:8080/health")
        try:
            return json.loads(text)["inline"] if status == 0 else {}
        except (ValueError, KeyError, TypeError):
            return {}

    @staticmethod
    def wait_for(question, seconds, pause=1.0):
        """Ask until it is so: for what cannot be waited on over SSH."""
        end = time.monotonic() + seconds
        while True:
            answer = question()
            if answer:
                return answer
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(pause)

    def doctor(self):
        """(status, output) of the doctor."""
        return self.machine.run(f"ilctl -e {ENV} doctor")

    def eval(self, code, seconds=WAIT, **more):
        """Run code by POST /eval on loopback; returns (HTTP status, JSON)."""
        text = self.sh(
            f"curl -s -m {seconds} -w '\\n%{{http_code}}' "
            "-H 'Content-Type: application/json' --data-binary @- "
            "http://127.0.0.1:8080/eval", feed=json.dumps({"input": code, **more}))
        body, _, status = text.rpartition("\n")
        return int(status), json.loads(body) if body else None

    def run_api(self, code):
        """The output of code that ran by POST /eval."""
        status, answer = self.eval(code)
        assert status == 200, (status, answer)
        return answer["stdout"]

    # People

    def send(self, command, *, user="alice", **options):
        """Send `/il command`; returns the interaction."""
        return self.discord.send_command(command, user=user, **options)

    def say(self, command, *, user="alice", timeout=WAIT, match=None,
            **options):
        """Send `/il command` and return its final message's text, in which
        `match` is found.  A slow machine is told of a fault first, and the
        answer takes the place of that.
        """
        sent = self.send(command, user=user, **options)
        sent.wait_final(timeout=timeout,
                        match=match or r"\A(?!Something on our side)")
        return sent.original.text()

    def create(self, *users):
        """Make sandboxes."""
        for user in users:
            text = self.say("create", user=user)
            assert "sandbox" in text.lower(), text

    # Containers

    def containers(self, kind):
        """The ids of the containers of a class: user, pip, api, session."""
        return self.sh("docker ps -q --no-trunc --filter "
                       f"label=inline.class={kind}").split()

    def first_process(self, container):
        """The host's pid of a container's PID 1."""
        return int(self.sh("docker inspect -f '{{.State.Pid}}' " + container))


def trusted(house):
    """A TLS context of this machine that trusts our authority."""
    return ssl.create_default_context(cafile=house.authority.path("ca.pem"))


__all__ = ["Session", "figure", "note", "test", "run", "trusted", "NAME",
           "ENV", "WAIT", "sys"]
