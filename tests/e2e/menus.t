#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""From anywhere to a run: the menu of a message, uploads, the short form."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service  # noqa: E402
from client import File, Message  # noqa: E402
from tap import run, test  # noqa: E402

service = Service()


def wrote(content, *files, **more):
    """Somebody has written a message with (name, bytes); returns it."""
    made = [json.loads(service.discord.http(
        "POST", "/control/attachment?filename=" + name, data)[1])["id"]
        for name, data in files]
    return Message(service.discord, service.discord.call(
        "POST", "/control/message",
        {"content": content, "attachments": made, "user": "bob", **more}))


def chosen(name, message, user="alice", **more):
    """Choose a command in the menu of a message; returns the interaction."""
    return service.discord.send({"message_command": name, "user": user,
                                 "target": message.id, **more})


def ran(message, **more):
    """What "Run Python" says of a message."""
    return chosen("Run Python", message, **more).wait_final(
        timeout=120).original.text()


@test
def run_python_runs_the_code_of_any_message():
    message = wrote("Try this:\n```py\nx = 6\n```\nand\n```py\nprint(x * 7)"
                    "\n```\nor\n```js\nlet y\n```")
    text = ran(message)
    assert "42" in text and "Python runs here: `js`" in text, text
    assert "3" in ran(wrote("is it `1 + 2`?"))
    assert "45" in ran(wrote("print(sum(range(10)))"))
    sent = chosen("Run Python", message).wait_final(timeout=120)
    assert sent.original.ephemeral


@test
def in_a_group_too():
    message = wrote("`'gr' + 'oup'`", place="group")
    assert "group" in ran(message, place="group", user="bob")


@test
def its_files_are_run():
    message = wrote("", ("a.py", b"x = 1\n"), ("b.py", b"print('b', x)"),
                    ("c.png", b"no python"))
    assert "b 1" in ran(message)
    text = ran(wrote("", ("a.py", b"\x89PNG\r\n\x1a\n\xff")))
    assert "`a.py` is no text" in text, text
    assert "64 KiB" in ran(wrote("", ("a.py", b"#" * 65537)))
    assert "long 1" in ran(wrote("", ("message.txt", b"x = 1\n" * 400 +
                                      b"print('long', x)")))
    book = {"nbformat": 4, "cells": [
        {"cell_type": "code", "source": ["x = 1\n", "%time y = 2"]},
        {"cell_type": "markdown", "source": "words"},
        {"cell_type": "code", "source": "print('book', x + y)"}]}
    for made in book, {**book, "metadata": {"pictures": "x" * 500000}}:
        text = ran(wrote("", ("a.ipynb", json.dumps(made).encode())))
        assert "Wall time" in text and "book 3" in text, text
    assert "JSON has an error" in ran(wrote("", ("a.ipynb", b'{"cells": [')))


@test
def what_an_answer_shows_can_be_given_back():
    code = "print('``' + '`', input() * 2, '\\u200b' == '\u200b')"
    first = service.discord.send_command("py", user="alice", code=code,
                                         stdin="ab").wait_final(timeout=120)
    want = first.original.text()
    assert "abab True" in want, want
    assert ran(first.original) == want
    shared = service.discord.press(first.original, "Share").wait_final(
        timeout=120).original
    for _ in range(2):
        for user in "alice", "bob":
            assert ran(shared, user=user) == want
        service.sql("UPDATE views SET kind = 'look' WHERE share = 1")
    service.sql("UPDATE views SET kind = 'py' WHERE kind = 'look'")
    service.say("write", name="shown.py", content=code)
    look = service.discord.send_command("look", path="shown.py")
    look.wait_final(timeout=120)
    text = ran(look.original)
    assert "asks for" in text or "EOFError" in text, text
    long = "x = 1  # " + "y" * 900 + "\nprint('lo' + 'ng', x)"
    sent = service.discord.send_command("py", user="alice", code=long)
    shared = service.discord.press(sent.wait_final(timeout=120).original,
                                   "Share").wait_final(timeout=120).original
    assert "long 1" in ran(shared, user="bob")
    service.sql("DELETE FROM views")
    assert "long 1" in ran(shared, user="bob")
    assert "no code" in ran(sent.original)
    sent = service.discord.send_command("help", user="alice")
    sent.wait_answered(timeout=60)
    assert "exit" not in ran(sent.original), sent


@test
def the_run_of_a_file_can_be_given_back():
    source = "import sys\nprint(input() * 2, sys.argv[0][-6:], __name__)"
    service.say("write", name="sub/ran.py", content=source)
    first = service.discord.send_command(
        "py", user="alice", file="sub/ran.py", stdin="io").wait_final(
            timeout=120)
    want = first.original.text()
    assert "ioio ran.py __main__" in want, want
    service.say("look", path="sub")
    text = ran(first.original)
    assert "ioio ran.py __main__" in text and "in `~/sub`" in text, text
    sent = chosen("Edit and run", first.original).wait_answered(timeout=60)
    values = [i["component"]["value"] for i in sent.view["modal"]["components"]]
    assert values == [source, "io"], values
    sent = service.discord.send_command("get", path="~/sub/ran.py")
    given = chosen("Run Python", sent.wait_final(timeout=120).original)
    assert "asks for" in given.wait_final(timeout=120).original.text(), given
    service.say("look", path="~")
    service.say("rm", name="sub/ran.py")
    assert "`~/sub/ran.py` does not exist" in ran(first.original)
    sent = chosen("Edit and run", first.original).wait_final(timeout=60)
    assert "`~/sub/ran.py` does not exist" in sent.original.text(), sent


@test
def what_is_no_code_is_said():
    assert "no code in that message" in ran(wrote("good morning"))
    assert "no file attached" in ran(wrote("", ("c.png", b"x")))
    assert "more than 40" in ran(wrote("```1```" * 41))
    blocks = "```n = 0```" + "```n += 1```" * 38 + "```n```"
    assert "38" in ran(wrote(blocks))


@test
def edit_and_run_opens_the_editor_with_it():
    sent = chosen("Edit and run", wrote("```py\nprint('edit')\n```",
                                        ("a.py", b"print('too')")))
    sent.wait_answered(timeout=60)
    [code, stdin] = sent.view["modal"]["components"]
    assert code["component"]["value"] == "print('edit')\nprint('too')", sent
    done = service.discord.submit_modal(sent, {"code": "print('ed' + 'ited')"})
    done.wait_final(timeout=120, match="edited")
    long = "#" * 4100 + "\nprint(1)"
    sent = chosen("Edit and run", wrote("", ("a.py", long.encode())))
    sent.wait_final(timeout=120, match="that an editor takes")
    assert sent.original.attachment("main.py").read().decode() == long


@test
def an_upload_is_run():
    text = service.run(attachment=File("hello.py", "print('he' + 'llo')"))
    assert "hello" in text, text
    text = service.run(attachment=File("x.py", b"\xff"))
    assert "no text" in text, text


@test
def py_is_short_for_il_py():
    sent = service.discord.send({"command": "py", "user": "alice",
                                 "options": {"code": "print('sh' + 'ort')"}})
    sent.wait_final(timeout=120, match="short")


@test
def timeit_measures_code_and_files():
    text = service.run("sum(range(100))", timeit=True)
    assert "loops, best of 5" in text and "per loop" in text, text
    service.say("write", name="it's/m.py", content="import helped\nhelped.x")
    service.say("write", name="it's/helped.py", content="x = 1")
    text = service.run(file="it's/m.py", timeit=True)
    assert "best of 5" in text and "per loop" in text, text
    text = service.run("1 / 0", timeit=True)
    assert "1 / 0" in text and "ZeroDivisionError" in text, text
    sent = service.discord.send_command("py", timeit=True)
    sent.wait_answered(timeout=60)
    done = service.discord.submit_modal(sent, {"code": "2 ** 9"})
    done.wait_final(timeout=120, match="per loop")


@test
def the_examples_of_help_are_run_by_their_buttons():
    sent = service.discord.send_command("help", user="carol")
    sent.wait_answered(timeout=60)
    assert "/il look" in sent.original.text(), sent
    for label, word in (("1", "5050"), ("2", "hello"), ("3", "Zen"),
                        ("4", "per loop"), ("5", "~")):
        done = service.discord.press(sent.original, label)
        assert word in done.wait_final(timeout=120).original.text(), done


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create("alice", "bob")
    run()
