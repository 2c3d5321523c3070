#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The AppArmor profile of the APIs' containers: it is in force, runs have
namespaces under it, it forbids what Docker's own does, and the doctor knows
why where it is not so.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, figure, note, run, test  # noqa: E402

PROFILE = "/etc/apparmor.d/inline-api"
ATTACK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attack.py")

host = Session(IL_TUNE_API_WARM="1")


def profile_of(pid):
    """The profile that a process is under."""
    return host.sh(f"cat /proc/{pid}/attr/current")


def api_cell():
    """The first process of an API container."""
    host.wait_for(lambda: host.containers("api"), 120)
    return host.first_process(host.containers("api")[0])


def attack(profile, seccomp="unconfined"):
    """What attack.py could do in a container of the engine's, without
    capabilities, under a profile: {name: "ok" or an error's name}.
    """
    with open(ATTACK, encoding="utf-8") as file:
        host.machine.write("/root/attack.py", file.read())
    text = host.sh(
        "docker run --rm -i --network none --user 65532:65532 --cap-drop ALL "
        f"--security-opt no-new-privileges --security-opt seccomp={seccomp} "
        f"--security-opt apparmor={profile} "
        "--tmpfs /workspace --tmpfs /home --tmpfs /run/cell "
        "-v /root/attack.py:/attack.py:ro "
        f"--entrypoint python3 {host.house.image} /attack.py")
    return dict(line.rsplit(" ", 1) for line in text.split("\n"))


@test
def apparmor_enforces_on_this_machine():
    note(host.sh("aa-status | head -4"))
    assert host.sh("cat /sys/module/apparmor/parameters/enabled") == "Y"


@test
def our_profile_is_loaded_and_enforced():
    listed = host.sh("grep '^inline-api ' "
                     "/sys/kernel/security/apparmor/profiles")
    assert listed == "inline-api (enforce)", listed


@test
def the_apis_containers_are_under_it():
    pid = api_cell()
    assert profile_of(pid) == "inline-api (enforce)", profile_of(pid)
    inside = host.sh(f"pgrep -P {pid}").split()
    assert inside and all(profile_of(one) == "inline-api (enforce)"
                          for one in inside), inside


@test
def each_run_has_namespaces_of_its_own():
    assert host.health()["isolation"] == "run", host.health()
    code = "import os; print(os.readlink('/nowhere'))"
    assert host.eval(code)[1]["returncode"] == 1, "runs are real"
    pid = api_cell()
    outer = host.sh(f"readlink /proc/{pid}/ns/user /proc/{pid}/ns/mnt")
    process = host.machine.start(
        "curl -s -m 120 -H 'Content-Type: application/json' -d "
        "'{\"input\": \"import time; time.sleep(40)\"}' "
        "http://127.0.0.1:8080/eval")
    try:
        host.wait_for(
            lambda: not run_namespaces(pid) & set(outer.split()), 60)
    finally:
        process.wait()


@test
def a_run_of_v1_has_a_proc_of_its_own():
    code = ("import os; print(os.listdir('/proc/.pids').count('1'), "
            "os.readlink('/proc/self/exe'), open('/dev/stdin').read(), "
            "__import__('socket').create_server(('127.0.0.1', 80)) and 80)")
    host.machine.write("/root/body.json", json.dumps(
        {"code": code, "timeout_ms": 60000, "last_line_interactive": False}))
    text = json.loads(host.sh(
        "curl -s -m 120 -H 'Content-Type: application/json' -d "
        "@/root/body.json http://127.0.0.1:8080/v1/execute"))["stdout"]
    assert text.startswith("0 /usr") and text.endswith(" 80\n"), text
    said = host.doctor()[1]
    assert "none a /proc" not in said, said


def run_namespaces(pid):
    """The namespaces of a process's last descendant, the run; the process's
    own where it has none, or the run has ended meanwhile.
    """
    status, text = host.machine.run(
        f"set -- $(pstree -p {pid} | grep -o '([0-9]*)' | tr -d '()'); "
        "shift $(($# - 1)); readlink /proc/$1/ns/user /proc/$1/ns/mnt")
    own = f"readlink /proc/{pid}/ns/user /proc/{pid}/ns/mnt"
    return set((text if status == 0 else host.sh(own)).split())


@test
def other_containers_are_under_the_engines_profile():
    host.create("alice")
    host.say("py", code="1")
    pid = host.first_process(host.containers("user")[0])
    assert profile_of(pid) == "docker-default (enforce)", profile_of(pid)


@test
def it_allows_nothing_more_than_dockers_but_what_a_cell_does():
    ours, theirs = attack("inline-api"), attack("docker-default")
    cells = {name for name in ours if name.startswith("cell: ")}
    assert all(ours[name] == "ok" for name in cells), ours
    assert cells and all(theirs[name] != "ok" for name in cells
                         if "user namespace" not in name), theirs
    looser = {name: (ours[name], theirs[name]) for name in set(ours) - cells
              if ours[name] == "ok" and theirs[name] != "ok"}
    figure(f"{len(ours) - len(cells)} things tried in a container without "
           f"seccomp: {sum(one != 'ok' for one in ours.values())} refused "
           "under inline-api, "
           f"{sum(one != 'ok' for one in theirs.values())} under "
           "docker-default")
    assert not looser, looser
    note("\n".join(f"{name}: {ours[name]}, docker-default {theirs[name]}"
                   for name in sorted(ours)))


@test
def a_run_can_do_none_of_it():
    with open(ATTACK, encoding="utf-8") as file:
        text = host.run_api(file.read())
    done = dict(line.rsplit(" ", 1) for line in text.strip().split("\n"))
    open_to_all = {name for name, how in done.items() if how == "ok"}
    assert done and not open_to_all, open_to_all


@test
def the_doctor_agrees():
    status, text = host.doctor()
    assert status == 0 and "ok    isolation: each run of the APIs has " \
        "namespaces" in text, text


def told(before, **settings):
    """What the doctor says of the isolation, after `before` and a restart."""
    host.sh(before)
    host.configure(**settings)
    text = host.doctor()[1]
    at = text.index("isolation:")
    said = text[text.rindex("\n", 0, at) + 1:].split("\nok ")[0]
    note(said)
    assert host.run_api("print(42)") == "42\n", "runs go on all the same"
    return said


def variant(name, *changes):
    """A shell command that loads a changed copy of our profile."""
    edits = " ".join(f"-e '{change}'" for change in
                     (f"s/inline-api/{name}/g", "/include if exists/d",
                      *changes))
    return f"sed {edits} {PROFILE} | apparmor_parser --replace --skip-cache"


@test
def without_our_profile_the_doctor_says_how_to_load_it():
    said = told(f"systemctl stop inline.target; "
                f"apparmor_parser -R {PROFILE}; mv {PROFILE} /root/kept")
    assert "EACCES, profile docker-default" in said, said
    assert "better: load inline-api" in said, said
    host.sh(f"mv /root/kept {PROFILE}")
    command = said.split("better: load inline-api, which comes with Inline: "
                         )[1].split("\n")[0]
    host.sh(command)
    host.wait_ready()
    assert host.health()["isolation"] == "run", "that command mends it"


@test
def make_run_loads_it_as_well():
    host.sh(f"apparmor_parser -R {PROFILE}")
    host.sh("cd /root/inline && sandbox/setup/engine.sh")
    listed = host.sh("grep '^inline-api ' "
                     "/sys/kernel/security/apparmor/profiles")
    assert listed == "inline-api (enforce)", listed


@test
def asked_for_dockers_the_doctor_says_to_ask_for_nothing():
    said = told(":", IL_TUNE_API_APPARMOR="docker-default")
    assert "profile docker-default" in said, said
    assert "leave IL_TUNE_API_APPARMOR empty" in said, said


@test
def a_profile_without_mounts_is_told_to_allow_them():
    said = told(variant("nomounts", "/^  mount/d", "/^  remount/d"),
                IL_TUNE_API_APPARMOR="nomounts")
    assert "mount private /: EACCES, profile nomounts" in said, said
    assert "allow `mount,` in that profile" in said, said


@test
def a_profile_that_lacks_one_mount_is_told_which():
    said = told(variant("nocover", "/(move)/d"), IL_TUNE_API_APPARMOR="nocover")
    assert "mount move to /proc: EACCES, profile nocover" in said, said


@test
def one_that_lacks_what_keeps_runs_from_other_folders_is_told_so():
    said = told(variant("noread", "/^  remount.*home,workspace/d"),
                IL_TUNE_API_APPARMOR="noread")
    assert "mount read-only /" in said, said
    assert "EACCES, profile noread" in said, said


@test
def a_profile_that_allows_mounts_is_not_told_to_allow_them():
    said = told(variant("nofiles", "s|^  file,|  file,\\n  deny /tmp/* w,|",
                        "s|^  mount.*tmp/.*|  mount,|"),
                IL_TUNE_API_APPARMOR="nofiles")
    assert "open /tmp/" in said and "EACCES, profile nofiles" in said, said
    assert "`mount,`" not in said, said


@test
def a_profile_without_the_capability_is_told_so():
    said = told(variant("nocaps", "/capability sys_admin/d"),
                IL_TUNE_API_APPARMOR="nocaps")
    assert "EPERM, profile nocaps" in said, said
    assert "capability sys_admin" in said, said


@test
def a_looser_profile_works_as_well():
    host.sh("printf 'abi <abi/3.0>,\\ninclude <tunables/global>\\n"
            "profile loose flags=(attach_disconnected,mediate_deleted) {\\n"
            "  file, network, capability, mount, umount, signal, ptrace,\\n}\\n'"
            " | apparmor_parser --replace --skip-cache")
    host.configure(IL_TUNE_API_APPARMOR="loose")
    assert host.health()["isolation"] == "run", host.health()
    assert profile_of(api_cell()) == "loose (enforce)"


@test
def by_default_ours_is_used_again():
    host.configure(IL_TUNE_API_APPARMOR=None)
    assert host.health()["isolation"] == "run", host.health()
    assert profile_of(api_cell()) == "inline-api (enforce)"


@test
def no_step_of_a_cell_was_denied_but_those_on_purpose():
    denied = host.sh("journalctl -q -k --no-pager | grep 'DENIED.*profile="
                     "\"inline-api\"' || :")
    kept = [line for line in denied.split("\n") if line
            and 'operation="mount"' not in line
            and 'operation="umount"' not in line
            and "cap" not in line]
    assert not kept, kept


with host:
    run()
