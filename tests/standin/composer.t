#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What is typed in the chat page becomes what Discord's client would send."""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chatpage import (  # noqa: E402
    FINAL, app, assert_whole, browser, discord, fits, folder, line, main,
    message, picture, say)
from tap import test  # noqa: E402

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


def offered():
    """Return the values that are offered."""
    return browser.evaluate(
        "all('#palette [data-choice]').map(n => n.dataset.choice)")


def active():
    """Return the value that is marked in the list."""
    return browser.evaluate("one('#palette [aria-selected=true]')"
                            "?.dataset.choice ?? null")


@test
def values_are_completed_while_one_types():
    browser.type("#composer", "/il look page:2 path:")
    browser.wait("text('#palette').includes('Loading options')")
    browser.wait("all('#palette [data-choice]').length === 3")
    assert app.last["type"] == 4
    assert app.options() == {"path": "", "page": 2}, app.options()
    assert active() is None
    assert browser.evaluate("text('#palette-state')") == "3 to choose from"
    asked = app.answered
    # in one turn, however slow this machine is
    browser.evaluate("[...'da'].forEach(letter => document.execCommand("
                     "'insertText', false, letter))")
    browser.wait("all('#palette [data-choice]').length === 2")
    assert app.answered == asked + 1, "not debounced"
    [focused] = [one for one in app.last["data"]["options"][0]["options"]
                 if one.get("focused")]
    assert focused["value"] == "da" and active() == "data/"
    picture("autocomplete")
    browser.key("ArrowDown")
    assert active() == "date.txt"
    browser.key("ArrowDown")
    browser.key("ArrowUp")
    browser.key("Enter")
    assert line() == "/il look page:2 path:date.txt "
    app.reply = message("looked")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('looked')")
    assert app.options() == {"path": "date.txt", "page": 2}


@test
def a_completion_is_clicked_or_left_alone():
    browser.type("#composer", "/il look no")
    browser.click("[data-choice='notes.txt']")
    assert line() == "/il look notes.txt "
    browser.type("#composer", "/il look notes.txt")
    browser.wait("one('[data-choice=\"notes.txt\"]')")
    app.reply = message("as it was typed")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('as it was typed')")
    assert app.options() == {"path": "notes.txt"}
    browser.type("#composer", "/il look ")
    browser.wait("all('#palette [data-choice]').length === 3")
    app.reply = message("without any")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('without any')")
    assert app.options() == {}
    browser.type("#composer", "/il look da")
    browser.wait("all('#palette [data-choice]').length === 2")
    browser.key("Escape")
    browser.wait("one('#palette').hidden")
    app.reply = message("as typed, too")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('as typed, too')")
    assert app.options() == {"path": "da"}


@test
def completions_that_fail_are_said_so():
    many = [{"name": f"n{n}", "value": f"v{n}"} for n in range(26)]
    for answer, shown in (
            ({"type": 8, "data": {"choices": many}}, "options failed"),
            ({"type": 8, "data": {"choices": [{"name": "", "value": "x"}]}},
             "options failed"),
            ((500, b""), "options failed"),
            ({"type": 8, "data": {"choices": []}}, "No options match")):
        app.complete = lambda _, answer=answer: answer
        browser.type("#composer", "/il look x")
        browser.wait(f"text('#palette').includes('{shown}')")
        assert browser.evaluate("text('#palette-state')").find(shown) >= 0
        browser.type("#composer", "plain")
        browser.wait("one('#palette').hidden")
    discord.settings(deadline=0.2)
    late = threading.Event()
    app.complete = lambda _: late.wait(10) and {
        "type": 8, "data": {"choices": []}}
    browser.type("#composer", "/il look x")
    browser.wait("text('#palette').includes('options failed')")
    late.set()
    picture("autocomplete-failed")
    app.complete = None
    discord.settings(deadline=60)
    discord.clear_violations()


@test
def only_what_discord_would_send_is_sent():
    app.answered = 0
    for text, wrong in (
            ("/il py x share:yes", "share must be True or False"),
            ("/il py x share:1", "share must be True or False"),
            ("/il py x version:3.13", "Python 3.11 or Python 3.13"),
            ("/il py x stdin:", "stdin has no value"),
            ("/il look a page:0x10", "page must be a whole number"),
            ("/il look a page:1e3", "page must be a whole number"),
            ("/il look a page:99999999999999999999", "whole number")):
        browser.type("#composer", text)
        browser.evaluate("one('#composer').dispatchEvent(new KeyboardEvent("
                         "'keydown', { key: 'Escape', bubbles: true }))")
        browser.key("Enter")
        browser.wait(f"text('#problem').includes({json.dumps(wrong)})")
        assert line() == text
    browser.type("#composer", "/il py x")
    browser.click("[data-option=share]")
    assert line() == "/il py x share:True", line()
    browser.type("#composer", "/il py x share:")
    browser.wait("all('#palette [data-choice]').length === 2")
    assert offered() == ["True", "False"]
    browser.key("ArrowDown")
    browser.key("Enter")
    browser.send("Input.insertText", text="version:python 3.1")
    browser.wait("all('#palette [data-choice]').length === 2")
    picture("choices")
    browser.key("ArrowDown")
    browser.key("Tab")
    app.reply = message("truthful")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('truthful')")
    assert app.options() == {"code": "x", "share": True, "version": "3.13"}


@test
def the_arrow_keys_bring_lines_back():
    for text in ("/il py first", "/il py second\nover two lines", "said"):
        say(text, message("answer to " + text))
        browser.wait("one('#composer').value === ''")
        browser.wait("!one('[data-pending]')")
    browser.key("ArrowUp")
    assert line() == "said"
    browser.key("ArrowUp")
    assert line() == "/il py second\nover two lines"
    browser.key("ArrowUp")
    assert line() == "/il py second\nover two lines", "the cursor moves first"
    browser.key("ArrowUp")
    assert line() == "/il py first"
    assert browser.evaluate("one('#palette').hidden")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    assert line() == "", line()
    browser.key("ArrowUp")
    browser.send("Input.insertText", text=" more")
    browser.key("ArrowUp")
    assert line() == "said more", line()
    browser.goto(discord.origin + "/")
    browser.wait("text('#link') === 'live'")
    browser.key("ArrowUp")
    assert line() == "said"
    browser.type("#composer", "")
    browser.key("Backspace")


@test
def a_file_is_attached_to_a_command():
    path = os.path.join(folder.name, "data.csv")
    with open(path, "w") as out:
        out.write("1,2\n")
    browser.type("#composer", "/il put ")
    browser.pick_files("[data-option=file]", path)
    browser.wait("text('[data-option=file]').includes('data.csv')")
    app.reply = message("stored")
    browser.evaluate("one('#composer').focus()")
    browser.key("Enter")
    browser.wait("text('#messages').includes('stored')")
    [file] = app.last["data"]["resolved"]["attachments"].values()
    assert file["filename"] == "data.csv" and file["size"] == 4


@test
def files_are_attached_to_a_message():
    path = os.path.join(folder.name, "job.py")
    with open(path, "w") as out:
        out.write("print(1)\n")
    browser.pick_files("#attach", path)
    browser.wait("one('#options [data-file=\"job.py\"]')")
    browser.evaluate("one('#composer').focus()")
    browser.key("Enter")
    browser.wait("last('.message a[data-download=\"job.py\"]')")
    assert browser.evaluate("one('#options').hidden")


@test
def commands_are_in_the_language_of_the_client():
    browser.choose("#language", "de")
    browser.type("#composer", "/il üb")
    browser.wait("text('#palette').includes('Zeigt einen Ordner')")
    browser.key("Tab")
    assert line() == "/il übersicht "
    browser.send("Input.insertText", text="ordner-öffnen:da")
    browser.wait("all('#palette [data-choice]').length === 2")
    assert app.last["locale"] == "de" and app.options() == {"path": "da"}
    [focused] = [one for one in app.last["data"]["options"][0]["options"]
                 if one.get("focused")]
    assert focused["name"] == "path"
    assert offered() == ["Daten/", "date.txt"]
    browser.key("Enter")
    app.reply = message("gesehen")
    browser.key("Enter")
    browser.wait(f"text('{FINAL}').includes('gesehen')")
    [leaf] = app.last["data"]["options"]
    assert leaf["name"] == "look" and app.last["locale"] == "de"
    assert app.options() == {"path": "data"}
    say("/il look data", message("never"))
    browser.wait("text('#problem').includes('no such command')")
    browser.click(".message .menu")
    browser.wait("text('#menu').includes('Python ausführen')")
    browser.key("Escape")
    browser.choose("#language", "en-US")
    browser.type("#composer", "/il look")
    browser.wait("text('#palette').includes('List a directory')")
    browser.type("#composer", "x")
    browser.key("Backspace")


@test
def it_fits_a_small_screen():
    browser.resize(390, 844)
    try:
        browser.type("#composer", "/")
        browser.wait("one('#palette [data-command]')")
        fits(390)
        picture("palette-small")
        browser.type("#composer", "/il look path:da page:3")
        browser.evaluate("one('#composer').setSelectionRange(16, 16);"
                         "one('#composer').click()")
        browser.wait("all('#palette [data-choice]').length === 2")
        fits(390)
        picture("autocomplete-small")
        browser.type("#composer", "/il py " + "long" * 40 + " share:maybe")
        browser.key("Enter")
        browser.wait("text('#problem').includes('True or False')")
        fits(390)
        picture("problem-small")
        browser.type("#composer", "x")
        browser.key("Backspace")
    finally:
        browser.resize(1280, 800)


@test
def controls_have_names_and_the_page_no_complaints():
    assert_whole()


if __name__ == "__main__":
    main()
