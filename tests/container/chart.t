#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each pod of the Helm chart, with the rights, mounts and environment that its
manifest says: a node, its sidecar, its backup, the chart's own test, its end."""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "chart"))
from house import (IMAGE, INLINE, SETTINGS, docker, left_over,  # noqa: E402
                   wait_for)
from chart import BUILD, Chart  # noqa: E402
from pods import Namespace  # noqa: E402
from tap import run, test  # noqa: E402

START_SECONDS = 300
STRANGER = "Host: inline.people.svc"
HELLO = json.dumps({"input": "print(6 * 7)"})
# Longer than the pause before SIGTERM, and than /eval lets anything run.
LONG = "import time; time.sleep(9); print('whole')"
SLOW = "import time; time.sleep(4); print('whole')"


def ask(url, body=None, *words):
    """(status, text) of a request of the pod's own network."""
    said = docker("exec", node.network, "curl", "-sS", "-m", "60", "-w",
                  "\n%{http_code}", url, *words, *(
                      [] if body is None else [
                          "-H", "Content-Type: application/json",
                          "-d", body]), check=False)
    text, _, status = said.rpartition("\n")
    return int(status or 0), text


def stdout(answer):
    """What a run has printed."""
    status, text = answer
    assert status == 200, answer
    return json.loads(text)["stdout"]


@test
def a_node_starts_and_is_ready_by_its_own_probes():
    wait_for(lambda: node.says_yes("inline", "startupProbe"), START_SECONDS)
    assert node.says_yes("inline", "readinessProbe")
    said = docker("exec", node.network + "-inline", "ilctl", "doctor",
                  check=False)
    assert "Nothing is wrong." in said, said


@test
def it_runs_code_for_a_token_of_the_secret_and_for_no_stranger():
    url = "http://127.0.0.1:8080/eval"
    assert stdout(ask(url, HELLO, "-H", STRANGER, *BEARER)) == "42\n"
    assert ask(url, HELLO, "-H", STRANGER)[0] == 401


@test
def nodes_find_each_other_by_the_names_of_the_table():
    wait_for(lambda: other.says_yes("inline", "readinessProbe"), START_SECONDS)
    said = node.run_in("inline", "ilctl", "nodes")
    assert len(re.findall(r"^inline-[01] .* ok$", said, re.M)) == 2, said
    file = json.loads(ask("http://inline-0.inline-nodes:8080/v1/files", None,
                          "-F", "file=@/etc/hostname", *BEARER)[1])
    status, text = ask("http://inline-1.inline-nodes:8080/v1/files/" +
                       file["file_id"], None, *BEARER)
    assert (status, text) == (200, "inline-0\n"), (status, text)


@test
def the_sidecar_serves_eval_and_nothing_else_and_may_write_nothing():
    url = "http://127.0.0.1:8060"
    for words in (), ("-H", STRANGER), ("-H", "X-Forwarded-For: 192.0.2.1"):
        assert stdout(ask(url + "/eval", HELLO, *words)) == "42\n", words
    # also a body that nobody has announced
    chunked = ask(url + "/eval", HELLO, "-H", "Transfer-Encoding: chunked")
    assert chunked[0] in (200, 400), chunked
    for path in "/", "/health", "/metrics", "/v1/execute", "/docs":
        assert ask(url + path) == (404, '{"title": "404 Not Found"}'), path
    assert node.run_in("snekbox", "id", "-u").strip() == "33"
    status = subprocess.run(["docker", "exec", node.network + "-snekbox",
                             "touch", "/x"], capture_output=True).returncode
    assert status != 0


@test
def the_test_of_the_chart_finds_it_by_its_service():
    pod = space.start("Pod", "inline-test")
    assert pod.wait_ended("health") == 0
    assert '"status"' in pod.logs("health")


@test
def a_backup_is_made_while_it_runs_with_the_rights_that_it_has():
    """Also of a sandbox that was used just now, and has a cell."""
    for number in range(20):  # until it is somebody of this node
        one = json.loads(ask("http://localhost:8080/control/interaction",
                             json.dumps({"command": "il", "sub": ["py"],
                                         "options": {"code": "1"},
                                         "user": f"person{number}"}))[1])["id"]
        ask(f"http://localhost:8080/control/interactions/{one}?wait=final"
            "&timeout=60")
        if node.run_in("inline", "ls", "/srv/inline/sandboxes"):
            break
    job = space.start("CronJob", "backup")
    assert job.wait_ended("backup") == 0
    said = docker("run", "--rm", "--mount", f"type=volume,src={space.mark}-"
                  "backup-inline-0,dst=/backup", "--entrypoint", "ilctl",
                  INLINE, "restore", "-n", "/backup/inline-0")
    files = int(said.split()[0])
    assert files > 2 and "all is whole" in said, said


@test
def what_a_restart_does_not_mend_is_no_matter_of_liveness():
    other.run_in("inline", "sh", "-c", "kill -STOP $(pidof il-worker)")
    wait_for(lambda: not other.says_yes("inline", "readinessProbe"), pause=1)
    assert other.says_yes("inline", "livenessProbe")
    other.run_in("inline", "sh", "-c", "kill -CONT $(pidof il-worker)")
    wait_for(lambda: other.says_yes("inline", "readinessProbe"), pause=1)


@test
def an_engine_that_starts_nothing_is_a_matter_of_liveness():
    """It answers still, as its containerd alone stands still."""
    assert other.says_yes("inline", "livenessProbe")
    other.run_in("inline", "sh", "-c", "kill -STOP $(pidof containerd)")
    threading.Thread(target=ask, daemon=True, args=(
        "http://inline-1.inline-nodes:8080/v1/sessions", "{}",
        *BEARER)).start()
    wait_for(lambda: not other.says_yes("inline", "livenessProbe"), pause=1)
    assert node.says_yes("inline", "livenessProbe")
    assert node.says_yes("inline", "readinessProbe"), "it needs the other one"


@test
def it_ends_within_its_time_and_cuts_no_answer():
    answers = {}

    def keep(name, act):
        answers[name] = act()
    asking = [threading.Thread(target=keep, args=pair) for pair in (
        ("node", lambda: ask("http://127.0.0.1:8080/v1/execute",
                             json.dumps({"code": LONG, "timeout_ms": 20000}), *BEARER)),
        ("sidecar", lambda: ask("http://127.0.0.1:8060/eval",
                                json.dumps({"input": SLOW}))))]
    for thread in asking:
        thread.start()
    wait_for(lambda: runs() == 2)
    took = node.end()
    for thread in asking:
        thread.join()
    print(f"# ended after {took:.0f} s", flush=True)
    assert took < node.spec["terminationGracePeriodSeconds"]
    for name, answer in answers.items():
        assert stdout(answer) == "whole\n", (name, answer)
    assert node.state("inline", "ExitCode") == "0", node.logs("inline")
    assert node.state("snekbox", "ExitCode") == "0", node.logs("snekbox")
    wait_for(lambda: not left_over(space.mark))


def runs():
    """Of the HTTP APIs, under way."""
    text = ask("http://127.0.0.1:8080/metrics", None, "-H",
               "Authorization: Bearer " + tokens["prometheus"])[1]
    return sum(int(line.split()[1]) for line in text.splitlines()
               if line.startswith("inline_api_running "))


def make_tokens():
    """({name: token}, the file's lines)."""
    made = {}
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "tokens")
        for name in "alice", "prometheus", "snekbox":
            made[name] = subprocess.run(
                [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", path,
                 "add", name], check=True, capture_output=True,
                text=True).stdout.strip()
        with open(path) as file:
            return made, file.read()


with tempfile.TemporaryDirectory(prefix="inline-container-") as images:
    os.chmod(images, 0o755)
    docker("save", "--output", images + "/python.tar", IMAGE)
    tokens, lines = make_tokens()
    BEARER = "-H", "Authorization: Bearer " + tokens["alice"]
    chart = Chart(
        api__tokens=lines, snekbox__enabled=True,
        snekbox__tokenSecret="snekbox-token", backup__enabled=True,
        service__port=8080, replicaCount=2, settings={
            **SETTINGS, "IL_CELLS": 2, "IL_API_CELLS": 2, "IL_API_SESSIONS": 1,
            "IL_MEMORY": "64m", "IL_TUNE_PIP_MEMORY": "64m", "IL_WORKERS": 1},
        extraVolumes=[{"name": "images", "hostPath": {"path": images}}],
        extraVolumeMounts=[{"name": "images", "mountPath": "/images",
                            "readOnly": True}])
    chart.manifests.append({
        "kind": "Secret", "metadata": {"name": "snekbox-token"}, "data": {
            "token": base64.b64encode(tokens["snekbox"].encode())}})
    with Namespace(chart) as space:
        node = space.start("StatefulSet", "inline-0")
        other = space.start("StatefulSet", "inline-1")
        run()
