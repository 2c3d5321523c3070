#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the operator says by ilctl holds with the next command, in all parts."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="60", IL_TUNE_SPARE_CELLS="0")


def says(*words):
    code, out, errors = service.ilctl(*words)
    assert code == 0, (words, code, out, errors)
    return out


def user_id(name):
    sent = service.discord.send_command("health", user=name)
    return str(sent.wait_final().view["user"])


@test
def who_is_blocked_is_told_and_what_they_run_ends():
    mallory = user_id("mallory")
    sent = service.discord.send_command(
        "py", user="mallory",
        code="import time\nprint('begun', flush=True)\ntime.sleep(50)")
    sent.wait_answered()
    wait_for(lambda: "begun" in sent.refresh().original.text())
    assert "cancelled job" in says("user", mallory, "block", "-c", "mines")
    assert "cancelled" in sent.wait_final(match="cancelled").original.text()
    jobs = service.sql("SELECT count(*) FROM jobs")
    text = service.run("1", user="mallory")
    assert "does not let you" in text and "> mines" in text, text
    assert service.sql("SELECT count(*) FROM jobs") == jobs
    assert "served" in service.run("print('ser' + 'ved')")
    assert "yes: mines" in says("user", mallory, "show")
    says("user", mallory, "unblock")
    assert "served" in service.run("print('ser' + 'ved')", user="mallory")


@test
def a_person_has_less_time():
    alice = user_id("alice")
    says("user", alice, "limits", "timeout=0.5")
    text = service.run("import time\ntime.sleep(30)")
    assert "0.5" in text and "60" not in text, text
    row = [line for line in says("abuse", "-u", alice, "-n", "1").splitlines()
           if alice in line][0]
    assert row.endswith("time limit"), row
    says("user", alice, "limits", "timeout=")


@test
def a_banner_is_below_what_runs_and_what_is_refused():
    says("service", "banner", "new disks at six")
    assert service.run("print('ser' + 'ved')").endswith("> new disks at six")
    assert service.say("help").endswith("> new disks at six")
    says("service", "pause", "soon")
    text = service.run("1")
    assert "> soon" in text and text.endswith("> new disks at six"), text
    says("service", "resume")
    says("service", "banner")
    assert "disks" not in service.run("print('ser' + 'ved')")


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create()
    run()
