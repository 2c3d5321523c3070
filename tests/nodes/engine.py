# SPDX-License-Identifier: MIT
"""A Docker engine on a host, and the registry that it has its images from.

An engine's images stay in the cache for the next test; what else it kept is
taken away before it starts.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from hosts import CGROUP, HUB, cache, wait_for

REGISTRY = HUB + ":5000"
IMAGE = os.environ.get("SANDBOX_IMAGE", "inline-python:3.11")
CONFIG = """version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: true}
http: {addr: "%s"}
"""


def start_registry():
    """Debian's docker-registry, on the hub."""
    folder = os.path.join(cache(), "registry")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(cache(), "registry.yml")
    with open(path, "w") as file:
        file.write(CONFIG % (folder, REGISTRY))
    with open(os.path.join(cache(), "registry.log"), "wb") as log:
        subprocess.Popen(["docker-registry", "serve", path],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    wait_for(lambda: subprocess.run(
        ["curl", "-fsS", f"http://{REGISTRY}/v2/"],
        capture_output=True).returncode == 0, what="docker-registry")


class Engine:
    """dockerd on a host, at its usual place there."""

    def __init__(self, host, number):
        self.host = host
        self.data = os.path.join(cache(), f"engine{number}")
        self.clean()
        self.start()

    def clean(self):
        """Images stay; containers and volumes of old do not."""
        for name in ("containers", "volumes", "network", "containerd",
                     "runtimes", "plugins"):
            shutil.rmtree(os.path.join(self.data, name), ignore_errors=True)

    def start(self):
        """Start it; returns once it answers.  No bridge: a cell has no network.
        """
        os.makedirs(self.data, exist_ok=True)
        self.host.run("mkdir", "-p", "/var/lib/docker")
        self.host.run("mount", "--bind", self.data, "/var/lib/docker")
        self.launch()

    def launch(self):
        """Its process alone, on data that is mounted."""
        self.host.start(
            "dockerd", "dockerd", "--bridge=none", "--iptables=false",
            "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
            "--log-level=warn", "--cgroup-parent=/" + CGROUP,
            "--insecure-registry=" + REGISTRY)
        wait_for(lambda: self.host.ask("docker", "version")[0] == 0,
                 what=self.host.name + ": dockerd")

    def docker(self, *words, **options):
        """The Docker CLI on that host."""
        return self.host.run("docker", *words, **options)

    def has(self, image):
        """The id of an image, or "": it is not here."""
        status, said = self.host.ask("docker", "image", "inspect", "--format",
                                     "{{.Id}}", image)
        return said.strip() if status == 0 else ""


def outer_id(image):
    """The same of the machine's own engine, where images are made."""
    return subprocess.run(
        ["docker", "image", "inspect", "--format", "{{.Id}}", image],
        check=True, capture_output=True, text=True).stdout.strip()


def spread(engines, image, tag=None):
    """Get an image of the machine's to all engines: into the first one by an
    archive, then by the registry, under the name that it has here.
    """
    wanted = outer_id(image)
    name = f"{REGISTRY}/{tag or image}"
    first, others = engines[0], engines[1:]
    if first.has(image) != wanted:
        archive = os.path.join(cache(), "image.tar")
        subprocess.run(["docker", "save", "-o", archive, image], check=True)
        first.docker("load", "-q", "-i", archive, timeout=900)
        os.unlink(archive)
    first.docker("tag", image, name)
    first.docker("push", "-q", name, timeout=900)
    lacking = [engine for engine in others if engine.has(image) != wanted]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda engine: engine.docker("pull", "-q", name,
                                                   timeout=900), lacking))
    for engine in lacking:
        engine.docker("tag", name, image)
    return name
