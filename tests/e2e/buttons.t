#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is done with an answer after a run: the buttons below it."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service  # noqa: E402
from tap import run, test  # noqa: E402

service = Service()


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
    assert message.buttons() == ["Re-run", "Edit", "Share", "Delete"], message


@test
def re_run_runs_it_again_in_its_place():
    message = final("py", code="open('r', 'a').write('x')\n"
                    "print('times', len(open('r').read()))")
    assert "times 1" in message.text(), message
    pressed(message, "Re-run")
    assert "times 2" in message.refresh().text(), message
    assert message.buttons() == ["Re-run", "Edit", "Share", "Delete"]
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
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    run()
