#!/usr/bin/python3
"""`ilctl run` with the real programs and the real engine: whatever ends it, no
process, container or socket is left, and whatever dies in it comes back."""

import os
import select
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)
from service import DOCKER, Service  # noqa: E402
from slices import EXPECTED, slice_of  # noqa: E402
from house import House, is_alive, wait_gone  # noqa: E402
from tap import run, test  # noqa: E402

LOOP = "print('looping', flush=True)\nwhile True: pass"


def descendants(service):
    """Return {pid: command line} of everything that it started."""
    return House.descendants(service)


def wait_no_container(service, timeout=20):
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
