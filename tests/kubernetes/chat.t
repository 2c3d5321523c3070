#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The chart as it is installed: chat through the Service and through each node,
the five contracts, what is open and what is not, a backup, and its end."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (LABEL, NAME, Release, node_of, spread, to,  # noqa: E402
                     wait_for)
from tap import Skip, run, test  # noqa: E402

NODES = 3
LOCAL = "-H", "Host: localhost"
HELLO = "print(6 * 7)"


@test
def three_nodes_are_ready_and_the_charts_own_test_says_so():
    assert len(release.pods()) == NODES
    assert all(release.is_ready(node) for node in range(NODES))
    release.helm.test(NAME)


@test
def a_signed_command_is_answered_through_the_service():
    one = release.discord.send_command("py", code=HELLO)
    one.wait_final(match="42")
    assert one.state == "answered"


@test
def each_node_takes_interactions_of_each_ones_people():
    for user, home in people.items():
        for node in range(NODES):
            one = release.discord.send_command(
                "py", user=user, code="import os; print(os.listdir())",
                order=to(node))
            one.wait_final(match="'here'")
            assert node_of(release, one, range(NODES)) == home, (user, node)


@test
def a_press_of_a_strangers_button_goes_to_the_node_of_its_row():
    by_node = {node: user for user, node in people.items()}
    owner, other = by_node[0], by_node[1]
    shared = release.discord.send_command("py", user=owner, share=True,
                                          code="print('shared')")
    shared.wait_final(match="shared")
    message = shared.messages[0]
    opened = release.discord.press(message, "Try it yourself", user=other)
    opened.wait_answered()
    assert opened.answer_type == 9, opened
    sent = release.discord.submit_modal(opened)
    sent.wait_final(match="shared")
    assert node_of(release, sent, range(NODES)) == 1


@test
def the_five_contracts_run_code_for_a_token():
    base = f"http://{NAME}"
    status, text = release.post(base + "/eval", {"input": HELLO},
                                *release.bearer)
    assert (status, json.loads(text)["stdout"]) == (200, "42\n"), text
    status, text = release.post(base + "/v1/execute", {"code": "6 * 7"},
                                *release.bearer)
    assert (status, json.loads(text)["stdout"]) == (200, "42\n"), text
    status, text = release.post(base + "/librechat/exec",
                                {"lang": "py", "code": HELLO},
                                *release.bearer)
    assert (status, json.loads(text)["stdout"]) == (200, "42\n"), text
    status, text = release.post(
        base + "/api/v2/execute", {"language": "python", "version": "*",
                                   "files": [{"content": HELLO}]},
        *release.bearer)
    assert (status, json.loads(text)["run"]["stdout"]) == (200, "42\n"), text
    status, text = release.post(
        base + "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                        "params": {"name": "run_python",
                                   "arguments": {"code": HELLO}}},
        "-H", "Accept: application/json, text/event-stream",
        "-H", "MCP-Protocol-Version: 2025-11-25", *release.bearer)
    assert status == 200 and "42\\n" in text, text


@test
def a_file_of_one_node_is_had_through_each():
    status, text = release.curl(f"http://{NAME}/v1/files", "-F",
                                "file=@/etc/hostname;filename=name",
                                *release.bearer)
    assert status == 201, text
    path = "/v1/files/" + json.loads(text)["file_id"]
    for node in range(NODES):
        status, _ = release.curl(
            f"http://{NAME}-{node}.{NAME}-nodes:8080{path}", *release.bearer)
        assert status == 200, (node, status)


@test
def nobody_runs_code_without_a_token_by_whatever_name():
    for url in f"http://{NAME}", f"http://{NAME}-0.{NAME}-nodes:8080":
        for words in (), LOCAL:
            status, text = release.post(url + "/eval", {"input": "1"}, *words)
            assert status in (401, 403), (url, words, text)
    assert release.curl(f"http://{NAME}/", *LOCAL)[0] in (403, 404, 421)


@test
def metrics_are_for_prometheus_and_health_for_all():
    assert release.curl(f"http://{NAME}/health")[0] == 200
    assert release.curl(f"http://{NAME}/metrics")[0] in (401, 403)
    status, text = release.curl(
        f"http://{NAME}/metrics", "-H",
        "Authorization: Bearer " + release.metrics_token)
    assert status == 200 and "inline_condition" in text, text


@test
def snekboxs_clients_find_what_they_have_built_in():
    status, text = release.post("http://snekbox:8060/eval", {"input": HELLO})
    assert (status, json.loads(text)["stdout"]) == (200, "42\n"), text
    for path in "/", "/v1/execute", "/metrics":
        assert release.curl("http://snekbox:8060" + path)[0] == 404


@test
def nodes_take_no_word_of_a_stranger_for_a_nodes():
    status, _ = release.curl(f"http://{NAME}-0.{NAME}-nodes:8079/interactions",
                             "-X", "POST", timeout=10, check=False)
    # cut off by the network, or refused
    assert status in (0, 403), status


@test
def an_address_of_the_cluster_is_out_of_reach_from_a_node():
    """Where the cluster's network enforces it."""
    api = release.get("service", "--namespace", "default", "kubernetes")[
        "spec"]["clusterIP"]
    said = release.run_in(0, "sh", "-c", f"curl -sk -m 5 https://{api}/version "
                          "-o /dev/null; echo $?").strip()
    if said == "0" and not enforces_policies():
        raise Skip("this cluster's network enforces no NetworkPolicy")
    assert said in ("7", "28"), said


def enforces_policies():
    """A pod that nobody lets in can still be reached where it does not."""
    release.apply("""
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nothing}
spec: {podSelector: {matchLabels: {app: discord}}, policyTypes: [Ingress]}
""")
    try:
        said = release.run_in(0, "sh", "-c", "curl -s -m 5 http://discord:9000/"
                              " -o /dev/null; echo $?").strip()
        return said != "0"
    finally:
        release.ask("delete", "networkpolicy", "nothing")


@test
def cells_are_below_the_pods_cgroup_and_have_no_network():
    one = release.discord.send_command(
        "py", code="import socket\ntry: socket.create_connection(('"
        f"{NAME}', 80), 3)\nexcept OSError as e: print('no', e)")
    one.wait_final(match="no ")
    limit = release.run_in(0, "sh", "-c", "cat /sys/fs/cgroup/memory.max "
                           "2>/dev/null || echo v1").strip()
    want = release.pod(0)["spec"]["containers"][0]["resources"]["limits"][
        "memory"]
    assert limit == "v1" or int(limit) == int(want[:-2]) << 20, (limit, want)


@test
def a_backup_is_made_beside_each_node():
    for node in range(NODES):
        release.ask("create", "job", f"now-{node}",
                    f"--from=cronjob/{NAME}-{node}-backup")
    for node in range(NODES):
        ends = wait_for(lambda: ends_of(f"now-{node}"), 300, what="an end")
        assert "Complete" in ends, (node, ends, release.ask(
            "logs", f"job/now-{node}", check=False))


def ends_of(job):
    """The conditions of a job that is over."""
    found = {each["type"] for each in release.get("job", job)["status"].get(
        "conditions", []) if each["status"] == "True"}
    return found if found & {"Complete", "Failed"} else None


@test
def uninstalled_it_leaves_nothing():
    release.ask("delete", "job", *[f"now-{node}" for node in range(NODES)])
    assert release.uninstall() == []
    assert release.get("pods", "-l", LABEL)["items"] == []
    wait_for(lambda: not release.get("persistentvolumeclaims")["items"])


with Release(NODES, snekbox__enabled=True,
             snekbox__tokenSecret="snekbox-token", backup__enabled=True,
             backup__size="1Gi", snekbox__from=[
                 {"podSelector": {}}]) as release:
    people = spread(release, NODES)
    run()
