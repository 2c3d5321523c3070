# SPDX-License-Identifier: MIT
"""People who send one command after the other, and what has to be true of all
that was acknowledged."""

import itertools
import threading
import time

from hosts import wait_for

DEADLINE = 3.0      # Discord's, in seconds
TELL_SECONDS = 240


def figure(text):
    """Something that was measured, for the table."""
    print("# figure " + text, flush=True)


def code(mark, seconds):
    """Code that leaves its mark where a second run of it would be seen."""
    return ("import os, time\n"
            "with open('marks', 'a') as file:\n"
            f"    file.write('{mark}\\n'); file.flush()\n"
            "    os.fsync(file.fileno())\n"
            f"time.sleep({seconds})\n"
            f"print('end of {mark}')")


class Load:
    """People, each in a thread with one command at a time: {user: the front
    that commands come by (Node.front), None: any}.
    """

    def __init__(self, discord, people, seconds=(0, 0.5, 2), name="m"):
        self.discord = discord
        self.people = people
        self.seconds = seconds
        self.name = name
        self.sent = {}          # mark: interaction
        self.acknowledged_at = []
        self.told_at = []
        self.ended = threading.Event()
        self.numbers = itertools.count()
        self.threads = []
        self.errors = []

    def begin(self):
        """Let all begin."""
        self.ended.clear()
        self.threads = [threading.Thread(target=self.send_on, daemon=True,
                                         args=(user, i))
                        for i, user in enumerate(self.people)]
        for thread in self.threads:
            thread.start()

    def end(self):
        """Let nobody send more, and wait until all have been told."""
        self.ended.set()
        for thread in self.threads:
            thread.join(TELL_SECONDS)
            assert not thread.is_alive(), "somebody waits for an answer"
        # Who has stopped early makes a rate low, and a ratio high.
        assert not self.errors, self.errors

    def send(self, user, seconds):
        """One command; returns (mark, interaction)."""
        mark = f"{self.name}{next(self.numbers)}"
        one = self.discord.send_command("py", user=user,
                                        code=code(mark, seconds),
                                        order=self.people[user])
        self.sent[mark] = one
        return mark, one

    def send_on(self, user, turn):
        """What one of them does."""
        try:
            while not self.ended.is_set():
                seconds = self.seconds[turn % len(self.seconds)]
                turn += 1
                mark, one = self.send(user, seconds)
                while one.refresh().state == "pending":
                    time.sleep(0.05)
                if not self.is_acknowledged(mark, one):
                    time.sleep(0.3)
                    continue
                self.acknowledged_at.append(time.monotonic())
                one.wait_final(timeout=TELL_SECONDS)
                self.told_at.append(time.monotonic())
        except Exception as error:      # told by end()
            self.errors.append(f"{user}: {error!r}")

    @staticmethod
    def is_acknowledged(mark, one):
        """Was its sender promised something?  A refusal promises nothing."""
        return one.state == "answered" and (
            one.answer_type == 5 or f"end of {mark}" in str(one.answer))

    def acknowledged(self):
        """{mark: interaction} of those."""
        return {mark: one for mark, one in self.sent.items()
                if self.is_acknowledged(mark, one.refresh())}

    def wait_acknowledged(self, count, seconds=180):
        """Until so many more have been."""
        begun = len(self.acknowledged_at)
        wait_for(lambda: len(self.acknowledged_at) >= begun + count, seconds,
                 what="acknowledged commands")

    def told(self, one):
        """All that its sender was told at the end, in order: (how, text)."""
        said = [("answer", str(one.answer))] if one.answer_type == 4 else []
        return said + [
            (request["route"], str(request["payload"]))
            for request in self.discord.requests(interaction=one.id)
            if request["route"] in ("edit", "followup") and
            request["status"] == 200 and
            "'cancel:" not in str(request["payload"])]


class Verdict:
    """What came of a load, judged at the end."""

    def __init__(self, load, nodes):
        self.load = load
        self.known = load.acknowledged()
        self.rows = {}
        for node in nodes:
            for key, text in node.sql(
                    "SELECT CAST(interaction_id AS TEXT), state || ' ' || "
                    "coalesce(outcome, '') FROM jobs"):
                self.rows.setdefault(key, []).append(f"{node.name} {text}")

    def assert_in_database(self):
        """Acknowledged ⊆ the nodes' databases; nothing is in two of them."""
        lost = [mark for mark, one in self.known.items()
                if one.id not in self.rows]
        assert self.known and not lost, f"acknowledged and lost: {lost}"
        twice = [rows for rows in self.rows.values() if len(rows) > 1]
        assert not twice, f"of one interaction: {twice}"

    def assert_told_once(self, *allowed):
        """One end each, and of these kinds."""
        bad = []
        ends = {}
        for mark, one in self.known.items():
            texts = self.load.told(one)
            told = [(how, "results" if f"end of {mark}" in text else
                     "interrupted" if "nterrupted" in text else
                     "not run" if "nothing was run" in text else text[:90])
                    for how, text in texts]
            # An edit takes the place of the one before.
            kinds = [kind for how, kind in told if how != "edit"] + list(
                {kind for how, kind in told if how == "edit"})
            if len(kinds) != 1:
                bad.append((mark, self.rows.get(one.id), texts))
                continue
            kind = kinds.pop()
            ends[kind] = ends.get(kind, 0) + 1
        figure(f"{len(self.load.sent)} commands, {len(self.known)} "
               "acknowledged, ends told: " + ", ".join(
                   f"{count} {kind}" for kind, count in sorted(ends.items())))
        assert not bad, bad
        assert set(ends) <= set(allowed), ends
        return ends

    def assert_ran_once(self, marks):
        """Nothing ran twice; what has a result ran."""
        twice = sorted({one for one in marks if marks.count(one) > 1})
        figure(f"{len(marks)} runs have left their mark on the disks")
        assert marks and not twice, f"ran twice: {twice}"
        gone = [mark for mark, one in self.known.items() if mark not in marks
                and any(f"end of {mark}" in text
                        for _, text in self.load.told(one))]
        assert not gone, f"told as done, and not on any disk: {gone}"
