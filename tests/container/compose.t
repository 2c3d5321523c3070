#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""compose.yaml: Inline with the host's engine, nginx with TLS and Prometheus,
started and ended as README.md says."""

import atexit
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import (IMAGE, ROOT, docker, fetch, free_port,  # noqa: E402
                   left_over, wait_for)
from tap import Skip, run, test  # noqa: E402

FILE = os.path.join(ROOT, "systemd", "container", "compose.yaml")
MONITORING = os.path.join(ROOT, "systemd", "monitoring", "alerts.yml")
COMPOSE = ["docker-compose"] if shutil.which("docker-compose") else [
    "docker", "compose"]
WWW_DATA = 33
SECRET = "told-to-nobody"

folder = tempfile.mkdtemp(prefix="inline-compose-")
os.chmod(folder, 0o755)
project = os.path.basename(folder).replace("_", "")
ports = {name: free_port() for name in (
    "INLINE_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT", "INLINE_HTTP",
    "INLINE_HTTPS")}
env = dict(os.environ, COMPOSE_PROJECT_NAME=project,
           INLINE_ENV=folder + "/inline.env", INLINE_HOME=folder + "/home",
           INLINE_TLS=folder + "/tls", PROMETHEUS_IMAGE="inline-prometheus",
           **{name: str(port) for name, port in ports.items()})
# Whoever has signed it.
TLS = ssl._create_unverified_context()


def compose(*words, **more):
    """Run docker-compose; returns what it printed."""
    done = subprocess.run([*COMPOSE, "-f", FILE, *words], env={**env, **more},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def up(profile, *services, **more):
    """Start what is not started, from images that are there."""
    compose("--profile", profile, "up", "-d", "--no-build", *services, **more)


def down():
    """End all of it, with its volumes."""
    subprocess.run([*COMPOSE, "-f", FILE, "--profile", "dood-monitored",
                    "--profile", "tls", "down", "--volumes"], env=env,
                   capture_output=True, timeout=300)


def health(service):
    """What the engine has found of a service."""
    name = compose("ps", "-q", service).split()
    return docker("inspect", "--format", "{{.State.Health.Status}}",
                  name[0]).strip()


@test
def it_becomes_healthy_on_a_root_that_nobody_writes():
    up("dood")
    wait_for(lambda: health("dood") == "healthy", 300)
    name = compose("ps", "-q", "dood").split()[0]
    assert docker("inspect", "--format", "{{.HostConfig.ReadonlyRootfs}}",
                  name).strip() == "true"
    status, text = fetch(f"http://127.0.0.1:{ports['INLINE_PORT']}/eval",
                         {"input": "print(6 * 7)"})
    assert status == 200 and json.loads(text)["stdout"] == "42\n", text
    assert SECRET not in docker("inspect", name)


@test
def the_key_has_to_be_readable_for_nginx():
    up("tls", "nginx")
    wait_for(lambda: "/tls/privkey.pem is not there, or not for user 33" in
             compose("logs", "nginx"))


@test
def nginx_brings_interactions_by_tls_and_nothing_else():
    os.chown(folder + "/tls/privkey.pem", WWW_DATA, WWW_DATA)
    compose("restart", "nginx")
    secure = f"https://127.0.0.1:{ports['INLINE_HTTPS']}"

    def answers():
        try:
            return fetch(secure + "/interactions", {}, context=TLS)[0]
        except OSError:
            return None
    assert wait_for(answers) == 401
    for path in "/eval", "/metrics", "/v1/execute", "/":
        assert fetch(secure + path, {}, context=TLS)[0] == 404, path
    plain = subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{redirect_url}",
         f"http://127.0.0.1:{ports['INLINE_HTTP']}/x"],
        capture_output=True, text=True).stdout
    assert plain == "https://127.0.0.1/x", plain


@test
def the_apis_are_opened_by_a_switch_and_ask_for_a_token():
    up("tls", "nginx", INLINE_OPEN_APIS="1")
    url = f"https://127.0.0.1:{ports['INLINE_HTTPS']}/eval"

    def answers():
        try:
            return fetch(url, {"input": "1"}, context=TLS)[0]
        except OSError:
            return None
    assert wait_for(answers) == 403


@test
def prometheus_reads_the_metrics_and_the_rules():
    if not os.path.exists(MONITORING):
        raise Skip("systemd/monitoring is not there")
    up("dood-monitored", "prometheus-dood")
    url = f"http://127.0.0.1:{ports['PROMETHEUS_PORT']}/api/v1/"

    def reads():
        try:
            status, text = fetch(url + "targets")
        except OSError:
            return False
        # as long as it begins it is 503, in words
        return status == 200 and [each["health"] for each in json.loads(
            text)["data"]["activeTargets"]] == ["up"]
    wait_for(reads)
    assert json.loads(fetch(url + "rules")[1])["data"]["groups"]


@test
def it_goes_down_whole():
    with open(folder + "/home/run/instance") as file:
        instance = file.read().strip()
    down()
    wait_for(lambda: not left_over(folder, instance))
    assert not docker("ps", "-aq", "--filter", "name=" + project).split()


os.mkdir(folder + "/tls")
subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                "-keyout", folder + "/tls/privkey.pem", "-out",
                folder + "/tls/fullchain.pem", "-days", "2", "-subj",
                "/CN=inline.test"], check=True, capture_output=True)
with open(folder + "/inline.env", "w") as settings:
    settings.write(f"SANDBOX_IMAGE={IMAGE}\nSANDBOX_IMAGES=3.11={IMAGE}\n"
                   f"IL_WORKERS=2\nDISCORD_TOKEN='{SECRET}'\n")
atexit.register(shutil.rmtree, folder, ignore_errors=True)
atexit.register(down)
run()
