#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The chat page shows and does what Discord's client does.

With SCREENSHOTS=folder it leaves pictures there, to be looked at.
"""

import json
import os
import struct
import sys
import tempfile
import threading
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_browser  # noqa: E402
from client import Standin  # noqa: E402
from fakeapp import FakeApp, NO_PING  # noqa: E402
from tap import run, test  # noqa: E402

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
            option(BOOLEAN, "share", "Answer in public")]},
        {"type": 1, "name": "look", "description": "List a directory",
         "options": [
             option(STRING, "path", "Where", autocomplete=True),
             option(INTEGER, "page", "Which page", min_value=1)]},
        {"type": 1, "name": "put", "description": "Store a file",
         "options": [
             option(ATTACHMENT, "file", "The file", required=True),
             option(STRING, "path", "Where")]},
    ]},
    {"name": "health", "description": "How Inline is"},
    {"name": "Run Python", "type": 3},
]


def png(width, height):
    """Return a PNG of one colour."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes((x * 255 // width, y * 255 // height, 150))[
        :3] for y in range(height) for x in [0])
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
        self.last = None
        self.token = None
        self.answered = 0

    def answers(self, interaction):
        """Answer one interaction."""
        self.last = interaction
        self.answered += 1
        if interaction["type"] == 4:
            typed = self.options().get("path", "")
            return {"type": 8, "data": {"choices": [
                {"name": name, "value": name.rstrip("/")}
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
discord = Standin(fake.url, commands=commands, rate_limit=1000)
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


@test
def a_command_is_thinking_then_final_then_edited():
    say("/il py print('hello')", DEFER)
    browser.wait("text('[data-state=thinking]').includes('thinking')")
    assert app.options() == {"code": "print('hello')"}
    fake.edit(app.token, {"content": "```\nhello\n```"})
    browser.wait(f"text('{FINAL} pre') === 'hello'")
    assert "Only you can see this" in browser.shown()
    assert "used /il py" in browser.shown()
    assert "(edited)" not in browser.shown()
    fake.edit(app.token, {"content": "```\nhello again\n```exit 0"})
    browser.wait(f"text('{FINAL} pre') === 'hello again'")
    browser.wait("text('[data-part=edited]').includes('(edited)')")
    assert browser.evaluate("one('#composer').value") == ""


@test
def code_over_several_lines_and_options_by_name():
    code = "```py\nwith open('x') as file:\n    print(1)\n```"
    say(code and "/il py " + code + " share:true stdin:1 2", message("ok"))
    browser.wait(f"text('{FINAL}').includes('ok')")
    assert app.options() == {"code": code, "share": True, "stdin": "1 2"}
    say("/il py with open('x') as file:\n    pass", message("bare"))
    browser.wait(f"text('{FINAL}').includes('bare')")
    assert app.options() == {"code": "with open('x') as file:\n    pass"}
    say("/il look data page:2", message("page"))
    browser.wait(f"text('{FINAL}').includes('page')")
    assert app.options() == {"path": "data", "page": 2}
    say("/il look page:0", message("never"))
    browser.wait("text('#problem').includes('at least 1')")
    say("/il put", message("never"))
    browser.wait("text('#problem').includes('file is required')")


@test
def shift_and_enter_makes_a_new_line():
    app.reply = message("two lines")
    browser.type("#composer", "/il py a = 1")
    browser.key("Enter", shift=True)
    browser.send("Input.insertText", text="print(a)")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('two lines')")
    assert app.options() == {"code": "a = 1\nprint(a)"}


@test
def a_line_is_sent_once_and_comes_back_when_it_cannot_be():
    app.reply = message("only once")
    app.answered = 0
    browser.type("#composer", "/il py once")
    browser.evaluate("for (let i = 0; i < 2; i++) one('#composer')"
                     ".dispatchEvent(new KeyboardEvent('keydown', "
                     "{ key: 'Enter', bubbles: true }))")
    browser.wait(f"text('{FINAL}').includes('only once')")
    say("/il py second", message("then another"))
    browser.wait(f"text('{FINAL}').includes('then another')")
    assert app.answered == 2, app.answered
    browser.evaluate("window.before = window.fetch; window.fetch = "
                     "async () => { throw new Error('cut off'); }; true")
    say("/il py print('kept')", message("never"))
    browser.wait("text('#problem').includes('cut off')")
    browser.evaluate("window.fetch = window.before; true")
    assert browser.evaluate("one('#composer').value") == (
        "/il py print('kept')")


@test
def the_palette_is_used_with_the_keyboard():
    browser.type("#composer", "/")
    browser.wait("all('#palette [role=option]').length === 4")
    picture("palette")
    assert browser.evaluate("one('#composer').getAttribute("
                            "'aria-expanded')") == "true"
    browser.key("ArrowDown")
    browser.key("Tab")
    assert browser.evaluate("one('#composer').value") == "/il look "
    browser.wait("one('#options [data-option=path]')")
    browser.send("Input.insertText", text="da")
    browser.wait("all('#palette [data-choice]').length === 2")
    assert app.last["type"] == 4
    assert app.options() == {"path": "da"}
    browser.key("Tab")
    browser.wait("one('#composer').value.startsWith('/il look data')")
    app.reply = message("listed")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('listed')")
    assert app.options() == {"path": "data"}


@test
def public_answers_are_seen_by_all_and_private_ones_by_one():
    say("/il py 1", {"type": 4, "data": {"content": "public answer",
                                         "allowed_mentions": NO_PING}})
    browser.wait("text('#messages').includes('public answer')")
    browser.choose("#user", "bob")
    browser.wait("!text('#messages').includes('hello again')")
    browser.wait("text('#messages').includes('public answer')")
    browser.choose("#user", "alice")
    browser.wait("text('#messages').includes('hello again')")


@test
def ansi_colours_and_python_are_coloured():
    say("/il py x", message("```ansi\n\u001b[1;31mred\u001b[0m plain\n```"
                            "```py\ndef f(): return 'x'  # why\n```"))
    browser.wait("text('.ansi-31') === 'red'")
    browser.wait("all('.syntax-keyword').length >= 2")
    assert "\u001b" not in browser.shown()


@test
def what_users_write_is_never_markup():
    evil = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
    say("/il py x", message(evil + "[x](javascript:alert(1))", embeds=[
        {"title": evil, "description": evil, "fields": [
            {"name": evil[:90], "value": evil}]}]))
    browser.wait("text('[data-part=embed]').includes('onerror')")
    assert browser.evaluate("document.title") == "Inline in chat"
    assert browser.evaluate("all('.message b img, .message img[src=x]')"
                            ".length") == 0
    assert browser.evaluate("all('a[href^=javascript]').length") == 0


@test
def images_are_shown_and_files_can_be_fetched():
    say("/il py plot()", DEFER)
    browser.wait("text('[data-state=thinking]')")
    fake.edit(app.token, {
        "content": "```\ndone\n```exit 0 · 0.31 s · 24 MiB",
        "attachments": [{"id": "0", "filename": "plot.png"},
                        {"id": "1", "filename": "output.txt"}],
        "components": [row(("Run again", "again:1", 1),
                           ("Edit", "edit:1", 2),
                           ("Delete", "delete:1", 4))],
    }, [("plot.png", png(360, 180)), ("output.txt", b"line one\nline two\n")])
    browser.wait("last('img[data-image=\"plot.png\"]').naturalWidth === 360")
    browser.wait("last('a[data-download=\"output.txt\"]')")
    browser.click(".file .preview")
    browser.wait("text('.file pre').includes('line two')")
    picture("files")


@test
def buttons_act_and_someone_elses_too():
    say("/il look", {"type": 4, "data": {
        "content": "page 1", "allowed_mentions": NO_PING,
        "components": [row(("Next", "next:9", 2))]}})
    browser.wait("last('button[data-custom-id=\"next:9\"]')")
    app.reply = {"type": 7, "data": {"content": "page 2",
                                     "allowed_mentions": NO_PING}}
    browser.click("button[data-custom-id='next:9']")
    browser.wait("text('#messages').includes('page 2')")
    assert app.last["type"] == 3
    browser.choose("#user", "bob")
    browser.wait("!text('#messages').includes('Only you')")
    app.reply = message("This is not yours.")
    browser.click("button[data-custom-id='next:9']")
    browser.wait("text('[data-ephemeral=true]').includes('not yours')")
    assert app.last["member"]["user"]["username"] == "bob"
    app.reply = (500, b"")
    browser.click("button[data-custom-id='next:9']")
    browser.wait("text('.failed').includes('failed')")
    discord.clear_violations()
    browser.choose("#user", "alice")


@test
def select_menus_send_what_is_chosen():
    menu = {"type": 1, "components": [{
        "type": 3, "custom_id": "open:3", "placeholder": "Open a file",
        "options": [{"label": "a.txt", "value": "a"},
                    {"label": "b.txt", "value": "b"}]}]}
    say("/il look", message("files", components=[menu]))
    browser.wait("last('select[data-custom-id=\"open:3\"]')")
    app.reply = message("opened b")
    browser.choose("select[data-custom-id='open:3']", "b")
    browser.wait("text('#messages').includes('opened b')")
    assert app.last["data"]["values"] == ["b"]


@test
def a_modal_opens_filled_and_is_submitted():
    say("/il py", {"type": 9, "data": {
        "custom_id": "run:1", "title": "Run Python", "components": [
            {"type": 10, "content": "Your **code** runs in a sandbox."},
            {"type": 18, "label": "Code", "description": "Up to 4000",
             "component": {"type": 4, "custom_id": "code", "style": 2,
                           "value": "print(1)", "max_length": 4000}},
            {"type": 18, "label": "Input", "component": {
                "type": 4, "custom_id": "stdin", "style": 1,
                "required": False}},
            {"type": 18, "label": "Files", "component": {
                "type": 19, "custom_id": "files", "required": False,
                "max_values": 3}},
            {"type": 18, "label": "Public", "component": {
                "type": 23, "custom_id": "share"}}]}})
    browser.wait("one('#modal').open")
    assert browser.evaluate("one('[data-field=code]').value") == "print(1)"
    picture("modal")
    browser.type("[data-field=code]", "")
    browser.key("Backspace")
    browser.click("#modal-submit")
    browser.wait("text('#modal-problem').includes('required')")
    browser.type("[data-field=code]", "print(2)\nprint(3)")
    path = os.path.join(folder.name, "in.csv")
    with open(path, "w") as out:
        out.write("a,b\n")
    browser.set_files("[data-field=files]", path)
    browser.click("[data-field=share]")
    app.reply = message("submitted")
    browser.click("#modal-submit")
    browser.wait("!one('#modal').open")
    browser.wait("text('#messages').includes('submitted')")
    assert app.last["type"] == 5
    fields = {one["component"]["custom_id"]: one["component"]
              for one in app.last["data"]["components"]
              if "component" in one}
    assert fields["code"]["value"] == "print(2)\nprint(3)"
    assert fields["share"]["value"] is True
    [name] = fields["files"]["values"]
    assert app.last["data"]["resolved"]["attachments"][name]["filename"] == (
        "in.csv")


@test
def legacy_modals_and_their_refusal():
    say("/il py", {"type": 9, "data": {
        "custom_id": "old", "title": "Old", "components": [
            {"type": 1, "components": [{
                "type": 4, "custom_id": "name", "style": 1,
                "label": "Name"}]}]}})
    browser.wait("one('#modal').open")
    browser.type("[data-field=name]", "x.py")
    app.reply = (500, b"")
    browser.click("#modal-submit")
    browser.wait("text('#modal-problem').includes('went wrong')")
    assert browser.evaluate("one('[data-field=name]').value") == "x.py"
    browser.click("#modal-cancel")
    browser.wait("!one('#modal').open")
    discord.clear_violations()


@test
def a_file_is_attached_to_a_command():
    path = os.path.join(folder.name, "data.csv")
    with open(path, "w") as out:
        out.write("1,2\n")
    browser.type("#composer", "/il put ")
    browser.wait("one('[data-option=file]')")
    browser.evaluate("one('#picker').click = () => {}")
    browser.click("[data-option=file]")
    browser.set_files("#picker", path)
    browser.wait("text('[data-option=file]').includes('data.csv')")
    app.reply = message("stored")
    browser.evaluate("one('#composer').focus()")
    browser.key("Enter")
    browser.wait("text('#messages').includes('stored')")
    [file] = app.last["data"]["resolved"]["attachments"].values()
    assert file["filename"] == "data.csv" and file["size"] == 4


@test
def private_messages_are_dismissed_and_others_deleted():
    say("/il py x", message("dismiss me"))
    browser.wait("text('#messages').includes('dismiss me')")
    browser.click("[data-ephemeral=true] .dismiss")
    browser.wait("!text('#messages').includes('dismiss me')")
    say("/il py x", DEFER)
    browser.wait("text('[data-state=thinking]')")
    fake.call("DELETE", fake.hook(app.token, "/messages/@original"))
    browser.wait("!one('[data-state=thinking]')")
    say("hello everyone", None)
    browser.wait("text('[data-author=alice]').includes('hello everyone')")
    browser.click("[data-author=alice] .menu")
    app.reply = message("ran it")
    browser.click("[data-action='Run Python']")
    browser.wait("text('#messages').includes('ran it')")
    assert app.last["data"]["type"] == 3


@test
def components_of_the_second_version_are_drawn():
    say("/il py x", DEFER)
    browser.wait("text('[data-state=thinking]')")
    fake.edit(app.token, {
        "flags": 32768, "components": [{
            "type": 17, "accent_color": 0x23a55a, "components": [
                {"type": 10, "content": "### Finished\nexit 0 · 0.2 s"},
                {"type": 14},
                {"type": 12, "items": [
                    {"media": {"url": "attachment://a.png"}}]},
                {"type": 13, "file": {"url": "attachment://b.txt"}},
                row(("Run again", "v2:1", 3))]}],
        "attachments": [{"id": "0", "filename": "a.png"},
                        {"id": "1", "filename": "b.txt"}],
    }, [("a.png", png(200, 100)), ("b.txt", b"text")])
    browser.wait("last('.container img').naturalWidth === 200")
    browser.wait("text('.container').includes('Finished')")
    browser.wait("last('.container a[data-download=\"b.txt\"]')")
    picture("v2")


@test
def an_application_that_does_not_answer_is_said_so():
    say("/health", (500, b""))
    browser.wait("text('[data-state=notice]').includes('did not respond')")
    discord.clear_violations()


@test
def edits_come_live_while_something_runs():
    say("/il py for i in range(3): print(i)", DEFER)
    browser.wait("text('[data-state=thinking]')")
    for number in range(3):
        threading.Thread(target=fake.edit, args=(
            app.token, {"content": f"```\nstep {number}\n```"})).start()
        browser.wait(f"text('{FINAL} pre') === 'step {number}'")


@test
def it_fits_a_small_screen():
    browser.evaluate("new Promise(done => { const m = one('#messages');"
                     "m.scrollTop = 0; m.scrollTop = 1e6;"
                     "requestAnimationFrame(() => setTimeout(done)); })")
    browser.resize(390, 844)
    try:
        browser.wait("innerWidth === 390")
        wide = browser.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, wide
        wider = browser.evaluate("all('#messages .body *').filter(n => "
                                 "n.getBoundingClientRect().right > 390)"
                                 ".map(n => n.outerHTML)")
        assert wider == [], wider
        browser.wait("one('#messages').scrollHeight - one('#messages')"
                     ".scrollTop - one('#messages').clientHeight < 2")
        picture("small")
        for selector in ("#composer", "#send", "#user",
                         "[data-channel=dm]"):
            box = browser.evaluate(
                f"(r => [r.x, r.right, r.y, r.bottom])(one('{selector}')"
                ".getBoundingClientRect())")
            assert box[0] >= 0 and box[1] <= 390, (selector, box)
            assert box[2] >= 0 and box[3] <= 844, (selector, box)
        browser.click("[data-channel=dm]")
        say("/health", message("healthy"))
        browser.wait("text('#messages').includes('healthy')")
        assert app.last["context"] == 1
        browser.click("[data-channel=guild]")
    finally:
        browser.resize(1280, 800)


@test
def controls_have_names_and_the_page_no_complaints():
    nameless = browser.evaluate(
        "all('button, select, textarea, input, a').filter(n => "
        "!n.hidden && !(n.innerText || '').trim() && "
        "!n.getAttribute('aria-label') && !n.labels?.length && "
        "!n.querySelector('img[alt]')).map(n => n.outerHTML)")
    assert nameless == [], nameless
    ignored = ("status of 500", "status of 400")
    problems = [one for one in browser.problems
                if not any(word in one for word in ignored)]
    assert problems == [], problems
    discord.assert_no_violations()
    picture("desktop")


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


if __name__ == "__main__":
    main()
