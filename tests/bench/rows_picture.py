# SPDX-License-Identifier: MIT
"""A run that shows a picture: files come by an edit, so it is deferred."""

import time

import front
import place as p
from edits import edits_of, send
from table import ms

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20000)
CODE = f"""class Picture:
    def _repr_png_(self):
        return {PNG[:8]!r} + bytes({len(PNG) - 8})

Picture()"""


def once(place, service, edits):
    """Milliseconds from the interaction to the edit with the picture."""
    begun = time.monotonic()
    answer = send(place, service,
                  front.command("py", user=p.USER, code=CODE))
    if answer["type"] != 5:
        raise p.Failed("it was answered %r" % answer)
    edit = edits.get(timeout=30)
    if list(edit.files.values()) != [PNG]:
        raise p.Failed("there is no picture in %r" % edit.message)
    return 1000 * (edit.when - begun)


def picture(place, table):
    """What of it is the pause that follows a deferral is said beside it."""
    count = place.settings.count(30)
    with place.service(users=1) as service, edits_of(place) as edits:
        once(place, service, edits)
        took = sorted(once(place, service, edits) for _ in range(count))
    table.add("/il py with a picture, warm, p50", ms(took[len(took) // 2]))
    table.note("n=%d, longest %s; %d bytes; to the edit that has it, which"
               " waits 250 ms after the deferral" % (
                   count, ms(took[-1]), len(PNG)))
