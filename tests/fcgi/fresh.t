#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stale and repeated interactions are refused; a PING never is."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()


def at(seconds):
    return str(int(time.time()) + seconds)


with f.Front(IL_MAX_SKEW_SECONDS="60") as front:
    front.add_sandbox()
    for offset, status in ((-55, 200), (55, 200), (-70, 401), (70, 401),
                           (-86400, 401)):
        answer = front.send(f.command("look"), at(offset))
        tap.equal(answer.status, status, "signed %d s from now" % offset)
    tap.equal(front.send(f.interaction(1, None), at(-86400)).status, 200,
              "a PING may be as old as it likes")
    front.finish_jobs()

    body = f.command("look", path="a")
    tap.equal(front.send(body).type, 5, "a command is taken")
    tap.equal(front.send(body).status, 409, "the same again is refused")
    front.finish_jobs()
    tap.equal(front.send(body).status, 409, "also when it is done")
    editor = f.command("py")
    tap.equal(front.send(editor).type, 9, "what makes no job is answered")
    tap.equal(front.send(editor).status, 409, "once")
    editor = f.command("py")
    one, other = front.children()
    with front.only(one):
        tap.equal(front.send(editor).type, 9, "by one process")
    with front.only(other):
        tap.equal(front.send(editor).status, 409, "nor by the other one")
    ping = f.interaction(1, None)
    tap.equal([front.send(ping).status for _ in range(3)], [200] * 3,
              "a PING may be repeated")

    front.process.terminate()
    front.process.wait(10)
    front.start()
    count = len(front.jobs())
    tap.equal(front.send(body).status, 409,
              "a job is not made twice by another process either")
    tap.equal(len(front.jobs()), count, "and is not")

with f.Front(IL_MAX_SKEW_SECONDS="0") as front:
    front.add_sandbox()
    tap.equal(front.send(f.command("look"), "1767225600").type, 5,
              "with IL_MAX_SKEW_SECONDS=0 any age is taken")
tap.done()
