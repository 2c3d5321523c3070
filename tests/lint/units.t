#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the units promise when they are started, stopped and updated.  systemd
is not there to be asked, so its rules for the order of jobs (systemd.unit(5),
"Before=, After=") are written down here once:

- what is stopped goes in the opposite order of what is started;
- of two units in an order, a stop goes before a start, whichever is named
  first; a restart is a stop and then a start;
- by default a target comes after all that it wants or requires;
- a stop that is propagated (StopPropagatedFrom=) is also that of a restart, by
  systemd 254 to 257 at least, not by 252;
- what nobody needs (StopWhenUnneeded=) is stopped when none of those that want
  or require it is active or has a job: a restart is a job.
"""

import os
import re
import shlex
import subprocess
import tempfile

from source import ROOT, check, finish, read

FOLDER = "systemd"
TARGET = "inline.target"
FRONTS = {"il-fcgi.service", "il-api.service", "il-node.service"}
SOCKETS = {"il-fcgi.socket", "il-api.socket", "il-node.socket"}
BROKER = "il-sandboxd.service"
WORKERS = {"il-worker@%d.service" % n for n in range(4)}
LISTS = {"After", "Before", "Wants", "Requires", "PartOf",
         "StopPropagatedFrom", "SupplementaryGroups", "ExecStartPre",
         "ReadWritePaths"}


def parse(path):
    """{key: value}; a list for what may come several times."""
    unit = {}
    for line in read(path).split("\n"):
        if not line or line[0] in "#[":
            continue
        key, value = line.split("=", 1)
        if key in LISTS:
            unit.setdefault(key, []).extend(
                [value] if key.startswith("Exec") else value.split())
        else:
            before = unit[key] + " " if key == "Environment" and key in unit \
                else ""
            unit[key] = before + value
    return unit


def load():
    units = {}
    for name in sorted(os.listdir(os.path.join(ROOT, FOLDER))):
        if name.rpartition(".")[2] not in ("service", "socket", "timer",
                                           "target"):
            continue
        unit = parse(f"{FOLDER}/{name}")
        if "@" in name:
            unit["template"] = "yes"
            for n in range(4):
                units[name.replace("@", "@%d" % n)] = unit
        else:
            units[name] = unit
    return units


UNITS = load()


def get(name, key):
    return UNITS[name].get(key, [])


def orders():
    """(first, second) pairs of our units."""
    pairs = set()
    for name in UNITS:
        pairs |= {(other, name) for other in get(name, "After")}
        pairs |= {(name, other) for other in get(name, "Before")}
        if name.endswith(".socket"):
            pairs.add((name, name.replace(".socket", ".service")))
    if get(TARGET, "DefaultDependencies") != "no":
        for other in get(TARGET, "Wants") + get(TARGET, "Requires"):
            if (TARGET, other) not in pairs:
                pairs.add((other, TARGET))
    return {(a, b) for a, b in pairs if a in UNITS and b in UNITS}


def touched():
    """The target and what its stop or restart reaches."""
    found = {TARGET}
    while True:
        more = {n for n in UNITS for key in ("PartOf", "StopPropagatedFrom")
                if set(get(n, key)) & found} - found
        # Whoever requires what is stopped is stopped, too.
        more |= {n for n in UNITS
                 if set(get(n, "Requires")) & found} - found
        if not more:
            return found
        found |= more


TOUCHED = touched()


def waits():
    """{(unit, "stop" or "start"): what that comes after}, all of it."""
    after = {}
    for name in TOUCHED:
        after[name, "stop"] = set()
        after[name, "start"] = {(name, "stop")}
    for first, second in orders():
        if first not in TOUCHED or second not in TOUCHED:
            continue
        after[first, "stop"].add((second, "stop"))
        after[first, "start"].add((second, "stop"))
        after[second, "start"] |= {(first, "stop"), (first, "start")}
    changed = True
    while changed:
        changed = False
        for job, others in after.items():
            more = set().union(*(after[o] for o in others)) - others
            if more:
                others |= more
                changed = True
    return after


PLAN = waits()


def services(group):
    return sorted(n for n in UNITS if n.endswith(".service") and
                  (UNITS[n].get("Group") == group or
                   group in get(n, "SupplementaryGroups")))


def no_order():
    for job, others in PLAN.items():
        if job in others and job[1] == "stop":
            yield f"{job[0]}: waits for itself"


def not_started():
    wanted = set(get(TARGET, "Wants"))
    for name in wanted & FRONTS:
        wanted |= set(get(name, "Requires")) & set(get(name, "After"))
    for name in FRONTS | SOCKETS | WORKERS | {BROKER}:
        if name not in wanted:
            yield f"{TARGET}: does not want {name}"


def update_waits():
    for front in sorted(FRONTS):
        if front not in TOUCHED:
            yield f"{front}: not restarted with the target"
            continue
        for other, phase in sorted(PLAN[front, "start"]):
            if other != front and other not in SOCKETS:
                yield f"{front}: its start waits for the {phase} of {other}"


def sockets_close():
    for name in sorted(SOCKETS & TOUCHED):
        yield f"{name}: closed when {TARGET} is restarted"
    for name in sorted(SOCKETS):
        if get(name, "StopWhenUnneeded") != "yes":
            yield f"{name}: open when {TARGET} is stopped: it starts its service"
        for other in UNITS:
            if name in get(other, "Wants") + get(other, "Requires") and \
                    other != name.replace(".socket", ".service"):
                yield f"{name}: open until {other} is stopped"


def broker_goes_early():
    for worker in sorted(WORKERS):
        if (worker, "stop") not in PLAN[BROKER, "stop"]:
            yield f"{BROKER}: stopped while {worker} has a job"


def stop_is_early():
    for name in sorted(WORKERS | {BROKER}):
        if (name, "stop") not in PLAN[TARGET, "stop"]:
            yield f"stop {TARGET}: does not wait for {name}"


def docker_is_killed():
    if UNITS[BROKER].get("KillMode") != "mixed":
        yield f"{BROKER}: a stop ends its docker, which removes containers"


def broker_is_late():
    if UNITS[BROKER].get("Type") != "notify":
        yield f"{BROKER}: a worker may come before its sockets"
    for worker in sorted(WORKERS):
        if BROKER not in get(worker, "After"):
            yield f"{worker}: does not wait for {BROKER}"


def not_migrated():
    for name in services("inline-db"):
        if "/var/lib/inline" not in get(name, "ReadWritePaths"):
            continue
        before = any("ilctl migrate" in c for c in get(name, "ExecStartPre"))
        # a program of its own is a second in which a service does not answer
        if before != ("/ilctl " in UNITS[name]["ExecStart"]):
            yield f"{name}: il-fcgi and il-worker migrate, ilctl does not"
    for name in UNITS:
        if "ilctl migrate" in UNITS[name].get("ExecStart", ""):
            yield f"{name}: all others would wait for it"


def stop_times():
    """Runs have their time, and what follows them, too."""
    for name, more in ((BROKER, 80), *((w, 20) for w in sorted(WORKERS))):
        seconds = re.search(r"IL_STOP_SECONDS=(\d+)",
                            UNITS[name].get("Environment", ""))
        if not seconds:
            yield f"{name}: sets no IL_STOP_SECONDS"
        elif int(UNITS[name].get("TimeoutStopSec", 0)) < \
                int(seconds.group(1)) + more:
            yield f"{name}: killed {more} s after IL_STOP_SECONDS or before"
    unit = UNITS["il-api.service"]
    if not unit["ExecStart"].endswith(" -l") or \
            unit.get("KillMode") != "process":
        yield "il-api.service: ends a run in hand"


def weights():
    """A weight compares within a slice; the containers are in system.slice
    (the engine's default with systemd), a template has one of its own."""
    for name, unit in sorted(UNITS.items()):
        if "CPUWeight" not in unit:
            continue
        slice_name = unit.get("Slice", "system.slice")
        if "template" in unit and "Slice" not in unit:
            slice_name = "of its template"
        if slice_name != "system.slice":
            yield f"{name}: CPUWeight in a slice {slice_name}"


def unknown_names():
    known = set(UNITS) | {n.replace("@0", "@") for n in UNITS}
    for name in sorted(UNITS):
        for key in ("After", "Before", "Wants", "Requires", "PartOf"):
            for other in get(name, key):
                if re.match(r"(il-|inline)", other) and other not in known:
                    yield f"{name}: {key}={other}, which does not exist"


def volumes_not_mended():
    """il-volumes.service before Docker, and what it does: tried on a folder."""
    name = "il-volumes.service"
    if name not in get(BROKER, "Wants"):
        yield f"{BROKER} does not want {name}"
    if "docker.service" not in get(name, "Before"):
        yield f"{name} does not come before docker.service"
    with tempfile.TemporaryDirectory() as folder:
        kept = {"good/opts.json": "{}", "plain/_data/opts.json": "",
                "opts.json": "", "other/metadata.db": "",
                "named/opts.json": ""}
        broken = "0123456789abcdef" * 4 + "/opts.json"
        for path, text in {**kept, broken: ""}.items():
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        subprocess.run(shlex.split(get(name, "ExecStart").replace(
            "/var/lib/docker/volumes", folder)), check=True,
            stdout=subprocess.DEVNULL)
        there = {os.path.relpath(os.path.join(at, file), folder)
                 for at, _, files in os.walk(folder) for file in files}
        if there != set(kept):
            yield f"{name} leaves {sorted(there)}, not {sorted(kept)}"


check("all that the target needs is started", not_started())
check("names of ours exist", unknown_names())
check("nothing waits for itself", no_order())
check("on an update no front waits for another unit", update_waits())
check("sockets stay open on an update, and close at a stop", sockets_close())
check("a stop lets docker remove containers", docker_is_killed())
check("a worker finds the broker", broker_is_late())
check("the broker is stopped after the workers", broker_goes_early())
check("a stop waits for workers and broker", stop_is_early())
check("who uses the database migrates it, beside the others", not_migrated())
check("what runs at a stop has its time", stop_times())
check("what keeps Docker from starting is mended before", volumes_not_mended())
def told_of_passwords():
    """The bot's token is one."""
    for name, unit in UNITS.items():
        if "EnvironmentFile" not in unit:
            continue
        if "DISCORD_TOKEN" not in unit.get("UnsetEnvironment", "").split():
            yield f"{name}: DISCORD_TOKEN is for `ilctl register`"


check("passwords are for who uses them", told_of_passwords())
check("weights compare with the containers'", weights())
finish()
