#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Inline in a container with an engine of its own, as a pod has it: a network
that outlives the container, Secrets that nobody may write, names of services in
its environment, strangers with the address of its gateway."""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import (BUILD, IMAGE, House, begin, docker, fetch,  # noqa: E402
                   inside, wait_for)
from tap import run, test  # noqa: E402

HOST = "inline-of-a-release-with-a-name-that-is-as-long-as-one-may-be-0"  # 63
SECRETS = "/run/secrets/inline"
KEYS = "/etc/inline/librechat.keys"
# Of services `sandbox`, `discord` and `il-http` in the same namespace.
SERVICES = {"SANDBOX_SERVICE_HOST": "10.96.0.7", "SANDBOX_SERVICE_PORT": "80",
            "DISCORD_PORT": "tcp://10.96.0.8:80",
            "DISCORD_PORT_80_TCP_ADDR": "10.96.0.8",
            "IL_HTTP_PORT": "tcp://10.96.0.9:80"}
LOCAL = {"Host": "localhost"}


def make_secret():
    """A Secret's volume, with its links; returns {name: token}."""
    os.mkdir(secret)
    os.chmod(secret, 0o1777)
    os.mkdir(secret + "/..2026_11")
    tokens = {name: subprocess.run(
        [os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
         secret + "/..2026_11/tokens", "add", name], check=True,
        capture_output=True, text=True).stdout.strip()
        for name in ("alice", "prometheus")}
    with open(secret + "/..2026_11/keys", "w") as file:
        file.write("kid " + "A" * 43 + "\n")
    os.symlink("..2026_11", secret + "/..data")
    for name in "tokens", "keys":
        os.symlink("..data/" + name, f"{secret}/{name}")
        os.chmod(f"{secret}/..data/{name}", 0o644)
    return tokens


def seen(name):
    """What the kernel says of a file of the Secret's."""
    stat = os.stat(f"{secret}/{name}")
    return stat.st_uid, stat.st_gid, oct(stat.st_mode)


def bearer(name):
    """Headers of somebody who has a token, and asks by a service's name."""
    return {"Host": "inline.chat.svc",
            "Authorization": "Bearer " + tokens[name]}


def answers():
    """A run of somebody's who has a token."""
    status, text = fetch(house.url("/eval"), {"input": "print(6 * 7)"},
                         bearer("alice"))
    assert status == 200 and json.loads(text)["stdout"] == "42\n", text


@test
def names_of_services_are_passed_over():
    assert "a link to a service, passed over" in house.logs(), house.logs()
    wait_for(lambda: house.state("Health.Status") == "healthy")


@test
def a_token_of_a_secret_is_good_and_the_secret_is_as_it_was():
    answers()
    assert [seen(name) for name in ("tokens", "keys")] == before
    assert house.run_in("ilctl", "doctor").count("Nothing is wrong.") == 1


@test
def whoever_comes_by_the_gateway_needs_one():
    for headers in LOCAL, {"Host": "127.0.0.1"}, {"Host": "inline.chat.svc"}:
        status, text = fetch(house.url("/eval"), {"input": "1"}, headers)
        assert status == 401, (headers, status, text)
        assert fetch(house.url("/"), None, headers)[0] == 421, headers
        assert fetch(house.url("/health"), None, headers)[0] == 200, headers


@test
def the_metrics_are_for_the_token_that_has_their_name():
    assert fetch(house.url("/metrics"), None, LOCAL)[0] == 401
    assert fetch(house.url("/metrics"), None, bearer("alice"))[0] == 403
    status, text = fetch(house.url("/metrics"), None, bearer("prometheus"))
    assert status == 200 and "inline_broker_up 1" in text, (status, text)


def comes_back():
    """Start it once more in the network that has its bridge still."""
    assert "docker0" in docker("exec", house.pod[0], "ip", "link")
    began = time.monotonic()
    docker("start", house.name)
    house.wait_ready()
    print(f"# ready after {time.monotonic() - began:.0f} s", flush=True)
    assert time.monotonic() - began < 60
    answers()


@test
def killed_with_runs_it_comes_back_in_its_network():
    begin(house.url("/eval"), "import time; time.sleep(60)", bearer("alice"))
    wait_for(lambda: "inline_api_running 1\n" in fetch(
        house.url("/metrics"), None, bearer("prometheus"))[1])
    docker("kill", house.name)
    comes_back()


@test
def so_it_does_when_its_engine_was_killed():
    house.run_in("sh", "-c", "kill -KILL $(cat /run/docker.pid)")
    wait_for(lambda: house.state("Running") == "false")
    comes_back()


def probe():
    """What the liveness probe of a pod asks: its status."""
    return subprocess.run(
        ["docker", "exec", house.name,
         "/opt/inline/systemd/container/health.sh", "engine"],
        stdout=subprocess.DEVNULL).returncode


@test
def an_engine_that_starts_nothing_is_found_within_a_minute():
    """It answers still, as its containerd alone stands still."""
    assert probe() == 0
    house.run_in("sh", "-c", "kill -STOP $(pidof containerd)")
    began = time.monotonic()
    begin(house.url("/v1/sessions"), "", bearer("alice"))
    wait_for(lambda: json.loads(fetch(house.url("/health"))[1])["status"] ==
             "error", seconds=60, pause=1)
    print(f"# found after {time.monotonic() - began:.0f} s", flush=True)
    house.run_in("docker", "ps")
    assert probe() == 1
    done = subprocess.run(["docker", "exec", house.name, "ilctl", "status"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "the Docker engine answers, and " in \
        done.stdout and "restart that container" in done.stdout, done.stdout
    docker("kill", house.name)
    comes_back()


@test
def and_in_a_new_container_as_a_pod_makes_one():
    docker("rm", "--force", house.name)
    house.start()
    answers()


with tempfile.TemporaryDirectory(prefix="inline-container-") as folder:
    os.chmod(folder, 0o755)
    secret = folder + "/secret"
    tokens = make_secret()
    before = [seen(name) for name in ("tokens", "keys")]
    os.mkdir(folder + "/images")
    docker("save", "--output", folder + "/images/python.tar", IMAGE)
    options, entry, command = inside()
    mounts = [f"type=bind,src={secret},dst={SECRETS},readonly",
              f"type=bind,src={secret}/..data/keys,dst={KEYS},readonly",
              f"type=bind,src={folder}/images,dst=/images,readonly"]
    with House([*options, *[word for one in mounts
                            for word in ("--mount", one)]],
               entry, command, volume=True, host_name=HOST,
               IL_API_TOKENS_FILE=SECRETS + "/tokens",
               IL_LIBRECHAT_KEYS_FILE=KEYS, **SERVICES) as house:
        run()
