#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is done with an answer after a run: the buttons below it."""

import io
import os
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TUNE_SPARE_CELLS="1")


def final(command, user="alice", **options):
    """Send a command, wait for its final message and return that."""
    sent = service.discord.send_command(command, user=user, **options)
    sent.wait_final(timeout=60)
    return sent.original


def pressed(message, button, **options):
    """Press a button; returns what came of it when that is final."""
    sent = service.discord.press(message, button, **options)
    sent.wait_final(timeout=60)
    return sent


def edited(message, button, user="alice", **values):
    """Open an editor by a button and send it; returns (values, interaction)."""
    opener = service.discord.press(message, button, user=user)
    opener.wait_answered()
    filled = opener.modal_values()
    sent = service.discord.submit_modal(opener, values)
    sent.wait_final(timeout=60)
    return filled, sent


@test
def an_answer_has_its_buttons():
    final("create")
    message = final("py", code="print(open('n', 'a').write('x'))")
    assert message.buttons() == ["Re-run", "Edit", "Share", "Remove"], message


@test
def re_run_runs_it_again_in_its_place():
    message = final("py", code="open('r', 'a').write('x')\n"
                    "print('times', len(open('r').read()))")
    assert "times 1" in message.text(), message
    pressed(message, "Re-run")
    message = message.refresh()
    assert "times 2" in message.text(), message
    assert message.buttons() == ["Re-run", "Edit", "Share", "Remove"]
    assert service.stop() == 0
    service.start()
    message = service.discord.message(message.id)
    pressed(message, "Re-run")
    assert "times 3" in message.refresh().text(), "after a restart"


@test
def edit_opens_the_code_and_its_input():
    message = final("py", code="```py\nprint(input() * 2)\n```", stdin="ab")
    filled, sent = edited(message, "Edit", code="print(input() * 3)")
    assert filled == {"code": "print(input() * 2)\n", "stdin": "ab"}, filled
    assert "ababab" in sent.original.text() and sent.original.ephemeral
    assert "abab\n" in message.refresh().text(), "the first answer stays"
    filled, sent = edited(sent.original, "Edit")
    assert filled == {"code": "print(input() * 3)", "stdin": "ab"}, filled


@test
def share_shows_a_whole_run_to_everybody():
    final("create", user="bob")
    message = final("py", code="print('se' + 'en', input())", stdin="mine")
    shared = pressed(message, "Share").original
    assert not shared.ephemeral and shared.buttons() == [
        "Try it yourself", "Remove"], shared
    text = shared.text()
    assert "print('se' + 'en', input())" in text and "seen mine" in text
    assert "input (stdin):\n```stdin\nmine\n```" in text, text
    assert f"<@{service.sql('SELECT user_id FROM views')[0][0]}>" in text
    again = pressed(message, "Share").original
    assert again.ephemeral and "shared already" in again.text(), again
    filled, sent = edited(shared, "Try it yourself", user="bob")
    assert filled == {"code": "print('se' + 'en', input())", "stdin": "mine"}
    assert "seen mine" in sent.original.text() and sent.original.ephemeral
    refused = service.discord.press(shared, "Remove", user="bob")
    refused.wait_answered()
    assert "somebody else" in refused.original.text(), refused
    pressed_delete(shared)
    assert "Share" in message.refresh().buttons(), "the answer stays"


def pressed_delete(message):
    """Press Remove and wait until the message is gone."""
    service.discord.press(message, "Remove",
                          user=None if message.owner else "alice")
    wait_for(lambda: service.discord.message(message.id).deleted)


@test
def delete_takes_the_answer_away_and_what_was_kept_of_it():
    message = final("py", code="print('unwanted' * 2)")
    view = int(message.control("Remove")["custom_id"].partition(":")[2])
    pressed_delete(message)
    assert service.sql("SELECT 1 FROM views WHERE id = ?", view) == []


@test
def full_output_is_read_page_by_page():
    message = final("py", code="for i in range(300): print('line', i)")
    assert "Full output" in message.buttons(), message
    pages = pressed(message, "Full output").original
    assert pages.ephemeral and "page 1 of" in pages.text(), pages
    assert "line 0\n" in pages.text() and "Previous" in pages.buttons()
    pressed(pages, "Next")
    text = pages.refresh().text()
    assert "page 2 of" in text and "line 0\n" not in text, text


@test
def one_of_more_than_ten_images_is_chosen():
    code = ("for i in range(12): open(f'f{i:02}.png', 'w').write(f'no {i}')\n"
            "open('\u3000.png', 'w').write('blank')\n"
            "open('a\\nb.gif', 'w').write('x')\n"
            "open('\u202etxt.' + 'e' * 120 + '.jpg', 'w').write('long')")
    message = final("py", code=code)
    menu = message.control("py-file")
    labels = [one["label"] for one in menu["options"]]
    assert len(labels) == len(set(labels)) == 5, labels
    assert all(one.strip("\u3000 ") and len(one) <= 100 for one in labels)
    place = menu["options"][0]
    sent = service.discord.select(message, "py-file", [place["value"]])
    sent.wait_final(timeout=60)
    names = [one.filename for one in sent.original.attachments]
    assert names and sent.original.ephemeral, sent.original


@test
def many_files_are_one_line_and_come_as_a_zip():
    code = ("import os\nos.makedirs('data', exist_ok=True)\n"
            "for i in range(%d): open(f'data/{i:03}.txt', 'w').write(str(i))\n"
            "open('data/z.png', 'w').write('PNG')\nos.mkfifo('data/pipe%d')")
    for count in 45, 200:
        message = final("py", code=code % (count, count))
        assert f"{count} new or changed files in `~/data`" in message.text()
        assert "Not attached" not in message.text(), message
        assert [one.filename for one in message.attachments] == ["z.png"]
        assert "py-file" not in str(message.components), message
        got = pressed(message, "Get as zip").original
        assert got.ephemeral and "pipe" in got.text(), got
        made = zipfile.ZipFile(io.BytesIO(got.attachment("data.zip").read()))
        names = [f"{i:03}.txt" for i in range(count)] + ["z.png"]
        assert sorted(made.namelist()) == names, made.namelist()
        assert made.read("007.txt") == b"7"
    shown = pressed(message, "Show").original
    assert shown.ephemeral and "000.txt" in shown.text(), shown
    final("look", path="~")
    message = final("py", code="for i in range(4): open(f't{i}', 'w').write('x')")
    assert "4 new or changed files in `~`" in message.text(), message
    assert "Get as zip" not in message.buttons(), message
    got = pressed(message, "Get all of ~ as zip").original
    assert "`~` as a zip" in got.text(), got
    assert "data/007.txt" in zipfile.ZipFile(io.BytesIO(
        got.attachment("files.zip").read())).namelist()
    assert "as a zip" in final("get", path="data").text()


@test
def long_input_is_shared_as_a_file():
    message = final("py", code="print(len(input()))", stdin="y" * 800)
    shared = pressed(message, "Share").original
    assert shared.attachment("stdin.txt").text() == "y" * 800
    assert "len(input())" in shared.text(), shared


@test
def too_little_input_is_told_as_that():
    message = final("py", code="input('a? ')\ninput('b? ')", stdin="1")
    text = message.text()
    assert "a? b? \nTraceback (most" in text, text
    assert "asks for more input than it was given" in text, text
    filled, _ = edited(message, "Give input", stdin="1\n2")
    assert filled == {"stdin": "1"}, filled
    assert "Traceback" not in message.refresh().text()
    text = final("py", code="input('a? ')").text()
    assert "a? \nTraceback (most" in text and "there was none" in text, text


@test
def input_that_was_missing_is_given():
    message = final("py", code="print(input()[::-1])")
    assert message.buttons()[0] == "Give input", message
    filled, _ = edited(message, "Give input", stdin="olleh")
    assert filled == {"stdin": ""}, filled
    message = message.refresh()
    text = message.text()
    assert "hello" in text and "EOFError" not in text, text
    assert "Give input" not in message.buttons()
    filled, _ = edited(message, "Edit")
    assert filled["stdin"] == "olleh", "and kept"


@test
def re_run_while_running_is_told():
    message = final("py", code="print(1)")
    busy = service.discord.send_command(
        "py", user="alice", code="import time; time.sleep(30)")
    busy.wait_answered(timeout=60)
    sent = service.discord.press(message, "Re-run")
    sent.wait_answered()
    assert "still running" in sent.original.text(), sent.original
    assert "1" in message.refresh().text(), "the answer is as it was"
    service.discord.press(sent.original, "Cancel").wait_answered()
    busy.wait_final(match="cancelled", timeout=60)


@test
def delete_forgets_what_was_kept():
    service.create("carol")
    message = final("py", user="carol", code="print('gone soon')")
    for word in ("all of its files", "kept for the buttons"):
        asked = service.discord.send_command("delete", user="carol")
        asked.wait_answered()
        assert word in asked.original.text(), asked.original
        service.discord.press(asked.original, "delete-yes").wait_final(
            timeout=60)
        owner = service.discord.send_command("health", user="carol")
        owner.wait_final()
        assert service.sql("SELECT * FROM views WHERE user_id = ?",
                           int(owner.view["user"])) == []
        sent = service.discord.press(message, "Edit")
        sent.wait_answered()
        assert "no longer stored" in sent.original.text(), sent.original
        # as a button of before that was pressed meanwhile would leave it
        service.sql("INSERT INTO views (user_id, kind, text, created_ms)"
                    " VALUES (?, 'py', 'left', 1)", int(owner.view["user"]))


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    run()
