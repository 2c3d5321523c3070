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


def cell(cell):
    """A cell that keeps what it runs, and says that it has."""
    if cell.op == "RUN":    # and not what is asked after it
        ran.append(cell.parts.get(N["PART_SOURCE"], b"").decode())
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
    assert source(text="First\n```py\nx = 1\n```\nthen\n```\nprint(x)\n```"
                  ) == "x = 1\nprint(x)\n"
    assert source(text="use `print(1)`!") == "print(1)\n"
    assert source(text="print(2)") == "print(2)\n"
    assert source(text="```\nx\n```" * 40) == "x\n" * 40


@test
def its_files_follow():
    made = upload(("a.py", b"\xef\xbb\xbfa = 1"), ("b.py", b"b = 2\n"))
    assert source(text="`x = 0`", **made) == "x = 0\na = 1\nb = 2\n"
    assert source(text="", **made) == "a = 1\nb = 2\n"
    largest = b"#" * 65536
    assert source(**upload(("a.py", largest))) == largest.decode() + "\n"


@test
def an_upload_is_run():
    assert source("py", **upload(("a.txt", b"print(1)"))) == "print(1)\n"
    assert source("py", **upload(("a.py", b""))) == ""


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
    view = int(sent.view["modal"]["custom_id"].partition(":")[2])
    assert house.sql("SELECT kind FROM views WHERE id = ?",
                     view) == [("py",)]
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
    house.sql("INSERT INTO views (user_id, kind, created_ms) "
              "VALUES (?, 'message-edit', unixepoch() * 1000)",
              house.user_id())
    [(view,)] = house.sql("SELECT max(id) FROM views")
    made = upload(("a.py", b"print(1)"))
    assert code(edit(view_id=view, **made)) == "print(1)"
    assert code(edit(view_id=view)) == "print(1)"


@test
def a_view_of_somebody_else_is_neither_read_nor_written():
    [(other,)] = house.sql("INSERT INTO views (user_id, kind, text, created_ms)"
                           " VALUES (1, 'message-edit', 'secret', 1) "
                           "RETURNING id")
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
