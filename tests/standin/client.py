# SPDX-License-Identifier: MIT
"""What tests use of the stand-in for Discord.

    with Standin(endpoint="http://127.0.0.1:8080/interactions") as discord:
        run = discord.send_command("py", code="print(1)", user="alice")
        run.wait_final(match="1")
        assert run.original.ephemeral
        again = discord.press(run.original, "Re-run")
        discord.assert_no_violations()

Everything raises StandinError when the stand-in refuses a request, and
AssertionError when what was waited for did not come.
"""

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import urllib.parse

from results import (  # noqa: E402
    PATIENCE, Attachment, File, Interaction, Message)

__all__ = ["Attachment", "File", "Interaction", "Message", "Standin",
           "StandinError"]
HERE = os.path.dirname(os.path.abspath(__file__))
# Discord's description of its API, where the developer has a copy beside the
# project; all bodies are then checked by it.
OPENAPI = os.path.normpath(os.path.join(
    HERE, "..", "..", "..", "shared", "discord", "openapi-subset.json"))
START_SECONDS = 60.0
# Discord's three seconds are nothing to judge a busy machine by: tests of them
# say so.
DEADLINE_SECONDS = 60.0
PLAIN_COMMANDS = ("health",)


class StandinError(Exception):
    """The stand-in did not do as told."""


class Standin:
    """A stand-in: a child process of one's own, or one already running."""

    def __init__(self, endpoint="", **options):
        """`options` are those of standin.py, with _ for -."""
        self.options = {"deadline": DEADLINE_SECONDS, **options, "endpoint": endpoint}
        if os.path.exists(OPENAPI):
            self.options.setdefault("openapi", OPENAPI)
        self.port = None
        self.process = None

    @classmethod
    def attach(cls, port):
        """Use a stand-in that runs already."""
        standin = cls()
        standin.port = port
        standin.settings(deadline=DEADLINE_SECONDS)
        if "openapi" in standin.options:
            standin.settings(openapi=OPENAPI)
        return standin

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def origin(self):
        """Its address, as http://127.0.0.1:PORT."""
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Start it, and return once it accepts connections."""
        reader, writer = os.pipe()
        command = [sys.executable, "-B", os.path.join(HERE, "standin.py"),
                   "--ready-fd", str(writer)]
        for name, value in self.options.items():
            if value is not None:
                command += ["--" + name.replace("_", "-"), str(value)]
        try:
            self.process = subprocess.Popen(command, pass_fds=(writer,),
                                            stdin=subprocess.DEVNULL)
            os.close(writer)
            writer = None
            ready, _, _ = select.select([reader], [], [], START_SECONDS)
            line = os.read(reader, 16) if ready else b""
        finally:
            os.close(reader)
            if writer is not None:
                os.close(writer)
        if not line.strip().isdigit():
            self.stop()
            raise StandinError("the stand-in does not start")
        self.port = int(line)
        return self

    def stop(self):
        """End it; returns its exit code, or None when not started here."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    # Plain requests

    def call(self, method, path, value=None, timeout=60):
        """Make a request to the control API; returns its JSON value."""
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"}
        status, data = self.http(method, path, body, headers, timeout)
        answer = json.loads(data)
        if status != 200:
            raise StandinError(f"{method} {path}: {status} {answer}")
        return answer

    def http(self, method, path, body=None, headers=None, timeout=60):
        """Make any request; returns (status, bytes)."""
        link = http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=timeout)
        try:
            link.request(method, path, body, headers or {})
            answer = link.getresponse()
            return answer.status, answer.read()
        finally:
            link.close()

    def get(self, path, timeout=60):
        """Read from the control API."""
        return self.call("GET", path, timeout=timeout)

    def fetch(self, path):
        """Fetch a file's bytes."""
        status, data = self.http("GET", path)
        if status != 200:
            raise StandinError(f"{path}: {status}")
        return data

    def environment(self):
        """Return the settings with which Inline talks to it."""
        known = self.settings()
        return {"DISCORD_PUBLIC_KEY": known["public_key"],
                "DISCORD_APPLICATION_ID": known["application_id"],
                "DISCORD_TOKEN": known["bot_token"],
                "IL_TUNE_DISCORD_API_BASE": self.origin + "/api/v10"}

    # What a person does

    def send(self, order):
        """Send any interaction; CONTROL.md tells an order's fields."""
        return Interaction(self, self.call("POST", "/control/interaction",
                                           order)["id"])

    def send_many(self, orders):
        """Send many interactions at once."""
        ids = self.call("POST", "/control/interactions",
                        {"orders": orders}, 120)["ids"]
        return [Interaction(self, one) for one in ids]

    def wait_many(self, interactions, what="final", timeout=PATIENCE, **wish):
        """Wait for all of them; returns those for which it came true."""
        views = self.call("POST", "/control/wait", dict(
            wish, ids=[one.id for one in interactions], wait=what,
            timeout=timeout), timeout + 60)
        for one, view in zip(interactions, views):
            one.view = view
        return [one for one in interactions if one.view["satisfied"]]

    def command_order(self, name, /, *, user="alice", place="guild",
                      focused=None, order=None, **options):
        """Return the order of a slash command; see send_command."""
        values = {key: value.order() if isinstance(value, File) else value
                  for key, value in options.items()}
        made = {"user": user, "place": place, "options": values}
        if name in PLAIN_COMMANDS:
            made["command"] = name
        else:
            made.update(command="il", sub=name.split())
        if focused:
            made["focused"] = focused
        made.update(order or {})
        return made

    def send_command(self, name, /, **options):
        """Send `/il name` (or `/health`) with these options.

        An option's value may be a File. `user`, `place` (guild, dm, group),
        `focused` (autocomplete) and `order` (further fields) are not
        options of the command.
        """
        return self.send(self.command_order(name, **options))

    def autocomplete(self, name, /, focused, timeout=PATIENCE, **options):
        """Ask for the choices of an option; returns them."""
        asked = self.send_command(name, focused=focused, **options)
        return asked.wait_answered(timeout).choices

    def press(self, message, button, *, user=None, order=None):
        """Press the button with this label, custom id or action.

        As the message's owner, unless another user is named.
        """
        control = message.control(button)
        return self.press_id(message, control["custom_id"], user=user,
                             order=order)

    def press_id(self, message, custom_id, *, user=None, order=None):
        """Press the button with exactly this custom id."""
        made = {"component": message.id, "custom_id": custom_id,
                "user": user or message.owner or self._invoker(message)}
        made.update(order or {})
        return self.send(made)

    def select(self, message, name, values, *, user=None, order=None):
        """Choose in a select menu."""
        made = dict(order or {}, values=values)
        return self.press(message, name, user=user, order=made)

    @staticmethod
    def _invoker(message):
        metadata = message.view.get("interaction_metadata") or {}
        return metadata.get("user", {}).get("id", "alice")

    def submit_modal(self, opener, values=None, *, order=None):
        """Submit the modal that an interaction opened.

        `values` maps custom ids to texts, lists of values, or lists of
        File; what is not named keeps its pre-filled value.
        """
        given = {}
        for name, value in (values or {}).items():
            if isinstance(value, list):
                value = [one.order() if isinstance(one, File) else one
                         for one in value]
            given[name] = value
        made = {"modal": opener.id, "values": given,
                "user": opener.refresh().view["user"]}
        made.update(order or {})
        return self.send(made)

    def write(self, content, *, user="alice", place="guild"):
        """Write a message; returns it."""
        return Message(self, self.call("POST", "/control/message", {
            "content": content, "user": user, "place": place}))

    def message(self, identifier):
        """Return a message with its history."""
        return Message(self, self.get(f"/control/messages/{identifier}"))

    def delete_message(self, message):
        """Delete or dismiss a message, as its reader."""
        self.call("DELETE", f"/control/messages/{message.id}")

    # What a test does

    def fault(self, kind, route="any", **fields):
        """Order a fault; faults.py tells the fields."""
        return self.call("POST", "/control/fault",
                         dict(fields, kind=kind, route=route))

    def faults(self):
        """Return the faults with how often each has struck."""
        return self.get("/control/fault")

    def clear_faults(self):
        """End all faults."""
        self.call("DELETE", "/control/fault")

    def advance_clock(self, seconds):
        """Age all tokens and links by so many seconds."""
        self.call("POST", "/control/clock", {"advance": seconds})

    def settings(self, **changes):
        """Change settings, and return all of them."""
        if changes:
            return self.call("POST", "/control/settings", changes)
        return self.get("/control/settings")

    def requests(self, **equal):
        """Return the REST requests seen, e.g. route="edit"."""
        return self.get("/control/requests?" + urllib.parse.urlencode(equal))

    def violations(self, ignore=()):
        """Return the rules broken, but for these kinds."""
        return self.get("/control/violations?ignore=" + ",".join(ignore))

    def clear_violations(self):
        """Forget the violations; returns them."""
        return self.call("DELETE", "/control/violations")

    def assert_no_violations(self, ignore=()):
        """Assert that Inline has broken none of Discord's rules."""
        found = self.violations(ignore)
        if found:
            raise AssertionError("violations: " + json.dumps(found, indent=1))

    def commands(self):
        """Return the commands registered."""
        return self.get("/control/commands")

    def reset(self):
        """Forget all messages, interactions, logs and faults."""
        self.call("POST", "/control/reset", {})
