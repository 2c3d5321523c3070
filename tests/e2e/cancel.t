#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A long run shows how it goes on, and ends when its owner says so."""

import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from client import StandinError  # noqa: E402
from tap import run, test  # noqa: E402


service = Service(IL_TIMEOUT_SECONDS="60", IL_WORKERS="1")
FOREVER = ("import time\nprint('begun', flush=True)\n"
           "while True:\n    time.sleep(0.05)")


def begin(code=FOREVER, **options):
    """Begin a run, and wait for what it shows of itself."""
    sent = service.discord.send_command("py", user="alice", code=code,
                                        **options)
    sent.wait_answered()
    wait_for(lambda: all(word in sent.refresh().original.text()
                         for word in ("Running", "begun")))
    return sent


def state(sent):
    """Return (state, outcome) of its job."""
    return service.sql("SELECT state, outcome FROM jobs WHERE "
                       "interaction_id = ?", int(sent.id))[0]


def ended(sent):
    """Wait for its end; returns the message."""
    wait_for(lambda: state(sent)[0] == "delivered")
    return sent.refresh().original


@test
def a_long_run_shows_its_output_so_far():
    sent = begin()
    message = sent.original
    assert message.control("Cancel")["style"] == 4
    cells = service.containers()
    pressed = service.discord.press(message, "Cancel")
    message = ended(sent)
    assert "cancelled" in message.text() and "begun" in message.text()
    assert "Cancel" not in message.buttons(), message
    assert state(sent)[1] == "cancelled"
    assert pressed.wait_answered().answer_type == 6
    assert service.containers() == cells, "its cell was ended"
    assert "served" in service.run("print('ser' + 'ved')")


@test
def code_that_will_not_end_is_ended():
    sent = begin("import signal, os\nprint('begun', flush=True)\n"
                 "for n in range(1, 65):\n"
                 "    try:\n        signal.signal(n, signal.SIG_IGN)\n"
                 "    except (OSError, ValueError):\n        pass\n"
                 "for _ in range(8):\n"
                 "    try:\n        os.fork()\n"
                 "    except OSError:\n        pass\n"
                 "while True:\n    pass")
    service.discord.press(sent.original, "Cancel")
    assert "cancelled" in ended(sent).text()
    assert "served" in service.run("print('ser' + 'ved')")


@test
def a_second_command_offers_it():
    sent = begin()
    other = service.discord.send_command("py", user="alice", code="1")
    other.wait_answered()
    assert "still running" in other.original.text()
    pressed = service.discord.press(other.original, "Cancel")
    pressed.wait_answered()
    assert "being cancelled" in other.refresh().original.text()
    assert "cancelled" in ended(sent).text()


@test
def nobody_else_cancels_it():
    service.create("bob")
    sent = begin(share=True)
    other = service.discord.press(sent.original, "Cancel", user="bob")
    assert "somebody else" in other.wait_answered().original.text()
    assert state(sent)[0] == "started"
    refused = service.discord.send_command("py", user="alice", code="1")
    refused.wait_answered()
    again = service.discord.press(sent.original, "Cancel")
    # by now it may be over, and have no button any more
    with contextlib.suppress(StandinError):
        service.discord.press(sent.original, "Cancel").wait_answered()
    ended(sent)
    assert again.wait_answered().answer_type == 6
    late = service.discord.press(refused.original, "Cancel")
    assert "over already" in late.wait_answered().original.text()


@test
def what_waits_for_its_turn_is_never_begun():
    """There is one worker."""
    sent = begin()
    waits = service.discord.send_command("py", user="bob",
                                         code="open('begun', 'w')")
    waits.wait_answered()
    refused = service.discord.send_command("rm", user="bob", name="x")
    refused.wait_answered()
    service.discord.press(refused.original, "Cancel").wait_answered()
    service.discord.press(sent.original, "Cancel")
    assert "before it began" in ended(waits).text()
    assert "begun" not in service.say("look", user="bob")
    ended(sent)


@test
def nothing_of_it_is_left():
    folder = os.path.join(service.settings["IL_STATE_DIR"], "cancels")
    assert os.listdir(folder) == [], os.listdir(folder)


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create("alice")
    run()

