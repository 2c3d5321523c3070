#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Any program killed at any moment: delivered once, or told."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, docker, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="20", IL_USER_RATE="1000",
                  IL_TUNE_SPARE_CELLS="1")
LONG = "import time\nprint('begun', flush=True)\ntime.sleep(15)\nprint('end')"


def begin(code=LONG, user="alice"):
    """Send a command and wait until its run has started."""
    sent = service.discord.send_command("py", user=user, code=code)
    sent.wait_answered()
    wait_for(lambda: service.sql(
        "SELECT 1 FROM jobs WHERE state = 'started'"))
    return sent


def works(user="alice"):
    """The service serves (again)."""
    text = service.run("print('se' + 'rved')", user=user)
    assert "served" in text, text


@test
def a_killed_worker_tells_interrupted_and_never_runs_twice():
    sent = begin("open('ran', 'a').write('x')\n" + LONG)
    service.kill("il-worker")
    sent.wait_final()
    assert "interrupted" in sent.original.text().lower(), sent
    text = service.run("print(open('ran').read())")
    assert "x" in text and "xx" not in text, text


@test
def a_killed_broker_leaves_no_container_and_comes_back():
    sent = begin()
    before = set(service.containers())
    assert before
    service.kill("il-sandboxd")
    sent.wait_final()
    text = sent.original.text()
    assert "reference" in text and "interrupted" not in text.lower(), text
    wait_for(lambda: not before & set(service.containers()))
    works()


@test
def a_killed_front_loses_nothing_that_it_accepted():
    orders = [service.discord.command_order("create", user=f"user{i}")
              for i in range(20)]
    sent = service.discord.send_many(orders)
    service.kill("il-fcgi")
    answered = 0
    for one in sent:
        wait_for(lambda: one.refresh().state != "pending")
        if one.state == "answered":
            answered += 1
            assert "sandbox" in one.wait("final", 60).original.text(), one
    accepted = service.sql("SELECT count(*) FROM jobs WHERE kind = 'create'")
    assert answered <= accepted[0][0], (answered, accepted)
    wait_for(lambda: not service.sql(
        "SELECT 1 FROM jobs WHERE state NOT IN ('delivered', "
        "'undeliverable')"))
    service.wait_serving()
    works()


@test
def a_worker_killed_at_any_moment_runs_nothing_twice():
    for pause in 0, 6, 14:
        sent = service.discord.send_command(
            "py", user="alice", code=f"open('at{pause}', 'a').write('x')\n"
            "import time\ntime.sleep(0.01)\nprint('do' + 'ne')")
        time.sleep(pause / 1000)
        service.kill("il-worker")
        sent.wait_final()
        text = sent.original.text()
        assert "done" in text or "interrupted" in text.lower(), text
        wait_for(lambda: len(service.pids("il-worker")) == 4)
    # Nothing is in the file of a run that was ended before it wrote.
    text = service.run("import os, glob\n"
                       "sizes = map(os.path.getsize, glob.glob('at*'))\n"
                       "most = max(sizes, default=0)\n"
                       "print(f'at most {most} times')")
    assert "at most 1 times" in text, text


@test
def a_killed_nginx_comes_back():
    old = service.kill("nginx")
    wait_for(lambda: set(service.pids("nginx")) - set(old))
    service.wait_serving()
    works()


@test
def a_cell_killed_from_outside_is_told():
    sent = begin()
    for name in service.containers():
        docker("kill", name, check=False)
    sent.wait_final()
    assert "reference" in sent.original.text(), sent
    works()


@test
def everything_killed_at_once_is_told_after_the_restart():
    sent = begin()
    queued = service.discord.send_command("create", user="bob")
    queued.wait_answered()
    standin = service.pids("python3")
    # The workers first: one that saw its cell die could still tell of that.
    pids = [pid for program in ("il-worker", "il-", "nginx")
            for pid in service.pids(program)]
    os.kill(service.process.pid, signal.SIGSTOP)
    for pid in dict.fromkeys(pids):
        os.kill(pid, signal.SIGKILL)
    os.kill(service.process.pid, signal.SIGCONT)
    assert standin
    sent.wait_final()
    assert "interrupted" in sent.original.text().lower(), sent
    queued.wait_final()
    service.wait_serving()
    works()


@test
def nothing_broke_discords_rules():
    # a front that was killed gave no answer; that is Discord's to tell
    service.assert_kept_discords_rules(ignore=("endpoint",))


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
    assert not service.left_over(), service.left_over()


@test
def what_was_interrupted_then_is_told_by_the_next_start():
    assert service.sql("SELECT 1 FROM jobs WHERE state = 'started'")
    service.start()
    # The stand-in started anew knows none of the tokens: Discord would.
    wait_for(lambda: not service.sql(
        "SELECT 1 FROM jobs WHERE state IN ('started', 'lost')"))
    wait_for(lambda: service.discord.requests(route="edit"))
    works()


with service:
    service.create()
    run()
