#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The units as systemd has them: weights, exposure, confinement."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, figure, note, run, test  # noqa: E402

# The most that `systemd-analyze security` may say.
EXPOSURE = {"il-fcgi": 0.5, "il-api": 0.5, "il-node": 0.5,
            "il-expire": 0.5, "il-worker@0": 1.5, "il-sandboxd": 1.5}
WEIGHTY = ("il-fcgi", "il-api", "il-worker@0", "il-worker@3", "il-sandboxd")
WEIGHT = 800

host = Session()


def installed(unit):
    """Whether there is such a unit."""
    return host.machine.run(f"systemctl cat {unit}.service")[0] == 0


@test
def every_unit_is_as_little_exposed_as_promised():
    worse = []
    units = host.sh("cd /usr/local/lib/systemd/system && "
                    "ls il-*.service").split()
    for name in (unit.removesuffix(".service") for unit in units):
        name = name.replace("@", "@0") if name.endswith("@") else name
        text = host.sh(f"systemd-analyze security --no-pager {name}.service | "
                       "grep 'Overall exposure'")
        level = float(text.split(":")[1].split()[0])
        figure(f"{name}: exposure {level}")
        if level > EXPOSURE.get(name, 1.5):
            worse.append((name, level))
    assert not worse, worse


@test
def the_programs_come_before_what_peoples_code_computes():
    wrong = []
    for unit in WEIGHTY:
        group = host.sh(f"systemctl show -P ControlGroup {unit}")
        weight = host.sh(f"cat /sys/fs/cgroup{group}/cpu.weight")
        note(f"{group}: {weight}")
        # What stands beside the containers' scopes is the group below
        # system.slice; one in between would take its own weight.
        if int(weight) != WEIGHT or group.count("/") != 2 or \
                not group.startswith("/system.slice/"):
            wrong.append((unit, group, weight))
    assert not wrong, wrong


@test
def the_containers_have_the_ordinary_weight_beside_them():
    host.wait_for(lambda: host.containers("api"), 120)
    pid = host.first_process(host.containers("api")[0])
    group = host.sh(f"sed 's/^0:://' /proc/{pid}/cgroup")
    assert group.startswith("/system.slice/docker-"), group
    assert host.sh(f"cat /sys/fs/cgroup{group}/cpu.weight") == "100"


@test
def no_program_runs_as_root():
    users = host.sh("ps -eo user:20,comm | grep ' il-' | sort -u")
    note(users)
    assert users and "root" not in users, users


@test
def the_programs_cannot_gain_privileges():
    bad = host.sh("""
        for pid in $(pgrep '^il-'); do
            grep -q 'NoNewPrivs:.1' /proc/$pid/status &&
                grep -q 'CapEff:.0*$' /proc/$pid/status ||
                echo "$(cat /proc/$pid/comm)"
        done""")
    assert bad == "", bad


with host:
    run()
