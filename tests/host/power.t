#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The power fails ten times, with jobs in every state.

The virtual machine is killed; its disk keeps what was flushed and promises
nothing else.  Discord is on this side and remembers.  What it was told "got
it" for must be told an end, once; what runs, runs once.
"""

import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, figure, note, run, test  # noqa: E402

CUTS = int(os.environ.get("CUTS", "10"))
USERS = [f"user{number}" for number in range(10)]
TELL_SECONDS = 600
DATABASE = "/var/lib/inline/inline.db"

# Before anything of ours runs after a boot: is what the cut has left whole?
# The journal is replayed and files that were open and removed are cleared, as a
# mount does it; whatever else e2fsck says is damage.
CHECK_SCRIPT = r"""#!/bin/bash
work=/var/lib/check-images
rm -rf $work && mkdir -p $work && cd $work || exit 1
: >result
usual='recovering journal|orphaned inode|: clean,|files \(|^$'
for image in /var/lib/inline/sandboxes/*/*.ext4; do
    [ -e "$image" ] || continue
    cp --sparse=always "$image" copy
    e2fsck -p copy >log 2>&1
    if [ $? -gt 1 ] || grep -Evq "$usual" log || ! e2fsck -f -n copy >>log 2>&1
    then
        echo "$image" >>result
        cat log >>result
    fi
    echo "$image" >>checked
done
rm -f copy
cp /var/lib/inline/inline.db* .
sqlite3 inline.db 'PRAGMA integrity_check' >integrity 2>&1
"""
CHECK_UNIT = """[Unit]
Before=il-sandboxd.service il-worker@0.service il-worker@1.service
Before=il-worker@2.service il-worker@3.service
Before=il-fcgi.service
[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/usr/local/sbin/check-images
[Install]
WantedBy=multi-user.target
"""

host = Session(alone=True, IL_TIMEOUT_SECONDS="60", IL_USER_RATE="1000", IL_TUNE_API_WARM="1")
sent = {}       # mark: interaction
states = {}     # state: how many jobs were in it when the power failed
damage = []
seen = []       # marks on the disk, at the end


def code(mark, seconds):
    """Code that leaves its mark where a second run of it would be seen."""
    return ("import os, time\n"
            "with open('marks', 'a') as file:\n"
            f"    file.write('{mark}\\n'); file.flush()\n"
            "    os.fsync(file.fileno())\n"
            f"time.sleep({seconds})\n"
            f"print('end of {mark}')")


def send_some(cut):
    """More commands than there are workers, of different lengths; one for
    each user, as a second one at a time would be refused.
    """
    for number, user in enumerate(random.sample(USERS, len(USERS))):
        mark = f"m{cut}x{number}"
        sent[mark] = host.send(
            "py", user=user,
            code=code(mark, random.choice((0, 0, 0.5, 2, 5))))
        time.sleep(random.uniform(0, 0.3))


def unfinished():
    """{state: how many jobs are in it just now}."""
    text = host.sh(f"sqlite3 -separator ' ' {DATABASE} \"SELECT state, count(*) "
                   "FROM jobs WHERE state <> 'delivered' GROUP BY state\"")
    return {state: int(count) for state, count in
            (line.split() for line in text.split("\n") if line)}


def note_states():
    """Add up what is unfinished just now."""
    for state, count in unfinished().items():
        states[state] = states.get(state, 0) + count


def look_for_damage(cut):
    """What the check before the start has found."""
    host.wait_for(lambda: host.sh(
        "systemctl show -P ActiveState check-images") == "active", 600)
    result = host.sh("cat /var/lib/check-images/result")
    if result:
        damage.append((cut, result))
    integrity = host.sh("cat /var/lib/check-images/integrity")
    if integrity != "ok":
        damage.append((cut, integrity))


def acknowledged():
    """The interactions that Discord was promised an answer for.  A refusal is
    an answer, and promises nothing.
    """
    return {mark: one for mark, one in sent.items()
            if one.refresh().state == "answered" and one.answer_type == 5}


def marks_on_disk():
    """All marks that runs have left in the sandboxes, as the disk has them."""
    text = host.sh("""systemctl stop inline.target
        for image in /var/lib/inline/sandboxes/*/workspace.ext4; do
            e2fsck -p "$image" >/dev/null
            debugfs -R 'cat /marks' "$image" 2>/dev/null
        done; systemctl start inline.target""")
    return text.split()


def await_the_told():
    """Until Discord has heard the end of everything that it was promised."""
    known = list(acknowledged().values())
    host.discord.wait_many(known, "final", TELL_SECONDS)


def final_texts(interaction):
    """All that Discord was told in one interaction, in order, but for the
    deferral and what is shown while it runs.
    """
    told = [one["payload"]
            for one in host.discord.requests(interaction=interaction.id)
            if one["route"] in ("edit", "followup") and one["status"] == 200]
    return [str(one) for one in told if "'cancel:" not in str(one)]


@test
def the_power_fails_and_comes_back():
    host.machine.write("/usr/local/sbin/check-images", CHECK_SCRIPT, "755")
    host.machine.write("/etc/systemd/system/check-images.service", CHECK_UNIT)
    host.sh("systemctl daemon-reload && systemctl enable check-images")
    host.create(*USERS)
    boots = []
    for cut in range(CUTS):
        send_some(cut)
        # Each second time while code runs, whatever a start of a cell takes.
        if cut % 2:
            host.wait_for(lambda: "started" in unfinished(), 300)
        else:
            time.sleep(random.uniform(0, 4))
        note_states()
        host.machine.cut()
        boots.append(host.boot())
        look_for_damage(cut)
        await_the_told()
        note(f"cut {cut + 1}: {len(acknowledged())} of {len(sent)} "
             f"acknowledged so far, boot {boots[-1]:.0f} s")
    figure(f"{CUTS} power cuts, {len(sent)} commands, "
           f"{len(acknowledged())} acknowledged; boots took "
           f"{min(boots):.0f} to {max(boots):.0f} s")


@test
def jobs_were_in_every_state():
    note(states)
    figure("unfinished jobs when the power failed: " + ", ".join(
        f"{count} {state}" for state, count in sorted(states.items())))
    assert {"queued", "started"} <= set(states), states


@test
def nothing_acknowledged_is_lost():
    ids = set(host.sh(f"sqlite3 {DATABASE} "
                      "'SELECT interaction_id FROM jobs'").split())
    lost = [mark for mark, one in acknowledged().items() if one.id not in ids]
    assert not lost, f"no job in the database: {lost}"


@test
def each_has_one_end_and_it_was_told():
    bad = []
    ends = {}
    for mark, one in acknowledged().items():
        texts = final_texts(one)
        kinds = {"results" if f"end of {mark}" in text else
                 "interrupted" if "nterrupted" in text else
                 "not run" if "nothing was run" in text else text
                 for text in texts}
        if len(kinds) != 1:
            bad.append((mark, texts))
            continue
        kind = kinds.pop()
        ends[kind] = ends.get(kind, 0) + 1
    figure("ends told: " + ", ".join(
        f"{count} {kind}" for kind, count in sorted(ends.items())))
    assert not bad, bad
    assert set(ends) <= {"results", "interrupted", "not run"}, ends
    assert ends.get("results") and ends.get("interrupted"), ends


@test
def nothing_ran_twice():
    seen.extend(marks_on_disk())
    twice = sorted({one for one in seen if seen.count(one) > 1})
    figure(f"{len(seen)} runs have left their mark on the disk")
    assert seen and not twice, twice


@test
def what_has_a_result_has_its_mark():
    missing = [mark for mark, one in acknowledged().items()
               if any(f"end of {mark}" in text for text in final_texts(one))
               and mark not in seen]
    assert not missing, f"told as done, and gone from the disk: {missing}"


@test
def no_file_system_and_no_database_is_damaged():
    assert not damage, damage
    checked = host.sh("wc -l </var/lib/check-images/checked")
    assert int(checked) >= 2 * len(USERS), checked
    errors = host.sh("journalctl -q -k --no-pager | "
                     "grep -E 'EXT4-fs error|I/O error' || :")
    assert errors == "", errors


@test
def the_service_is_whole():
    host.wait_ready()
    status, text = host.doctor()
    assert status == 0, text
    assert "42" in host.say("py", code="print(6 * 7)", user=USERS[0])
    left = host.sh(f"sqlite3 {DATABASE} \"SELECT count(*) FROM jobs WHERE "
                   "state NOT IN ('delivered', 'undeliverable')\"")
    assert left == "0", left


with host:
    run()
