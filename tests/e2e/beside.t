#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""People look at their files while their code runs."""

import io
import os
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402


service = Service(IL_TIMEOUT_SECONDS="120", IL_WORKERS="4",
                  IL_USER_RATE="1000")
FOREVER = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
STOPS = """
import os, signal
print('begun', flush=True)
while True:
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        if pid not in (1, os.getpid()):
            try: os.kill(pid, signal.SIGSTOP)
            except OSError: pass
"""
BOMB = """
import os, time
try:
    while os.fork(): pass
except OSError:
    print('begun', flush=True)
time.sleep(1000)
"""


class Running:
    """A run of alice's that goes on until it is cancelled."""

    def __init__(self, code=FOREVER):
        self.sent = service.discord.send_command("py", user="alice", code=code)
        self.sent.wait_answered()
        wait_for(lambda: "begun" in self.sent.refresh().original.text())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        service.discord.press(self.sent.original, "Cancel")
        wait_for(lambda: state(self.sent)[0] == "delivered")
        if kind is None:
            assert "cancelled" in self.sent.refresh().original.text()
            assert state(self.sent)[1] == "cancelled"


def state(sent):
    """Return (state, outcome) of its job."""
    return service.sql("SELECT state, outcome FROM jobs WHERE "
                       "interaction_id = ?", int(sent.id))[0]


def look(**options):
    """Look as alice; returns the message."""
    return final(service.discord.send_command("look", user="alice",
                                              **options))


def final(sent):
    sent.wait_answered()
    wait_for(lambda: state(sent)[0] == "delivered")
    return sent.refresh().original


@test
def files_are_listed_shown_and_sent_beside_a_run():
    with Running("import os\nos.makedirs('sub/deep', exist_ok=True)\n"
                 "open('sub/made.txt', 'w').write('by it')\n" + FOREVER):
        assert "made.txt" in look(path="sub").text()
        assert "by it" in look(path="made.txt").text()
        sent = service.discord.send_command("get", user="alice",
                                            path="made.txt")
        assert final(sent).attachment("made.txt").text() == "by it"
        sent = service.discord.send_command("get", user="alice", path="~/sub")
        message = final(sent)
        assert message.attachment("sub.zip").size > 100, message
        assert "deep/" in zipfile.ZipFile(io.BytesIO(
            message.attachment("sub.zip").read())).namelist()
        assert "does not exist" in look(path="none").text()
    assert "made.txt" in look().text(), "it did not go there"
    look(path="..")


@test
def pages_are_turned_beside_a_run():
    service.run("for n in range(60): open('file%02d' % n, 'w').close()")
    with Running():
        message = look()
        assert "file00" in message.text()
        sent = service.discord.press(message, "Next")
        sent.wait_answered()
        wait_for(lambda: "file00" not in service.discord.message(
            message.id).text())


@test
def whoever_wants_more_has_to_wait():
    with Running():
        for command, options in (("py", {"code": "1"}),
                                 ("rm", {"name": "file00"}),
                                 ("write", {"name": "x", "content": "1"})):
            sent = service.discord.send_command(command, user="alice",
                                                **options)
            sent.wait_answered()
            assert "still running" in sent.original.text(), command
            assert sent.original.control("Cancel")


@test
def where_nobody_can_look_it_is_told():
    with Running(BOMB):
        assert "busy" in look().text()


def held_up():
    """A look that the run beside it has stopped before its answer."""
    for _ in range(200):
        sent = service.discord.send_command("look", user="alice")
        if sent.wait_answered().answer_type == 5:
            return sent
        assert "still running" not in sent.original.text()
    raise AssertionError("none was held up")


@test
def code_that_stops_who_looks_holds_up_nobody_else():
    with Running(STOPS):
        sent = held_up()
        assert "served" in service.run("print('ser' + 'ved')", user="bob")
        assert "busy" in final(sent).text()


@test
def a_look_outlives_the_run_beside_it():
    with Running(STOPS):
        sent = held_up()
    assert "file00" in final(sent).text()


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create("alice")
    service.create("bob")
    run()
