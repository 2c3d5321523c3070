# SPDX-License-Identifier: MIT
"""Pods of the chart, run by Docker as a kubelet runs them: one network for the
containers of a pod, rights and mounts as the manifests say, Secrets as links in a
folder that nobody may write, an end by preStop and SIGTERM.

    with Namespace(Chart(...)) as space:
        pod = space.start("StatefulSet", "inline-0")
        pod.wait("startupProbe")
"""

import base64
import os
import shutil
import subprocess
import tempfile
import threading
import time

from house import INLINE, docker, inside

KILL_SECONDS = 30  # of Kubernetes, where a pod does not say


def flags(rights):
    """Options of `docker run` for a securityContext; all of it is known."""
    known = {"privileged", "runAsNonRoot", "runAsUser", "runAsGroup",
             "allowPrivilegeEscalation", "readOnlyRootFilesystem",
             "capabilities", "seccompProfile"}
    assert set(rights) <= known, rights
    if rights.get("privileged"):
        assert len(rights) == 1, rights
        return inside()
    words = []
    user = rights.get("runAsUser")
    assert user or not rights.get("runAsNonRoot"), rights
    if user is not None:
        words += ["--user", f"{user}:{rights.get('runAsGroup', user)}"]
    if rights.get("readOnlyRootFilesystem"):
        words.append("--read-only")
    if rights.get("allowPrivilegeEscalation") is False:
        words += ["--security-opt", "no-new-privileges"]
    for way, option in ("drop", "--cap-drop"), ("add", "--cap-add"):
        for each in rights.get("capabilities", {}).get(way, ()):
            words += [option, each]
    return words, (), ()


class Namespace:
    """A network with the names of the chart's Services, and its volumes."""

    def __init__(self, chart):
        self.chart = chart
        self.folder = tempfile.mkdtemp(prefix="inline-pods-")
        os.chmod(self.folder, 0o755)
        self.mark = os.path.basename(self.folder).replace("_", "-")
        self.volumes = set()
        self.pods = []

    def __enter__(self):
        docker("network", "create", self.mark)
        return self

    def __exit__(self, kind, error, _):
        if kind is not None and not (kind is SystemExit and not error.code):
            for pod in self.pods:
                pod.show()
        for pod in self.pods:
            pod.remove()
        for name in self.volumes:
            docker("volume", "rm", "--force", name, check=False)
        docker("network", "rm", self.mark, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, kind, name):
        """The pod of a StatefulSet, a CronJob or a test, under that name."""
        labels, spec = next(
            (labels, spec) for owner, labels, spec in self.chart.pods()
            if owner == kind)
        pod = Pod(self, name, labels, spec)
        self.pods.append(pod)
        return pod.start()

    def folder_of(self, kind, name, items=None):
        """A ConfigMap or a Secret as a kubelet lays it out."""
        data = self.chart.one(kind, name)["data"]
        folder = os.path.join(self.folder, f"{kind}-{name}")
        if os.path.exists(folder):
            return folder
        os.makedirs(folder + "/..2026_11")
        os.symlink("..2026_11", folder + "/..data")
        for key, text in data.items():
            if items and not any(each["key"] == key for each in items):
                continue
            with open(f"{folder}/..data/{key}", "wb") as file:
                file.write(base64.b64decode(text) if kind == "Secret" else
                           text.encode())
            os.symlink("..data/" + key, f"{folder}/{key}")
        return folder


class Pod:
    """Containers that share a network."""

    def __init__(self, space, name, labels, spec):
        self.space, self.name, self.spec = space, name, spec
        self.labels = labels
        self.network = f"{space.mark}-{name}"

    def start(self):
        aliases = []
        for service in self.space.chart.all("Service"):
            wanted = service["spec"]["selector"]
            if all(self.labels.get(key) == value
                   for key, value in wanted.items()):
                alias = service["metadata"]["name"]
                name = f"{self.name}.{alias}"
                aliases += [alias, name, name + ".people.svc.cluster.local"]
        docker("run", "--detach", "--name", self.network, "--hostname",
               self.name, "--network", self.space.mark,
               *[word for each in aliases for word in (
                   "--network-alias", each)],
               "--entrypoint", "sleep", INLINE, "infinity")
        for container in self.spec["containers"]:
            self.begin(container)
        return self

    def of(self, container):
        return f"{self.network}-{container['name']}"

    def begin(self, container):
        """docker run, as the manifest says."""
        options, entry, command = flags(container["securityContext"])
        words = list(container.get("command", ())) + list(
            container.get("args", ()))
        if "command" in container:
            assert not entry, "a privileged container has its own command"
            entry, words = ("--entrypoint", words[0]), words[1:]
        for each in container.get("env", ()):
            field = each.get("valueFrom", {}).get("fieldRef")
            assert field in (None, {"fieldPath": "metadata.name"}), each
            options = [*options, "--env", "%s=%s" % (
                each["name"], self.name if field else each["value"])]
        for each in container.get("volumeMounts", ()):
            options = [*options, *self.mount(each)]
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        if limit:
            options = [*options, "--memory", limit.replace("Mi", "m").replace(
                "Gi", "g")]
        assert self.spec["enableServiceLinks"] is False
        docker("run", "--detach", "--name", self.of(container), "--network",
               f"container:{self.network}", *options, *entry, INLINE,
               *command, *words)

    def mount(self, wanted):
        """--mount of a volume of the pod, or of its claim."""
        volume = next((each for each in self.spec.get("volumes", ())
                       if each["name"] == wanted["name"]), None)
        options = f"dst={wanted['mountPath']}"
        if wanted.get("readOnly"):
            options += ",readonly"
        if volume is None:  # a StatefulSet's template
            claim = f"{wanted['name']}-{self.name}"
        elif "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
        elif "emptyDir" in volume:
            return ["--tmpfs", wanted["mountPath"] + ":mode=1777"]
        else:
            if "configMap" in volume:
                source = self.space.folder_of(
                    "ConfigMap", volume["configMap"]["name"],
                    volume["configMap"].get("items"))
            elif "secret" in volume:
                source = self.space.folder_of(
                    "Secret", volume["secret"]["secretName"])
            else:
                source = volume["hostPath"]["path"]
            return ["--mount", f"type=bind,src={source},{options}"]
        name = f"{self.space.mark}-{claim}"
        self.space.volumes.add(name)
        return ["--mount", f"type=volume,src={name},{options}"]

    def container(self, name):
        return next(each for each in self.spec["containers"]
                    if each["name"] == name)

    def run_in(self, name, *words):
        """What a command in a container prints."""
        return docker("exec", self.of(self.container(name)), *words)

    def says_yes(self, name, probe):
        """Does this probe of a container pass?"""
        wanted = self.container(name)[probe]
        assert self.state(name, "Running") == "true", self.logs(name)
        try:
            return subprocess.run(
                ["docker", "exec", self.of(self.container(name)),
                 *wanted["exec"]["command"]], capture_output=True,
                timeout=wanted["timeoutSeconds"]).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def state(self, name, field):
        """What the engine says of a container."""
        return docker("inspect", "--format", "{{.State.%s}}" % field,
                      self.of(self.container(name))).strip()

    def wait_ended(self, name, seconds=120):
        """Its exit status."""
        done = subprocess.run(["docker", "wait", self.of(self.container(name))],
                              capture_output=True, text=True, timeout=seconds)
        return int(done.stdout)

    def logs(self, name):
        done = subprocess.run(["docker", "logs", "--tail", "100",
                               self.of(self.container(name))],
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def show(self):
        """What all of it has said."""
        for each in self.spec["containers"]:
            for line in self.logs(each["name"]).splitlines():
                print(f"# {self.name} {each['name']}: {line}", flush=True)

    def end(self):
        """As it is deleted: preStop, then SIGTERM, for all of its containers at
        the same time; returns the seconds that it took.
        """
        begun = time.monotonic()
        grace = self.spec.get("terminationGracePeriodSeconds", KILL_SECONDS)
        threads = [threading.Thread(target=self.end_container,
                                    args=(each, begun + grace))
                   for each in self.spec["containers"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - begun

    def end_container(self, container, deadline):
        before = container.get("lifecycle", {}).get("preStop")
        if before:
            subprocess.run(["docker", "exec", self.of(container),
                            *before["exec"]["command"]], capture_output=True,
                           timeout=deadline - time.monotonic())
        left = max(1, int(deadline - time.monotonic()))
        subprocess.run(["docker", "stop", "--time", str(left),
                        self.of(container)], capture_output=True,
                       timeout=left + 60)

    def remove(self):
        for name in [*map(self.of, self.spec["containers"]), self.network]:
            docker("rm", "--force", "--volumes", name, check=False)
