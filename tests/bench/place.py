# SPDX-License-Identifier: MIT
"""Where it is measured: the whole service with a key of ours and a Discord of
ours, the load generator, the image's interpreter on the host.

Everything that is started here ends with this process, whatever ends it, and
all files are in one temporary folder.
"""

import base64
import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", name)
                for name in ("standin", "fcgi", "e2e")]

import keys  # noqa: E402  (needs the path above)
from service import (BUILD, DOCKER, IMAGE, Service, children,  # noqa: E402
                     docker, wait_for)

SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
APPLICATION = "200000000000000001"
USER = 700000000000000000
START_MS = 60000
TICKS = os.sysconf("SC_CLK_TCK")
# The generator is where Discord is, on another machine: what holds it up here,
# too, loops or the service itself, is none of what is measured.
GENERATOR_NICE = -20 if os.geteuid() == 0 else 0


class Failed(Exception):
    """Something was wrong: no figure may come of it."""


def take_priority(nice):
    """Among all, not only in one's session (sched(7), autogroup)."""
    if nice == 0:
        return
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(nice))


class Settings:
    """How much is measured.  The environment may say otherwise."""

    def __init__(self):
        self.quick = os.environ.get("BENCH_QUICK", "") not in ("", "0")
        self.seconds = float(os.environ.get("BENCH_SECONDS", "60"))
        self.fresh = os.environ.get("BENCH_CONNECT", "") not in ("", "0")

    def count(self, usual):
        """How many of something that is usually done so often."""
        return 2 if self.quick else usual

    def ms(self, usual, quick=250):
        """How long something that usually lasts so many milliseconds."""
        return min(usual, quick) if self.quick else usual


def scientific_image(table, what):
    """Its name; where it is not here, a row says so: None."""
    image = IMAGE + "-scientific"
    if docker("images", "-q", image).strip():
        return image
    table.add(what, "no image")
    table.note("make image makes %s" % image)
    return None


class Place:
    """The temporary folder, the files that specs name, the generator."""

    def __init__(self):
        self.settings = Settings()
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="inline-bench-"))
        self.identity = keys.Identity(bytes.fromhex(SEED), APPLICATION, "t")
        self.rest = self.stack.enter_context(socket.socket())
        self.rest.bind(("127.0.0.1", 0))
        self.rest.listen(128)
        self.rest.setblocking(False)  # two generators may share it
        self.generator_cpu = self.generator_wall = 0.0
        self.populated = None  # rows_scale.py
        self._root = None
        self._files = {}
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def file(self, text):
        """The path of a file with this text."""
        if text not in self._files:
            path = os.path.join(self.folder, "text-%d" % len(self._files))
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            self._files[text] = path
        return self._files[text]

    # ---- the image's own interpreter, without a container ----

    @property
    def root(self):
        """The image's files in a folder: programs are started in it by chroot,
        so that what is compared is one interpreter with itself.  None: that
        takes root; then the host's own is taken.
        """
        if self._root is None and os.geteuid() == 0:
            self._root = os.path.join(self.folder, "root")
            os.mkdir(self._root)
            name = docker("create", IMAGE).strip()
            try:
                export = subprocess.Popen([DOCKER, "export", name],
                                          stdout=subprocess.PIPE)
                with export:
                    subprocess.run(["tar", "-x", "-C", self._root], check=True,
                                   stdin=export.stdout)
            finally:
                docker("rm", "-f", name)
        return self._root

    def python(self):
        """The interpreter's path there."""
        if self.root is None:
            return "/usr/bin/python3"
        for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
            if os.path.lexists(self.root + path):
                return path
        raise Failed("the image has no python3")

    # ---- specs: see target.h ----

    def spawn(self, *argv, expected="1\n"):
        return "spawn:%s:%s" % (self.file("\n".join(argv) + "\n"),
                                self.file(expected))

    def bare(self):
        """The bare interpreter's start."""
        return self.spawn(self.python(), "-c", "print(1)")

    def request(self, path, fields, *headers):
        """A file with a POST request of that JSON."""
        body = json.dumps(fields)
        return self.file("\r\n".join((
            "POST %s HTTP/1.1" % path, "Host: 127.0.0.1",
            "Content-Type: application/json", *headers,
            "Content-Length: %d" % len(body), "", body)))

    def eval(self, service, code="print(1)", expected="1\n", status=0,
             **fields):
        answer = json.dumps({"stdout": expected, "returncode": status,
                             "files": []})
        return "eval:%d:%s:%s" % (
            service.port, self.request("/eval", {"input": code, **fields}),
            self.file(answer))

    def execute(self, service, code="print(1)", expected="1\n", **fields):
        """The code-interpreter's contract; the same of expected as below."""
        return "post:%d:%s:%s" % (
            service.port, self.request("/v1/execute", {"code": code, **fields}),
            self.file('"stdout":' + json.dumps(expected)))

    def eval_file(self, service, code="print(1)", expected="1\n"):
        """/eval with the program as a file, as its best known client asks."""
        return "post:%d:%s:%s" % (
            service.port, self.request("/eval", {
                "args": ["main.py"], "files": [{
                    "path": "main.py",
                    "content": base64.b64encode(code.encode()).decode()}]}),
            self.file('"stdout": ' + json.dumps(expected)))

    def piston(self, service, code="print(1)", expected="1\n"):
        """Piston's contract; expected is the whole of the run's output."""
        return "post:%d:%s:%s" % (
            service.port, self.request("/api/v2/execute", {
                "language": "python", "version": "*",
                "files": [{"content": code}]}),
            self.file('"stdout":' + json.dumps(expected)))

    def mcp(self, service, code="print(1)", expected="1\n"):
        """A tool's call by MCP; the same of expected."""
        return "post:%d:%s:%s" % (
            service.port, self.request("/mcp", {
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                    "name": "run_python", "arguments": {"code": code}}},
                "Accept: application/json, text/event-stream"),
            self.file('"stdout":' + json.dumps(expected)))

    def command(self, service, user=USER, code="print(1)", expected="\\n1\\n"):
        """/il py; expected is looked for in the JSON of the edit."""
        return "command:%d:%d:%s:%s" % (
            service.port, user, self.file(json.dumps(code)[1:-1]),
            self.file(expected))

    def create(self, service, user=USER):
        return "command:%d:%d:create:%s" % (service.port, user,
                                            self.file("sandbox"))

    # ---- the generator ----

    def load(self, *words, root=False, nice=0):
        """Run bench_load; returns its targets.  An error is one here, too.
        root: programs are started in the image's files, or in this folder.
        """
        with self.start_load(*words, root=root, nice=nice) as process:
            return self.end_load(process)

    @contextlib.contextmanager
    def start_load(self, *words, root=False, nice=0):
        fd = self.rest.fileno()
        argv = [os.path.join(BUILD, "tests", "bench_load"), "-k", SEED,
                "-a", APPLICATION, "-l", str(fd)]
        argv += ["-c"] * self.settings.fresh
        folder = self.root if root is True else root
        argv += ["-r", folder] if folder else []
        # In there is no /proc, which a sanitizer's look for leaks needs.
        env = {**os.environ, "LANG": "C.UTF-8"}
        env.update({"ASAN_OPTIONS": "detect_leaks=0"} if folder else {})
        process = subprocess.Popen(
            argv + [str(word) for word in words], stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, pass_fds=(fd,), text=True,
            env=env, preexec_fn=lambda: take_priority(nice))
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def end_load(self, process):
        text = process.stdout.read()
        if process.wait() not in (0, 1) or not text:
            raise Failed("bench_load ended with %d" % process.returncode)
        result = json.loads(text)
        self.generator_cpu += result["cpu_s"]
        self.generator_wall += result["wall_s"]
        for target in result["targets"]:
            if target["errors"]:
                raise Failed("%s: %d errors, the first: %s" % (
                    target["spec"], target["errors"], target["error"]))
        return result["targets"]

    # ---- the service ----

    @contextlib.contextmanager
    def service(self, users=0, **settings):
        """`ilctl run`, its engine and cells ready, with sandboxes for so many
        users from USER on.
        """
        with BenchService(self, **settings) as service:
            service.wait_cells(service.warm())
            if users:
                self.load("burst", users, self.create(service))
            yield service

    def discord(self):
        """Somebody who takes the edits while no load is running."""
        return self.start_load("discord")


class BenchService(Service):
    """`ilctl run` with keys, hence without the Python stand-in."""

    def __init__(self, place, **settings):
        port = place.rest.getsockname()[1]
        self.place = place
        super().__init__(**{
            **place.identity.environment("http://127.0.0.1:%d/api/v10" % port),
            "IL_TUNE_API_WARM": None, "IL_USER_RATE": "1000000", **settings})

    def start(self):
        self.launch()
        self._wait_ready()
        return self

    def stop(self, number=signal.SIGTERM):
        """What still runs may tell its people."""
        if self.process is None:
            return None
        with self.place.discord():
            return super().stop(number)

    def close(self, show_log=False):
        """The folder goes also when nobody reads what is printed."""
        try:
            super().close(show_log)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def launch(self):
        """Start it, and do not wait."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "bin", "ilctl"), "run"], cwd=ROOT,
                env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, preexec_fn=end_with_us)

    def warm(self):
        """How many cells are there when nobody has asked for one."""
        rows = self.ilctl("config")[1]
        warm, cells = (int(self.settings.get(key) or re.search(
            r"`%s` \| `(\d+)`" % key, rows)[1])
                       for key in ("IL_TUNE_API_WARM", "IL_API_CELLS"))
        spare = int(self.settings["IL_TUNE_SPARE_CELLS"] or 1)
        # one has the modules of IL_PRELOAD; each spare one has a mounter
        named = self.settings.get("IL_PRELOAD", "auto") not in ("auto", "none")
        return min(warm + named, cells) + 2 * spare

    def wait_imports(self, modules, seconds=60):
        """Until a program that names them finds them imported."""
        code = "import sys\nprint(%r <= set(sys.modules))" % set(modules)
        request = urllib.request.Request(
            "http://127.0.0.1:%d/eval" % self.port,
            json.dumps({"input": code}).encode(),
            {"Content-Type": "application/json"})
        deadline = time.monotonic() + seconds
        while True:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                if json.load(answer)["stdout"] == "True\n":
                    return
            if time.monotonic() > deadline:
                raise Failed("there is no cell with %s" % (modules,))
            signal.sigtimedwait([], 0.1)

    def processes(self):
        """{pid: name} of all that it consists of, but cells."""
        return family(self.process.pid)

    def cpu(self):
        """{program: seconds of CPU} since their start; cells as one."""
        used = {}
        for pid, name in self.processes().items():
            used[name] = used.get(name, 0) + cpu_of(pid)
        used["cells"] = sum(map(cell_cpu, self.cell_ids()))
        return used

    def cell_ids(self):
        """The full ids of its containers."""
        return docker("ps", "-q", "--no-trunc", "--filter",
                      "label=inline.instance=" + self.instance()).split()

    def wait_cells(self, count, seconds=60):
        """Wait until exactly so many containers are there."""
        deadline = time.monotonic() + seconds
        while len(self.cell_ids()) != count:
            if time.monotonic() > deadline:
                raise Failed("there are not %d cells" % count)
            signal.sigtimedwait([], 0.1)


def pid_of(container):
    """The host's pid of a container's first process."""
    return int(docker("inspect", "--format", "{{.State.Pid}}", container))


def family(pid):
    """{pid: name} of a process and all below it."""
    found, parents = {}, [pid]
    while parents:
        for one in parents:
            with contextlib.suppress(OSError), \
                    open("/proc/%d/comm" % one) as file:
                found[one] = file.read().strip()
        parents = children(parents)
    return found


def end_with_us():
    """In a child: SIGTERM when whoever started it is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def cpu_of(pid):
    """Seconds of CPU of a process and its children that are gone."""
    try:
        with open("/proc/%d/schedstat" % pid) as file:
            own = int(file.read().split()[0]) / 1e9
        with open("/proc/%d/stat" % pid) as file:
            words = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return own + (int(words[13]) + int(words[14])) / TICKS


@contextlib.contextmanager
def on_cores(cores):
    """What is started meanwhile stays on these."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cell_cpu(identity):
    """Seconds of CPU of a container, by its control group (v1 or v2)."""
    for path, unit in (("cpuacct/docker/%s/cpuacct.usage", 1e-9),
                       ("docker/%s/cpu.stat", 1e-6),
                       ("system.slice/docker-%s.scope/cpu.stat", 1e-6)):
        with contextlib.suppress(OSError), \
                open("/sys/fs/cgroup/" + path % identity) as file:
            return int(file.read().split()[1 if unit == 1e-6 else 0]) * unit
    return 0.0


def interrupt(number, frame):
    """Ctrl-C and kill: by the way of all exceptions, so that all is ended; and
    once, so that nothing interrupts that.
    """
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt
