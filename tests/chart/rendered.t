#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the chart promises, in what it renders: who reaches whom, which rights,
which files, how much memory, which node has whom."""

import base64
import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chart import BUILD, ROOT, VARIANTS, Chart, selects, yaml  # noqa: E402
from tap import run, test  # noqa: E402

ALL = dict(VARIANTS["the sidecar"], backup__enabled=True,
           monitoring__serviceMonitor__enabled=True)
METADATA = "169.254.169.254"


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


# ---- pods ----

@test
def no_pod_knows_other_services_or_the_cluster():
    for owner, _, pod in Chart(**ALL).pods():
        assert pod["enableServiceLinks"] is False, owner
        assert pod["automountServiceAccountToken"] is False, owner


@test
def only_a_nodes_own_container_is_privileged():
    found = []
    for owner, _, pod in Chart(**ALL).pods():
        for container in pod["containers"]:
            rights = container["securityContext"]
            if rights.get("privileged"):
                found.append((owner, container["name"]))
                continue
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["capabilities"]["drop"] == ["ALL"]
            more = rights["capabilities"].get("add", [])
            assert more == (["DAC_READ_SEARCH"] if owner == "CronJob" else [])
            assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    assert found == [("StatefulSet", "inline")], found


@test
def all_data_is_on_the_claim():
    chart = Chart(persistence__size="10Gi", persistence__storageClassName="x")
    claim, = chart.one("StatefulSet")["spec"]["volumeClaimTemplates"]
    places = {each["name"]: each["mountPath"]
              for each in chart.container["volumeMounts"]}
    home = places[claim["metadata"]["name"]]
    for path in re.findall(r"IL_\w+=(/srv/\S+)",
                           text("systemd/container/Dockerfile")):
        assert path.startswith(home + "/"), path
    assert claim["spec"]["storageClassName"] == "x"
    assert claim["spec"]["resources"]["requests"]["storage"] == "10Gi"


@test
def claims_stay_unless_they_are_told_not_to():
    for retain, when in (True, "Retain"), (False, "Delete"):
        chart = Chart(persistence__retain=retain, backup__enabled=True)
        policy = chart.one("StatefulSet")["spec"][
            "persistentVolumeClaimRetentionPolicy"]
        assert set(policy.values()) == {when}, policy
        kept = chart.one("PersistentVolumeClaim")["metadata"].get(
            "annotations", {}).get("helm.sh/resource-policy") == "keep"
        assert kept == retain


@test
def memory_is_that_of_all_cells_at_one_time():
    def memory(**settings):
        resources = Chart(settings=settings).container["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"]
        return resources["limits"]["memory"]
    # programs and engine; IL_CELLS; a pip cell's more; API cells and sessions
    assert memory() == f"{1024 + 8 * 256 + 256 + (4 + 8) * 256}Mi"
    assert memory(IL_CELLS=2, IL_MEMORY="1g", IL_API_CELLS="1",
                  IL_API_SESSIONS=0, IL_API_MEMORY="65536k",
                  IL_TUNE_PIP_MEMORY=536870912) == f"{1024 + 2 * 1024 + 64}Mi"
    assert Chart(resources__limits={"memory": "1Gi"}).container[
        "resources"] == {"limits": {"memory": "1Gi"}}


@test
def the_end_has_time_for_what_runs():
    for seconds, want in (None, 110), (0, 90), ("30.5", 121):
        chart = Chart(settings={} if seconds is None else {
            "IL_STOP_SECONDS": seconds})
        assert chart.node["terminationGracePeriodSeconds"] == want


@test
def readiness_asks_this_node_alone():
    chart = Chart(replicaCount=3)
    for probe in "startupProbe", "readinessProbe", "livenessProbe":
        command = chart.container[probe]["exec"]["command"][0]
        path = os.path.join(ROOT, command.replace("/opt/inline/", ""))
        assert "127.0.0.1" in open(path).read(), path
        assert os.access(path, os.X_OK)


@test
def an_engine_that_starts_nothing_ends_the_container():
    probe = Chart().container["livenessProbe"]
    script, word = probe["exec"]["command"]
    assert word == "engine", word
    assert '"${1-}" = engine' in text(script.replace("/opt/inline/", "", 1))


@test
def settings_are_environment_as_inline_reads_it():
    env = Chart(settings={"IL_CPUS": 0.5, "IL_QUOTA": "1g",
                          "IL_RETENTION_SECONDS": 60480000}).env
    assert env["IL_CPUS"] == "0.5" and env["IL_QUOTA"] == "1g"
    assert env["IL_RETENTION_SECONDS"] == "60480000"


# ---- secrets ----

@test
def secrets_are_files_of_a_read_only_folder():
    chart = Chart(api__tokens="hash", librechat__existingSecret="keys")
    mounts = {each["mountPath"]: each
              for each in chart.container["volumeMounts"]}
    for key in ("IL_API_TOKENS_FILE", "IL_NODES_KEY_FILE",
                "IL_LIBRECHAT_KEYS_FILE"):
        folder = mounts[os.path.dirname(chart.env[key])]
        # by its folder, not by subPath: a change arrives
        assert folder["readOnly"] and "subPath" not in folder, folder
    made = chart.one("Secret", "inline-tokens")
    assert base64.b64decode(made["data"]["tokens"]) == b"hash"
    name = os.path.basename(chart.env["IL_API_TOKENS_FILE"])
    assert list(made["data"]) == [name], made["data"]


@test
def the_nodes_key_is_made_here():
    keys = {base64.b64decode(Chart().one("Secret")["data"]["key"])
            for _ in range(2)}
    assert len(keys) == 2
    for key in keys:
        assert re.fullmatch(rb"[0-9a-f]{64}", key), key


@test
def secrets_that_exist_are_taken_and_none_is_made():
    chart = Chart(**VARIANTS["existing secrets"])
    assert not chart.all("Secret")
    named = {each["name"]: each["secret"]["secretName"]
             for each in chart.node["volumes"] if "secret" in each}
    assert named == {"key": "key", "tokens": "tokens", "librechat": "keys"}


@test
def without_tokens_no_file_is_named():
    assert "IL_API_TOKENS_FILE" not in Chart().env


# ---- names and slots ----

@test
def the_table_names_each_node_by_its_service():
    chart = Chart(replicaCount=3)
    headless = chart.one("Service", "inline-nodes")["spec"]
    assert headless["clusterIP"] == "None"
    assert headless["publishNotReadyAddresses"] is True
    stateful = chart.one("StatefulSet")["spec"]
    assert stateful["serviceName"] == "inline-nodes"
    assert chart.table() == [
        f"node inline-{i} inline-{i}.inline-nodes.people.svc.cluster.local"
        for i in range(3)]
    assert chart.env["IL_NODE"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    other = Chart(nodes__clusterDomain="k8s.example").table()
    assert other == [
        "node inline-0 inline-0.inline-nodes.people.svc.k8s.example"]


@test
def a_node_joins_without_people_until_lines_give_it_some():
    chart = Chart(**VARIANTS["a node that joins"])
    assert [line.endswith(" joining") for line in chart.table()] == [
        False, False, False, True, False, False]
    assert chart.table()[4:] == ["slots 17,19,200-210 inline-3",
                                 "slots 4 inline-0"]
    assert "Nodes 3 to 3 are joining" in chart.notes


@test
def the_table_is_the_file_that_is_named():
    chart = Chart()
    volume, = [each["configMap"] for each in chart.node["volumes"]
               if each["name"] == "nodes"]
    assert volume == {"name": "inline-nodes",
                      "items": [{"key": "table", "path": "table"}]}
    mount, = [each for each in chart.container["volumeMounts"]
              if each["name"] == "nodes"]
    assert chart.env["IL_NODES"] == mount["mountPath"] + "/table"
    assert "subPath" not in mount


@test
def inline_takes_the_table():
    """The program that is started first reads it, as each node."""
    with tempfile.TemporaryDirectory(prefix="inline-chart-") as folder:
        for name, values in (("inline", VARIANTS["a node that joins"]),
                             ("r" * 53, {"replicaCount": 1000})):
            chart = Chart(name=name, **values)
            said = chart.one("ConfigMap")["data"]
            with open(folder + "/table", "w") as file:
                file.write(said["table"])
            with open(folder + "/key", "wb") as file:
                file.write(base64.b64decode(
                    chart.one("Secret")["data"]["key"]))
            os.chmod(folder + "/key", 0o600)
            last = chart.one("StatefulSet")
            node = f"{last['metadata']['name']}-{last['spec']['replicas'] - 1}"
            done = subprocess.run(
                [os.path.join(BUILD, "bin", "ilctl"), "nginx"],
                env={"IL_NODE": node, "IL_NODES": folder + "/table",
                     "IL_NODES_KEY_FILE": folder + "/key",
                     "IL_STATE_DIR": folder, "IL_BASE_DIR": folder},
                capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


# ---- who reaches whom ----

@test
def each_selector_takes_the_nodes_and_nothing_else():
    chart = Chart(**ALL)
    labels = {owner: labels for owner, labels, _ in chart.pods()}
    found = [(each["metadata"]["name"], each["spec"]["selector"])
             for kind in ("Service", "StatefulSet", "PodDisruptionBudget")
             for each in chart.all(kind)]
    assert len(found) == 5, found
    for name, selector in found:
        takes = [owner for owner in labels if selects(selector, labels[owner])]
        assert takes == ["StatefulSet"], (name, takes)


@test
def each_port_that_is_named_is_there():
    chart = Chart(**ALL)
    ports = {port["name"]: port["containerPort"]
             for each in chart.node["containers"] for port in each["ports"]}
    assert ports == {"http": 8080, "nodes": 8079, "eval": 8060}
    for service in chart.all("Service"):
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports, port


@test
def one_node_answers_though_it_is_not_ready_and_of_three_only_ready_ones():
    for count, all_of_them in (1, True), (3, False):
        front = Chart(replicaCount=count).one("Service", "inline")["spec"]
        assert front["publishNotReadyAddresses"] is all_of_them


def paths(chart):
    """(path, type) of what the ingress, or the route, brings."""
    for each in chart.all("Ingress"):
        for rule in each["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                assert backend == {"name": "inline", "port": {"name": "http"}}
                yield path["path"], path["pathType"].replace("Path", "")
    for each in chart.all("HTTPRoute"):
        for rule in each["spec"]["rules"]:
            assert rule["backendRefs"] == [{"name": "inline", "port": 80}]
            assert len(rule["matches"]) <= 8
            for match in rule["matches"]:
                path = match["path"]
                yield path["value"], path["type"].replace("Path", "")


@test
def interactions_come_in_and_apis_only_if_they_are_to():
    assert not list(paths(Chart()))
    route = {"httpRoute__enabled": True,
             "httpRoute__parentRefs": [{"name": "gateway"}]}
    ingress = VARIANTS["an ingress"]
    open_to_all = {"api__existingSecret": "tokens", "api__expose": True}
    for way in route, ingress:
        assert list(paths(Chart(**way))) == [("/interactions", "Exact")]
        brought = list(paths(Chart(**way, **open_to_all)))
        assert brought[0] == ("/interactions", "Exact")
        assert ("/eval", "Prefix") in brought
        for never in "/metrics", "/nodes", "/":
            assert not any(never == path for path, _ in brought), never
    listed = set(re.findall(r'^ROUTE\("[^"]*", "[A-Z]+", "(/[^"]+)"',
                            text("fcgi/api/routes.def"), re.M))
    assert "/v1/execute" in listed, listed
    brought = [path for path, _ in paths(Chart(**ingress, **open_to_all))]
    for path in listed - {"/metrics"}:
        assert path.startswith(("/nodes/", "/.")) or any(
            path == each or path.startswith(each + "/")
            for each in brought), f"{path} is not brought"


def rules(policy, way, port):
    """The peers of each rule of the policy for that port."""
    return [peer for rule in policy["spec"][way]
            if any(each["port"] == port for each in rule["ports"])
            for peer in rule["from" if way == "ingress" else "to"]]


@test
def nodes_reach_each_other_at_one_port():
    chart = Chart(replicaCount=3)
    policy = chart.one("NetworkPolicy")
    labels = chart.one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for way in "ingress", "egress":
        peer, = rules(policy, way, "nodes")
        assert list(peer) == ["podSelector"], peer
        wanted = peer["podSelector"]["matchLabels"]
        assert wanted.items() <= labels.items()
        assert wanted["app.kubernetes.io/component"] == "node", wanted


@test
def requests_come_from_the_ingress_and_metrics_from_who_monitors():
    def spaces(**values):
        policy = Chart(**values).one("NetworkPolicy")
        return [peer["namespaceSelector"]["matchLabels"][
            "kubernetes.io/metadata.name"] for peer in
            rules(policy, "ingress", "http") if "namespaceSelector" in peer]
    assert spaces() == ["ingress-nginx"]
    assert spaces(monitoring__serviceMonitor__enabled=True) == [
        "ingress-nginx", "monitoring"]


@test
def no_node_reaches_the_cluster_or_the_metadata_address():
    policy = Chart().one("NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    blocks = [peer["ipBlock"] for peer in rules(policy, "egress", 443)]
    # the cluster's, the metadata's, and those of usual pods and services
    for address in (METADATA, "10.96.0.1", "172.18.0.2", "192.168.49.2",
                    "100.64.0.1", "fd00::1", "fe80::1"):
        ip = ipaddress.ip_address(address)
        for block in blocks:
            within = ip.version == ipaddress.ip_network(block["cidr"]).version
            assert not within or any(
                ip in ipaddress.ip_network(each)
                for each in block["except"]), address
    assert rules(policy, "egress", 53) == [{"namespaceSelector": {
        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]


@test
def a_backup_reaches_nothing_and_nothing_reaches_it():
    chart = Chart(backup__enabled=True)
    policy = chart.one("NetworkPolicy", "inline-backup")["spec"]
    labels, = [labels for owner, labels, _ in chart.pods()
               if owner == "CronJob"]
    assert selects(policy["podSelector"], labels)
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy and "egress" not in policy


# ---- the sidecar ----

@test
def eval_without_a_token_is_off_and_has_the_name_of_snekbox():
    assert len(Chart().node["containers"]) == 1
    assert len(Chart().all("Service")) == 2
    chart = Chart(snekbox__enabled=True)
    service = chart.one("Service", "snekbox")["spec"]
    assert service["ports"] == [
        {"name": "eval", "port": 8060, "targetPort": "eval"}]
    assert rules(chart.one("NetworkPolicy"), "ingress", "eval") == [
        {"podSelector": {}}]
    files = chart.one("ConfigMap", "inline-snekbox")["data"]
    assert files == {
        "nginx.conf": text("systemd/kubernetes/snekbox.conf"),
        "start.sh": text("systemd/kubernetes/snekbox.sh")}


# ---- backup, monitoring ----

@test
def a_backup_is_made_beside_each_node_of_its_claim():
    chart = Chart(name="inline", backup__enabled=True, replicaCount=2,
                  backup__waitSeconds=5)
    template, = chart.one("StatefulSet")["spec"]["volumeClaimTemplates"]
    for i in range(2):
        job = chart.one("CronJob", f"inline-{i}-backup")["spec"]
        assert job["concurrencyPolicy"] == "Forbid"
        pod = job["jobTemplate"]["spec"]["template"]["spec"]
        near, = pod["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"]
        assert near["topologyKey"] == "kubernetes.io/hostname"
        assert near["labelSelector"]["matchLabels"][
            "statefulset.kubernetes.io/pod-name"] == f"inline-{i}"
        claims = {each["name"]: each["persistentVolumeClaim"]["claimName"]
                  for each in pod["volumes"]}
        assert claims == {
            "data": f"{template['metadata']['name']}-inline-{i}",
            "backup": f"backup-inline-{i}"}
        assert pod["containers"][0]["args"] == [
            "ilctl", "backup", "-w", "5", f"/backup/inline-{i}"]
        assert chart.one("PersistentVolumeClaim", f"backup-inline-{i}")
    shared = Chart(**VARIANTS["a backup into one claim"])
    assert not shared.all("PersistentVolumeClaim")


@test
def alerts_and_dashboard_are_those_of_every_host():
    chart = Chart(**VARIANTS["monitoring"])
    rule = chart.one("PrometheusRule")["spec"]
    assert rule == yaml.safe_load(text("systemd/monitoring/alerts.yml"))
    board = chart.one("ConfigMap", "inline-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["inline.json"]) == json.loads(
        text("systemd/monitoring/dashboard.json"))


@test
def prometheus_finds_each_node_once_as_the_job_of_the_rules():
    chart = Chart(**VARIANTS["monitoring"])
    spec = chart.one("ServiceMonitor")["spec"]
    found = [each for each in chart.all("Service")
             if selects(spec["selector"], each["metadata"]["labels"])]
    assert [each["metadata"]["name"] for each in found] == ["inline"]
    assert found[0]["metadata"]["labels"][spec["jobLabel"]] == "inline"
    assert 'job="inline"' in text("systemd/monitoring/alerts.yml")
    end, = spec["endpoints"]
    assert end["authorization"] == {"credentials": {
        "name": "prometheus", "key": "token"}}


# ---- the chart itself ----

@test
def its_version_is_the_trees():
    version = re.search(r"^VERSION := (\S+)$", text("GNUmakefile"), re.M)[1]
    said = yaml.safe_load(text("systemd/kubernetes/Chart.yaml"))
    assert said["appVersion"] == version
    assert Chart().container["image"] == "inline:" + version


@test
def notes_say_what_comes_next():
    notes = Chart().notes
    assert "port-forward inline-0 8080" in notes and "register" not in notes
    notes = Chart(discord__publicKey="a" * 64,
                  discord__applicationId="1" * 18,
                  **VARIANTS["an ingress"]).notes
    assert ("ilctl register --endpoint "
            "https://inline.example.org/interactions") in notes
    assert "Nobody may use the HTTP APIs" in notes
    assert "Nobody may" not in Chart(api__existingSecret="x").notes


run()
