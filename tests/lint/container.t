#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The image and compose.yaml fit the tree: what is copied is sent, rights and
numbers are those of the programs, all command lines ask for the same."""

import os
import re

from source import ROOT, check, finish, read

FOLDER = "systemd/container/"
COMPOSE = read(FOLDER + "compose.yaml")
DOCKERFILE = read(FOLDER + "Dockerfile")


def copied_but_not_sent():
    """.dockerignore lets in what it names, and nothing else."""
    sent = re.findall(r"^!(\S+)$", read(".dockerignore"), re.M)
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.M):
        for path in line.split()[:-1]:
            if not os.path.exists(os.path.join(ROOT, path)):
                yield f"{FOLDER}Dockerfile: {path} is not there"
            elif not any(path == s or path.startswith(s + "/") for s in sent):
                yield f".dockerignore: {path} is not sent"


def other_rights():
    """What `ilctl run` leaves the broker, without what only another kind of
    host needs, and what it takes to give the rest up.
    """
    kept = set(re.findall(r"BIT\(CAP_(\w+)\)", re.search(
        r"root_keeps =(.*?);", read("sandbox/ctl/child.c"), re.S)[1]))
    want = kept - {"SYS_ADMIN", "SYS_RESOURCE"} | {"SETPCAP"}
    asked = set(re.search(r"cap_add: \[(.*)\]", COMPOSE)[1].split(", "))
    if asked != want:
        yield f"{FOLDER}compose.yaml: cap_add differs by {asked ^ want}"
    # Of no use beside DAC_OVERRIDE, but to open the host's files by handle.
    if "DAC_READ_SEARCH" in kept:
        yield "sandbox/ctl/child.c: DAC_READ_SEARCH is kept"


def other_numbers():
    """nginx reaches the sockets by the number of inline-web."""
    header = read("sandbox/ctl/ilctl_run.h")
    first = int(re.search(r"ACCOUNT_FIRST (\d+)U", header)[1])
    accounts = re.findall(r"^\tACCOUNT_\w+", re.search(
        r"enum account \{(.*?)\}", header, re.S)[1], re.M)
    groups = [line.strip() for line in re.findall(
        r"^\tACCOUNT_GROUP\w+", re.search(
            r"enum account_group \{(.*?)\}", header, re.S)[1], re.M)]
    number = first + len(accounts) + groups.index("ACCOUNT_GROUP_WEB")
    if f'group_add: ["{number}"]' not in COMPOSE:
        yield f"{FOLDER}compose.yaml: inline-web is {number}"


def other_options():
    """The command lines that people copy ask for the same devices and paths."""
    rules = re.findall(r'"([^"]*)"', re.search(
        r"device_cgroup_rules: \[(.*)\]", COMPOSE)[1])
    for path in FOLDER + "README.md", FOLDER + "entry.sh":
        for rule in rules:
            if f"--device-cgroup-rule '{rule}'" not in read(path):
                yield f"{path}: lacks the rule {rule}"
    for option in ("-p 127.0.0.1:8080:8080", "--privileged",
                   "-v /srv/inline:/srv/inline", "-v inline:/srv/inline",
                   "-v /var/run/docker.sock:/var/run/docker.sock",
                   "-e INLINE_PUBLISHED=127.0.0.1"):
        if option not in read(FOLDER + "README.md"):
            yield f"{FOLDER}README.md: lacks {option}"
    for key, value in re.findall(r"(IL_\w+)=/srv/inline/(\S+)", DOCKERFILE):
        if f"{key}: ${{INLINE_HOME:-/srv/inline}}/{value}\n" not in COMPOSE:
            yield f"{FOLDER}compose.yaml: {key} is elsewhere"


def published_to_all():
    """Only nginx is for others than this machine."""
    inline = COMPOSE[:COMPOSE.index("\nservices:")]
    for line in re.findall(r"^    - (.*:(?:8080|9090|3000))$", COMPOSE, re.M):
        if not line.startswith("127.0.0.1:") or line not in inline:
            yield f"{FOLDER}compose.yaml: {line}"


def shared_networks():
    """Whoever is in Inline's network passes for a program of this machine."""
    services = re.split(r"^  (\w[\w-]*):$", COMPOSE[COMPOSE.index(
        "\nservices:"):], flags=re.M)
    for name, text in zip(services[1::2], services[2::2]):
        if "network_mode" in text and not name.startswith("prometheus-"):
            yield f"{FOLDER}compose.yaml: {name} has no network of its own"


check("what the Dockerfile copies is sent", copied_but_not_sent())
check("the container has the rights that the programs use", other_rights())
check("nginx is in the group of the sockets", other_numbers())
check("command lines and compose.yaml ask for the same", other_options())
check("what runs code is published on loopback alone", published_to_all())
check("only Prometheus shares Inline's network", shared_networks())
finish()
