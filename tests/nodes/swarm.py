# SPDX-License-Identifier: MIT
"""Three hosts in a swarm, as systemd/swarm/README.md says: the engine and
il-sandboxd are the hosts', all else is services of stack.yaml."""

import os
import secrets

from engine import spread
from hosts import NETWORK, ROOT, wait_for
from node import Nodes

STACK = os.path.join(ROOT, "systemd", "swarm", "stack.yaml")
PROGRAMS = "inline-nodes"       # the image that check.sh makes
SERVICES = 7
# What `make install`, systemd-sysusers and systemd-tmpfiles do on a host.
PREPARE = """
    mkdir -p /run/root/etc
    cp /etc/passwd /etc/group /etc/shadow /etc/gshadow /run/root/etc
    systemd-sysusers --root=/run/root - <"$1/systemd/inline.sysusers"
    mount --bind /run/root/etc/passwd /etc/passwd
    mount --bind /run/root/etc/group /etc/group
    systemd-tmpfiles --create --prefix=/run/inline --prefix=/var/lib/inline \\
        --prefix=/var/lib/inline-api "$1/systemd/inline.tmpfiles"
    mkdir /run/inline-tokens"""


class Swarm(Nodes):
    """The nodes as a swarm with the stack on it."""

    def __init__(self, **settings):
        super().__init__(3, start=False, tls=True, IL_NODES=",".join(
            f"n{i}={NETWORK}{i}" for i in (1, 2, 3)), **settings)

    def __enter__(self):
        super().__enter__()
        try:
            self.set_up()
        except BaseException:
            self.show()
            raise
        return self

    def set_up(self):
        """Users, folders, brokers, the swarm, its secrets, the stack."""
        engines = [node.engine for node in self]
        self.image = spread(engines, PROGRAMS, "inline:1")
        for node in self:
            node.host.run("sh", "-ec", PREPARE, "sh", ROOT)
            self.start_broker(node)
        first = engines[0]
        first.docker("swarm", "init", "--advertise-addr", self[0].host.address)
        token = first.docker("swarm", "join-token", "-q", "manager").strip()
        for node in self.nodes[1:]:
            node.engine.docker("swarm", "join", "--advertise-addr",
                               node.host.address, "--token", token,
                               self[0].host.address + ":2377")
        address = self.postgres.address.replace("/run/inline-db.pem",
                                                "/etc/inline/db-ca.pem")
        first.docker("secret", "create", "inline-database", "-", text=address)
        tls = self.postgres.authority
        tls.issue("inline.test", self[0].host.address)
        for name, path in (("inline-tls-cert", "inline.test.pem"),
                           ("inline-tls-key", "inline.test.key")):
            first.docker("secret", "create", name, tls.path(path))
        first.docker("secret", "create", "inline-nodes-key", "-",
                     text=secrets.token_hex(32))
        first.docker("config", "create", "inline-db-ca", tls.path("ca.pem"))
        self.deploy(self.image)
        self.wait_answers()

    def start_broker(self, node):
        """il-sandboxd, with what its unit gives it, and a right more: without
        udev nobody has given loop devices to the group disk.
        """
        right = "-all,+dac_override"
        node.host.start(
            "inline", "setpriv", "--reuid", "il-sandboxd", "--regid",
            "il-sandboxd", "--groups", "docker,disk", "--inh-caps=" + right,
            "--ambient-caps=" + right, "--bounding-set=" + right,
            "--no-new-privs", "--",
            "/srv/inline/bin/il-sandboxd",
            env={**node.settings(), "IL_DATABASE_FILE": "",
                 "IL_API_FILES": "/var/lib/inline-api/files",
                 "DOCKER_CONFIG": "/nonexistent"})

    def deploy(self, image):
        """docker stack deploy, and until all of it runs."""
        own = {"IL_NODE", "IL_STATE_DIR", "IL_BASE_DIR", "IL_DATABASE_FILE",
               "IL_HTTP_PORT", "IL_HTTP_GATEWAY", "IL_API_FILES"}
        self[0].write("/run/inline.env", "".join(
            f"{key}={value}\n" for key, value in self[0].settings().items()
            if key not in own))
        self[0].engine.docker(
            "stack", "deploy", "-c", STACK, "inline", timeout=300,
            env={"INLINE_ENV": "/run/inline.env", "INLINE_IMAGE": image,
                 "INLINE_TOKENS": "/run/inline-tokens"})
        wait_for(lambda: self.is_up(image), 300,
                 what=lambda: "the stack: " + self.tasks())

    def wait_answers(self):
        """A task that runs may still begin: nginx writes its configuration,
        whoever has the database brings it up to date.
        """
        wait_for(lambda: all(
            node.host.ask("curl", "-sf", "http://127.0.0.1:8080/health")[0] == 0
            and node.host.pids_everywhere("il-worker") for node in self),
            what=self.tasks)

    def is_up(self, image):
        """Do all services run on all hosts, from this image?"""
        lines = self[0].engine.docker(
            "service", "ls", "--format",
            "{{.Replicas}} {{.Image}}").splitlines()
        states = self[0].engine.docker(
            "service", "inspect", "--format",
            "{{if .UpdateStatus}}{{.UpdateStatus.State}}{{end}}",
            *self.services()).split()
        return len(lines) == SERVICES and all(
            line.split() == ["3/3", image] for line in lines) and \
            set(states) <= {"completed"}

    def services(self):
        """Their names."""
        return self[0].engine.docker("service", "ls", "-q").split()

    def tasks(self):
        """What the swarm says of all tasks."""
        return self[0].engine.docker(
            "stack", "ps", "--no-trunc", "--format",
            "{{.Name}} {{.Node}} {{.CurrentState}} {{.Error}}", "inline")

    def show(self):
        """The ends of the programs' logs, too."""
        super().show()
        for node in self:
            status, names = node.host.ask("docker", "ps", "-a", "--format",
                                          "{{.Names}}")
            for name in names.split() if status == 0 else []:
                if not name.startswith("inline_"):
                    continue
                said = node.host.ask("docker", "logs", "--tail", "8", name)[1]
                for line in said.splitlines():
                    print(f"# {node.name} {name[:20]} {line}", flush=True)
