#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What a worker makes of what the operator has said: time, disk, a banner; and
what is kept of a run for who looks into abuse."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_TIMEOUT_SECONDS="1.0")


def rule(subject, number=0, **columns):
    house.sql("INSERT OR REPLACE INTO rules (subject, id, changed_at, %s)"
              " VALUES (?, ?, 1, %s)" % (", ".join(columns),
                                         ", ".join("?" * len(columns))),
              subject, number, *columns.values())


@test
def a_person_has_another_time_and_disk():
    rule("service", timeout_ms=300)
    rule("user", house.user_id("bob"), timeout_ms=2500, quota=8 << 20)
    house.broker.cell = says(b"hello\n", CPU_US=345678)
    house.send("py", user="bob", text="1").wait_final(match="hello")
    assert house.broker.wait_asked("RUN")[-1]["WALL_MS"] == 2500
    created = house.broker.wait_asked("CREATE")[-1]
    assert created["QUOTA_BYTES"] == 8 << 20, created
    sent = house.send("py", user="carl", text="1")
    sent.wait_final(match="hello")
    assert house.broker.wait_asked("RUN", 2)[-1]["WALL_MS"] == 300
    house.wait_state(sent, "delivered")
    assert house.sql("SELECT cpu_ms FROM jobs") == [(345,), (345,)]


@test
def what_ran_no_code_has_no_time():
    sent = house.send("create")
    sent.wait_final()
    house.wait_state(sent, "delivered")
    assert house.sql("SELECT cpu_ms FROM jobs WHERE kind = 'create'") == \
        [(None,)]


@test
def who_was_blocked_after_il_fcgi_let_them_in_runs_nothing():
    asked = len(house.broker.wait_asked("LEASE"))
    rule("user", house.user_id("mallory"), blocked=1, reason="mines ```")
    sent = house.send("py", user="mallory", text="1").wait_final()
    text = sent.original.text()
    assert "does not let you use it" in text and text.endswith(
        "\n> mines '''"), text
    house.wait_state(sent, "delivered")
    assert house.sql("SELECT started_ms, outcome FROM jobs WHERE "
                     "interaction_id = ?", int(sent.id)) == [(None, "blocked")]
    rule("user", house.user_id("mallory"), blocked=0)
    rule("service", blocked=1)      # what was let in before is done
    house.send("py", user="mallory", text="1").wait_final(match="hello")
    rule("service", blocked=0)
    assert len(house.broker.wait_asked("LEASE")) == asked + 1


@test
def a_banner_is_below_all_answers():
    rule("service", banner="until six ``` @everyone")
    house.broker.cell = says(b"x" * 5000)
    text = house.send("py", user="bob", text="1").wait_final().original.text()
    assert text.endswith("\n> until six ''' @everyone"), text[-99:]
    assert len(text) <= 2000 and text.count("```") == 2, text
    rule("service", banner="")
    text = house.send("py", user="bob", text="1").wait_final().original.text()
    assert "until" not in text, text


with house:
    run()
