#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What is left of a Cancel: before a job begins, when its job is over, and
where nothing can be watched."""

import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402

OLD = 3600

house = House()


def asked(name):
    """Return the path of the file that asks for it."""
    return os.path.join(house.state, "cancels", str(name))


def ask(name, age=0):
    """Ask for it, so many seconds ago."""
    os.makedirs(asked(""), exist_ok=True)
    with open(asked(name), "wb"):
        pass
    then = time.time() - age
    os.utime(asked(name), (then, then))


@test
def what_was_cancelled_in_the_queue_needs_no_cell():
    house.stop(0)
    sent = house.send("py", text="1")
    ask(house.sql("SELECT max(id) FROM jobs")[0][0])
    house.start()
    message = sent.wait_final().original
    assert "Cancelled before it began" in message.text(), message
    house.wait_state(sent, "delivered")
    assert not [1 for kind, _ in house.broker.asked if kind == "LEASE"]
    assert os.listdir(asked("")) == [], "and nothing is left of it"


@test
def a_cancel_of_what_is_over_is_swept_away():
    ask(900001, OLD)
    ask(900002)
    house.stop(0)
    house.start()
    deadline = time.monotonic() + 120
    while os.path.exists(asked(900001)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.listdir(asked("")) == ["900002"]
    os.unlink(asked(900002))


@test
def without_the_folder_jobs_are_done_all_the_same():
    house.stop(0)
    shutil.rmtree(asked(""))
    with open(os.path.join(house.state, "cancels"), "wb"):
        pass
    house.broker.cell = says(b"hello\n")
    house.start()
    house.send("py", text="1").wait_final(match="hello")
    assert "cannot be cancelled" in house.log()


with house:
    house.sandbox()
    run()
