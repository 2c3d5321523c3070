#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The answer is the first response while the front waits for it; otherwise it
is an edit, and never both."""

import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import EPHEMERAL, PUBLIC, House, fails, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_TUNE_INSTANT_MS="300")


def edits():
    """How many edits Discord has seen."""
    return len(house.discord.requests(route="edit"))


def job_id(sent):
    """Return the id of a command's job."""
    return house.sql("SELECT id FROM jobs WHERE interaction_id = ?",
                     int(sent.id))[0][0]


@test
def in_time_it_is_the_first_response():
    before = edits()
    house.broker.cell = says(b"hello\n")
    sent = house.begin("py", text="1")
    message = sent.wait_answered().original
    assert "hello" in message.text() and message.ephemeral, message
    house.wait_state(sent, "delivered")
    assert house.given == job_id(sent)
    assert edits() == before


@test
def shared_it_is_an_edit_and_for_everybody():
    before = edits()
    sent = house.begin("py", text="1", share=1, late=PUBLIC)
    assert not sent.wait_final(match="hello").original.ephemeral
    house.wait_state(sent, "delivered")
    assert edits() == before + 1


@test
def shared_and_moderated_it_is_for_its_owner():
    house.discord.fault("status", "edit", status=400, code=200000)
    sent = house.begin("py", text="1", share=1, late=PUBLIC).wait_followups()
    house.wait_state(sent, "delivered")
    assert "moderation" in sent.original.text(), sent
    apart, = [one for one in sent.messages if one.ephemeral]
    assert "hello" in apart.text(), sent
    house.discord.assert_no_violations(ignore=["rejected-200000"])
    house.discord.clear_violations()


@test
def too_late_it_is_an_edit():
    before = edits()
    late = house.too_late()
    sent = house.begin("py", text="1", answer=EPHEMERAL)
    assert "hello" in sent.wait_final().original.text()
    late.join(60)
    assert edits() == before + 1


@test
def with_files_it_is_deferred_and_one_edit():
    before = edits()
    house.broker.cell = says(b"hello\n", [("plot.png", b"png")])
    sent = house.begin("py", text="1")
    message = sent.wait_final().original
    assert message.attachment("plot.png").text() == "png", message
    assert "hello" in message.text(), message
    assert edits() == before + 1
    edit = house.discord.requests(route="edit", interaction=sent.id)[0]
    assert edit["time"] - house.given_at >= 0.2, (edit, house.given_at)
    house.broker.cell = says(b"hello\n")


@test
def a_refusal_is_a_first_response_too():
    before = edits()
    sent = house.begin("delete", user="nobody")
    assert "no sandbox" in sent.wait_answered().original.text()
    house.wait_state(sent, "delivered")
    assert edits() == before


@test
def a_front_that_is_gone_leaves_it_to_an_edit():
    sent = house.begin("py", text="1", answer=EPHEMERAL, held_by=7)
    assert "hello" in sent.wait_final().original.text()
    house.wait_state(sent, "delivered")
    assert "no first response" in house.log()


@test
def an_editor_without_a_front_is_not_told_as_opened():
    house.broker.cell = fails("NOT_FOUND")
    sent = house.editor("x", answer=EPHEMERAL, held_by=7)
    house.wait_state(sent, "undeliverable")
    house.broker.cell = says(b"hello\n")


@test
def a_front_that_says_nothing_leaves_it_to_an_edit():
    for word in (b"", b"x"):
        late = house.too_late(word)
        sent = house.begin("py", text="1", answer=EPHEMERAL)
        assert "hello" in sent.wait_final().original.text()
        house.wait_state(sent, "delivered")
        late.join(60)


@test
def a_worker_that_is_killed_before_it_gave_it_leaves_an_edit():
    runs = len(house.broker.wait_asked("RUN"))
    late = house.too_late(kill=True)
    sent = house.begin("py", text="1", answer=EPHEMERAL)
    late.join(60)
    house.start()
    assert "hello" in sent.wait_final().original.text()
    house.wait_state(sent, "delivered")
    assert len(house.broker.wait_asked("RUN")) == runs + 1


@test
def a_clock_that_was_set_back_holds_up_nobody():
    ahead = int(time.time() * 1000) + 3600000
    sent = house.send("py", text="1", answer=EPHEMERAL, received_ms=ahead)
    assert "hello" in sent.wait_final().original.text()


@test
def progress_is_not_shown_before_the_first_response():
    house.settings["IL_TUNE_INSTANT_MS"] = "2500"
    house.stop(0)
    house.start()

    def slow(cell):
        cell.send("STARTED")
        time.sleep(2.1)
        cell.result()
    before = edits()
    house.broker.cell = slow
    sent = house.begin("py", text="1")
    sent.wait_answered()
    house.wait_state(sent, "delivered")
    assert edits() == before


@test
def progress_tells_the_time_of_the_run_and_not_of_the_wait():
    def slow(cell):
        cell.send("STARTED")
        shown.wait(60)
        cell.result()
    shown = threading.Event()
    house.broker.cell = slow
    long_ago = int(time.time() * 1000) - 60000
    sent = house.send("py", text="1", received_ms=long_ago)
    try:
        text = sent.wait_edits(1, match="Running").original.text()
    finally:
        shown.set()
    house.wait_state(sent, "delivered")
    assert re.match(r"Running … [0-9] s", text), text


@test
def nothing_broke_discords_rules():
    house.discord.assert_no_violations()


with house:
    house.sandbox()
    run()
