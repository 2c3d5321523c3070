#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A host on which containers start slowly: those who wait are told in time and
why, starts get rarer and come one at a time, and a key gives them more time."""
from brokerlib import *
from fake import Fake

SANDBOXES = 6


def most_at_once(calls):
    """How many docker run were under way at one time."""
    now = most = 0
    for word in calls:
        now += (word == "run") - (word == "started")
        most = max(most, now)
    return most


def too_slow():
    fake = Fake(run="slow 6")
    with Broker(IL_TUNE_START_SECONDS="4", **fake.settings) as b:
        for n in range(1, SANDBOXES + 1):
            b.create(n)
        began = time.monotonic()
        asked = [b.ask_lease(n) for n in range(1, SANDBOXES + 1)]
        answers = [a.answer() for a in asked]
        took = time.monotonic() - began
        is_([kind for kind, _ in answers], ["REFUSED"] * SANDBOXES,
            "no start is quick enough: all are told")
        note("after %.1f s" % took)
        texts = [fields["TEXT"].decode() for _, fields in answers]
        ok(all("IL_TUNE_START_SECONDS" in text for text in texts),
           "and why, with the key that helps: %s" % texts[-1])
        ok(any("next try in" in text for text in texts),
           "and when there is another try")
        first = fake.calls()
        ok(first.count("run") < SANDBOXES,
           "not each of them had a start: %d" % first.count("run"))
        is_(b.status()["ENGINE"], 1, "slow is not away")
        # From here on one at a time, each later than the one before.
        b.wait_log("3 starts in a row have failed", patience=PATIENCE) \
            if wait_refused(b, 3) else None
        rest = fake.calls()[len(first):]
        ok(most_at_once(rest) <= 1, "after failures one at a time: %s" % rest)
        ok("in 4 s" in b.logged(), "the pause grows")
        fake.set(run="real")
        ok(b.wait_granted(1, PATIENCE), "when docker is quick: granted")
        before = b.logged().count("in a row")
        is_(b.refusal(2), "GRANTED", "and there is no pause any more")
        is_(b.logged().count("in a row"), before, "nothing failed")
    fake.close()


def it_is_said():
    """docker image inspect answers at once, docker run never does."""
    fake = Fake(run="hang")
    with Broker(IL_TUNE_START_SECONDS="4", **fake.settings) as b:
        b.create(1)
        asked = b.ask_lease(1)
        fake.wait_called("run")
        b.wait_until(lambda s: s["START_PENDING"] > 0)
        is_(b.status()["START_FAILURES"], 0, "a start is under way")
        asked.answer()
        status = b.wait_until(lambda s: s["START_FAILURES"] == 1)
        ok(status["ENGINE"] == 1 and b"IL_TUNE_START_SECONDS" in status["TROUBLE"],
           "it has failed, and why: %s" % status["TROUBLE"])
        fake.set(run="real")
        ok(b.wait_granted(1, PATIENCE), "when docker is quick: granted")
        status = b.status()
        ok(status["START_FAILURES"] == 0 and status["START_PENDING"] == 0,
           "and nothing of it is said any more")
    fake.close()


def wait_refused(b, failures):
    """Ask until so many starts have failed."""
    end = time.monotonic() + PATIENCE
    while "%d starts in a row" % failures not in b.logged():
        if time.monotonic() > end:
            return False
        b.refusal(3)
        time.sleep(0.2)
    return True


def more_time():
    fake = Fake(run="slow 3", probe="slow 4")
    with Broker(IL_TUNE_START_SECONDS="60", **fake.settings) as b:
        b.create(1)
        is_(b.refusal(1), "GRANTED", "the same host, with IL_TUNE_START_SECONDS")
    fake.close()


def the_apis_have_their_turn():
    """People's cells start first, and not only those."""
    fake = Fake(run="slow 1")
    with Broker(IL_TUNE_START_SECONDS="60", IL_API_CELLS="1", IL_TUNE_API_WARM="0",
                IL_CELLS="9", **fake.settings) as b:
        for n in range(1, 8):
            b.create(n)
        people = [b.ask_lease(n) for n in range(1, 8)]
        api = b.ask_api()
        is_(api.answer(PATIENCE)[0], "GRANTED", "an API cell is started")
        late = [a for a in people if not readable(a.sock)]
        note("%d of %d people's still wait" % (len(late), len(people)))
        ok(len(late) >= 2, "while people's are being started")
        is_([a.answer(PATIENCE)[0] for a in people], ["GRANTED"] * 7,
            "and all have theirs")
    fake.close()


def readable(sock):
    return bool(select.select([sock], [], [], 0)[0])


main(the_apis_have_their_turn, too_slow, it_is_said, more_time)
