# SPDX-License-Identifier: MIT
"""Hosts on this machine: each is a process whose children have a network,
mounts, a name and process numbers of their own.

    enter()                 # first of all; the test goes on in here
    hub = Hub()
    host = Host(hub, "n1", 1)
    host.run("hostname")
    host.start("dockerd", "dockerd")
    host.cut()              # the power is off: SIGKILL for all of it

The test itself is the first process of a namespace, so all ends with it,
whatever ends it.  What is left then are files, empty control groups and loop
devices: check.py sweeps them, and the next start does (sweep()).
"""

import contextlib
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
NETWORK = "10.0.0."
HUB = NETWORK + "254"
CGROUP = "inline-nodes"
# The first process of a host: it reaps, and is what the power hangs on.
INIT = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
print("up", flush=True)
while True:
    signal.sigwait({signal.SIGCHLD})
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
"""


def cache():
    """What is kept between tests: images."""
    path = os.path.join(BUILD, "nodes")
    os.makedirs(path, exist_ok=True)
    return path


def session():
    """What one test has on the disk."""
    return os.path.join(cache(), "session")


def mount(*words):
    """mount, in namespaces of ours."""
    subprocess.run(["mount", *words], check=True)


def enter():
    """Go on in namespaces of our own, as their first process."""
    if os.environ.get("INLINE_NODES") != "inside" or os.getpid() != 1:
        if os.geteuid() != 0:
            print("1..0 # SKIP network namespaces need root")
            sys.exit(0)
        os.environ["INLINE_NODES"] = "inside"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork",
                              "--kill-child", "--mount-proc", sys.executable,
                              "-B", *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
    # So that one test's end is seen by the next one.
    lock = open(os.path.join(cache(), "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    enter.lock = lock
    sweep()
    shutil.rmtree(session(), ignore_errors=True)
    # Places that each host finds: programs and libraries of this build.
    mount("-t", "tmpfs", "-o", "mode=755", "inline-nodes", "/srv")
    os.mkdir("/srv/inline")
    mount("--bind", BUILD, "/srv/inline")
    os.makedirs(session())
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def control_groups():
    """What engines have made below CGROUP, the innermost first."""
    tops = glob.glob(f"/sys/fs/cgroup/*/{CGROUP}") + \
        glob.glob(f"/sys/fs/cgroup/{CGROUP}")
    return [folder for top in tops
            for folder, _, _ in os.walk(top, topdown=False)]


def loop_devices():
    """Those of a volume on the disk of a host of a test.  Their paths are
    those that the host sees, so they are known by their inodes.
    """
    volumes = {str(os.stat(path).st_ino) for path in glob.glob(
        session() + "/*/lib/inline/sandboxes/*/*.ext4")}
    lines = subprocess.run(["losetup", "-n", "-l", "-O", "NAME,BACK-INO"],
                           capture_output=True, text=True).stdout.splitlines()
    return [line.split()[0] for line in lines if line.split()[-1] in volumes]


def mounts():
    """Those within a folder of a test's."""
    with open("/proc/self/mounts") as file:
        return [line.split()[1] for line in file
                if line.split()[1].startswith(cache() + "/")]


def sweep():
    """Take away what the test before has left; returns what is still there.
    """
    for device in loop_devices():
        subprocess.run(["losetup", "-d", device], check=False)
    for folder in control_groups():
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return loop_devices() + control_groups() + mounts()


def wait_for(question, seconds=120, pause=0.05, what=""):
    """Ask until it is so: for what cannot be waited on, with a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, \
            f"not in {seconds} s: {what() if callable(what) else what}"
        time.sleep(pause)


class Hub:
    """The network between the hosts, where the test is; on HUB."""

    def __init__(self):
        for words in (["link", "add", "hub", "type", "bridge"],
                      ["addr", "add", HUB + "/24", "dev", "hub"],
                      ["link", "set", "hub", "up"]):
            subprocess.run(["ip", *words], check=True)

    @staticmethod
    def link(name, up):
        """Plug a host's cable in, or out."""
        subprocess.run(["ip", "link", "set", "v-" + name,
                        "up" if up else "down"], check=True)

    @staticmethod
    def slow(name, rate):
        """So much comes to a host over its cable in a second; None: all."""
        words = ["root", "tbf", "rate", rate, "burst", "1600", "limit", "1m"
                 ] if rate else ["root"]
        subprocess.run(["tc", "qdisc", "replace" if rate else "del", "dev",
                        "v-" + name, *words], check=bool(rate),
                       stderr=None if rate else subprocess.DEVNULL)


class Host:
    """One host.  Its /run is gone with its power; /var/lib stays."""

    def __init__(self, hub, name, number):
        self.hub = hub
        self.name = name
        self.address = NETWORK + str(number)
        self.folder = os.path.join(session(), name)
        self.init = None
        self.started = {}
        os.makedirs(self.folder + "/lib")
        self.boot()

    def boot(self):
        """Switch it on."""
        self.init = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--fork",
             "--kill-child", "--mount-proc", sys.executable, "-B", "-c", INIT],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        assert self.init.stdout.readline() == b"up\n"
        with open(f"/proc/{self.init.pid}/task/{self.init.pid}/children") as f:
            self.pid = int(f.read())
        # Its card is the same one after a power cut: others know it.
        card = "02:00:" + ":".join(f"{int(part):02x}"
                                   for part in self.address.split("."))
        subprocess.run(["ip", "link", "add", "v-" + self.name, "type", "veth",
                        "peer", "name", "eth0", "address", card, "netns",
                        str(self.pid)], check=True)
        subprocess.run(["ip", "link", "set", "v-" + self.name, "master", "hub",
                        "up"], check=True)
        self.run("sh", "-ec", f"""
            hostname {self.name}.example.org
            ip link set lo up
            ip addr add {self.address}/24 dev eth0
            ip link set eth0 up
            mount -t tmpfs -o mode=755 tmpfs /run
            mkdir /run/lock
            mount --bind {self.folder}/lib /var/lib""")

    def cut(self):
        """Switch it off: nothing of it runs on for a moment."""
        os.kill(self.pid, signal.SIGKILL)
        self.init.wait()
        self.init.stdout.close()
        # The kernel may keep a network for a while: not its cable.
        subprocess.run(["ip", "link", "del", "v-" + self.name], check=False,
                       stderr=subprocess.DEVNULL)
        self.started = {}

    def words(self, *words, user=None):
        """The command that runs another one on this host."""
        head = ["nsenter", f"--net=/proc/{self.pid}/ns/net",
                f"--mount=/proc/{self.pid}/ns/mnt",
                f"--uts=/proc/{self.pid}/ns/uts",
                f"--pid=/proc/{self.pid}/ns/pid", "--"]
        if user:
            head += ["setpriv", "--reuid", user, "--regid", user,
                     "--clear-groups", "--inh-caps=-all", "--"]
        return head + list(words)

    def ask(self, *words, user=None, env=None, text=None, timeout=180):
        """Run a command; returns (status, what it printed)."""
        done = subprocess.run(
            self.words(*words, user=user), input=text, timeout=timeout,
            stdin=None if text is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=self.environment(env), cwd="/")
        return done.returncode, done.stdout

    def run(self, *words, **options):
        """Run a command that has to succeed; returns what it printed."""
        status, said = self.ask(*words, **options)
        assert status == 0, f"{self.name}: {words}: {status}: {said}"
        return said

    @staticmethod
    def environment(env=None):
        """Nothing of the caller's configuration, and these."""
        made = {key: value for key, value in os.environ.items()
                if not key.startswith(("IL_", "SANDBOX_", "DISCORD_",
                                       "DOCKER_"))}
        made.update(env or {})
        return made

    def start(self, name, *words, user=None, env=None, stdout=None):
        """Start what goes on running; its words go to a log."""
        with open(self.log(name), "ab") as log:
            self.started[name] = subprocess.Popen(
                self.words(*words, user=user), stdin=subprocess.DEVNULL,
                stdout=stdout or log, stderr=log, env=self.environment(env),
                cwd="/")
        return self.started[name]

    def log(self, name):
        """The path of a log."""
        return os.path.join(self.folder, name + ".log")

    def said(self, name, lines=40):
        """The end of a log."""
        try:
            with open(self.log(name), errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""

    def pids(self, program):
        """The processes of a program on this host."""
        ours = os.stat(f"/proc/{self.pid}/ns/mnt").st_ino
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    word = file.read().split("\0")[0]
                if os.path.basename(word.split(":")[0]) == program and \
                        os.stat(f"/proc/{pid}/ns/mnt").st_ino == ours:
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def kill(self, program, number=signal.SIGKILL):
        """A signal for all processes of a program; returns how many."""
        pids = self.pids(program)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(pids)

    def stop(self, name, seconds=120):
        """End what start() has started, and wait for it."""
        process = self.started.pop(name)
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGTERM)
        return process.wait(seconds)


