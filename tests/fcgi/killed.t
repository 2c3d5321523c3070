#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kill -9 at any moment: what was acknowledged is in the database, and what is
sent again is done once."""
import os
import random
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

KILLS = 12
SENDERS = 16  # so that several come together
tap = f.Tap()
random.seed(20261121)


class Sender(threading.Thread):
    """Sends commands of ever new users until it is told to stop."""

    def __init__(self, front, number):
        super().__init__(daemon=True)
        self.front = front
        self.number = number
        self.stop = threading.Event()
        self.acknowledged = []
        self.unsure = []

    def run(self):
        user = self.number * 1000000
        while not self.stop.is_set():
            user += 1
            body = f.command("create", user=user)
            try:
                answer = self.front.send(body)
            except OSError:
                self.unsure.append(body)
                continue
            if answer.status == 200 and answer.type == 5:
                self.acknowledged.append(int(body["id"]))
            else:
                self.unsure.append(body)


def kill_all(front):
    """Its children end with it."""
    front.process.send_signal(signal.SIGKILL)
    front.process.wait()
    front.start()


def kill_one(front):
    """Only a child: the first process starts another one."""
    killed = random.choice(front.children())
    os.kill(killed, signal.SIGKILL)
    front.children(gone=killed)


lock = threading.Lock()
unlocked = f.snowflake


def snowflake():
    with lock:
        return unlocked()


f.snowflake = snowflake
with f.Front(IL_TUNE_QUEUE_MAX="100000") as front:
    senders = [Sender(front, n) for n in range(1, SENDERS + 1)]
    for sender in senders:
        sender.start()
    for _ in range(KILLS):
        threading.Event().wait(random.uniform(0.05, 0.2))
        kill_all(front)
    for _ in range(KILLS):
        threading.Event().wait(random.uniform(0.05, 0.2))
        kill_one(front)
    f.until(lambda: sum(len(s.acknowledged) for s in senders) > 50)
    for sender in senders:
        sender.stop.set()
    for sender in senders:
        sender.join()
    stored = [job["interaction_id"] for job in front.jobs()]
    acknowledged = [i for s in senders for i in s.acknowledged]
    unsure = [b for s in senders for b in s.unsure]
    print("# %d acknowledged, %d in doubt, %d jobs"
          % (len(acknowledged), len(unsure), len(stored)))
    tap.ok(len(acknowledged) > 50 and len(unsure) > 0,
           "it was killed while it worked")
    tap.equal([i for i in acknowledged if i not in set(stored)], [],
              "nothing that was acknowledged is lost")
    tap.equal(len(stored), len(set(stored)), "nothing is there twice")
    wrong = []
    for body in unsure:
        status = 504    # for whom a machine that is busy was too late
        while status == 504:
            status = front.send(body).status
        if status != 200:
            wrong.append((body["id"], status))
    again = [job["interaction_id"] for job in front.jobs()]
    tap.equal(len(again), len(set(again)), "also when it is sent again")
    tap.ok(front.alive(), "the last one outlived its children")
    tap.equal(wrong, [], "what was in doubt and is sent again is done once")
    tap.equal(front.query("PRAGMA integrity_check"),
              [{"integrity_check": "ok"}], "the database is sound")
tap.done()
