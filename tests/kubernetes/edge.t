#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What the cluster's own ingress controller, Gateway and Prometheus operator
make of the chart: requests come in by them, and nothing else does."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (EDGE, NAME, Release, kubectl,  # noqa: E402
                     wait_for)
from discord import by  # noqa: E402
from tap import Skip, run, test  # noqa: E402

GATEWAY = os.environ.get("INLINE_GATEWAY", "")
INGRESS_HOST, ROUTE_HOST = "ingress.example.org", "route.example.org"
APIS = ("/eval", "/v1/execute", "/api/v2/execute", "/librechat/exec", "/mcp",
        "/docs", "/health")
LARGE = 20 << 20
CLOSED = "/", "/metrics", "/chat", "/nodes/slots/1"


def edge(host, path, *words, **more):
    """A request to a name of the edge."""
    return release.curl(f"http://{EDGE}{path}", "-H", "Host: " + host, *words,
                        **more)


def serves(host):
    """Chat, and APIs for a token alone; the edge has no other path."""
    wait_for(lambda: edge(host, "/health", check=False)[0] == 200,
             what=f"{host} at the edge")
    one = release.discord.send_command("py", code="print(6 * 7)",
                                       order=by(host))
    one.wait_final(match="42")
    status, _ = edge(host, "/interactions", "-d", "{}")
    assert status == 401, status
    run_code = ("-H", "Content-Type: application/json", "-d",
                json.dumps({"input": "print(6 * 7)"}))
    assert edge(host, "/eval", *run_code)[0] in (401, 403)
    status, text = edge(host, "/eval", *run_code, *release.bearer)
    assert (status, json.loads(text)["stdout"]) == (200, "42\n"), text
    for path in APIS:
        status, _ = edge(host, path, "-d", "{}", *release.bearer)
        assert status != 404, path  # 400 or 405: it is there
    for path in CLOSED:
        status, text = edge(host, path, *release.bearer)
        assert status == 404 and "nginx" not in text, (path, text)


@test
def an_ingress_brings_chat_and_apis_and_nothing_else():
    serves(INGRESS_HOST)


@test
def so_does_a_route_of_a_gateway():
    if not GATEWAY:
        raise Skip("INLINE_GATEWAY names none")
    serves(ROUTE_HOST)
    parents = release.get("httproute", NAME)["status"]["parents"]
    said = {each["type"]: each["status"] for parent in parents
            for each in parent["conditions"]}
    assert said["Accepted"] == said["ResolvedRefs"] == "True", parents


@test
def a_large_file_comes_whole_and_goes_whole():
    release.ask("exec", "discord", "-c", "balancer", "--", "sh", "-c",
                f"head -c {LARGE} /dev/urandom >/tmp/large")
    status, text = edge(INGRESS_HOST, "/v1/files", "-F",
                        "file=@/tmp/large;filename=large", *release.bearer)
    assert status == 201, text
    path = "/v1/files/" + json.loads(text)["file_id"]
    status, text = edge(INGRESS_HOST, path, "-o", "/tmp/again",
                        *release.bearer)
    assert status == 200, text
    release.ask("exec", "discord", "-c", "balancer", "--", "cmp", "/tmp/large",
                "/tmp/again")


@test
def a_prometheus_operator_is_told_where_and_with_what_token():
    if not MONITORED:
        raise Skip("the cluster has no ServiceMonitor")
    point, = release.get("servicemonitor", NAME)["spec"]["endpoints"]
    chosen = release.get("servicemonitor", NAME)["spec"]["selector"][
        "matchLabels"]
    service, = release.get("services", "-l", ",".join(
        f"{key}={value}" for key, value in chosen.items()))["items"]
    port, = [each["port"] for each in service["spec"]["ports"]
             if each["name"] == point["port"]]
    secret = point["authorization"]["credentials"]
    token = release.ask("get", "secret", secret["name"], "-o",
                        "go-template={{.data.%s | base64decode}}"
                        % secret["key"])
    status, text = release.curl(
        f"http://{service['metadata']['name']}:{port}{point['path']}", "-H",
        "Authorization: Bearer " + token)
    assert status == 200 and "inline_condition" in text, text
    groups = release.get("prometheusrule", NAME)["spec"]["groups"]
    assert any("alert" in rule for group in groups
               for rule in group["rules"]), groups


def edge_values():
    """Values that open the release to the edge."""
    values = {"api__expose": True, "ingress__enabled": True,
              "ingress__hosts": [INGRESS_HOST],
              "networkPolicy__ingressFrom": [{"namespaceSelector": {}}]}
    if GATEWAY:
        namespace, name = GATEWAY.split("/")
        values.update(httpRoute__enabled=True,
                      httpRoute__hostnames=[ROUTE_HOST],
                      httpRoute__parentRefs=[
                          {"namespace": namespace, "name": name}])
    if MONITORED:
        values.update(monitoring__serviceMonitor__enabled=True,
                      monitoring__serviceMonitor__tokenSecret="metrics-token",
                      monitoring__prometheusRule__enabled=True)
    return values


if not EDGE:
    print("1..0 # SKIP INLINE_EDGE names no ingress controller")
    sys.exit(0)
MONITORED = "servicemonitors.monitoring.coreos.com" in kubectl(
    "get", "customresourcedefinitions", "-o", "name")
with Release(1, **edge_values()) as release:
    run()
