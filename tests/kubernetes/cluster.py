# SPDX-License-Identifier: MIT
"""A release of the chart in a cluster, in a namespace of its own.

    with Release(3) as release:
        run = release.discord.send_command("py", code="print(1)",
                                           order=to(0))
        run.wait_final()

Everything is real but Discord, which is the stand-in in a pod of its own.
"""

import atexit
import base64
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "chart"))
import chart  # noqa: E402
from chart import FOLDER, helm, nested, yaml  # noqa: E402
from client import Standin  # noqa: E402
from discord import BALANCER, SERVICE, STANDIN, make_keys, to  # noqa: E402

# A test whose time is over leaves nothing, either.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

NAME = "inline"
IMAGE = os.environ.get("INLINE_IMAGE", "")
UPGRADE = os.environ.get("INLINE_UPGRADE", "")
MORE = os.environ.get("INLINE_VALUES", "")
EDGE = os.environ.get("INLINE_EDGE", "")
READY_SECONDS = 600
ASK_SECONDS = 15
LABEL = f"app.kubernetes.io/instance={NAME}"
# A node of 1.6 GiB: four of them fit on a host with two processors.
RESOURCES = {"requests": {"cpu": "100m", "memory": "1700Mi"},
             "limits": {"memory": "1700Mi"}}
SETTINGS = {"IL_CELLS": 4, "IL_MEMORY": "64m", "IL_TUNE_PIP_MEMORY": "128m",
            "IL_WORKERS": 3, "IL_API_CELLS": 2, "IL_API_SESSIONS": 1,
            "IL_API_MEMORY": "128m", "IL_TUNE_API_WARM": 1, "IL_TUNE_SPARE_CELLS": 0,
            "IL_QUOTA": "16m", "IL_USER_RATE": 1000}


def kubectl(*words, data=None, check=True, timeout=180):
    """What kubectl prints."""
    done = subprocess.run(["kubectl", *words], input=data, text=True,
                          capture_output=True, timeout=timeout)
    assert done.returncode == 0 or not check, (words, done.stderr)
    return done.stdout


def reason_to_skip():
    """Why there is no cluster for this test; None: there is one."""
    if not os.environ.get("KUBECONFIG"):
        return "KUBECONFIG names no cluster"
    if shutil.which("kubectl") is None:
        return "there is no kubectl"
    if not IMAGE:
        return "INLINE_IMAGE names no image that the cluster can pull"
    done = subprocess.run(["kubectl", "get", "nodes", "--request-timeout",
                           f"{ASK_SECONDS}s"], capture_output=True, text=True)
    if done.returncode != 0:
        return "no cluster answers: " + (done.stderr.strip() or "?"
                                         ).splitlines()[-1]
    return None


def need_cluster():
    """End the test, with the reason, where there is none."""
    reason = reason_to_skip()
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)


def wait_for(question, seconds=120, pause=0.5, what="it"):
    """Ask until it is so."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen in time"
        time.sleep(pause)


def split_image(name):
    """(repository, tag)."""
    repository, _, tag = name.rpartition(":")
    assert repository and "/" not in tag, f"{name}: REPOSITORY:TAG is wanted"
    return repository, tag


class Discord(Standin):
    """The stand-in's control, as the API server has it.  Through `kubectl
    port-forward` many requests at a time come to a standstill.
    """

    path = ""

    def http(self, method, path, *rest, **more):
        return super().http(method, self.path + path, *rest, **more)


class Release:
    """The chart, installed, from its namespace to its end."""

    def __init__(self, nodes, **values):
        self.space = f"inline-test-{os.getpid()}-{int(time.time())}"
        self.folder = tempfile.mkdtemp(prefix="inline-kubernetes-")
        repository, tag = split_image(IMAGE)
        self.values = nested(
            replicaCount=nodes, image__repository=repository, image__tag=tag,
            resources=RESOURCES,
            persistence__retain=False, persistence__size="8Gi",
            networkPolicy__extraIngress=[{"from": [{"podSelector": {
                "matchLabels": {"app": "discord"}}}]}],
            networkPolicy__extraEgress=[{"to": [{"podSelector": {
                "matchLabels": {"app": "discord"}}}]}])
        self.values["settings"] = dict(
            SETTINGS,
            IL_TUNE_DISCORD_API_BASE=f"http://discord.{self.space}:9000/api/v10")
        for source in nested(**values), self.more():
            self.merge(source)
        self.helm = None
        self.proxy = None
        self.discord = None
        self.token = self.metrics_token = None

    @staticmethod
    def more():
        """Values of whoever has the cluster."""
        if not MORE:
            return {}
        with open(MORE) as file:
            return yaml.safe_load(file) or {}

    def merge(self, source):
        """Add values to those that there are."""
        for key, value in source.items():
            old = self.values.get(key)
            self.values[key] = {**old, **value} if isinstance(
                old, dict) and isinstance(value, dict) else value

    # Its life

    def __enter__(self):
        atexit.register(self.close)
        self.create()
        self.start_discord()
        self.make_tokens()
        self.helm.install(FOLDER, NAME, self.values)
        self.wait_ready()
        return self

    def __exit__(self, kind, error, _):
        if kind is not None and not (kind is SystemExit and not error.code):
            self.show()
        self.close()

    def create(self):
        """The namespace, in which privileged pods may be."""
        kubectl("create", "namespace", self.space)
        kubectl("label", "namespace", self.space,
                "pod-security.kubernetes.io/enforce=privileged")
        self.helm = helm.Config(namespace=self.space)

    def upgrade(self, **values):
        """helm upgrade with these values on top."""
        self.merge(nested(**values))
        self.helm.upgrade(FOLDER, NAME, self.values)

    def uninstall(self):
        """helm uninstall; returns what is there of it afterwards."""
        self.helm.uninstall(NAME)
        kinds = ("pods,statefulsets,services,secrets,configmaps,"
                 "persistentvolumeclaims,cronjobs,jobs,ingresses,"
                 "networkpolicies,poddisruptionbudgets,serviceaccounts")

        def left():
            return self.get(kinds, "-l", LABEL)["items"]
        wait_for(lambda: not left(), 300, what="an end of everything")
        return left()

    def close(self):
        """Remove all of it."""
        atexit.unregister(self.close)
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        if self.helm:
            self.helm.close()
        kubectl("delete", "namespace", self.space, "--wait=true",
                check=False, timeout=600)
        shutil.rmtree(self.folder, ignore_errors=True)

    def show(self):
        """The ends of the logs, for who looks for a fault."""
        said = self.ask("get", "pods", "-o", "wide", check=False)
        said += self.ask("get", "events", check=False)
        for pod in self.pods():
            said += self.ask("logs", pod, "--tail=30", "--all-containers",
                             check=False)
        for line in said.splitlines():
            print("# " + line, flush=True)

    # What is in there

    def ask(self, *words, **more):
        """kubectl in the namespace."""
        return kubectl("--namespace", self.space, *words, **more)

    def get(self, *words):
        """An object, or a list of them."""
        return json.loads(self.ask("get", *words, "-o", "json"))

    def apply(self, text):
        self.ask("apply", "-f", "-", data=text)

    def run_in(self, node, *words, **more):
        """What a command in a node's container prints."""
        return self.ask("exec", f"{NAME}-{node}", "-c", NAME, "--", *words,
                        **more)

    def sql(self, node, text):
        """Rows of a node's database."""
        return json.loads(self.run_in(
            node, "python3", "-c", "import json, sqlite3, sys\n"
            "db = sqlite3.connect('/srv/inline/database/inline.db', 30)\n"
            "print(json.dumps(db.execute(sys.argv[1]).fetchall()))", text))

    def pods(self):
        """Names of the nodes' pods."""
        return [each["metadata"]["name"] for each in self.get(
            "pods", "-l", LABEL + ",app.kubernetes.io/component=node")[
                "items"]]

    def pod(self, node):
        """The pod of a node; None: there is none now."""
        found = [each for each in self.get("pods", "-l", LABEL)["items"]
                 if each["metadata"]["name"] == f"{NAME}-{node}"]
        return found[0] if found else None

    def restarts(self, node):
        """How often its own container was started again."""
        return next(each["restartCount"] for each in
                    self.pod(node)["status"]["containerStatuses"]
                    if each["name"] == NAME)

    def is_ready(self, node):
        """As Kubernetes sees it."""
        pod = self.pod(node)
        return bool(pod) and "deletionTimestamp" not in pod["metadata"] and \
            any(each["type"] == "Ready" and each["status"] == "True"
                for each in pod["status"].get("conditions", []))

    def wait_ready(self, seconds=READY_SECONDS):
        """Until all of the newest version are."""
        self.ask("rollout", "status", f"statefulset/{NAME}",
                 f"--timeout={seconds}s", timeout=seconds + 60)

    # Discord, and programs

    def start_discord(self):
        """The stand-in in a pod, with a key of this test's."""
        key = os.path.join(self.folder, "key")
        keys = make_keys(key)
        self.merge({"discord": {"publicKey": keys["DISCORD_PUBLIC_KEY"],
                                "applicationId": keys[
                                    "DISCORD_APPLICATION_ID"]}})
        with open(key, "rb") as file:
            secret = base64.b64encode(file.read()).decode()
        pod = yaml.safe_load(STANDIN % {"image": IMAGE})
        pod["spec"]["volumes"].append(
            {"name": "secret", "secret": {"secretName": "discord"}})
        self.apply(yaml.safe_dump_all([
            {"apiVersion": "v1", "kind": "Secret",
             "metadata": {"name": "discord"}, "data": {"key": secret}},
            {"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": "balancer"}, "data": {
                 "nginx.conf": BALANCER % {
                     "name": NAME, "space": self.space,
                     "edge": EDGE or "127.0.0.1:1"}}},
            pod, yaml.safe_load(SERVICE)]))
        self.ask("wait", "--for=condition=Ready", "pod/discord",
                 "--timeout=300s", timeout=360)
        self.proxy = subprocess.Popen(
            ["kubectl", "proxy", "--port=0"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE)
        ready, _, _ = select.select([self.proxy.stdout], [], [], 60)
        line = self.proxy.stdout.readline().decode() if ready else ""
        port = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert port, f"kubectl proxy: {line}"
        self.discord = Discord()
        self.discord.port = int(port[1])
        self.discord.path = (f"/api/v1/namespaces/{self.space}"
                             "/pods/discord:9000/proxy")

    def make_tokens(self):
        """One for programs and one for Prometheus, before anything starts."""
        said = self.ask(
            "exec", "discord", "-c", "balancer", "--", "sh", "-c",
            "for name in alice prometheus snekbox; do ilctl token -f /tmp/tokens add "
            "$name; done; echo; cat /tmp/tokens")
        made, _, lines = said.partition("\n\n")
        self.token, self.metrics_token, snekbox = re.findall(
            r"il_[0-9a-f]{64}", made)
        for name, token in (("snekbox-token", snekbox),
                            ("metrics-token", self.metrics_token)):
            self.ask("create", "secret", "generic", name,
                     "--from-literal=token=" + token)
        self.merge({"api": {"tokens": lines}})

    @property
    def bearer(self):
        """A program's token, for curl."""
        return "-H", "Authorization: Bearer " + self.token

    def curl(self, *words, timeout=120, check=True):
        """A request of a pod beside the nodes: (status, text)."""
        said = self.ask("exec", "discord", "-c", "balancer", "--", "curl",
                        "-sS", "-m", str(timeout), "-w", "\n%{http_code}",
                        *words, timeout=timeout + 30, check=check)
        text, _, status = said.rpartition("\n")
        return int(status or 0), text

    def post(self, url, body, *words, **more):
        """The same with a JSON body."""
        return self.curl(url, "-H", "Content-Type: application/json", "-d",
                         json.dumps(body), *words, **more)


def code(mark, seconds):
    """Code that leaves its mark where a second run of it would be seen."""
    return ("import os, time\n"
            "with open('marks', 'a') as file:\n"
            f"    file.write('{mark}\\n'); file.flush()\n"
            "    os.fsync(file.fileno())\n"
            f"time.sleep({seconds})\n"
            f"print('end of {mark}')")


class Load:
    """People who send one command after the other, and programs that run code,
    until they are told to end; and what has to be true of all of it.
    """

    def __init__(self, release, people, programs=0, seconds=(0, 1, 4)):
        self.release, self.people, self.seconds = release, people, seconds
        self.programs = programs
        # Of this load alone: what an earlier one ran is in the same files.
        self.name = f"{time.monotonic_ns():x}"
        self.sent = {}
        self.answers = []
        self.errors = []
        self.ended = threading.Event()
        self.threads = []

    def __enter__(self):
        self.threads = [threading.Thread(target=self.guard, daemon=True,
                                         args=(self.person, user))
                        for user in self.people]
        self.threads += [threading.Thread(target=self.guard, daemon=True,
                                          args=(self.program, ""))
                         for _ in range(self.programs)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(300)
        if kind is None:
            assert not any(thread.is_alive() for thread in self.threads)
            assert not self.errors, self.errors

    def guard(self, what, user):
        try:
            what(user)
        except Exception as error:      # told at the end
            self.errors.append(f"{user or 'program'}: {error!r}")

    def person(self, user):
        turn = 0
        while not self.ended.is_set():
            mark = f"{self.name}.{user}.{turn}"
            one = self.release.discord.send_command(
                "py", user=user, code=code(
                    mark, self.seconds[turn % len(self.seconds)]))
            self.sent[mark] = one
            turn += 1
            one.wait_answered(60)
            if self.is_acknowledged(mark):
                one.wait_final(timeout=240)
            else:
                self.ended.wait(1)  # as who reads first

    def program(self, _):
        while not self.ended.is_set():
            self.answers.append(self.release.post(
                f"http://{NAME}/eval", {"input": "import time; "
                                        "time.sleep(2); print(1)"},
                *self.release.bearer, check=False))

    def is_acknowledged(self, mark):
        """Was its sender promised something?  Words that refuse promise
        nothing.
        """
        one = self.sent[mark]
        return one.state == "answered" and (
            one.answer_type == 5 or f"end of {mark}" in str(one.answer))

    def assert_told_once(self, *allowed):
        """Each that was acknowledged has one end, of these kinds."""
        bad, ends = [], {}
        for mark in [each for each in self.sent if self.is_acknowledged(each)]:
            one = self.sent[mark].refresh()
            said = [str(one.answer)] if one.answer_type == 4 else []
            edits = [str(request["payload"]) for request in
                     self.release.discord.requests(interaction=one.id)
                     if request["route"] in ("edit", "followup") and
                     request["status"] == 200 and
                     "'cancel:" not in str(request["payload"])]
            kinds = {"results" if f"end of {mark}" in text else
                     "interrupted" if "nterrupted" in text else
                     "not run" if "nothing was run" in text else text[:90]
                     for text in said + edits}
            if len(kinds) != 1 or not kinds <= set(allowed):
                bad.append((mark, said, edits))
            for kind in kinds:
                ends[kind] = ends.get(kind, 0) + 1
        print(f"# {len(self.sent)} commands, ends told: {ends}", flush=True)
        assert ends and not bad, bad

    def assert_answered(self):
        """Discord got an answer to each, in time; nobody was told of a fault."""
        bad = [one.refresh() for one in self.sent.values()]
        bad = [one for one in bad if one.state != "answered"]
        assert self.sent and not bad, bad

    def assert_not_cut(self):
        """Each answer of the APIs came whole."""
        print(f"# {len(self.answers)} runs of programs", flush=True)
        bad = [each for each in self.answers if each[0] != 200 or
               json.loads(each[1])["stdout"] != "1\n"]
        assert self.answers and not bad, bad

    def assert_ran_once(self):
        """What their files say, by the marks."""
        marks = []
        for user in self.people:
            said = self.release.discord.send_command(
                "py", user=user, code="import collections\n"
                "found = collections.Counter(open('marks').read().split())\n"
                "print('twice:', [m for m in found if found[m] > 1])")
            said.wait_final(match="twice: \\[\\]")
            marks.append(user)
        assert marks == list(self.people)


def spread(release, nodes, each=2):
    """{user: node} with so many people of each node, who have a sandbox."""
    found = {}
    wanted = {node: each for node in range(nodes)}
    for number in range(200):
        if not any(wanted.values()):
            return found
        user = f"person{number}"
        one = release.discord.send_command("py", user=user,
                                           code="open('here', 'w')")
        one.wait_final()
        node = node_of(release, one, range(nodes))
        if wanted[node]:
            wanted[node] -= 1
            found[user] = node
    raise AssertionError(f"no people of nodes {wanted}")


def node_of(release, one, nodes):
    """The only node that has the job of an interaction."""
    has = [node for node in nodes if release.sql(
        node, "SELECT 1 FROM jobs WHERE interaction_id = " + one.id)]
    assert len(has) == 1, (one, has)
    return has[0]


need_cluster()
