#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl run` with the real programs and the real engine: whatever ends it, no
process, container or socket is left, and whatever dies in it comes back."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)
import house  # noqa: E402
import service as service_of_tests  # noqa: E402
from service import BUILD, DOCKER, Service  # noqa: E402
from slices import EXPECTED, slice_of  # noqa: E402
from house import House, is_alive, wait_gone  # noqa: E402
from tap import run, test  # noqa: E402

LOOP = "print('looping', flush=True)\nwhile True: pass"


def descendants(service):
    """Return {pid: command line} of everything that it started."""
    return House.descendants(service)


def wait_no_container(service, timeout=60):
    """Wait until the engine says that none of its containers is left."""
    events = subprocess.Popen(
        [DOCKER, "events", "--filter", "event=destroy", "--format", "{{.ID}}"],
        stdout=subprocess.PIPE)
    try:
        for _ in range(20):
            if not service.containers():
                return True
            if not select.select([events.stdout], [], [], timeout)[0]:
                return False
            os.read(events.stdout.fileno(), 4096)
        return False
    finally:
        events.kill()
        events.wait()
        events.stdout.close()


def ilctl(service, *arguments):
    """Run a sub-command in the service's environment; returns (code, text)."""
    path = os.path.join(os.environ.get("BUILD", "build"), "bin", "ilctl")
    done = subprocess.run([path, *arguments], env=service.environment(),
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def start_loop(service, user):
    """Begin a run that never ends by itself, and wait until it runs."""
    sent = service.discord.send_command("py", code=LOOP, user=user)
    tries = 200
    while service.sql("SELECT state FROM jobs ORDER BY id DESC LIMIT 1") != \
            [("started",)]:
        tries -= 1
        assert tries, "the run does not start"
        wait_gone(service.process.pid, 0.1)
    return sent


def is_first(pid, nice):
    """By its own priority, that of its session's group (there may be no such
    groups), and its time slices.  So is what has ended by now."""
    try:
        group = "/proc/%d/autogroup" % pid
        if os.path.exists(group):
            with open(group, encoding="ascii") as file:
                if int(file.read().split()[-1]) != nice:
                    return False
        return (os.getpriority(os.PRIO_PROCESS, pid) == nice and
                slice_of(pid) == EXPECTED)
    except (FileNotFoundError, ProcessLookupError):
        return True


@test
def the_programs_come_before_what_peoples_code_computes():
    nice = -10 if os.geteuid() == 0 else 0      # only root may
    with Service() as service:
        service.create("alice")
        programs = descendants(service)
        slow = {pid: line for pid, line in programs.items()
                if not is_first(pid, nice)}
        assert len(programs) > 8 and not slow, (programs, slow)
        text = service.run("import os; print('nice', os.nice(0))")
        assert "nice 5" in text, text


OWN = {"il-fcgi", "il-api", "il-worker", "nginx", "/usr/bin/python3"}


def status(pid):
    """{key: words} of a process."""
    with open(f"/proc/{pid}/status") as file:
        return {key: value.split() for key, value in
                (line.split(":", 1) for line in file)}


def program(line):
    """The name of the program of a command line."""
    word = line.split(" ")[0].rstrip(":")
    return word if word == "/usr/bin/python3" else os.path.basename(word)


@test
def each_program_has_the_rights_of_its_duty():
    """Also below a folder that only root may pass: the service's is one."""
    with Service() as service:
        assert os.stat(service.folder).st_mode & 0o777 == 0o700
        service.create("alice")
        assert "42" in service.run("print(6 * 7)")
        seen = {}
        for pid, line in descendants(service).items():
            name = program(line)
            try:
                seen.setdefault(name, []).append(status(pid))
            except FileNotFoundError:
                continue
        assert OWN | {"il-sandboxd"} <= set(seen), seen.keys()
        users = {}
        for name, all_of_it in seen.items():
            for one in all_of_it:
                if name in OWN | {"il-sandboxd"}:
                    assert one["NoNewPrivs"] == ["1"], (name, one)
                if name not in OWN or os.geteuid() != 0:
                    continue
                ids = set(one["Uid"] + one["Gid"])
                assert "0" not in ids | set(one["Groups"]), (name, one)
                assert len(set(one["Uid"])) == 1, (name, one)
                for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    assert int(one[key][0], 16) == 0, (name, key, one)
                users.setdefault(one["Uid"][0], set()).add(name)
                groups = set(one["Groups"])
                assert len(groups) == {"il-fcgi": 1, "il-api": 2, "nginx": 1,
                                       "il-worker": 3}.get(name, 0), (name, one)
        assert all(len(names) == 1 for names in users.values()), users
        assert not users or len(users) == len(OWN), users


def free_low_port():
    for port in range(1023, 600, -1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except PermissionError:
                return None
            except OSError:
                continue
            return port
    return None


@test
def nginx_may_open_a_low_port_and_has_no_other_right():
    port = free_low_port()
    if port is None or os.geteuid() != 0:
        print("# skipped: only root opens ports below 1024")
        return
    with Service(port=port) as service:
        assert service.port == port
        for pid, line in descendants(service).items():
            if program(line) == "nginx":
                one = status(pid)
                for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    assert int(one[key][0], 16) == 1 << 10, (key, one)
                assert "0" not in one["Uid"], one


@test
def a_clone_that_only_root_may_enter_works():
    """Programs and all that they read lie below it, too."""
    with tempfile.TemporaryDirectory(prefix="inline-clone-") as top:
        assert os.stat(top).st_mode & 0o777 == 0o700
        clone = os.path.join(top, "folder", "clone")
        os.makedirs(clone, 0o700)
        for name in ("bin", "lib"):
            shutil.copytree(os.path.join(BUILD, name),
                            os.path.join(clone, name))
        house.BUILD = service_of_tests.BUILD = clone
        try:
            with Service() as service:
                service.create("alice")
                assert "42" in service.run("print(6 * 7)")
                lines = descendants(service).values()
                assert any(clone + "/bin/il-api" in line for line in lines)
        finally:
            house.BUILD = service_of_tests.BUILD = BUILD


TRY = r"""
import ctypes, json, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
target, others, state, base, database = json.loads(sys.argv[1])
fd = os.open("/proc/%d/ns/mnt" % target, os.O_RDONLY)
assert libc.setns(fd, 0x20000) == 0, os.strerror(ctypes.get_errno())
with open("/proc/%d/status" % target) as file:
    lines = dict(line.split(":", 1) for line in file)
os.setgroups(list(map(int, lines["Groups"].split())))
gid, uid = int(lines["Gid"].split()[0]), int(lines["Uid"].split()[0])
os.setsid()     # as it has
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
assert libc.prctl(38, 1, 0, 0, 0) == 0
done = []

def attempt(name, function):
    try:
        function()
    except (OSError, PermissionError) as error:
        return
    done.append(name)

def connect(path, kind=socket.SOCK_SEQPACKET):
    with socket.socket(socket.AF_UNIX, kind) as sock:
        sock.connect(path)

def replace(path):
    os.symlink("/etc/passwd", path + ".new")
    os.rename(path + ".new", path)

def trace(pid):
    if libc.ptrace(16, pid, 0, 0) != 0:         # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "ptrace")

for end in ("", "-wal", "-shm", "-turn"):
    attempt("read " + end, lambda: open(database + end).close())
    attempt("write " + end, lambda: open(database + end, "a").close())
attempt("docker", lambda: connect("/run/docker.sock", socket.SOCK_STREAM))
attempt("docker", lambda: connect("/var/run/docker.sock", socket.SOCK_STREAM))
for name in ("worker", "ctl"):
    attempt(name, lambda: connect(state + "/broker/%s/lease.sock" % name))
for name in ("fcgi.sock", "api.sock", "run.sock"):
    attempt(name, lambda: connect(state + "/" + name, socket.SOCK_STREAM))
for name in ("wake", "run.lock", "instance", "standin.key", "nginx.conf"):
    attempt("open " + name, lambda: open(state + "/" + name, "r+").close())
    attempt("replace " + name, lambda: replace(state + "/" + name))
for name in ("worker", "front", "nginx", "broker", "broker/api", "cells", "."):
    attempt("make in " + name,
            lambda: open(state + "/" + name + "/x", "w").close())
attempt("replace a folder", lambda: os.rename(state + "/front", state + "/f"))
attempt("sandboxes", lambda: os.listdir(base))
attempt("loop", lambda: open("/dev/loop-control", "r+").close())
for pid in others:
    attempt("signal %d" % pid, lambda: os.kill(pid, signal.SIGCONT))
    attempt("memory %d" % pid, lambda: open("/proc/%d/mem" % pid, "rb").close())
    attempt("environ %d" % pid,
            lambda: open("/proc/%d/environ" % pid, "rb").read())
    attempt("descriptors %d" % pid, lambda: os.listdir("/proc/%d/fd" % pid))
    attempt("trace %d" % pid, lambda: trace(pid))
attempt("root", lambda: os.setuid(0))
connect(state + "/broker/api/lease.sock")       # this it may
open(state + "/front/jobs").close()
os.listdir(state + "/files")
print(json.dumps(done))
"""


@test
def who_takes_il_api_over_gets_nothing_of_the_others():
    if os.geteuid() != 0:
        return      # all are one user's then
    with Service() as service:
        service.create("alice")
        programs = descendants(service)
        ours = [pid for pid, line in programs.items()
                if program(line) == "il-api"]
        others = [pid for pid, line in programs.items()
                  if program(line) != "il-api"] + [service.process.pid]
        settings = service.settings
        done = subprocess.run(
            [sys.executable, "-c", TRY, json.dumps(
                [ours[0], others, settings["IL_STATE_DIR"],
                 settings["IL_BASE_DIR"], service.database])],
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [], (done.stdout, programs)
        assert "42" in service.run("print(6 * 7)")


@test
def folders_of_an_earlier_run_of_root_alone_are_taken_over():
    """Nothing is followed there, and no link to another's file given away."""
    if os.geteuid() != 0:
        return
    with Service() as service:
        service.create("alice")
        assert service.stop() == 0
        state = service.settings["IL_STATE_DIR"]
        files = os.path.join(state, "files")
        victim = os.path.join(service.folder, "victim")
        for name in (victim, os.path.join(files, "old")):
            open(name, "w").close()
        os.link(victim, os.path.join(files, "hard"))
        os.symlink(victim, os.path.join(files, "soft"))
        for folder, folders, names in os.walk(state):
            for name in folders + names:
                os.lchown(os.path.join(folder, name), 0, 0)
        os.chmod(state, 0o750)
        service.start()
        assert "42" in service.run("print(6 * 7)")
        owner = os.stat(files).st_uid
        assert owner != 0
        assert os.stat(victim).st_uid == 0
        old = os.path.join(files, "old")
        assert not os.path.exists(old) or os.stat(old).st_uid == owner


@test
def the_operators_commands_work_on_a_running_service():
    with Service() as service:
        service.create("alice")
        assert "42" in service.run("print(6 * 7)")
        code, text = ilctl(service, "status")
        assert code == 0 and "1 running" in text, text
        code, text = ilctl(service, "doctor")
        assert code == 0 and "Nothing is wrong" in text, text
        assert f"ok    HTTP APIs: http://127.0.0.1:{service.port}/" in text
        key = os.path.join(service.settings["IL_STATE_DIR"], "standin.key")
        code, text = ilctl(service, "selftest", "--key-file", key,
                           f"http://127.0.0.1:{service.port}/interactions")
        assert code == 0, text
        service.sql("UPDATE sandboxes SET expires_at = 1")
        sandbox = service.sql("SELECT id FROM sandboxes")[0][0]
        code, text = ilctl(service, "expire")
        assert code == 0, text
        assert service.sql("SELECT state FROM sandboxes") == [("expired",)]
        assert not os.path.exists(
            os.path.join(service.settings["IL_BASE_DIR"], sandbox))
        assert wait_no_container(service)


@test
def ended_in_the_middle_of_a_run_it_leaves_nothing():
    with Service(IL_TIMEOUT_SECONDS="60") as service:
        service.create("alice")
        start_loop(service, "alice")
        pids = descendants(service)
        service.process.send_signal(signal.SIGINT)
        wait_gone(service.process.pid, 1.1)  # a second signal, not the first
        assert service.stop(signal.SIGINT) == 0
        assert not [pid for pid in pids if is_alive(pid)], pids
        assert wait_no_container(service)
        left = {name for _, _, names in os.walk(service.settings["IL_STATE_DIR"])
                for name in names}
        assert not [name for name in left
                    if name.endswith((".sock", ".pid"))], left


@test
def killed_with_9_it_leaves_nothing():
    with Service() as service:
        service.create("alice")
        start_loop(service, "alice")
        pids = descendants(service)
        assert len(service.containers()) == 1
        service.process.kill()
        service.process.wait()
        assert all(map(wait_gone, pids)), pids
        assert wait_no_container(service)
        service.process.stdout.close()
        service.process = None
        service.start()
        assert "42" in service.run("print(6 * 7)")


@test
def every_program_may_be_killed_and_it_works_again():
    with Service() as service:
        service.create("alice")
        for program in ("il-sandboxd", "il-fcgi", "il-worker", "nginx"):
            for pid in service.pids(program):
                os.kill(pid, signal.SIGKILL)
                assert wait_gone(pid)
            for attempt in range(50):
                try:
                    text = service.run("print(6 * 7)")
                    break
                except Exception:  # pylint: disable=broad-except
                    wait_gone(service.process.pid, 0.2)
                    text = "never"
            assert "42" in text, (program, text)
        assert service.process.poll() is None


run()
