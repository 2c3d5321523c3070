#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who has which right: what a program is linked with, and what its unit lets
it reach.  Who reads what strangers send has no right on the jobs' database."""

import os
import re
import subprocess

from source import ROOT, check, finish, read

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
DATABASE = {"il-fcgi", "il-node", "il-worker", "ilctl"}    # programs that may open it
# The groups of each unit, and nothing beside its user's own.
GROUPS = {
    "il-fcgi.service": {"inline-db"},
    "il-api.service": {"il-api", "inline-broker-api", "inline-nodes"},
    "il-worker@.service": {"inline-db", "inline-broker-worker",
                           "inline-nodes"},
    "il-node.service": {"il-sandboxd", "inline-db"},
    "il-expire.service": {"inline-db", "inline-broker-ctl"},
    "il-backup.service": {"inline-db", "inline-broker-ctl"},
    "il-sandboxd.service": {"il-sandboxd", "docker", "disk"},
    "il-apparmor.service": set(),
    "il-volumes.service": set(),
}


def programs():
    for word in re.search(r"^mains := (.*?[^\\])$", read("GNUmakefile"),
                          re.MULTILINE | re.DOTALL).group(1).split():
        if word.endswith(".c"):
            yield os.path.basename(word)[:-2]


def linked():
    makefile = read("GNUmakefile")
    for name in programs():
        uses = re.search(rf"^uses_{name} := (.*)$", makefile, re.MULTILINE)
        if ("store" in uses.group(1).split()) != (name in DATABASE):
            yield f"GNUmakefile: uses_{name}: {uses.group(1)}"
        path = os.path.join(BUILD, "bin", name)
        needed = subprocess.run(["readelf", "-d", path], check=True,
                                stdout=subprocess.PIPE).stdout
        if (b"libsqlite3" in needed) != (name in DATABASE):
            yield f"{path}: libsqlite3"


def values(unit, key):
    return [word for line in re.findall(rf"^{key}=(.*)$", read(
        f"systemd/{unit}"), re.MULTILINE) for word in line.split()]


def unit_groups():
    found = {name for name in os.listdir(os.path.join(ROOT, "systemd"))
             if name.endswith(".service")}
    for name in sorted(found ^ set(GROUPS)):
        yield f"systemd/{name}: not in GROUPS, or not there"
    for name in sorted(found & set(GROUPS)):
        groups = set(values(name, "Group") +
                     values(name, "SupplementaryGroups"))
        if groups != GROUPS[name]:
            yield f"systemd/{name}: groups {groups}"


def members():
    """systemd adds the groups that a user has by sysusers, too."""
    users = {values(name, "User")[0]: groups for name, groups in GROUPS.items()}
    for user, group in re.findall(r"^m (\S+) (\S+)$",
                                  read("systemd/inline.sysusers"),
                                  re.MULTILINE):
        if group not in users[user]:
            yield f"systemd/inline.sysusers: {user} in {group}"


def broker_sockets():
    """Each program's folder is for its group, which one unit has."""
    folders = dict(re.findall(r"^d /run/inline/broker/(\S+) 2710 il-sandboxd "
                              r"(\S+) -$", read("systemd/inline.tmpfiles"),
                              re.MULTILINE))
    sockets = set(re.findall(r'"broker/(\S+)/lease.sock"',
                             read("sandbox/protocol/lease.h")))
    if set(folders) != sockets:
        yield f"systemd/inline.tmpfiles: {set(folders)}, not {sockets}"
    for name, group in folders.items():
        owners = {values(unit, "ExecStart")[0]
                  for unit, groups in GROUPS.items() if group in groups}
        if group != f"inline-broker-{name}" or len(owners) != 1:
            yield f"systemd/inline.tmpfiles: {name} is for {group}: {owners}"


def api_paths():
    for word in values("il-api.service", "ReadWritePaths"):
        if not word.startswith("/run/inline/sessions"):
            yield f"systemd/il-api.service: writes {word}"
    for word in ("-/run/docker.sock", "-/var/lib/inline"):
        if word not in values("il-api.service", "InaccessiblePaths"):
            yield f"systemd/il-api.service: may reach {word[1:]}"


check("only who needs the database is linked with it", linked())
check("units have the groups of their duty", unit_groups())
check("so have their users", members())
check("each socket of the broker is one program's", broker_sockets())
check("il-api reaches neither database nor engine", api_paths())
finish()
