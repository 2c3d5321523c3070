# SPDX-License-Identifier: MIT
"""Three PostgreSQL servers with Patroni and etcd, from Debian's packages, as
systemd/swarm/README.md says: d1, d2, d3."""

import glob
import json
import os
import re
import subprocess
import urllib.request

from hosts import NETWORK, ROOT, Host, session, wait_for

TEMPLATE = os.path.join(ROOT, "systemd", "swarm", "patroni.yml")
PASSWORD = "nur-zum-testen"
BIN = max(glob.glob("/usr/lib/postgresql/*/bin"))
FIRST = 11


class Authority:
    """Certificates of our own."""

    def __init__(self):
        self.folder = os.path.join(session(), "tls")
        os.mkdir(self.folder)
        self.openssl("req", "-x509", *self.key("ca"), "-days", "2", "-subj",
                     "/CN=check-nodes", "-out", "ca.pem")

    def openssl(self, *words):
        """openssl, in the folder."""
        subprocess.run(["openssl", *words], check=True, cwd=self.folder,
                       capture_output=True)

    @staticmethod
    def key(name):
        """Options for a new key."""
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-keyout", name + ".key"]

    def path(self, name):
        """One of its files."""
        return os.path.join(self.folder, name)

    def issue(self, name, address):
        """A certificate for a host, by name and address."""
        with open(self.path(name + ".ext"), "w") as file:
            file.write(f"subjectAltName=DNS:{name},IP:{address}\n")
        self.openssl("req", *self.key(name), "-subj", "/CN=" + name, "-out",
                     name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem",
                     "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", name + ".ext", "-out", name + ".pem")


class Postgres:
    """The three, with a database `inline` and its owner."""

    def __init__(self, hub):
        self.authority = Authority()
        self.hosts = [Host(hub, f"d{i}", FIRST + i - 1) for i in (1, 2, 3)]
        for host in self.hosts:
            self.authority.issue(host.name, host.address)
            self.prepare(host)
            self.start_etcd(host)
        for host in self.hosts:
            self.start_patroni(host)
        wait_for(lambda: len(self.in_order()) == 3, 300,
                 what=self.said)
        self.sql(f"CREATE ROLE inline LOGIN CREATEROLE PASSWORD '{PASSWORD}'")
        self.sql("CREATE DATABASE inline OWNER inline ENCODING 'UTF8' "
                 "TEMPLATE template0")

    def said(self):
        """The ends of all logs."""
        return "\n".join(host.said("patroni", 5) for host in self.hosts)

    @property
    def address(self):
        """What stands in IL_DATABASE_FILE."""
        hosts = ",".join(host.address for host in self.hosts)
        return (f"postgresql://inline:{PASSWORD}@{hosts}/inline?sslrootcert="
                "/run/inline-db.pem")

    def settings(self, host):
        """patroni.yml, filled in."""
        with open(TEMPLATE) as file:
            text = file.read()
        for word, value in {
                "NAME": host.name, "ADDRESS": host.address,
                "NETWORK": NETWORK + "0/24", "PASSWORD1": PASSWORD + "-1",
                "PASSWORD2": PASSWORD + "-2", "PASSWORD3": PASSWORD + "-3",
                **{f"ADDRESS{i}": one.address
                   for i, one in enumerate(self.hosts, 1)}}.items():
            text = text.replace(f"@{word}@", value)
        assert not re.search(r"@[A-Z0-9]+@", text), text
        return text.replace("/usr/lib/postgresql/15/bin", BIN)

    def prepare(self, host):
        """Folders, keys and settings; all but the data goes with the power."""
        host.run("sh", "-ec", """
            mkdir -p /var/lib/postgresql /var/lib/etcd /run/postgresql
            chown postgres: /var/lib/postgresql /var/lib/etcd /run/postgresql
            mkdir -p /run/inline-db
            cp "$1.pem" /run/inline-db/server.crt
            cp "$1.key" /run/inline-db/server.key
            cp "${1%/*}/ca.pem" /run/inline-db/ca.pem
            chown -R postgres: /run/inline-db
            chmod 600 /run/inline-db/server.key
            cat >/run/patroni.yml; chown postgres: /run/patroni.yml
            """, "sh", self.authority.path(host.name),
                 text=self.settings(host).replace("/etc/inline-db",
                                                  "/run/inline-db"))

    def start_etcd(self, host):
        """As /etc/default/etcd of systemd/swarm/README.md has it."""
        members = ",".join(f"{one.name}=http://{one.address}:2380"
                           for one in self.hosts)
        host.start("etcd", "etcd", "--name", host.name,
                   "--data-dir", "/var/lib/etcd/inline",
                   "--listen-peer-urls", f"http://{host.address}:2380",
                   "--initial-advertise-peer-urls",
                   f"http://{host.address}:2380",
                   "--listen-client-urls",
                   f"http://{host.address}:2379,http://127.0.0.1:2379",
                   "--advertise-client-urls", f"http://{host.address}:2379",
                   "--initial-cluster", members,
                   "--initial-cluster-token", "inline",
                   "--pre-vote", "--enable-v2", "--unsafe-no-fsync",
                   user="postgres")

    def start_patroni(self, host):
        """Debian's /usr/bin/patroni, which starts the server."""
        host.start("patroni", "/usr/bin/patroni", "/run/patroni.yml",
                   user="postgres", env={"PATH": "/usr/sbin:/usr/bin:/bin",
                                         "HOME": "/var/lib/postgresql",
                                         "LANG": "C.UTF-8"})

    def boot(self, host):
        """Switch a host on again."""
        host.boot()
        self.prepare(host)
        self.start_etcd(host)
        self.start_patroni(host)

    # What there is now

    def ask_patroni(self, path="/cluster"):
        """The answer of the first Patroni that gives one."""
        for host in self.hosts:
            try:
                with urllib.request.urlopen(
                        f"http://{host.address}:8008{path}", timeout=2) as one:
                    return json.load(one)
            except (OSError, ValueError):
                continue
        return {"members": []}

    def in_order(self):
        """The members, if all do what they should."""
        members = self.ask_patroni()["members"]
        roles = [one["role"] for one in members
                 if one["state"] in ("running", "streaming")]
        return members if "leader" in roles and "sync_standby" in roles and \
            len(roles) == 3 else []

    def primary(self, but=None):
        """The host that takes changes: what a server says of itself; None:
        there is none.
        """
        for host in self.hosts:
            if host is not but and host.init and host.init.poll() is None and \
                    self.query(host, "SELECT pg_is_in_recovery()") == "f":
                return host
        return None

    @staticmethod
    def query(host, text, database="postgres"):
        """What psql on that host prints, or None."""
        status, said = host.ask(
            BIN + "/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h",
            "/run/postgresql", "-d", database, "-c", text, user="postgres",
            env={"PGCONNECT_TIMEOUT": "3", "PGOPTIONS":
                 "-c statement_timeout=20000"})
        return said.strip() if status == 0 else None

    def sql(self, text, database="postgres", but=None):
        """Ask the primary."""
        host = wait_for(lambda: self.primary(but), 90, what="a primary")
        said = self.query(host, text, database)
        assert said is not None, (host.name, text)
        return said
