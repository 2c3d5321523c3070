#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the chart keeps of what is installed already: the nodes' key, and which
nodes have people.  Helm asks a server that has these two objects, and no cluster.
"""

import base64
import http.server
import json
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chart import NAMESPACE, helm, loaded, nested, yaml  # noqa: E402
from tap import run, test  # noqa: E402

KEY = base64.b64encode(b"5" * 64).decode()
KINDS = [{"name": "configmaps", "kind": "ConfigMap"},
         {"name": "secrets", "kind": "Secret"}]
ANSWERS = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.2"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        dict(each, namespaced=True, verbs=["get"]) for each in KINDS]},
}


class Cluster(http.server.BaseHTTPRequestHandler):
    """As much of Kubernetes' API as `lookup` asks for."""

    objects = {}

    def do_GET(self):
        path = self.path.partition("?")[0].rstrip("/")
        found = ANSWERS.get(path) or self.objects.get(path)
        self.answer(200 if found else 404, found or {
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": "NotFound", "code": 404})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def has(kind, name, data):
    Cluster.objects[f"/api/v1/namespaces/{NAMESPACE}/{kind}/{name}"] = {
        "apiVersion": "v1", "kind": next(
            each["kind"] for each in KINDS if each["name"] == kind),
        "metadata": {"name": name, "namespace": NAMESPACE}, "data": data}


def rendered(**values):
    """{kind/name: manifest} of what would be installed."""
    with helm.Config(kube_apiserver=f"http://127.0.0.1:{server.server_port}",
                     namespace=NAMESPACE, storage_driver="memory") as cluster:
        files = cluster.render(loaded, nested(**values), name="inline",
                               namespace=NAMESPACE)
    return {each["kind"] + "/" + each["metadata"]["name"]: each
            for path, text in files.items() if path.endswith(".yaml")
            for each in yaml.safe_load_all(text) if each}


def table(**values):
    """The table of nodes, and how many have people."""
    data = rendered(**values)["ConfigMap/inline-nodes"]["data"]
    return data["table"].splitlines(), data["settled"]


@test
def at_first_all_nodes_share_the_slots():
    Cluster.objects.clear()
    lines, settled = table(replicaCount=3)
    assert len(lines) == 3 and settled == "3"
    assert not any("joining" in line for line in lines)


@test
def a_node_that_is_added_has_nobody():
    has("configmaps", "inline-nodes", {"settled": "3"})
    lines, settled = table(replicaCount=4)
    assert settled == "3"
    assert [line.endswith(" joining") for line in lines] == [
        False, False, False, True]


@test
def it_has_its_share_when_the_operator_says_so():
    lines, settled = table(replicaCount=4, nodes__settled=4)
    assert settled == "4"
    assert not any("joining" in line for line in lines)


@test
def a_node_that_has_people_is_not_taken_away():
    try:
        table(replicaCount=2)
    except helm.HelmError as error:
        assert "replicaCount: 3 nodes have people" in str(error), error
        assert "nodes.settled" in str(error)
    else:
        raise AssertionError("it was taken away")
    lines, settled = table(replicaCount=2, nodes__settled=2)
    assert len(lines) == 2 and settled == "2"


@test
def the_nodes_key_stays():
    Cluster.objects.clear()
    has("secrets", "inline-key", {"key": KEY})
    assert rendered()["Secret/inline-key"]["data"] == {"key": KEY}
    Cluster.objects.clear()
    assert rendered()["Secret/inline-key"]["data"] != {"key": KEY}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
threading.Thread(target=server.serve_forever, daemon=True).start()
run()
