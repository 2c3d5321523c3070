# SPDX-License-Identifier: MIT
"""What the tests of the chat page share: an application that answers what it
is told, one stand-in, one browser.

With SCREENSHOTS=folder they leave pictures there, to be looked at.
"""

import json
import os
import struct
import sys
import tempfile
import zlib

from browser import Browser, find_browser
from client import Standin
from fakeapp import FakeApp, NO_PING
from tap import run

if find_browser() is None:
    print("1..0 # SKIP no chromium")
    sys.exit(0)

STRING, INTEGER, BOOLEAN, ATTACHMENT = 3, 4, 5, 11
PICTURES = os.environ.get("SCREENSHOTS")


def option(kind, name, about, **more):
    """Return an option of a command."""
    return dict(type=kind, name=name, description=about, **more)


COMMANDS = [
    {"name": "il", "description": "Python for everyone", "options": [
        {"type": 1, "name": "py", "description": "Run Python", "options": [
            option(STRING, "code", "The code", max_length=6000),
            option(STRING, "file", "A file of the sandbox"),
            option(STRING, "stdin", "What the program reads"),
            option(BOOLEAN, "share", "Answer in public"),
            option(STRING, "version", "Which Python", choices=[
                {"name": "Python 3.11", "value": "3.11"},
                {"name": "Python 3.13", "value": "3.13"}])]},
        {"type": 1, "name": "look", "description": "List a directory",
         "name_localizations": {"de": "übersicht"},
         "description_localizations": {"de": "Zeigt einen Ordner"},
         "options": [
             option(STRING, "path", "Where", autocomplete=True,
                    name_localizations={"de": "ordner-öffnen"}),
             option(INTEGER, "page", "Which page", min_value=1)]},
        {"type": 1, "name": "put", "description": "Store a file",
         "options": [
             option(ATTACHMENT, "file", "The file", required=True),
             option(STRING, "path", "Where")]},
    ]},
    {"name": "health", "description": "How Inline is"},
    {"name": "Run Python", "type": 3,
     "name_localizations": {"de": "Python ausführen"}},
    {"name": "Edit and run", "type": 3},
]


def png(width, height):
    """Return a PNG of one colour."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 255 // width, y * 255 // height, 160))
                         for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0,
                                         0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def row(*buttons):
    """Return an action row of (label, custom id, style)."""
    return {"type": 1, "components": [
        {"type": 2, "label": label, "custom_id": name, "style": style}
        for label, name, style in buttons]}


class App:
    """Answers as Inline would, only simpler."""

    def __init__(self):
        self.reply = None
        self.complete = None
        self.last = None
        self.token = None
        self.answered = 0

    def answers(self, interaction):
        """Answer one interaction."""
        self.last = interaction
        self.answered += 1
        if interaction["type"] == 4 and self.complete:
            return self.complete(interaction)
        if interaction["type"] == 4:
            typed = self.options().get("path", "")
            return {"type": 8, "data": {"choices": [
                {"name": name, "value": name.rstrip("/"),
                 "name_localizations": {"de": name.replace("data", "Daten")}}
                for name in ("data/", "date.txt", "notes.txt")
                if name.startswith(typed)]}}
        self.token = interaction["token"]
        return self.reply

    def options(self):
        """Return the leaf options of the last command."""
        data = self.last["data"]
        for found in data.get("options", []):
            data = found
        return {one["name"]: one["value"] for one in data.get("options", [])}


app = App()
fake = FakeApp(app.answers)
folder = tempfile.TemporaryDirectory(prefix="standin-page-")
commands = os.path.join(folder.name, "commands.json")
with open(commands, "w") as file:
    json.dump(COMMANDS, file)
discord = Standin(fake.url, commands=commands, rate_limit=1000,
                  history=os.path.join(folder.name, "history.db"),
                  key_file=os.path.join(folder.name, "key"))
browser = Browser(1280, 800)
DEFER = {"type": 5, "data": {"flags": 64}}
FINAL = "[data-state=final]"


def message(content, **more):
    """Return an answer with a private message."""
    return {"type": 4, "data": dict(content=content, flags=64,
                                    allowed_mentions=NO_PING, **more)}


def say(text, reply):
    """Type a line and send it; the app will answer `reply`."""
    app.reply = reply
    browser.type("#composer", text)
    browser.key("Enter")


def picture(name):
    """Leave a picture, if wished."""
    if PICTURES:
        browser.screenshot(os.path.join(PICTURES, name + ".png"))


def main():
    """Start everything, run the tests, stop everything."""
    with folder, discord, browser:
        fake.use(discord)
        browser.goto(discord.origin + "/")
        browser.wait("text('#link') === 'live'")
        try:
            run()
        finally:
            fake.close()


def fits(width):
    """Assert that nothing is wider than the window."""
    browser.wait(f"innerWidth === {width}")
    wide = browser.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, wide
    wider = browser.evaluate(
        "all('#entry *, #messages .body *, #menu, #gone').filter(n => "
        f"n.getBoundingClientRect().right > {width}).map(n => n.outerHTML)")
    assert wider == [], wider


def line():
    """Return what stands in the line."""
    return browser.evaluate("one('#composer').value")


def assert_whole():
    """Assert that all controls have names, and that neither the browser nor
    Discord has a complaint.
    """
    nameless = browser.evaluate(
        "all('button, select, textarea, input, a').filter(n => "
        "!n.hidden && !(n.innerText || '').trim() && "
        "!n.getAttribute('aria-label') && !n.labels?.length && "
        "!n.querySelector('img[alt]')).map(n => n.outerHTML)")
    assert nameless == [], nameless
    ignored = ("status of 500", "status of 400", "ERR_CONNECTION_REFUSED",
               "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")
    problems = [one for one in browser.problems
                if not any(word in one for word in ignored)]
    assert problems == [], problems
    discord.assert_no_violations()
