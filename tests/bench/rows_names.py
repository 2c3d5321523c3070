# SPDX-License-Identifier: MIT
"""A key is pressed: until the names are there that may be meant."""

import sqlite3
import subprocess
import time

import front
import place as p
from edits import send
from table import ms

NAMES = 1000    # as many as are kept


def fill(service):
    """The names of a full sandbox."""
    with sqlite3.connect(service.database) as link:
        link.executemany(
            "INSERT INTO names SELECT id, 'file', '', ? FROM sandboxes",
            [("folder%d/a file of some length %d" % (i % 9, i),)
             for i in range(NAMES)])


def once(place, service):
    """Milliseconds from a key to 25 names."""
    begun = time.monotonic()
    answer = send(place, service, front.typing("look", "path", "length 1",
                                               user=p.USER))
    took = 1000 * (time.monotonic() - begun)
    if len(answer["data"]["choices"]) != 25:
        raise p.Failed("it was answered %r" % answer)
    return took


def bare():
    begun = time.monotonic()
    subprocess.run(["/usr/bin/python3", "-c", "print(1)"], check=True,
                   stdout=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - begun)


def autocomplete(place, table):
    """In turns with a bare interpreter, through nginx."""
    count = place.settings.count(200)
    with place.service(users=1) as service:
        fill(service)
        once(place, service)
        took, beside = zip(*((once(place, service), bare())
                             for _ in range(count)))
    p50 = sorted(took)[count // 2]
    table.add("Autocomplete of a path, p50", ms(p50),
              ms(sorted(beside)[count // 2]), None, "<= 20 ms", p50 <= 20)
    table.note("n=%d each, in turns; of %d names; longest %s; beside python3"
               " -c 'print(1)'" % (count, NAMES, ms(max(took))))
