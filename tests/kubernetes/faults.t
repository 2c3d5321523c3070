#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A container is killed, and a pod, with jobs in every state: both come back with
their claim, and each job has one end.  A pod that is told to end cuts nothing."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import NAME, Load, Release, spread, to, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

NODES = 3
VICTIM = 1
STATES = "queued", "started", "finished"


def states():
    """Of the victim's jobs, how many are in each state."""
    return dict(release.sql(VICTIM, "SELECT state, count(*) FROM jobs "
                            "GROUP BY state"))


def with_jobs_in_every_state(kill):
    """Kill while one runs, others wait, and some are over; all are told."""
    mine = [user for user, node in people.items() if node == VICTIM]
    with Load(release, mine + others(), seconds=(6, 1)) as load:
        wait_for(lambda: states().get("queued") and states().get("started") and
                 len(load.sent) > 2 * len(mine), what="a queue")
        print("#", states(), flush=True)
        kill()
        wait_for(lambda: release.is_ready(VICTIM), 300, what="the victim back")
        time.sleep(5)  # and some more of them
    load.assert_told_once("results", "interrupted", "not run")
    load.assert_ran_once()


def others():
    return [user for user, node in people.items() if node != VICTIM][:2]


def kept():
    """What was in a person's sandbox is there still."""
    user = next(user for user, node in people.items() if node == VICTIM)
    release.discord.send_command(
        "py", user=user, code="import os; print(os.listdir())").wait_final(
            match="'here'")


@test
def a_container_that_is_killed_comes_back_in_its_pod():
    pod, before = release.pod(VICTIM), release.restarts(VICTIM)

    def kill():
        # the child of the first process: with it goes everything
        release.run_in(VICTIM, "sh", "-c",
                       "kill -9 $(cat /proc/1/task/1/children)", check=False)
        begun = time.monotonic()
        wait_for(lambda: release.restarts(VICTIM) > before, what="a restart")
        wait_for(lambda: release.is_ready(VICTIM), 300, what="its end")
        print("# ready %.0f s after the kill" % (time.monotonic() - begun))
    with_jobs_in_every_state(kill)
    assert release.pod(VICTIM)["metadata"]["uid"] == pod["metadata"]["uid"]
    kept()


@test
def an_engine_that_is_killed_comes_back():
    before = release.restarts(VICTIM)
    release.run_in(VICTIM, "sh", "-c", "kill -9 $(cat /run/docker.pid)")
    wait_for(lambda: release.restarts(VICTIM) > before, what="a restart")
    wait_for(lambda: release.is_ready(VICTIM), 300, what="the victim back")
    kept()


@test
def a_pod_that_is_killed_comes_back_with_its_claim():
    def kill():
        uid = release.pod(VICTIM)["metadata"]["uid"]
        release.ask("delete", "pod", f"{NAME}-{VICTIM}", "--grace-period=0",
                    "--force")
        wait_for(lambda: release.pod(VICTIM) and release.pod(VICTIM)[
            "metadata"]["uid"] != uid, what="a new pod")
    with_jobs_in_every_state(kill)
    kept()


@test
def while_it_is_away_its_people_are_told_in_discords_time():
    user = next(user for user, node in people.items() if node == VICTIM)
    before = release.restarts(VICTIM)
    release.run_in(VICTIM, "sh", "-c", "kill -9 $(cat /run/docker.pid)")
    away = wait_for(lambda: is_away(user), 60, pause=0, what="its absence")
    print("# told within %.1f s" % away, flush=True)
    wait_for(lambda: release.restarts(VICTIM) > before, what="a restart")
    wait_for(lambda: release.is_ready(VICTIM), 300, what="the victim back")


def is_away(user):
    """Seconds until this person was told that the host is away, if so."""
    begun = time.monotonic()
    one = release.discord.send_command("py", user=user, code="1", order=to(0))
    one.wait_answered(30)
    took = time.monotonic() - begun
    return took if "does not answer just now" in str(one.answer) else None


@test
def a_pod_that_ends_cuts_no_answer():
    said = {}
    url = f"http://{NAME}-{VICTIM}.{NAME}-nodes:8080/eval"

    def ask():
        said["answer"] = release.post(
            url, {"input": "import time\ntime.sleep(5)\nprint('whole')"},
            *release.bearer, check=False)
    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(2)  # it runs
    release.ask("delete", "pod", f"{NAME}-{VICTIM}", "--wait=false")
    asking.join(120)
    status, text = said["answer"]
    assert status == 200 and "whole" in text, said
    wait_for(lambda: release.is_ready(VICTIM), 300, what="the victim back")


with Release(NODES, settings={"IL_WORKERS": 1}) as release:
    people = spread(release, NODES, each=3)
    run()
