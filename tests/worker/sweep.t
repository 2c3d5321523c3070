#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What workers do between jobs: expiry as the database says, old rows."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House  # noqa: E402
from tap import run, test  # noqa: E402

house = House()


def state(sandbox):
    """Return the state of a sandbox, None when it has no row."""
    rows = house.sql("SELECT state FROM sandboxes WHERE id = ?", sandbox)
    return rows[0][0] if rows else None


def removed():
    """Return the sandboxes that the broker was asked to remove."""
    return [fields["SANDBOX"].decode() for kind, fields
            in house.broker.asked if kind == "REMOVE"]


def wait_state(sandbox, wanted):
    """Wait until a sandbox is in a state."""
    house.wait_sql("SELECT state FROM sandboxes WHERE id = ?", sandbox,
                   want=[(wanted,)])


def sweep_now():
    """A worker sweeps when it starts: no need to wait for its next round."""
    house.stop(0)
    house.start()


@test
def a_sandbox_expires_at_its_time():
    sandbox = house.sandbox("alice", days=2 / 86400)
    wait_state(sandbox, "expired")
    assert sandbox in removed()


@test
def a_row_that_an_operator_changes_is_obeyed():
    sandbox = house.sandbox("bob")
    house.sql("UPDATE sandboxes SET expires_at = 1 WHERE id = ?", sandbox)
    wait_state(sandbox, "expired")
    assert sandbox in removed()


@test
def a_pinned_one_stays():
    pinned = house.sandbox("carol", days=-1, pinned=1)
    other = house.sandbox("dave", days=-1)
    sweep_now()
    wait_state(other, "expired")
    assert state(pinned) == "active" and pinned not in removed()


@test
def one_that_was_being_deleted_is_finished():
    sandbox = house.sandbox("erin", state="removing")
    sweep_now()
    deadline = time.monotonic() + 120
    while state(sandbox) is not None and time.monotonic() < deadline:
        house.broker.wait_asked("REMOVE", len(removed()))
        time.sleep(0.1)
    assert state(sandbox) is None and sandbox in removed()


@test
def a_folder_that_cannot_be_removed_keeps_its_row():
    house.broker.refuse_remove = "ENGINE"
    sandbox = house.sandbox("frank", days=-1)
    sweep_now()
    wait_state(sandbox, "expiring")
    house.broker.refuse_remove = None
    house.sql("UPDATE sandboxes SET taken_at = 0 WHERE id = ?", sandbox)
    sweep_now()
    wait_state(sandbox, "expired")


@test
def many_old_views_go_in_one_round_of_small_steps():
    house.stop(0)
    house.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
              " WHERE i < 450) INSERT INTO views (user_id, kind, created_ms)"
              " SELECT 1, 'look', i FROM n")
    house.start()
    house.wait_sql("SELECT count(*) FROM views", want=[(0,)])


@test
def more_than_a_round_takes_goes_in_the_next_ones():
    house.stop(0)
    house.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
              " WHERE i < 5100) INSERT INTO views (user_id, kind, created_ms)"
              " SELECT i, 'look', i FROM n")
    house.start()
    house.wait_sql("SELECT count(*) FROM views", want=[(0,)])


@test
def old_jobs_and_views_go_and_young_ones_stay():
    house.stop(0)
    now = int(time.time() * 1000)
    month = 31 * 86400 * 1000
    user = house.user_id("alice")
    for number, (age, mode) in enumerate(((month, "delivered"),
                                          (month, "undeliverable"),
                                          (1000, "delivered"))):
        house.sql("INSERT INTO jobs (interaction_id, application_id, "
                  "user_id, kind, answer, token, received_ms, "
                  "attachment_limit, may_attach, state) VALUES "
                  "(?, 1, ?, 'py', 'deferred', '', ?, 1, 1, ?)",
                  number + 1, user, now - age, mode)
    for age in (month, 1000):
        house.sql("INSERT INTO views (user_id, kind, created_ms) VALUES "
                  "(?, 'look', ?)", user, now - age)
    house.start()
    house.wait_sql("SELECT count(*) FROM jobs WHERE interaction_id < 10",
                   want=[(1,)])
    house.wait_sql("SELECT count(*) FROM views", want=[(1,)])


def main():
    """Run them in one house."""
    with house:
        run()


main()
