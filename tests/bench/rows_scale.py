# SPDX-License-Identifier: MIT
"""Rows about what has piled up: 10,000 sandboxes, a million finished jobs."""

import contextlib
import os
import sqlite3
import time

import place as p
from table import ms

HOUR, DAY = 3600, 86400
OTHERS = 800000000000000000  # the first of the other people

# Times lie between an hour and 25 days ago; nothing is due to be removed.
SANDBOXES = """WITH RECURSIVE n(i) AS
    (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT INTO sandboxes (id, user_id, created_at, used_at, expires_at)
SELECT printf('%032x', :first + i), :first + i, :now - 10 * 86400,
    :now - 3600 - i * 17 % 86400, :now + 86400 + i * 31 % 500000 FROM n"""

JOBS = """WITH RECURSIVE n(i) AS
    (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT INTO jobs (interaction_id, application_id, user_id, kind, state,
    answer, token, received_ms, attachment_limit, may_attach, claimed_by,
    outcome, claimed_ms, started_ms, finished_ms, told_ms)
SELECT 1000000 + i, 1,
    CASE WHEN i % 10000 = 0 THEN :user ELSE :first + i * 7919 % :people END,
    'py', 'delivered', 'deferred', '', at, 20971520, 1, i % 4, 'exit 0', at,
    at, at + 5, at + 9
FROM (SELECT i, :now * 1000 - 3600000 - (:count - i) * 2150 AS at FROM n)"""

INDEXES = ("jobs_rate", "jobs_received")


def sizes(place):
    """How many sandboxes, how many jobs."""
    return (50, 1000) if place.settings.quick else (10000, 1000000)


def fill_database(path, people, jobs):
    """The rows; an index is made faster than it is kept."""
    link = sqlite3.connect(path)
    with contextlib.closing(link):
        link.execute("PRAGMA synchronous = OFF")
        values = {"now": int(time.time()), "first": OTHERS, "user": p.USER,
                  "people": people}
        with link:
            made = [link.execute("SELECT sql FROM sqlite_master WHERE name = ?",
                                 (name,)).fetchone()[0] for name in INDEXES]
            for name in INDEXES:
                link.execute("DROP INDEX " + name)
            link.execute(SANDBOXES, {**values, "count": people})
            link.execute(JOBS, {**values, "count": jobs})
            link.execute("UPDATE sandboxes SET used_at = used_at - ?"
                         " WHERE user_id = ?", (HOUR, p.USER))
            for text in made:
                link.execute(text)
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_folder(base, people):
    """Folders like the one that is there, with files of the same size that
    take no room.
    """
    example = os.path.join(base, next(name for name in os.listdir(base)
                                        if not name.startswith(".")))
    files = [(name, os.path.getsize(os.path.join(example, name)))
             for name in os.listdir(example)]
    for i in range(people):
        folder = os.path.join(base, "%032x" % (OTHERS + i))
        os.mkdir(folder, 0o700)
        for name, size in files:
            with open(os.path.join(folder, name), "wb") as file:
                file.truncate(size)


def populated(place):
    """A service with all of that, stopped; made once."""
    if place.populated is None:
        people, jobs = sizes(place)
        service = p.BenchService(place, IL_TUNE_WARM_SECONDS="0")
        place.stack.callback(service.close)
        service.start()
        place.load("burst", 1, place.create(service))
        service.stop()
        fill_folder(service.settings["IL_BASE_DIR"], people)
        fill_database(service.database, people, jobs)
        place.populated = service
    return place.populated


def what_is_there(place):
    return "%d sandboxes, %d finished jobs" % sizes(place)


def after_rest(place, table):
    """The first command after an hour, beside the same in an empty system."""
    count, gap = place.settings.count(15), place.settings.ms(500, 50)
    big = populated(place)
    big.start()
    try:
        with place.service(users=1, IL_TUNE_WARM_SECONDS="0") as small:
            specs = [place.command(big), place.command(small)]
            place.load("alternate", 1, 1, gap, *specs)
            ours, theirs = place.load("alternate", count, 1, gap, *specs)
    finally:
        big.stop()
    table.at_most("first /il py after an hour, p50", ours["whole"]["p50"],
                  theirs["whole"]["p50"], 1.2, with_what="in an empty system")
    table.note("%s; n=%d each, in turns; p95 %s beside %s; acknowledged after"
               " p50 %s beside %s" % (
                   what_is_there(place), count, ms(ours["whole"]["p95"]),
                   ms(theirs["whole"]["p95"]), ms(ours["first"]["p50"]),
                   ms(theirs["first"]["p50"])))


def start_once(place, service):
    """Seconds from the start of `ilctl run` to the first PONG, the first
    answer of /eval, and cells that are ready.
    """
    most = p.START_MS
    since = time.monotonic_ns() // 1000
    service.launch()
    with place.start_load("first", since, most,
                          "ping:%d" % service.port) as pong, \
            place.start_load("first", since, most,
                             place.eval(service)) as answer:
        first = [place.end_load(process)[0]["whole"]["p50"] / 1000
                 for process in (pong, answer)]
    service.wait_cells(service.warm())
    return (*first, time.monotonic() - since / 1e6)


def start_up(place, table):
    times = []
    service = populated(place)
    for _ in range(1 if place.settings.quick else 5):
        try:
            times.append(start_once(place, service))
        finally:
            service.stop()
    pong, answer, warm = (sorted(column)[len(times) // 2]
                          for column in zip(*times))
    table.add("start-up to the first answer", "%.2f s" % pong,
              what_is_there(place), None, "<= 2 s", pong <= 2)
    table.note("medians of %d start(s): signed PING answered %.2f s, /eval"
               " answered %.2f s, cells warm %.2f s; the slowest PING %.2f s,"
               " /eval %.2f s" % (len(times), pong, answer, warm,
                                  max(t[0] for t in times),
                                  max(t[1] for t in times)))
