# SPDX-License-Identifier: MIT
"""From the press of Cancel to the end of the run, as its owner sees it."""

import time

import front
import place as p
from edits import edits_of, send
from table import ms

ENDLESS = "while True:\n    pass"


def once(place, service, edits):
    """Begin a run, cancel it; returns how many milliseconds that took."""
    send(place, service, front.command("py", user=p.USER, code=ENDLESS))
    button = edits.get(timeout=30).message["components"][0]["components"][0]
    pressed = time.monotonic()
    answer = send(place, service, front.press(button["custom_id"],
                                              user=p.USER))
    if answer["type"] != 6:
        raise p.Failed("Cancel was answered %r" % answer)
    while True:
        edit = edits.get(timeout=30)
        if "cancelled" in edit.message["content"]:
            return 1000 * (edit.when - pressed)


def cancel(place, table):
    """What people wait for, and the engine's own way beside it."""
    count = place.settings.count(7)
    with place.service(users=1, IL_TIMEOUT_SECONDS="60") as service, \
            edits_of(place) as edits:
        took = sorted(once(place, service, edits) for _ in range(count))
        kept = service.containers()
    p50 = took[len(took) // 2]
    table.add("Cancel to the end of the run, p50", ms(p50), "", None,
              "<= 200 ms", p50 <= 200)
    table.note("n=%d, longest %s; from the press to the edit that says so;"
               " containers then: %d" % (count, ms(took[-1]), len(kept)))
