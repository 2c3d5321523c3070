#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""/il write with its editor, /il put and /il get."""

import hashlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, N, fails, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_QUOTA="4m")
files = {}      # what the cells hold


def disk(cell):
    """A cell that keeps files in a dictionary."""
    path = cell.request.get("PATH", b"").decode()
    if cell.op == "WRITE":
        files[path] = cell.parts.get(N["PART_CONTENT"], b"")
        cell.result()
    elif cell.op == "STAT" and path == "folder":
        cell.send("ENTRY", ("NAME", path), ("KIND", N["ENTRY_DIRECTORY"]),
                  ("SIZE", 0), ("MTIME", 0))
        cell.result()
    elif path not in files:
        fails("NOT_FOUND")(cell)
    elif len(files[path]) > cell.request.get("MAX_BYTES", 0):
        cell.result("ERROR", CODE=N["ERROR_TOO_LARGE"],
                    SIZE=len(files[path]))
    elif cell.op == "STAT":
        cell.send("ENTRY", ("NAME", path), ("KIND", N["ENTRY_FILE"]),
                  ("SIZE", len(files[path])), ("MTIME", 0))
        cell.result()
    else:
        cell.file(path, files[path])
        cell.result(TOTAL=len(files[path]))


def told(sent, part):
    """Assert that the final message has this part."""
    text = sent.wait_final().original.text()
    assert part in text, text


def edit(path):
    """Send `/il write` without content; returns what answered it."""
    sent = house.editor(path)
    return sent.wait_answered()


def field(sent):
    """Return the input of the modal that opened."""
    modal = sent.view["modal"]
    return modal["components"][0]["component"]


@test
def write_strips_one_fence_and_keeps_the_rest():
    told(house.send("write", path="a.py", text="```py\nx = 1\n```"),
         "Saved `~/a.py`: 6 B.")
    assert files["a.py"] == b"x = 1\n"
    told(house.send("write", path="b.txt", text="  `as` it\r\nis "), "Saved")
    assert files["b.txt"] == b"  `as` it\r\nis "
    told(house.send("write", path="empty", text=""), "0 B")
    assert files["empty"] == b""


@test
def the_editor_holds_what_the_file_holds():
    sent = edit("a.py")
    assert field(sent)["value"] == "x = 1\n", sent.view["modal"]
    assert sent.view["modal"]["title"] == "Edit a.py"
    house.wait_state(sent, "delivered")
    view = int(sent.view["modal"]["custom_id"].partition(":")[2])
    assert house.sql("SELECT kind, path FROM views WHERE id = ?",
                     view) == [("write", "a.py")]


@test
def a_missing_file_gives_an_empty_editor():
    sent = edit("new/file.txt")
    assert not field(sent).get("value"), field(sent)
    assert not field(sent)["required"]


@test
def a_view_names_its_path_from_the_top():
    house.sql("UPDATE sandboxes SET cwd = 'folder'")
    told(house.send("write", path="a.py", text="y", view_id=1), "`~/a.py`")
    assert files["a.py"] == b"y"
    told(house.send("write", path="a.py", text="z"), "`~/folder/a.py`")
    house.sql("UPDATE sandboxes SET cwd = ''")


@test
def what_the_editor_would_spoil_is_refused_privately():
    files.update({"binary": b"\xff\x00", "control": b"a\x1bb",
                  "long": b"x" * 4001, "cr": b"a\r\n",
                  "huge": b"x" * 20000})
    for name in ("binary", "control", "long", "cr", "huge"):
        sent = edit(name)
        assert "cannot be edited" in sent.original.text(), name
        assert sent.original.ephemeral


@test
def four_thousand_characters_of_any_size_are_edited():
    files["snakes"] = "\U0001f40d".encode() * 4000
    assert len(field(edit("snakes"))["value"]) == 4000
    files["snakes"] += b"x"
    assert "cannot be edited" in edit("snakes").original.text()


@test
def long_names_fit_the_title():
    sent = edit("d" * 100 + "/" + "n" * 200)
    assert len(sent.view["modal"]["title"]) <= 45


@test
def who_has_no_sandbox_gets_an_editor_and_then_a_sandbox():
    asked = len(house.broker.asked)
    sent = house.editor("x", user="dora").wait_answered(timeout=60)
    assert not field(sent).get("value"), field(sent)
    assert len(house.broker.asked) == asked
    told(house.send("write", user="dora", path="x", text="y", view_id=1),
         "was made for this")


@test
def other_answers_are_a_private_message():
    assert "not inside" in edit("../x").original.text()
    house.broker.refusal = "DISK"
    assert "disk" in edit("x").original.text()
    house.broker.refusal = None


@test
def an_editor_that_comes_too_late_is_left_to_its_button():
    before = len(house.discord.requests(route="edit"))
    late = house.too_late()
    button = {"type": 4, "data": {"content": "later", "flags": 64,
                                  "allowed_mentions": {"parse": []}}}
    sent = house.editor("x", answer=button)
    house.wait_state(sent, "delivered")
    late.join(10)
    assert len(house.discord.requests(route="edit")) == before


def put(data, name="data.bin", **columns):
    """Upload a file and store it."""
    made = house.discord.http("POST", "/control/attachment?filename=" + name,
                              data)[1]
    url = columns.pop("url", None) or upload(made)
    return house.send("put", attachment_url=url, attachment_name=name,
                      attachment_size=columns.pop("size", len(data)),
                      **columns)


def upload(made):
    """Return the URL of an uploaded file."""
    import json
    return json.loads(made)["url"]


@test
def put_stores_an_upload_where_it_should():
    data = os.urandom(300000)
    told(put(data, "some%20data.bin"), "Saved `~/some%20data.bin`")
    assert hashlib.sha256(files["some%20data.bin"]).digest() == \
        hashlib.sha256(data).digest()
    told(put(b"1", path="x/y.bin"), "`~/x/y.bin`")
    told(put(b"2", path="x/"), "`~/x/data.bin`")
    told(put(b"3", path="folder"), "`~/folder/data.bin`")
    told(put(b"", path="nothing"), "0 B")
    assert files["x/data.bin"] == b"2" and files["folder/data.bin"] == b"3"
    assert files["nothing"] == b""


@test
def put_refuses_what_is_too_large_or_not_what_it_says():
    told(put(b"1", size=5 << 20), "too large (5 MiB)")
    told(put(b"12345", size=4), "could not be fetched")
    told(put(b"12345", size=6), "could not be fetched")


@test
def put_fetches_from_discord_alone():
    seen = len(house.discord.requests(route="attachment"))
    for url in ("http://127.0.0.1:9/a", "https://e.org/a",
                "file:///etc/passwd", "http://localhost/a"):
        told(put(b"1", url=url, size=1), "could not be fetched")
    assert len(house.discord.requests(route="attachment")) == seen


@test
def put_tries_again_and_says_when_a_file_is_gone():
    house.discord.fault("status", "attachment", status=503)
    told(put(b"again"), "Saved")
    house.discord.fault("status", "attachment", status=404, count=0)
    told(put(b"gone"), "does not have that file any more")
    house.discord.clear_faults()


@test
def put_does_not_wait_for_ever_for_a_host_that_hangs():
    house.discord.fault("hang", "attachment", seconds=60, count=3)
    told(put(b"late"), "could not be fetched")
    house.discord.clear_faults()


@test
def get_sends_a_file_under_a_name_that_discord_takes():
    files["w\u00e4 x.csv"] = b"1,2"
    sent = house.send("get", path="w\u00e4 x.csv")
    told(sent, "3 B")
    one = sent.original.attachment("w___x.csv")
    assert (one.read(), one.title) == (b"1,2", "w\u00e4 x.csv")
    files["big"] = b"x" * 2000
    told(house.send("get", path="big", attachment_limit=1000),
         "too large (1.9 KiB)")
    told(house.send("get", path="big", may_attach=0), "may not attach")
    told(house.send("get", path="missing"), "does not exist")
    files["empty"] = b""
    told(house.send("get", path="empty"), "It is empty")


@test
def nothing_broke_discords_rules():
    house.broker.cell = says(b"")
    house.discord.assert_no_violations()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        house.broker.cell = disk
        run()


main()
