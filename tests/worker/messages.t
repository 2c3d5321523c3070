#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What is run of a message and of an upload: the code in its text, its files,
and what is no code."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, N, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House()
ran = []        # the sources that cells were given
stdin = []      # and what those were to read


def cell(cell):
    """A cell that keeps what it runs, and says that it has."""
    if cell.op == "RUN":    # and not what is asked after it
        ran.append(cell.parts.get(N["PART_SOURCE"], b"").decode())
        stdin.append(cell.parts.get(N["PART_STDIN"], b"").decode())
    says(b"done\n")(cell)


def attach(name, data):
    """Upload a file; returns where it is."""
    return json.loads(house.discord.http(
        "POST", "/control/attachment?filename=" + name, data)[1])["url"]


def upload(*files):
    """Upload (name, bytes); returns the columns of a job with them."""
    return {"attachment_url": "\n".join(attach(*file) for file in files),
            "attachment_name": "\n".join(name for name, _ in files),
            "attachment_size": sum(len(data) for _, data in files)}


def source(kind="message-run", **columns):
    """Send a job that runs; returns what did."""
    before = len(ran)
    text = house.send(kind, **columns).wait_final(timeout=120).original.text()
    assert "done" in text and len(ran) == before + 1, text
    return ran[-1]


def refused(kind="message-run", **columns):
    """Send a job of which nothing runs; returns what is told."""
    before = len(ran)
    text = house.send(kind, **columns).wait_final(timeout=120).original.text()
    assert len(ran) == before, ran[before:]
    return text


def edit(**columns):
    """Send "Edit and run"; returns what answered it."""
    sent = house.begin("message-edit", kind_of_answer="callback", **columns)
    return sent.wait_answered(timeout=60)


def code(sent):
    """What the editor that opened holds."""
    return sent.view["modal"]["components"][0]["component"]["value"]


@test
def the_blocks_of_a_message_are_one_program():
    text = "First\n```%s\nx = 1\n```\nthen\n```%s\nprint(x)\n```"
    for mark in "", "py", "Python":
        assert source(text=text % (mark, mark)) == "x = 1\nprint(x)\n"
    assert source(text=text % ("py", "")) == "x = 1\n"
    assert source(text="use `print(1)`!") == "print(1)"
    assert source(text="print(2)") == "print(2)"
    assert source(text="```\nx\n```" * 40) == "x\n" * 40


@test
def its_files_follow():
    made = upload(("a.py", b"\xef\xbb\xbfa = 1"), ("b.py", b"b = 2\n"))
    assert source(text="`x = 0`", **made) == "x = 0\na = 1\nb = 2\n"
    assert source(text="", **made) == "a = 1\nb = 2\n"
    assert source(text="Look at this.", **made) == "a = 1\nb = 2\n"
    largest = b"#" * 65536
    assert source(**upload(("a.py", largest))) == largest.decode()


@test
def an_upload_is_run():
    assert source("py", **upload(("a.txt", b"print(1)"))) == "print(1)"
    assert source("py", **upload(("a.py", b""))) == ""
    assert source("py", **upload(("a.py", b"hello"))) == "hello"
    for name in "message.txt", "data.csv":
        text = refused("py", **upload((name, b"a,b\nc,d\n")))
        assert f"`{name}` does not look like Python" in text, text
    text = refused("py", **upload(("a.md", b"```js\nx\n```")))
    assert "marked `js`, but only Python" in text, text


F = "```"
# What people send: text, program, standard input.
SENT = (
    (f"Why?\n{F}py\nx = 1\n{F}\nIt says\n{F}\n42\n{F}", "x = 1\n", ""),
    (f"{F}\na = 1\n{F} and {F}\nb = 2{F}", "a = 1\nb = 2", ""),
    (f"python\n{F}\nx = 1\n{F}", "x = 1\n", ""),
    (f"{F}`Python\nprint('{F}')\n{F}`", f"print('{F}')\n", ""),
    (f"{F}pyhton\nx = 1\n{F}", "x = 1\n", ""),
    (f"> {F}py\n> x = 1\n> {F}", "x = 1\n", ""),
    (f"- {F}py\n  if 1:\n    x = 1\n  {F}", "if 1:\n  x = 1\n", ""),
    ("def f():\n        return 1\n    print(f())",
     "def f():\n    return 1\nprint(f())", ""),
    ("    x = 1\n    print(x)", "x = 1\nprint(x)", ""),
    (">>> x = 1\n>>> x\n1", "x = 1\nx\n", ""),
    ("In [1]: x = 1\nIn [2]: x\nOut[2]: 1", "x = 1\nx\n", ""),
    ("if 1:\n\xa0\u3000print('\xa0')", "if 1:\n  print('\xa0')", ""),
    (f"\u200b{F}py\nx = 1\n{F}\ufeff", "x = 1\n", ""),
    ("# -*- coding: latin-1 -*-\nprint('\xe9')",
     "# -*- coding  latin-1 -*-\nprint('\xe9')", ""),
    ("try `print(1)` and don't worry", "print(1)", ""),
    (f"x = '{F}'\nprint(x)", f"x = '{F}'\nprint(x)", ""),
    ("print(1)\r\nprint(2)\r\n", "print(1)\nprint(2)\n", ""),
    (f"{F}py\ninput()\n{F}\n{F}stdin\nAda\n{F}", "input()\n", "Ada\n"),
    ("Python print(1)", "print(1)", ""),
    ("\xb4\xb4\xb4py\nx = '\xb4'\n\xb4\xb4\xb4", "x = '\xb4'\n", ""),
    ("if 1:\\n  print('a\\nb')", "if 1:\n  print('a\\nb')", ""),
    ("/il py code:print(input()) stdin:Ada", "print(input())", "Ada"),
    ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = 1"}]}',
     "x = 1", ""),
)


@test
def the_same_text_is_the_same_program_whichever_way_it_comes():
    for text, program, read in SENT:
        data = text.encode()
        for way in (("py", {"text": text}), ("message-run", {"text": text}),
                    ("py", upload(("a.py", data))),
                    ("py", upload(("message.txt", data))),
                    ("message-run", upload(("message.txt", data)))):
            assert source(way[0], **way[1]) == program, (way, ran[-1])
            assert stdin[-1] == read, (way, stdin[-1])
        assert code(edit(text=text)) == program, text
        # and what the editor held is the same once more
        assert source("py", text=program) == program, ran[-1]


@test
def a_files_name_is_the_same_to_all_ways_in():
    python, prose = b"print(1)", b"Dear all,\n"
    names = (("a.py", 1, 1), ("A.PY", 1, 1), ("a.b.pyw", 1, 1),
             ("message.txt", 1, 0), ("a.md", 1, 0), ("a", 1, 0), (".py", 1, 0),
             ("a.log", 1, 0), ("a.py3", 1, 0), ("py", 1, 0), ("c.png", 0, 0),
             ("c.ZIP", 0, 0))
    for name, runs, always in names:
        for kind in "py", "message-run":
            for data, code in (python, runs), (prose, always):
                made = upload((name, data))
                if code:
                    assert source(kind, **made) == data.decode(), name
                else:
                    text = refused(kind, **made)
                    assert "no code" in text or "not look like" in text, text
    text = refused(**upload(("a", b"```js\n1\n```")))
    assert "marked `js`, and only Python" in text, text


def view(owner, text, **columns):
    """Make the view of a run; returns its id."""
    columns = {"user_id": owner, "kind": "py", "text": text,
               "created_ms": 1, **columns}
    [(made,)] = house.sql(
        "INSERT INTO views (%s) VALUES (%s) RETURNING id" % (
            ", ".join(columns), ", ".join("?" * len(columns))),
        *columns.values())
    return made


@test
def an_answer_of_ours_has_the_code_of_its_view():
    program = "x = '```'\n# `'\n>>> no Python"
    shown = "```ansi\n42\n```"
    mine = view(house.user_id(), program, input="1")
    for made in mine, view(1, program, input="1", share=1):
        assert source(text=shown, view_id=made) == program
        assert stdin[-1] == "1"
    [(after,)] = house.sql("SELECT output FROM views WHERE id = ?", mine)
    assert after == "", "the answer keeps what it says"
    shared = f"Shared by\n{F}py\nx = 1\n{F}\nIts input:\n{F}stdin\n2\n{F}"
    for made in (view(1, "secret"), 1 << 40, view(1, "s", kind="look", share=1),
                 view(1, "", path="a.py", share=1)):
        assert "no code" in refused(text=f"{F}\n42\n{F}", view_id=made)
        assert source(text=shared + shown, view_id=made) == "x = 1\n"
        assert stdin[-1] == "2\n"
    sent = edit(text=shown, view_id=view(house.user_id(), "", page=mine,
                                         kind="message-edit"))
    assert code(sent) == program
    assert sent.view["modal"]["components"][1]["component"]["value"] == "1"


@test
def a_text_file_counts_when_nothing_else_is_code():
    long = upload(("message.txt", b"print(1)"))
    assert source(text="my code:", **long) == "print(1)"
    assert source(text="`x = 2`", **long) == "x = 2"
    assert "not look like" in refused(**upload(("message.txt", b"Dear\n")))


@test
def notebooks_are_their_code_cells():
    def made(*cells, **more):
        return json.dumps({"nbformat": 4, "cells": [
            {"cell_type": kind, "source": text} for kind, text in cells],
            **more}).encode()

    book = made(("markdown", "# Hi"), ("code", ["x = 1\n", "%time x"]),
                ("code", "%%bash\nls"), ("code", "!ls"))
    for kind in "py", "message-run":
        sent = house.send(kind, **upload(("a.ipynb", book)))
        text = sent.wait_final(timeout=120, match="done").original.text()
        assert ran[-1] == "x = 1\n%time x\n!ls", ran[-1]
        assert "Python runs here: `bash`" in text, text
    large = made(("code", "x = 1"), metadata={"picture": "x" * 900000})
    assert source(**upload(("b.IPYNB", large))) == "x = 1"
    for data, word in ((book[:-9], "its JSON has an error in line 1"),
                       (b"{}", "it has no list of cells"),
                       (made(("markdown", "x")), "without a code cell"),
                       (b"{" * 30000, "more parts than I can read")):
        for kind in "py", "message-run":
            text = refused(kind, **upload(("a.ipynb", data)))
            assert "`a.ipynb`" in text and word in text, text


@test
def quotes_in_the_place_of_back_ticks_are_named():
    sent = house.send("py", text="'''py\nprint(1)\n'''")
    sent.wait_final(match="between quotes")


@test
def other_languages_are_named():
    sent = house.send("message-run", text="```js\n1\n```\n```py\n2\n```"
                      "\n```go\n3\n```").wait_final(match="done")
    assert ran[-1] == "2\n"
    assert "Python runs here: `js`, `go`" in sent.original.text(), sent
    assert "marked `js`, and only Python" in refused(text="```js\n1\n```")


@test
def what_is_no_code_is_not_run():
    assert "no code in that message" in refused(text="good morning")
    assert "more than 40" in refused(text="```\nx\n```" * 41)
    assert "no code" in refused(text="``````")
    prose = b"Dear all,\n"
    for text in "", "Look at this.":
        assert "`message.txt` does not look like Python" in refused(
            text=text, **upload(("message.txt", prose)))
    for made in upload(("a.txt", prose), ("b.txt", prose)), upload(
            ("a.py", b"")), upload(("c.png", prose)):
        assert "no code in that message" in refused(**made)
    text = refused(**upload(("a.bin", b"\x89PNG\r\n\x1a\n\xff")))
    assert "`a.bin` is no text in UTF-8, so it was not run." in text, text


@test
def files_that_are_not_what_they_say_are_not_run():
    for data in b"\x89PNG\r\n\xff", b"a\0b", "\xe9".encode("latin-1"):
        text = refused(**upload(("a.py", b"1"), ("b.py", data)))
        assert "`b.py` is no text" in text, text
    for kind in "message-run", "py":
        for size in 0, 4, 6:
            text = refused(kind, **{**upload(("a.py", b"12345")),
                                    "attachment_size": size})
            assert "could not be fetched" in text, (size, text)
    made = upload(("a.py", b"#" * 65537))
    assert "could not be fetched" in refused(**made)


@test
def files_come_from_discord_alone():
    seen = len(house.discord.requests(route="attachment"))
    for url in ("http://127.0.0.1:9/a", "https://e.org/a",
                "file:///etc/passwd", ""):
        made = {"attachment_url": url + "\n" + url, "attachment_name": "a\nb",
                "attachment_size": 2}
        assert "could not be fetched" in refused(**made), url
    assert len(house.discord.requests(route="attachment")) == seen
    house.discord.fault("status", "attachment", status=404, count=0)
    assert "not have that file any more" in refused(**upload(("a", b"1")))
    house.discord.clear_faults()


@test
def an_editor_opens_with_the_code():
    sent = edit(text="```py\nx\n```", **upload(("a.py", b"y")))
    assert code(sent) == "x\ny"
    made = int(sent.view["modal"]["custom_id"].partition(":")[2])
    assert house.sql("SELECT kind FROM views WHERE id = ?",
                     made) == [("py",)]
    snakes = "'" + "\U0001f40d" * 3998 + "'"
    assert code(edit(text=f"`{snakes}`")) == snakes
    assert "no code" in edit(text="good morning").original.text()


@test
def code_too_long_for_an_editor_comes_as_a_file():
    long = b"x" * 4001
    columns = upload(("a.py", long))
    sent = edit(**columns).wait_final(match="characters that an editor")
    assert sent.original.attachment("main.py").read() == long
    assert sent.original.ephemeral
    sent = edit(**columns, may_attach=0)
    assert "cannot be attached" in sent.original.text(), sent


@test
def an_editor_that_comes_too_late_is_opened_by_its_button():
    kept = view(house.user_id(), "", kind="message-edit", page=0)
    made = upload(("a.py", b"print(1)"))
    assert code(edit(view_id=kept, **made)) == "print(1)"
    assert code(edit(view_id=kept)) == "print(1)"
    kept = view(house.user_id(), "", kind="message-edit", page=view(
        house.user_id(), "input()", input="5", version="3.13", timeit=1))
    for _ in range(2):
        sent = edit(view_id=kept)
        inputs = sent.view["modal"]["components"]
        assert [i["component"]["value"] for i in inputs] == ["input()", "5"]
        assert house.sql("SELECT version, timeit FROM views"
                         " ORDER BY id DESC LIMIT 1") == [("3.13", 1)], sent
        house.sql("UPDATE views SET text = '' WHERE kind = 'py'")


@test
def a_view_of_somebody_else_is_neither_read_nor_written():
    other = view(1, "secret", kind="message-edit", page=0)
    assert code(edit(view_id=other, text="`x = 1`")) == "x = 1"
    assert house.sql("SELECT text FROM views WHERE id = ?", other) == [
        ("secret",)]


@test
def nothing_broke_discords_rules():
    house.discord.assert_no_violations()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        house.broker.cell = cell
        run()


main()
