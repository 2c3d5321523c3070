#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What was said is there again after a restart, however it came to that."""

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Standin  # noqa: E402
from fakeapp import FakeApp, NO_PING  # noqa: E402
from history import KEPT_BYTES, KEPT_MESSAGES  # noqa: E402
from results import Interaction  # noqa: E402
from tap import run, test  # noqa: E402

DEFER = {"type": 5, "data": {"flags": 64}}
ROW = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Again",
                                  "custom_id": "again:1"}]}
answer = {"next": DEFER}
app = FakeApp(lambda interaction: answer["next"])
folder = tempfile.TemporaryDirectory(prefix="standin-history-")
path = os.path.join(folder.name, "history.db")
discord = Standin(app.url, rate_limit=1000, history=path,
                  key_file=os.path.join(folder.name, "key"))


def restart(how=signal.SIGTERM):
    """End the stand-in and start it again with the same file."""
    discord.process.send_signal(how)
    discord.process.wait(60)
    discord.start()
    app.use(discord)


def messages(user="alice"):
    """Return the messages that a page of this user shows."""
    status, text = first_event(user)
    assert status == 200
    return json.loads(text)["messages"]


def first_event(user):
    """Return the status of the feed and the data of its first event."""
    link = http.client.HTTPConnection("127.0.0.1", discord.port, timeout=60)
    link.request("GET", "/control/feed?user=" + user)
    stream = link.getresponse()
    while True:
        line = stream.readline()
        if line.startswith(b"data: "):
            link.close()
            return stream.status, line[6:]


def written(match):
    """Wait until the file holds a message with this text."""
    link = sqlite3.connect(path, timeout=60)
    end = time.monotonic() + 60
    try:
        while not link.execute("SELECT count(*) FROM message WHERE body LIKE "
                               "?", (f"%{match}%",)).fetchone()[0]:
            assert time.monotonic() < end, f"never written: {match}"
            time.sleep(0.01)
    finally:
        link.close()


@test
def messages_files_and_people_are_there_after_a_restart():
    answer["next"] = DEFER
    sent = discord.send_command("py", user="dora").wait_answered()
    app.edit(sent.refresh().view["token"], {
        "content": "drawn", "components": [ROW],
        "attachments": [{"id": "0", "filename": "a.txt"}]},
        [("a.txt", b"held")])
    app.edit(sent.view["token"], {"content": "drawn twice"})
    discord.write("hello from bob", user="bob")
    before = {one["id"]: one["content"] for one in messages("dora")}
    restart()
    after = messages("dora")
    assert {one["id"]: one["content"] for one in after} == before
    [mine] = [one for one in after if one["content"] == "drawn twice"]
    assert mine["edited_timestamp"] and mine["standin"]["ephemeral"]
    assert mine["interaction_metadata"]["user"]["username"] == "dora"
    file = mine["attachments"][0]["url"].replace(discord.origin, "")
    assert discord.fetch(file) == b"held"
    assert "drawn twice" not in [one["content"] for one in messages("alice")]


@test
def its_buttons_work_and_a_live_token_still_edits():
    [mine] = [one for one in messages("dora") if one["components"]]
    answer["next"] = {"type": 7, "data": {"content": "again",
                                          "allowed_mentions": NO_PING}}
    pressed = discord.send({"component": mine["id"], "custom_id": "again:1",
                            "user": "dora"}).wait_answered()
    assert pressed.state == "answered", pressed
    token = pressed.refresh().view["token"]
    restart()
    assert app.edit(token, {"content": "edited after it"})[0] == 200
    again = Interaction(discord, pressed.id).refresh()
    assert again.content == "edited after it", again.content
    assert app.follow_up(token, {"content": "and more"})[0] == 200


@test
def kill_9_loses_nothing_that_was_written():
    discord.write("before the kill")
    written("before the kill")
    restart(signal.SIGKILL)
    assert "before the kill" in [one["content"] for one in messages()]


@test
def what_was_thinking_is_answered_later_or_says_so():
    answer["next"] = DEFER
    sent = discord.send_command("py").wait_answered()
    token = sent.refresh().view["token"]
    restart()
    assert [one for one in messages() if one["standin"]["loading"]]
    assert app.edit(token, {"content": "late, and welcome"})[0] == 200
    discord.send_command("py").wait_answered()
    discord.process.send_signal(signal.SIGTERM)
    discord.process.wait(60)
    link = sqlite3.connect(path)
    with link:
        link.execute("DELETE FROM interaction")
    link.close()
    discord.start()
    app.use(discord)
    assert not [one for one in messages() if one["standin"]["loading"]]
    assert messages()[-1]["content"] == "The application did not respond"


@test
def what_is_deleted_stays_deleted():
    gone = discord.write("take me away")
    discord.delete_message(gone)
    restart()
    assert "take me away" not in [one["content"] for one in messages()]
    discord.reset()
    restart()
    assert messages() == []


@test
def it_keeps_no_more_than_it_may():
    for number in range(KEPT_MESSAGES + 50):
        discord.call("POST", "/control/message", {"content": f"line {number}"})
    restart()
    kept = [one["content"] for one in messages()]
    assert len(kept) == KEPT_MESSAGES, len(kept)
    assert kept[-1] == f"line {KEPT_MESSAGES + 49}"
    size = 9 << 20
    for number in range(KEPT_BYTES // size + 2):
        file = json.loads(discord.http(
            "POST", f"/control/attachment?filename=f{number}",
            bytes(size))[1])
        discord.call("POST", "/control/message", {
            "content": "", "attachments": [file["id"]]})
    restart()
    held = [one["filename"] for message in messages()
            for one in message["attachments"]]
    assert held == [f"f{n}" for n in range(2, KEPT_BYTES // size + 2)], held
    discord.reset()


@test
def the_file_is_the_owners_alone():
    assert os.stat(path).st_mode & 0o777 == 0o600


@test
def a_file_that_is_none_of_ours_is_moved_aside():
    for broken in (b"nonsense" * 1000, None):
        discord.stop()
        for end in ("-wal", "-shm"):
            if os.path.exists(path + end):
                os.unlink(path + end)
        if broken:
            with open(path, "wb") as file:
                file.write(broken)
        else:
            link = sqlite3.connect(path)
            link.execute("PRAGMA user_version = 99")
            link.close()
        discord.start()
        app.use(discord)
        assert messages() == []
        assert os.path.exists(path + ".broken")
        os.unlink(path + ".broken")
    discord.write("kept again")
    restart()
    assert [one["content"] for one in messages()] == ["kept again"]


@test
def a_folder_that_is_not_there_is_said():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "standin.py")
    done = subprocess.run(
        [sys.executable, "-B", script, "--history", "/nowhere/at/all.db"],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 78 and "/nowhere" in done.stderr, done


with folder, discord:
    app.use(discord)
    try:
        run()
    finally:
        app.close()
