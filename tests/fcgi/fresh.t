#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stale and repeated interactions are refused; a PING never is."""
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()


def at(seconds):
    return str(int(time.time()) + seconds)


with f.Front(IL_TUNE_MAX_SKEW_SECONDS="60") as front:
    front.add_sandbox()
    for offset, status in ((-55, 200), (55, 200), (-70, 401), (70, 401),
                           (-86400, 401)):
        answer = front.send(f.command("look"), at(offset))
        tap.equal(answer.status, status, "signed %d s from now" % offset)
    warned = re.findall(r"but (-?\d+) s ago: is this host's clock right",
                        front.log())
    tap.ok(warned and int(warned[0]) in (70, 71, -70, -69) and len(warned) <= 2,
           "and the log says so once, by each process", front.log())
    tap.equal(front.send(f.interaction(1, None), at(-86400)).status, 200,
              "a PING may be as old as it likes")
    front.finish_jobs()

    count = len(front.jobs())
    body = f.command("look", path="a")
    tap.equal(front.send(body).type, 5, "a command is taken")
    tap.equal(front.send(body).json, {"type": 5, "data": {"flags": 64}},
              "the same again is answered in the same way")
    front.finish_jobs()
    tap.equal(front.send(body).type, 5, "also when it is done")
    shared = f.command("py", code="1", share=True)
    tap.equal([front.send(shared).json for _ in range(2)],
              [{"type": 5}] * 2, "with the same flags")
    front.finish_jobs()
    press = f.press("look-next:%d" % front.add_view("look"))
    tap.equal([front.send(press).type for _ in range(2)], [6, 6],
              "a button, too")
    front.finish_jobs()
    tap.equal(len(front.jobs()), count + 3, "and none of them makes another job")
    editor = f.command("py")
    tap.equal([front.send(editor).type for _ in range(2)], [9, 9],
              "what makes no job is done again")
    ping = f.interaction(1, None)
    tap.equal([front.send(ping).status for _ in range(3)], [200] * 3,
              "a PING may be repeated")

    front.process.terminate()
    front.process.wait(60)
    front.start()
    count = len(front.jobs())
    tap.equal(front.send(body).type, 5,
              "a job is not made twice by another process either")
    tap.equal(len(front.jobs()), count, "and is not")

with f.Front(IL_TUNE_MAX_SKEW_SECONDS="0") as front:
    front.add_sandbox()
    tap.equal(front.send(f.command("look"), "1767225600").type, 5,
              "with IL_TUNE_MAX_SKEW_SECONDS=0 any age is taken")
tap.done()
