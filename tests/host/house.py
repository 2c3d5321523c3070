# SPDX-License-Identifier: MIT
"""What is made once and kept: the disk of a Debian, and a disk with Inline on
it as the documentation says; and the session in which tests find a machine.

    build/host/KEY, KEY.pub         to reach all machines
    build/host/COMMIT.bundle        what is installed
    build/host/SUITE-HASH/          a Debian (root.sh), by its recipe
    build/host/SUITE-HASH-HASH/     with packages and programs (ahead.sh)
    …/installed-HASH/               Inline on it, by its commit and image
    build/host/SUITE/               the machine that runs: its disk and logs
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile

from machine import HERE, HOST, Machine, clean, overlay
from steps import NAME, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
from client import Standin  # noqa: E402  (needs the path above)
from keys import load_identity  # noqa: E402

SUITES = {"bookworm": 12, "trixie": 13}
ENV = "/etc/inline/inline.env"
TLS = "/etc/letsencrypt/live/" + NAME
ANSWER_SECONDS = 20     # the stand-in's deadline: emulation is slow


def cache():
    """Where everything is kept."""
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    folder = os.path.join(os.path.abspath(build), "host")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def digest(*parts):
    """A short hash of texts and of files' contents."""
    total = hashlib.sha256()
    for part in parts:
        if os.path.exists(part):
            with open(part, "rb") as file:
                part = file.read()
        else:
            part = part.encode()
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()[:12]


def output(*command):
    """What a command of this machine prints."""
    return subprocess.run(command, check=True, capture_output=True,
                          text=True, cwd=ROOT).stdout.strip()


def ssh_key():
    """The path of the private key."""
    path = os.path.join(cache(), "key")
    if not os.path.exists(path):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
                        "check-host", "-f", path], check=True)
    return path


def made(folder, *command):
    """A folder with a disk, which the command makes when it is missing."""
    if not os.path.exists(os.path.join(folder, "base.img")):
        print(f"# making {os.path.basename(folder)}", flush=True)
        os.makedirs(folder, exist_ok=True)
        subprocess.run([*command, folder], check=True)
    return folder


def debian(suite, authority):
    """The folder with the disk of a suite."""
    recipe = os.path.join(HERE, "root.sh")
    key = ssh_key() + ".pub"
    ca = authority.path("ca.pem")
    return made(os.path.join(cache(), f"{suite}-{digest(recipe, key, ca)}"),
                recipe, suite, key, ca)


def debian_ahead(base, bundle):
    """The same with packages and programs, made outside of the machine."""
    recipe = os.path.join(HERE, "ahead.sh")
    return made(f"{base}-{digest(recipe, bundle)}", recipe, base, bundle)


def make_bundle(commit):
    """The path of a git bundle whose branch check-host is this commit."""
    path = os.path.join(cache(), commit[:12] + ".bundle")
    if not os.path.exists(path):
        output("git", "branch", "-f", "check-host", commit)
        output("git", "bundle", "create", "-q", path + ".new", "check-host")
        output("git", "branch", "-D", "check-host")
        os.rename(path + ".new", path)
    return path


class Authority:
    """Certificates of our own, in the place of a public authority's."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(self.path("fullchain.pem")):
            self.make()

    def path(self, name):
        """One of its files."""
        return os.path.join(self.folder, name)

    def make(self):
        """An authority, and a certificate for our name and this machine's
        way to it.
        """
        with open(self.path("ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName=DNS:{NAME},IP:127.0.0.1,IP:{HOST}\n"
                       "authorityKeyIdentifier=keyid\n")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                 "-nodes")
        output("openssl", "req", "-x509", *curve, "-days", "3650", "-subj",
               "/CN=check-host", "-keyout", self.path("ca.key"), "-out",
               self.path("ca.pem"))
        output("openssl", "req", *curve, "-subj", f"/CN={NAME}", "-keyout",
               self.path("privkey.pem"), "-out", self.path("request.pem"))
        output("openssl", "x509", "-req", "-in", self.path("request.pem"),
               "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"),
               "-CAcreateserial", "-days", "3000", "-extfile",
               self.path("ext"), "-out", self.path("cert.pem"))
        with open(self.path("fullchain.pem"), "w", encoding="ascii") as chain:
            for name in ("cert.pem", "ca.pem"):
                with open(self.path(name), encoding="ascii") as file:
                    chain.write(file.read())

    def text(self, name):
        """The content of one of its files."""
        with open(self.path(name), encoding="ascii") as file:
            return file.read()


class House:
    """A suite, a commit, an image: the disk with all of it, and what outlives
    the machine.
    """

    def __init__(self, suite, commit="HEAD"):
        self.suite = suite
        self.commit = output("git", "rev-parse", commit + "^{commit}")
        self.image = os.environ["SANDBOX_IMAGE"]
        self.authority = Authority(os.path.join(cache(), "authority"))
        self.identity = os.path.join(cache(), "standin.key")
        load_identity(self.identity, 5 * 10**17)
        self.bundle = make_bundle(self.commit)
        self.base = debian(suite, self.authority)
        if os.environ.get("QUICK"):
            self.base = debian_ahead(self.base, self.bundle)
        image_id = output(os.environ.get("DOCKER_BINARY", "docker"), "image",
                          "inspect", "--format", "{{.Id}}", self.image)
        files = [os.path.join(HERE, name)
                 for name in ("steps.py", "install.py", "house.py")]
        self.installed = os.path.join(self.base, "installed-" + digest(
            self.commit, image_id, *files))
        self.session = os.path.join(cache(), suite)

    @property
    def disk(self):
        """The disk as the documentation's steps have left it."""
        return os.path.join(self.installed, "disk.qcow2")

    @property
    def is_installed(self):
        """Whether the steps have been followed."""
        return os.path.exists(self.disk)

    def payload(self):
        """What the machine is given: the repository, and the image, as there
        is no registry.  A tar archive, padded to whole blocks.
        """
        os.makedirs(self.installed, exist_ok=True)
        image = os.path.join(self.installed, "image.tar")
        path = os.path.join(self.installed, "payload.tar")
        output(os.environ.get("DOCKER_BINARY", "docker"), "save", "-o", image,
               self.image)
        with tarfile.open(path, "w") as tar:
            tar.add(self.bundle, "inline.bundle")
            tar.add(image, "image.tar")
        os.unlink(image)
        return path

    def knows(self, key):
        """Whether this commit's configuration has a key."""
        manual = self.commit + ":sandbox/base/inline.conf.5"
        return f".It Ev {key}\n" in output("git", "show", manual)

    def standin(self, endpoint="", **options):
        """A stand-in for Discord on this machine; it outlives the guest's."""
        os.environ["SSL_CERT_FILE"] = self.authority.path("ca.pem")
        options = {"deadline": ANSWER_SECONDS, "rate_limit": 1000,
                   "key_file": self.identity, **options}
        return Standin(endpoint, **options)

    @staticmethod
    def name_of(machine):
        """An option of the stand-in: where the name of the steps is, which
        no name server knows.
        """
        return {"connect_to": f"{NAME}:443:127.0.0.1:{machine.ports['https']}"}

    @staticmethod
    def endpoint(machine):
        """Where Discord sends to."""
        return f"https://127.0.0.1:{machine.ports['https']}/interactions"

    def machine(self, disk, folder, payload=None):
        """A machine with that disk."""
        return Machine(self.base, disk, folder, ssh_key(), payload)

    def fresh(self, name=""):
        """A machine whose disk is as after the steps."""
        folder = os.path.join(self.session, name)
        clean(folder)
        os.makedirs(folder)
        disk = os.path.join(folder, "disk.qcow2")
        overlay(disk, self.disk, "qcow2")
        return self.machine(disk, folder)

    def remember(self, name, value):
        """Keep something beside the installed disk."""
        with open(os.path.join(self.installed, name), "w",
                  encoding="utf-8") as file:
            json.dump(value, file, indent=1)

    def recall(self, name):
        """What was kept."""
        with open(os.path.join(self.installed, name),
                  encoding="utf-8") as file:
            return json.load(file)
