#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The chat page shows and does what Discord's client does."""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chatpage import (  # noqa: E402
    DEFER, FINAL, NO_PING, app, assert_whole, browser, discord, fake, fits,
    folder, line, main, message, picture, png, row, say)
from tap import test  # noqa: E402

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
    colours = ("4f545c", "dc322f", "859900", "b58900", "268bd2", "d33682",
               "2aa198", "ffffff")
    say("/il py x", message("```ansi\n" + "".join(
        f"\u001b[{30 + n}mfront{n}\u001b[0m " for n in range(8)) + "\n```"))
    browser.wait("text('.ansi-37') === 'front7'")
    for number, colour in enumerate(colours):
        shown = browser.evaluate(
            f"getComputedStyle(last('.ansi-{30 + number}')).color")
        assert shown == "rgb({}, {}, {})".format(
            *bytes.fromhex(colour)), (number, shown)
    picture("ansi")
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
    browser.wait("text('[data-part=edited]').includes('(edited)')")
    app.reply = {"type": 9, "data": {
        "custom_id": "e", "title": "From a button", "components": [
            {"type": 18, "label": "Code", "component": {
                "type": 4, "custom_id": "code", "style": 2}}]}}
    browser.click("button[data-custom-id='next:9']")
    browser.wait("one('#modal').open && "
                 "text('#modal-title') === 'From a button'")
    browser.key("Escape")
    browser.wait("!one('#modal').open")
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
    browser.wait("last('select[data-custom-id=\"open:3\"]').value === ''")
    app.reply = (500, b"")
    browser.choose("select[data-custom-id='open:3']", "b")
    browser.wait("text('.failed').includes('failed')")
    discord.clear_violations()
    picture("select")


@test
def several_options_are_chosen_with_boxes():
    menu = {"type": 1, "components": [{
        "type": 3, "custom_id": "files:3", "placeholder": "Up to two files",
        "min_values": 1, "max_values": 2, "options": [
            {"label": f"{name}.txt", "value": name, "description": "a file"}
            for name in "abc"]}]}
    say("/il look", message("several", components=[menu]))
    inside = "fieldset[data-custom-id='files:3'] "
    browser.wait(f"last(\"{inside}button\").disabled")
    for name in "ac":
        browser.click(f"{inside}input[value={name}]")
    picture("boxes")
    browser.click(inside + "input[value=b]")
    browser.wait(f"last(\"{inside}button\").disabled")
    browser.click(inside + "input[value=b]")
    app.reply = message("got two")
    browser.click(inside + "button")
    browser.wait("text('#messages').includes('got two')")
    assert app.last["data"]["values"] == ["a", "c"]


@test
def an_answer_that_breaks_discords_limits_is_none():
    say("/il look", message("never seen", components=[{
        "type": 1, "components": [{"type": 3, "custom_id": "s", "options": [
            {"label": f"l{n}", "value": f"v{n}"} for n in range(26)]}]}]))
    browser.wait("text('[data-state=notice]').includes('did not respond')")
    assert "never seen" not in browser.shown()
    kinds = {one["kind"] for one in discord.clear_violations()}
    assert "endpoint" in kinds, kinds


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
def fields_of_a_modal_have_limits():
    say("/il py", {"type": 9, "data": {
        "custom_id": "run:2", "title": "Limits", "components": [
            {"type": 18, "label": "Packages", "component": {
                "type": 3, "custom_id": "names", "max_values": 2,
                "options": [{"label": name, "value": name}
                            for name in ("numpy", "pandas", "scipy")]}},
            {"type": 18, "label": "Version", "component": {
                "type": 3, "custom_id": "version", "options": [
                    {"label": "3.11", "value": "3.11"},
                    {"label": "3.13", "value": "3.13"}]}},
            {"type": 18, "label": "Files", "component": {
                "type": 19, "custom_id": "files", "required": False,
                "max_values": 2, "file_types": [".py"]}}]}})
    browser.wait("one('#modal').open")
    for name in ("numpy", "pandas", "scipy"):
        browser.click(f"[data-field=names] input[value={name}]")
    browser.click("#modal-submit")
    browser.wait("text('#modal-problem').includes('at most 2 choices')")
    browser.click("[data-field=names] input[value=scipy]")
    browser.click("#modal-submit")
    browser.wait("text('#modal-problem').includes('Version is required')")
    browser.choose("[data-field=version]", "3.13")
    paths = [os.path.join(folder.name, name)
             for name in ("a.py", "b.py", "c.py", "d.csv")]
    for path in paths:
        with open(path, "w") as out:
            out.write("1\n")
    for chosen, wrong in ((paths[:3], "at most 2 files"),
                          (paths[2:], "only .py")):
        browser.set_files("[data-field=files]", *chosen)
        browser.click("#modal-submit")
        browser.wait(f"text('#modal-problem').includes('{wrong}')")
    picture("modal-limits")
    browser.set_files("[data-field=files]", *paths[:2])
    app.reply = message("all within them")
    browser.click("#modal-submit")
    browser.wait("!one('#modal').open")
    browser.wait("text('#messages').includes('all within them')")
    fields = [one["component"] for one in app.last["data"]["components"]]
    assert fields[0]["values"] == ["numpy", "pandas"]
    assert fields[1]["values"] == ["3.13"]
    assert len(fields[2]["values"]) == 2


@test
def a_command_that_is_mentioned_can_be_clicked():
    say("/il py x", message("Make one with </il look:123456>."))
    browser.click("button.mention")
    assert line() == "/il look "
    browser.wait("one('#options [data-option=path]')")
    browser.type("#composer", "x")
    browser.key("Backspace")


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


def menu_entries():
    """Return what the open menu has."""
    browser.wait("one('#menu')")
    return browser.evaluate("all('#menu button').map(n => n.innerText)")


@test
def message_commands_are_in_the_menu_of_each_message():
    stored = json.loads(discord.http(
        "POST", "/control/attachment?filename=job.py", b"print(1)")[1])
    discord.call("POST", "/control/message", {
        "content": "", "attachments": [stored["id"]]})
    browser.wait("last('.message a[data-download=\"job.py\"]')")
    app.reply = message("ran the file")
    browser.right_click(".message:last-child .author")
    assert menu_entries() == ["Run Python", "Edit and run", "Copy text",
                              "Delete message"]
    assert "Apps" in browser.evaluate("text('#menu')")
    picture("menu")
    browser.click("[data-action='Run Python']")
    browser.wait("text('#messages').includes('ran the file')")
    assert "used Run Python" in browser.evaluate("text('[data-part=used]')")
    data = app.last["data"]
    [(target, found)] = data["resolved"]["messages"].items()
    assert data["target_id"] == target and data["name"] == "Run Python"
    assert found["attachments"][0]["filename"] == "job.py"
    assert found["author"]["username"] == "alice" and "embeds" in found


@test
def the_menu_is_used_with_the_keyboard_and_by_a_long_press():
    say("```py\nprint(1)\n```", None)
    browser.wait("text('[data-author=alice] pre').includes('print')")
    button = "[data-author=alice] .menu"
    browser.evaluate(f"last('{button}').focus()")
    browser.key("Enter")
    assert "Run Python" in menu_entries()
    focused = "document.activeElement.innerText"
    assert browser.evaluate(focused) == "Run Python"
    for key, wanted in (("ArrowDown", "Edit and run"),
                        ("End", "Delete message"),
                        ("ArrowDown", "Run Python"),
                        ("ArrowUp", "Delete message"), ("Home", "Run Python")):
        browser.key(key)
        assert browser.evaluate(focused) == wanted, key
    browser.key("Escape")
    assert not browser.evaluate("one('#menu')")
    assert browser.evaluate(f"document.activeElement === last('{button}')")
    browser.key("Enter")
    menu_entries()
    browser.key("ArrowDown")
    app.reply = {"type": 9, "data": {
        "custom_id": "e", "title": "Edit and run", "components": [
            {"type": 18, "label": "Code", "component": {
                "type": 4, "custom_id": "code", "style": 2,
                "value": "print(1)"}}]}}
    browser.key("Enter")
    browser.wait("one('#modal').open")
    assert app.last["data"]["name"] == "Edit and run"
    browser.click("#modal-cancel")
    browser.resize(390, 844)
    try:
        browser.wait("innerWidth === 390")
        browser.touch("[data-author=alice] .author")
        assert "Run Python" in menu_entries()
        browser.lift()
        fits(390)
        picture("menu-small")
        browser.click("#channel-name")
        browser.wait("!one('#menu')")
    finally:
        browser.resize(1280, 800)


@test
def a_message_that_is_gone_is_no_target():
    say("about to go", None)
    browser.wait("text('[data-author=alice]').includes('about to go')")
    browser.evaluate("window.before = window.fetch; window.fetch = "
                     "(path, o) => window.before(path, o?.method === 'POST' "
                     "? { ...o, body: o.body.replace(/\"target\":\"\\d+\"/, "
                     "'\"target\":\"1\"') } : o); true")
    browser.click("[data-author=alice] .menu")
    browser.click("[data-action='Run Python']")
    browser.wait("text('.failed').includes('no such message')")
    browser.evaluate("window.fetch = window.before; true")


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
def a_first_answer_is_shown_at_once_and_marked_when_edited():
    say("/il py 2 + 2", {"type": 4, "data": {
        "content": "```\n4\n```", "flags": 64, "allowed_mentions": NO_PING,
        "components": [row(("Re-run", "rerun:1", 2), ("Edit", "edit:1", 2))]}})
    browser.wait(f"text('{FINAL} pre') === '4'")
    newest = "[...last('.message').querySelectorAll('[data-part=edited]')]"
    assert browser.evaluate(newest + ".length") == 0
    assert browser.evaluate("last('button[data-label=\"Re-run\"]')"
                            ".dataset.customId") == "rerun:1"
    fake.edit(app.token, {"content": "```\n4\n```with a file"})
    browser.wait(newest + ".length === 1")
    fake.follow_up(app.token, {"content": "a follow-up", "flags": 64})
    browser.wait(f"text('{FINAL}').includes('a follow-up')")
    picture("instant")


@test
def it_says_when_the_service_has_gone_and_comes_back():
    say("/il py kept", message("said before the end", components=[
        row(("Once more", "more:1", 1))]))
    browser.wait(f"text('{FINAL}').includes('said before the end')")
    discord.options["port"] = discord.port
    discord.stop()
    browser.wait("!one('#gone').hidden && "
                 "text('#gone').includes('The service has gone')")
    assert browser.evaluate("one('#link').dataset.state") == "broken"
    picture("gone")
    browser.resize(390, 844)
    fits(390)
    picture("gone-small")
    browser.resize(1280, 800)
    browser.type("#composer", "/il py typed meanwhile")
    browser.key("Enter")
    browser.wait("text('#problem').includes('cannot be reached')")
    assert line() == "/il py typed meanwhile"
    discord.start()
    fake.use(discord)
    browser.wait("one('#link').dataset.state === 'live'", 20)
    assert browser.evaluate("one('#gone').hidden")
    assert line() == "/il py typed meanwhile"
    browser.wait(f"text('{FINAL}').includes('said before the end')")
    app.reply = {"type": 7, "data": {"content": "and pressed after it",
                                     "allowed_mentions": NO_PING}}
    browser.click("button[data-custom-id='more:1']")
    browser.wait(f"text('{FINAL}').includes('and pressed after it')")
    browser.type("#composer", "")
    browser.key("Backspace")


@test
def it_fits_a_small_screen():
    browser.evaluate("new Promise(done => { const m = one('#messages');"
                     "m.scrollTop = 0; m.scrollTop = 1e6;"
                     "requestAnimationFrame(() => setTimeout(done)); })")
    browser.resize(390, 844)
    try:
        fits(390)
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
    assert_whole()
    picture("desktop")


if __name__ == "__main__":
    main()
