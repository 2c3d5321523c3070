#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The profile of API cells is the others', and what jail.py needs; the mounter's is
what its source calls."""

import json
import re

from source import check, finish, read

PLAIN = json.loads(read("sandbox/cell/python/seccomp.json"))
API = json.loads(read("sandbox/cell/python/seccomp-api.json"))

USER, MOUNTS, PIDS = 0x10000000, 0x20000, 0x20000000
IPC, UTS, NETWORK = 0x8000000, 0x4000000, 0x40000000
NEEDED = {
    ("unshare", 0, "SCMP_CMP_EQ", USER | MOUNTS | PIDS, None),
    ("unshare", 0, "SCMP_CMP_EQ", PIDS, None),
    ("setns", 1, "SCMP_CMP_EQ", PIDS, None),
    ("unshare", 0, "SCMP_CMP_EQ", USER | MOUNTS | IPC | UTS, None),
    ("unshare", 0, "SCMP_CMP_EQ", NETWORK, None),           # a run's /proc:
    ("open_tree", 2, "SCMP_CMP_EQ", 1 | 0x80000 | 0x1000, None),    # its names
    ("fsopen", 1, "SCMP_CMP_EQ", 1, None),
    ("fsconfig", 1, "SCMP_CMP_EQ", 1, None),                # set
    ("fsconfig", 1, "SCMP_CMP_EQ", 6, None),                # create
    ("fsmount", 2, "SCMP_CMP_EQ", 2 | 4 | 8, None),
    ("move_mount", 4, "SCMP_CMP_EQ", 4, None),              # empty path
    ("mount", 3, "SCMP_CMP_EQ", 2 | 4, None),               # nosuid, nodev
    ("mount", 3, "SCMP_CMP_EQ", 2 | 4 | 8, None),           # and noexec
    ("mount", 3, "SCMP_CMP_EQ", 1 | 2 | 4 | 8 | 0x20 | 0x1000, None),
    ("mount", 3, "SCMP_CMP_EQ", 1 | 2 | 4 | 0x20 | 0x1000, None),   # a run's
    ("mount", 3, "SCMP_CMP_EQ", 1 | 2 | 8 | 0x20 | 0x1000, None),   # devices
    ("mount", 3, "SCMP_CMP_EQ", 0x2000, None),              # move
    ("mount", 3, "SCMP_CMP_EQ", 0x4000 | 0x40000, None),    # private
}


def bare(rule):
    return {key: value for key, value in rule.items() if key != "comment"}


def rules(profile):
    return [json.dumps(bare(rule), sort_keys=True)
            for rule in profile["syscalls"]]


def missing():
    for rule in rules(PLAIN):
        if rule not in rules(API):
            yield f"seccomp-api.json lacks {rule[:70]}"
    for key in PLAIN:
        if key != "syscalls" and PLAIN[key] != API.get(key):
            yield f"seccomp-api.json: another {key}"


def surplus():
    more = [json.loads(rule) for rule in rules(API)
            if rule not in rules(PLAIN)]
    found = set()
    for rule in more:
        if rule["action"] != "SCMP_ACT_ALLOW" or len(rule["args"]) != 1:
            yield f"seccomp-api.json: {rule}"
            continue
        arg = rule["args"][0]
        for name in rule["names"]:
            found.add((name, arg["index"], arg["op"], arg["value"],
                       arg.get("valueTwo")))
    for item in found ^ NEEDED:
        yield f"seccomp-api.json: {item}"


def mounters():
    """The first rules are what mounter.c calls; the rest is the runtime's, and
    none of it is a way to a device or a mount."""
    profile = json.loads(read("sandbox/mounter/seccomp-mounter.json"))
    called = set(re.findall(r"\bCALL\((\w+), (?!a, b)", read(
        "sandbox/mounter/mounter.c")))
    own = {name for rule in profile["syscalls"][:4] for name in rule["names"]}
    for name in called ^ own:
        yield f"seccomp-mounter.json: {name}"
    for rule in profile["syscalls"][4:]:
        for name in set(rule["names"]) & {
                "mount", "mknod", "mknodat", "open_tree", "unshare", "ptrace",
                "bpf", "init_module", "finit_module", "kexec_load", "pivot_root",
                "process_vm_writev", "chroot", "ioctl", "socket"}:
            yield f"seccomp-mounter.json: {name}"
    if profile["defaultAction"] != "SCMP_ACT_ERRNO":
        yield "seccomp-mounter.json: " + profile["defaultAction"]


check("all rules of seccomp.json are there", missing())
check("the mounter's rules are its calls", mounters())
check("the others are those that are needed", surplus())
finish()
