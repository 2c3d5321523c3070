#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The package on a host that has never had Inline: installed, given a key,
upgraded with jobs in hand, removed, installed again, purged.
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from debs import Bare, version_of  # noqa: E402
from house import ENV  # noqa: E402
from install import PATH, between, prepare, settled  # noqa: E402
from session import figure, note, run, test  # noqa: E402
from steps import SOURCE_STEP, production  # noqa: E402

JOB_SECONDS = 25
PAUSE = 1.0
LATEST_MS = 2000        # as update.t has it
DATABASE = "/var/lib/inline/inline.db"

host = Bare()


def sh(script, seconds=1800):
    """Run it as an administrator would."""
    return host.sh(f"export PATH={PATH} HOME=/root "
                   f"DEBIAN_FRONTEND=noninteractive; cd /root\n{script}",
                   seconds=seconds)


def follow(command):
    """Run a step of the documentation, as the package's copy has it."""
    between(host.house, host.machine, command)
    settled(host.machine, command)
    return sh(command.replace("/usr/local/", "/usr/"))


def active(unit):
    """Does it run?"""
    return host.machine.run(f"systemctl -q is-active {unit}")[0] == 0


def state(kind):
    """The state of the newest job of a kind."""
    return sh(f"sqlite3 {DATABASE} \"SELECT state FROM jobs "
              f"WHERE kind = '{kind}' ORDER BY id DESC LIMIT 1\"")


@test
def installing_asks_nothing_and_starts_nothing():
    prepare(host.house, host.machine, host.discord)
    host.sh("mv /root/payload/this /root/payload/next /root")
    begun = time.monotonic()
    text = sh("apt-get install -y /root/this/inline_*.deb </dev/null")
    figure(f"apt-get install took {time.monotonic() - begun:.0f} s")
    assert "Three steps are left" in text, text[-2000:]
    assert not active("inline.target") and not active("il-fcgi.socket")
    assert sh("ls /run/inline") and not sh("docker ps -aq")
    assert "disabled" in sh("systemctl is-enabled inline.target || :")
    assert sh(f"stat -c '%U %a' {ENV}") == "root 600"


@test
def with_a_key_it_serves():
    """What is left of the steps, in their order."""
    for where, command in production(host.house.commit):
        if where == SOURCE_STEP:
            continue
        follow(command)
    host.wait_ready()
    host.create("alice", "bob")
    assert "42" in host.say("py", code="print(6 * 7)")
    assert host.run_api("print(6 * 7)") == "42\n"
    text = host.sh("systemctl show -P FragmentPath il-fcgi inline.target")
    assert "/usr/local" not in text and text.count("systemd/system/") == 2


@test
def an_upgrade_loses_nothing_and_keeps_nobody_waiting():
    """With a job that runs, one that waits for it, and a PING each second."""
    host.discord.settings(deadline=120)
    jobs = [host.send("py", user=user, code="open('mark', 'w'); import time; "
                      f"time.sleep({JOB_SECONDS}); print('to its end')")
            for user in ("alice", "bob")]
    host.wait_for(lambda: state("py") == "started", 120)
    pings, over = [], threading.Event()

    def ping():
        while not over.wait(PAUSE):
            pings.append(host.discord.send({"ping": True}))
            if len(pings) == 10:
                jobs.append(host.send("py", user="carol",
                                      code="print('meanwhile')"))
    pinging = threading.Thread(target=ping)
    pinging.start()
    before = host.sh("systemctl show -P ActiveEnterTimestampMonotonic "
                     "il-fcgi.socket il-api.socket")
    begun = time.monotonic()
    try:
        text = sh("apt-get install -y /root/next/inline_*.deb "
                  "</dev/null")
        took = time.monotonic() - begun
        time.sleep(5 * PAUSE)
    finally:
        over.set()
        pinging.join()
    for one in pings:
        one.wait_answered(120)
    ms = sorted((one.view["http"] or {}).get("ms", 1e6) for one in pings)
    figure(f"the upgrade took {took:.0f} s beside jobs of {JOB_SECONDS} s; "
           f"{len(ms)} PINGs: median {ms[len(ms) // 2]:.0f} ms, latest "
           f"{ms[-1]:.0f} ms")
    codes = [one.http_status for one in pings]
    note(host.sh("journalctl -b -o short-precise -u il-fcgi | "
                 "grep -v outcome=pong | tail -n 12"))
    assert codes == [200] * len(pings), (codes, text)
    assert ms[-1] < LATEST_MS, ms
    assert len(jobs) == 3, "the upgrade was over before the tenth PING"
    for job, words in zip(jobs, ("to its end", "to its end", "meanwhile")):
        job.wait_final(timeout=180)
        assert words in job.original.text(), job.original.text()
    after = host.sh("systemctl show -P ActiveEnterTimestampMonotonic "
                    "il-fcgi.socket il-api.socket")
    assert before == after, "the sockets were closed"


@test
def it_is_the_next_version_with_its_schema():
    version = version_of(host.house.commit) + "+1"
    assert sh("dpkg-query -W -f '${Version}' inline") == version
    assert sh(f"sqlite3 {DATABASE} 'PRAGMA user_version'") == str(host.schema)
    assert version in sh("journalctl -b -o cat -u il-sandboxd -u il-fcgi "
                         "-u il-worker@0 | grep -F '+1' | tail -n 5 || :") or \
        version in sh("strings -a /usr/sbin/il-fcgi 2>/dev/null || "
                      "grep -ao '0[.][0-9.]*+1' /usr/sbin/il-fcgi | head -n 1")
    host.wait_ready()
    text = host.say("py", code="import os; print(os.path.exists('mark'))")
    assert "True" in text, text
    status, text = host.doctor()
    assert status == 0, text


@test
def removed_it_leaves_the_data_and_installed_again_it_serves():
    begun = time.monotonic()
    text = sh("apt-get remove -y inline </dev/null")
    figure(f"apt-get remove took {time.monotonic() - begun:.0f} s")
    assert "Its data stay" in text and "/etc/nginx/conf.d/inline.conf" in \
        text, text[-2000:]
    assert not active("inline.target") and not active("il-fcgi.socket")
    assert not sh("docker ps -aq --filter label=inline.instance")
    assert not sh("pgrep -a '^il-' || :")
    assert sh(f"test -s {DATABASE} && ls /var/lib/inline/sandboxes | wc -l")
    sh("apt-get install -y /root/next/inline_*.deb </dev/null")
    assert active("inline.target")
    sh("systemctl reload-or-restart nginx")
    host.wait_ready()
    text = host.say("py", code="import os; print(os.path.exists('mark'))")
    assert "True" in text, text


@test
def purged_nothing_is_left():
    text = sh("apt-get purge -y inline </dev/null")
    note(text[-1500:])
    assert "Purging Inline" in text and "sandboxes with their files" in text
    assert not sh("docker ps -aq --filter label=inline.instance")
    assert not sh("docker volume ls -q --filter label=inline.instance")
    assert not sh("losetup -a")
    assert not sh("ls -d /var/lib/inline* /etc/inline /run/inline "
                  "/usr/lib/inline /etc/apparmor.d/inline-api "
                  "/etc/systemd/system/*/inline.target 2>/dev/null || :")
    assert not sh("systemctl list-units --all --plain --no-legend 'il-*' "
                  "'inline.target' | grep -v not-found || :")
    assert "inline-api" not in sh("cat /sys/kernel/security/apparmor/profiles")


with host:
    run()
