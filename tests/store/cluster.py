# SPDX-License-Identifier: MIT
"""A PostgreSQL server of a test's own: Debian's programs, under a user that is
not root, on a unix socket in a folder of its own.  A guard ends it and removes
the folder whenever the test ends, by kill -9, too."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

OLDEST = 15


def programs():
    """The folder of the newest server programs; None: there are none."""
    found = [(int(path.split("/")[4].split(".")[0]), path) for path in
             glob.glob("/usr/lib/postgresql/*/bin")
             if os.path.exists(path + "/initdb")]
    return max(found)[1] if found and max(found)[0] >= OLDEST else None


def skip_unless_installed():
    if programs() is None:
        print(f"1..0 # SKIP PostgreSQL {OLDEST} or newer is not installed "
              "(Debian: postgresql)")
        sys.exit(0)


class Cluster:
    """Its superuser is `postgres`; `inline` owns the databases that are made,
    and may make roles."""

    def __init__(self, settings=(), tls=None):
        self.bin = programs()
        self.folder = tempfile.mkdtemp(prefix="inline-pg-")
        self.data = self.folder + "/data"
        self.settings = list(settings)
        self.port = next((word.split("=")[1] for word in self.settings
                          if word.startswith("port=")), "5432")
        self.process = None
        self.user = self.find_user()
        os.chmod(self.folder, 0o755)
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.guard()
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres",
                 "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        if tls:
            tls(self)
        self.start()
        self.sql("CREATE ROLE inline LOGIN CREATEROLE")

    @staticmethod
    def find_user():
        """initdb refuses root."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                pass
        return None

    def as_user(self):
        if not self.user:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid,
                "extra_groups": []}

    def guard(self):
        """A process that waits until we are gone."""
        ours, self.lifeline = os.pipe()
        if os.fork() != 0:
            os.close(ours)
            return
        os.setsid()
        os.close(self.lifeline)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.read(ours, 1)
        try:
            with open(self.data + "/postmaster.pid") as file:
                pid = int(file.readline())
            os.kill(pid, signal.SIGQUIT)
            for _ in range(200):
                os.kill(pid, 0)
                time.sleep(0.05)
        except (OSError, ValueError):
            pass
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def run(self, program, *argv):
        subprocess.run([f"{self.bin}/{program}", *argv], check=True,
                       cwd=self.folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, **self.as_user())

    def start(self):
        argv = [self.bin + "/postgres", "-D", self.data, "-k", self.folder,
                "-c", "fsync=off", "-c", "autovacuum=off"]
        if not any(word.startswith("listen_addresses")
                   for word in self.settings):
            argv += ["-c", "listen_addresses="]
        for word in self.settings:
            argv += ["-c", word]
        with open(self.folder + "/log", "ab") as log:
            self.process = subprocess.Popen(
                argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, **self.as_user())
        deadline = time.monotonic() + 30
        while subprocess.run(
                [self.bin + "/pg_isready", "-q", "-h", self.folder, "-p",
                 self.port]).returncode != 0:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(open(self.folder + "/log").read())
            time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(30)

    def close(self):
        self.stop(signal.SIGQUIT)
        os.close(self.lifeline)
        deadline = time.monotonic() + 10
        while os.path.exists(self.folder) and time.monotonic() < deadline:
            time.sleep(0.02)

    def sql(self, text, database="postgres", user="postgres"):
        """What psql prints, unadorned."""
        done = subprocess.run(
            [self.bin + "/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h",
             self.folder, "-p", self.port, "-U", user, "-d", database, "-c",
             text],
            capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def database(self, name):
        """Make one; its address."""
        self.sql(f"CREATE DATABASE {name} OWNER inline")
        return self.address(name)

    def address(self, name, user="inline"):
        port = "" if self.port == "5432" else f"&port={self.port}"
        return f"postgresql://{user}@/{name}?host={self.folder}{port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
