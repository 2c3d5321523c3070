#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A Discord that does not answer holds up those who wait, but not one after
another for as long as it may."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402

PEOPLE = ["alice", "bob", "carol", "dave", "eve"]
# 35 s for the first, 5 s for each other; five times 35 s are far more.
SECONDS = 100

house = House()


@test
def one_who_waits_is_not_held_up_by_each_answer_before():
    house.broker.cell = says(b"done\n")
    for person in PEOPLE:
        house.sandbox(person)
    house.discord.fault("hang", "edit", seconds=60, count=1000)
    sent = [house.send("py", text="1", user=person) for person in PEOPLE]
    house.broker.wait_asked("RUN", len(PEOPLE), seconds=SECONDS)
    house.discord.clear_faults()
    for one in sent:
        one.wait_final(match="done")


def main():
    """Run it in a house."""
    with house:
        run()


main()
