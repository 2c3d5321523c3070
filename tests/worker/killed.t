#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A worker that is killed at any moment: told once, run at most once."""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_STOP_SECONDS="3")


def hangs(cell):
    """A cell that never answers."""
    cell.send("STARTED")
    cell.wait_hang_up()


def runs():
    """Return how many runs cells were asked for."""
    return len([1 for kind, _ in house.broker.asked if kind == "RUN"])


def edits(sent):
    """Return how many edits of an interaction Discord has taken."""
    return len([1 for one in house.discord.requests(
        interaction=sent.id, route="edit") if one["status"] == 200])


def kill():
    """Kill the worker and start its successor."""
    house.stop(0, signal.SIGKILL)
    house.start()


@test
def killed_while_it_runs_is_interrupted_and_not_run_again():
    house.broker.cell = hangs
    before = runs()
    sent = house.send("py", text="1")
    house.broker.wait_asked("RUN", before + 1)
    kill()
    text = sent.wait_final(match="interrupted").original.text()
    assert "reference" in text, text
    house.wait_state(sent, "delivered")
    assert runs() == before + 1 and edits(sent) == 1
    assert house.outcome(sent)[1] == "interrupted"
    # As il-worker(8) says: the log has the reference.
    reference = re.search(r"reference (\d+)", text)[1]
    assert "did not end it job=%s " % reference in house.log(), house.log()


@test
def killed_before_it_starts_runs_after_all():
    house.broker.cell = says(b"after all\n")
    house.stop(0)
    sent = house.send("py", text="1")
    house.sql("UPDATE jobs SET state = 'claimed', claimed_by = 0 WHERE "
              "interaction_id = ?", int(sent.id))
    house.start()
    sent.wait_final(match="after all")


@test
def killed_before_it_tells_is_told_by_the_next_without_files():
    house.broker.cell = says(b"done\n", files=[("a.csv", b"1")])
    house.discord.fault("hang", "edit", seconds=30)
    before = runs()
    sent = house.send("py", text="1")
    house.wait_state(sent, "finished")
    kill()
    message = sent.wait_final(match="done").original
    assert "`a.csv` could not be attached" in message.text()
    assert "/il get" in message.text() and not message.attachments
    house.wait_state(sent, "delivered")
    assert runs() == before + 1 and edits(sent) == 1
    house.discord.clear_faults()


@test
def killed_after_discord_took_it_says_the_same_again():
    house.broker.cell = says(b"twice the same\n")
    house.discord.fault("hang", "edit", seconds=30, applied=True)
    sent = house.send("py", text="1")
    house.wait_state(sent, "finished")
    kill()
    house.wait_state(sent, "delivered")
    assert "twice the same" in sent.refresh().original.text()
    house.discord.clear_faults()


@test
def a_living_worker_takes_over_from_a_dead_slot():
    house.broker.cell = hangs
    house.start(1)
    house.wait_sql("SELECT 1")
    before = runs()
    sent = house.send("py", text="1")
    house.broker.wait_asked("RUN", before + 1)
    slot = house.sql("SELECT claimed_by FROM jobs WHERE interaction_id = ?",
                     int(sent.id))[0][0]
    house.stop(slot, signal.SIGKILL)
    sent.wait_final(match="interrupted")
    house.wait_state(sent, "delivered")
    house.start(slot)
    house.broker.cell = says(b"all is well\n")
    house.send("py", text="1").wait_final(match="all is well")
    house.stop(1)


def left(state):
    """Send a command whose job is in a state that nobody works on."""
    return house.send("py", text="1", state=state, claimed_by=0)


@test
def what_a_living_worker_could_not_begin_is_taken_up_again():
    # as when the database was locked or full at just that moment
    house.broker.cell = says(b"in the end\n")
    left("claimed").wait_final(match="in the end")


@test
def what_a_living_worker_could_not_end_is_interrupted():
    before = runs()
    sent = left("started")
    sent.wait_final(match="interrupted")
    house.wait_state(sent, "delivered")
    assert runs() == before and edits(sent) == 1


@test
def an_end_that_cannot_be_stored_is_sent_and_stored_afterwards():
    house.broker.cell = says(b"stored later\n")
    house.sql("CREATE TRIGGER full BEFORE UPDATE ON jobs WHEN NEW.state = "
              "'finished' BEGIN SELECT RAISE(ABORT, 'full'); END")
    sent = house.send("py", text="1")
    sent.wait_final(match="stored later")
    house.sandbox("bob")
    other = house.send("py", text="2", user="bob")
    house.wait_state(other, "queued")
    tries = house.log().count("not stored yet: ")
    until = time.monotonic() + 60
    while house.log().count("not stored yet: ") < tries + 2:
        assert time.monotonic() < until, house.log()
        time.sleep(0.02)
    assert house.outcome(other)[0] == "queued"
    house.sql("DROP TRIGGER full")
    house.wait_state(sent, "delivered")
    other.wait_final(match="stored later")
    assert edits(sent) == 1


@test
def discord_away_for_long_gets_the_files_later():
    house.broker.cell = says(b"late\n", files=[("a.csv", b"1")])
    house.discord.fault("status", "edit", status=500, count=7)
    sent = house.send("py", text="1")
    other = None
    house.wait_sql("SELECT 1 FROM jobs WHERE state = 'finished'")
    sent.wait_final(match="late")
    message = sent.original
    assert [one.filename for one in message.attachments] == ["a.csv"]
    assert other is None and edits(sent) == 1


@test
def sigterm_ends_after_the_job_that_runs():
    gate = []

    def waits(cell):
        cell.send("STARTED")
        gate.append(1)
        house.workers[0].send_signal(signal.SIGTERM)
        cell.output(b"to the end\n")
        cell.result()
    house.broker.cell = waits
    sent = house.send("py", text="1")
    sent.wait_final(match="to the end")
    assert gate and house.stop(0) == 0
    house.wait_state(sent, "delivered")
    house.start()


@test
def sigterm_does_not_wait_for_ever():
    def ends_us(cell):
        cell.output(b"so far\n")
        house.workers[0].send_signal(signal.SIGTERM)
        cell.wait_hang_up()
    house.broker.cell = ends_us
    sent = house.send("py", text="1")
    sent.wait_final(match="being restarted")
    assert "so far" in sent.original.text()
    assert house.stop(0) == 0
    house.start()


@test
def nothing_broke_discords_rules():
    house.discord.assert_no_violations()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        run()


main()
