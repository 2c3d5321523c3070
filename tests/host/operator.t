#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The operator's tools where there are units, users and control groups of
version 2: rules, top, backup and restore, and a Prometheus beside all of it.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import ENV, Session, figure, note, run, test  # noqa: E402
from steps import items, section, spans  # noqa: E402

DATABASE = "/var/lib/inline/inline.db"
BACKUP = "/var/lib/inline-backup"
MONITORING = "systemd/monitoring/README.md", "## Prometheus, in three steps"
BUSY = ("x = bytearray(40 << 20)\nprint('begun', flush=True)\n"
        "while True: pass")

host = Session(IL_TIMEOUT_SECONDS="120")
users = {}


def ilctl(*words, code=0):
    """What it prints, as root, whom the journal and the shell know."""
    status, text = host.machine.run(f"ilctl -e {ENV} " + " ".join(words))
    assert status == code, (words, status, text)
    return text


def cell_of(user):
    """What top says of a person's cell."""
    cells = json.loads(ilctl("top", "--json"))["cells"]
    return next((one for one in cells if one["user"] == users[user]), None)


def begin(user, code):
    """A run that has printed its first words."""
    sent = host.send("py", user=user, code=code).wait_answered(60)
    host.wait_for(lambda: "begun" in sent.refresh().original.text(), 120)
    return sent


@test
def people_are_known_by_their_ids():
    host.create("alice", "bob")
    for user in ("alice", "bob"):
        sent = host.send("health", user=user).wait_final(timeout=120)
        users[user] = str(sent.view["user"])
        assert "blocked    no" in ilctl("user", users[user])
    assert users["alice"] in ilctl("sandboxes")


@test
def top_shows_what_a_run_takes():
    sent = begin("bob", BUSY)
    first = cell_of("bob")
    assert first["class"] == "user" and first["state"] == "leased", first
    assert 40 << 20 < first["memory"] <= 256 << 20, first
    assert first["cpu_ms"] >= 0, first
    host.wait_for(
        lambda: cell_of("bob")["cpu_ms"] > first["cpu_ms"] + 500, 60)
    shown = ilctl("top")
    note(shown)
    assert f"{first['sandbox']} of {users['bob']}" in shown, shown
    others = json.loads(ilctl("top", "--json"))["cells"]
    assert all(one["memory"] > 0 and one["cpu_ms"] >= 0 for one in others
               if one["state"] in ("idle", "leased")), others
    assert "cancelled job" in ilctl("user", users["bob"], "cancel")
    sent.wait_final(timeout=120, match="cancelled")


@test
def who_is_blocked_is_told_so():
    ilctl("user", users["bob"], "block", "mines")
    text = host.say("py", user="bob", code="print(6 * 7)")
    assert "does not let you" in text and "> mines" in text, text
    assert "42" in host.say("py", code="print(6 * 7)")
    ilctl("user", users["bob"], "unblock")
    assert "42" in host.say("py", user="bob", code="print(6 * 7)")


@test
def what_the_service_says_is_below_all_answers():
    ilctl("service", "banner", "new disks at six")
    assert host.say("py", code="1").endswith("> new disks at six")
    ilctl("service", "pause", "soon")
    text = host.say("py", code="print(6 * 7)")
    assert "> soon" in text and "42" not in text, text
    ilctl("service", "resume")
    ilctl("service", "banner")
    assert "disks" not in host.say("py", code="1")


@test
def a_backup_is_made_while_code_runs():
    """As the timer makes it."""
    host.say("py", code="open('f', 'w').write('as it was')")
    sent = begin("bob", "print('begun', flush=True)\nimport time\n"
                        "time.sleep(10); open('f', 'w').write('whole')")
    host.sh("systemctl enable --now il-backup.timer")
    assert "il-backup.service" in host.sh("systemctl list-timers --no-pager")
    host.sh("systemctl start il-backup")
    text = host.sh("journalctl -u il-backup -o cat | grep written")
    figure("backup: " + text.strip().split("\n")[-1])
    assert "in use" not in host.sh("journalctl -u il-backup -o cat")
    sent.wait_final(timeout=120)
    assert "all is whole" in ilctl("restore", "-n", BACKUP)
    assert host.sh(f"stat -c '%U %a' {BACKUP}") == "root 700"


@test
def and_brought_back():
    host.say("py", code="open('f', 'w').write('spoilt')")
    assert "running" in ilctl("restore", "-f", BACKUP, code=1)
    host.sh("systemctl stop inline.target")
    owners = f"stat -c '%n %U:%G %a' {DATABASE} /var/lib/inline/sandboxes/*"
    before = host.sh(owners)
    assert "restored" in ilctl("restore", "-f", BACKUP)
    assert host.sh(owners) == before, before
    host.sh("systemctl start inline.target")
    host.wait_ready()
    assert "as it was" in host.say("py", code="print(open('f').read())")
    assert "whole" in host.say("py", user="bob",
                               code="print(open('f').read())")
    status, text = host.doctor()
    assert status == 0, text


def steps(number):
    """The commands of a step of the documentation."""
    return spans(items(section(host.house.commit, *MONITORING))[number])


def ask(query):
    """What Prometheus answers: the first value, or None."""
    status, text = host.machine.run(
        f"curl -sf -m 20 '127.0.0.1:9090/api/v1/query?query={query}'")
    found = json.loads(text)["data"]["result"] if status == 0 else []
    return found[0]["value"][1] if found else None


@test
def prometheus_reads_it_as_the_documentation_says():
    *before, curl = steps(1) + steps(3)
    assert curl.startswith("curl ") and len(before) == 3, before
    for command in before:
        host.sh("export DEBIAN_FRONTEND=noninteractive; cd /root\n" + command,
                seconds=1800)
    host.wait_for(lambda: '"1"]' in host.machine.run(curl)[1], 180)
    assert ask("inline_front_up") == "1"
    assert int(ask("sum(inline_jobs_total)")) > 5
    rules = host.sh("curl -s 127.0.0.1:9090/api/v1/rules")
    groups = json.loads(rules)["data"]["groups"]
    health = {one["name"]: one["health"] for group in groups
              for one in group["rules"]}
    assert health and set(health.values()) <= {"ok", "unknown"}, health


@test
def with_tokens_it_has_one_of_its_own():
    host.sh(f"echo IL_API_TOKENS_FILE=/etc/inline/api/tokens >>{ENV} && "
            "systemctl restart il-api")
    host.wait_for(lambda: ask("up") == "0", 120)
    host.sh("\n".join(steps(2)))
    host.sh(r"sed -i -E 's/^    #(authorization|  credentials)/    \1/' "
            "/etc/prometheus/prometheus.yml && systemctl restart prometheus")
    host.wait_for(lambda: ask("up") == "1", 180)


with host:
    run()
