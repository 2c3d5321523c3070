#!/usr/bin/python3
"""Any program killed at any moment: delivered once, or told."""

import os
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import DOCKER, Service  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="20", IL_USER_RATE="1000")
LONG = "import time\nprint('begun', flush=True)\ntime.sleep(15)\nprint('end')"


def begin(code=LONG, user="alice"):
    """Send a command and wait until its run has started."""
    sent = service.discord.send_command("py", user=user, code=code)
    sent.wait_answered()
    wait_for(lambda: service.sql(
        "SELECT 1 FROM jobs WHERE state = 'started'"))
    return sent


def wait_for(question, seconds=30):
    """Ask until it is so: for what cannot be waited on, with a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def kill(program):
    """kill -9 all processes of a program; returns their pids."""
    pids = service.pids(program)
    assert pids, program
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def works(user="alice"):
    """The service serves (again)."""
    text = service.run("print('se' + 'rved')", user=user, timeout=60)
    assert "served" in text, text


@test
def a_killed_worker_tells_interrupted_and_never_runs_twice():
    sent = begin("open('ran', 'a').write('x')\n" + LONG)
    kill("il-worker")
    sent.wait_final(timeout=60)
    assert "interrupted" in sent.original.text().lower(), sent
    text = service.run("print(open('ran').read())")
    assert "x" in text and "xx" not in text, text


@test
def a_killed_broker_leaves_no_container_and_comes_back():
    sent = begin()
    before = set(service.containers())
    assert before
    kill("il-sandboxd")
    sent.wait_final(timeout=60)
    text = sent.original.text()
    assert "reference" in text or "interrupted" in text.lower(), text
    wait_for(lambda: not before & set(service.containers()))
    works()


@test
def a_killed_front_loses_nothing_that_it_accepted():
    orders = [service.discord.command_order("health", user=f"user{i}")
              for i in range(20)]
    sent = service.discord.send_many(orders)
    kill("il-fcgi")
    for one in sent:
        one.wait("final", 60)
        if one.state == "answered":
            assert "Docker" in one.original.text(), one
    accepted = service.sql("SELECT count(*) FROM jobs WHERE kind = 'health'")
    told = service.sql("SELECT count(*) FROM jobs WHERE kind = 'health' AND "
                       "state IN ('delivered', 'undeliverable')")
    assert accepted == told, (accepted, told)
    works()


@test
def a_killed_nginx_comes_back():
    kill("nginx")

    def serves():
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{service.port}/health", timeout=5):
                return True
        except OSError:
            return False
    wait_for(serves)
    works()


@test
def a_cell_killed_from_outside_is_told():
    sent = begin()
    for name in service.containers():
        subprocess.run([DOCKER, "kill", name], capture_output=True,
                       timeout=30)
    sent.wait_final(timeout=60)
    assert "reference" in sent.original.text(), sent
    works()


@test
def everything_killed_at_once_is_told_after_the_restart():
    sent = begin()
    queued = service.discord.send_command("health", user="bob")
    queued.wait_answered()
    standin = service.pids("python3")
    pids = [pid for program in ("il-", "nginx")
            for pid in service.pids(program)]
    os.kill(service.process.pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    os.kill(service.process.pid, signal.SIGCONT)
    assert standin
    sent.wait_final(timeout=60)
    assert "interrupted" in sent.original.text().lower(), sent
    queued.wait_final(timeout=60)
    works()


@test
def ilctl_killed_takes_everything_with_it():
    begin()
    names = set(service.containers())
    assert names
    pids = [pid for program in ("il-", "nginx", "python3")
            for pid in service.pids(program)]
    service.process.kill()
    service.process.wait()
    service.process = None
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    wait_for(lambda: not names & set(service.containers()))


with service:
    service.create()
    run()
