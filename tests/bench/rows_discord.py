# SPDX-License-Identifier: MIT
"""Rows of commands: acknowledged, or run and their result edited in."""

import contextlib
import io
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import time

import front
import place as p
from edits import send
from rows_eval import cpu_text, describe, rate_of
from table import ms


def command_warm(place, table):
    """/il py of somebody whose cell is warm: the first response has it."""
    count = place.settings.count(300)
    with place.service(users=1) as service:
        spec = place.command(service)
        place.load("alternate", place.settings.count(10), 1, 0, spec)
        before = service.cpu()
        ours, bare = place.load("alternate", count, 1, 0, spec, place.bare(),
                                root=True)
        used, _ = cpu_text(before, service.cpu(), count)
    with_what = "python3 -c 'print(1)'"
    table.at_most("/il py, warm, p50", ours["whole"]["p50"],
                  bare["whole"]["p50"], 0.4, with_what=with_what)
    table.at_most("/il py, warm, p95", ours["whole"]["p95"],
                  bare["whole"]["p95"], 0.8, with_what=with_what)
    table.note("n=%d each, in turns; from the interaction to its first"
               " response, which has the output; %s" % (count, used))


def command_session(place, table):
    """The same in a session: the interpreter of the run before goes on."""
    count = place.settings.count(300)
    with place.service(users=1) as service:
        with place.discord():
            answer = send(place, service, front.command(
                "session/start", user=p.USER))
        if answer["type"] not in (4, 5):
            raise p.Failed("a session was answered %r" % answer)
        spec = place.command(service)
        place.load("alternate", place.settings.count(10), 1, 0, spec)
        ours, bare = place.load("alternate", count, 1, 0, spec, place.bare(),
                                root=True)
    table.at_most("/il py, in a session, p50", ours["whole"]["p50"],
                  bare["whole"]["p50"], 0.4,
                  with_what="python3 -c 'print(1)'")
    table.note("n=%d each, in turns; p95 %s" % (
        count, ms(ours["whole"]["p95"])))


# As sandbox/broker/docker.c puts them for somebody's cell, without its mounts.
LIMITS = """--rm --pull never --init=false --no-healthcheck --read-only
--user 65532:65532 --cap-drop ALL --security-opt no-new-privileges
--ipc private --log-driver none --stop-signal SIGKILL --oom-score-adj 500
--hostname inline --workdir / --env LANG=C.UTF-8 --ulimit core=0
--ulimit nofile=1024:1024 --ulimit msgqueue=0:0 --network none
--memory 268435456 --memory-swap 268435456 --cpus 1.00 --pids-limit 64
--shm-size 67108864
--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,size=67108864,nr_inodes=16384
--entrypoint python3""".split()


def docker_run(place):
    """The spec of `docker run --rm` of the image, within a cell's limits."""
    return place.spawn(
        shutil.which(p.DOCKER), "run", *LIMITS, "--security-opt",
        "seccomp=" + os.path.join(p.BUILD, "lib", "seccomp.json"), p.IMAGE,
        "-c", "print(1)")


def command_cold(place, table):
    """/il py of somebody who has a sandbox and no cell: with one spare for
    anybody, as it is by default, and without."""
    cold(place, table, "no cell there", None, 0.5)
    cold(place, table, "no cell there, none spare", "0", 1.1)


def cold(place, table, what, spare, most):
    count = place.settings.count(15)
    with place.service(users=1, IL_TUNE_WARM_SECONDS="0",
                       IL_TUNE_SPARE_CELLS=spare) as service:
        spec = place.command(service)
        gap = place.settings.ms(500, 50)
        place.load("alternate", 1, 1, gap, spec)
        ours, theirs = place.load("alternate", count, 1, gap, spec,
                                  docker_run(place))
        service.wait_cells(service.warm())  # none was kept
    table.at_most("/il py, %s, p50" % what, ours["whole"]["p50"],
                  theirs["whole"]["p50"], most, with_what="docker run --rm")
    table.note("n=%d each, in turns, half a second apart; p95 %s beside %s;"
               " docker run --rm has its output after p50 %s" % (
                   count, ms(ours["whole"]["p95"]),
                   ms(theirs["whole"]["p95"]), ms(theirs["first"]["p50"])))


# ---- acknowledging many at once ----

CLIENTS = 1000
REAL = 12  # so many get a cell while the others are acknowledged


def add_rows(link, users):
    """Rows of sandboxes, for people who will not get as far as a cell."""
    now = int(time.time())
    for user in users:
        link.execute(
            "INSERT INTO sandboxes (id, user_id, created_at, used_at,"
            " expires_at) VALUES (?, ?, ?, ?, ?)",
            ("%032x" % user, user, now, now, now + 86400))


FORGET = """UPDATE jobs SET state = 'undeliverable', told_ms = received_ms,
    token = '', path = '', text = '', input = '', attachment_url = '',
    attachment_name = '', body = NULL, claimed_by = 0
    WHERE state = 'queued'"""

UNTOLD = """SELECT EXISTS (SELECT 1 FROM jobs
    WHERE state NOT IN ('delivered', 'undeliverable'))"""


def burst(place, port, first, clients):
    """All of them at once; returns (p50, p99, max) in ms."""
    spec = "ack:%d:%d:%s" % (port, first, place.file("print(1)"))
    whole = place.load("burst", clients, spec,
                       nice=p.GENERATOR_NICE)[0]["whole"]
    return whole["p50"], whole["p99"], whole["max"]


def committed(rows, first, clients):
    """Each of them made one job, and none of them two."""
    users = sorted(row[0] for row in rows)
    if users != list(range(first, first + clients)):
        raise p.Failed("%d jobs of %d users for %d commands" % (
            len(users), len(set(users)), clients))


def middle(results, which):
    return sorted(result[which] for result in results)[len(results) // 2]


def tell_burst(table, what, results, target):
    p99, worst = middle(results, 1), max(result[2] for result in results)
    table.add(what, ms(p99), "Discord waits 3 s", None,
              "<= 100 ms" if target else "",
              p99 <= 100 and worst < 3000 if target else None)
    table.note("medians of %d bursts: p50 %s p99 %s; the slowest of all %s;"
               " every one has its job" % (len(results), ms(
                   middle(results, 0)), ms(p99), ms(worst)))


def burst_service(place, table, clients, times):
    """The whole service: workers and cells are at work beside it.  All are
    deferred: how long their answers take is no matter here.
    """
    results = []
    real = min(REAL, clients)
    with place.service(IL_TUNE_INSTANT_MS="0") as service:
        link = sqlite3.connect(service.database, timeout=20)
        for turn in range(times):
            first = p.USER + turn * clients
            place.load("burst", real, place.create(service, first))
            with link:
                add_rows(link, range(first + real, first + clients))
            results.append(burst(place, service.port, first, clients))
            with link:
                committed(link.execute(
                    "SELECT user_id FROM jobs WHERE kind = 'py' AND user_id"
                    " BETWEEN ? AND ?", (first, first + clients - 1)), first,
                    clients)
                link.execute(FORGET)
            with place.discord():
                p.wait_for(lambda: not link.execute(UNTOLD).fetchone()[0])
        link.close()
    tell_burst(table, "%d commands at once, acknowledged" % clients, results,
               True)


def quiet(kind):
    """A front; whether answers are validated is no matter here."""
    with contextlib.redirect_stdout(io.StringIO()):
        return kind()


def burst_front(place, table, clients, times):
    """nginx, il-fcgi and the database alone."""
    results = []
    with quiet(front.Front) as fcgi:
        link = sqlite3.connect(fcgi.database, timeout=20)
        with link:
            add_rows(link, range(p.USER, p.USER + clients))
        for _ in range(times):
            results.append(burst(place, fcgi.port, p.USER, clients))
            with link:
                committed(link.execute(
                    "SELECT user_id FROM jobs WHERE state = 'queued'"),
                    p.USER, clients)
                link.execute(FORGET)
        link.close()
    tell_burst(table, "the same, no worker running", results, False)


def acknowledge(place, table):
    clients = 20 if place.settings.quick else CLIENTS
    burst_service(place, table, clients, place.settings.count(3))
    burst_front(place, table, clients, place.settings.count(5))


# ---- PING, beside a program that answers a constant ----

class TwoFronts(front.Front):
    """il-fcgi, and a constant answer at /constant behind the same nginx."""

    def _start_nginx(self):
        super()._start_nginx()
        self.nginx.terminate()
        self.nginx.wait()
        with open(self.path("nginx.conf")) as file:
            conf = file.read()
        found = re.search(r"upstream inline_discord \{[^}]*\}", conf)
        with open(os.path.join(p.ROOT, "nginx", "discord.conf")) as file:
            there = re.search(r"^location .*?^}", file.read(), re.M | re.S)
        include = re.search(r"include [^;]*/discord\.conf\"?;", conf)
        assert found and include and "inline_discord" in there[0]
        conf = conf.replace(include[0], include[0] + "\n" + there[0].replace(
            "/interactions", "/constant").replace(
            "inline_discord", "inline_constant"))
        conf = conf.replace(found[0], found[0] + "\n" + found[0].replace(
            "inline_discord", "inline_constant").replace(
            "fcgi.sock", "constant.sock"))
        with open(self.path("nginx.conf"), "w") as file:
            file.write(conf)
        with open(self.path("nginx.log"), "ab") as log:
            self.nginx = subprocess.Popen(
                ["nginx", "-e", "stderr", "-c", self.path("nginx.conf")],
                stderr=log, stdin=subprocess.DEVNULL)
        front.wait_for_socket(("127.0.0.1", self.port), self.nginx)

    @contextlib.contextmanager
    def constant(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("constant.sock"))
            os.chmod(self.path("constant.sock"), 0o666)
            listener.listen(512)
            process = subprocess.Popen(
                [os.path.join(p.BUILD, "tests", "bench_constant")],
                stdin=listener)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def pin(process, cores):
    """Keep a process and its children there."""
    for pid in p.family(process.pid):
        os.sched_setaffinity(pid, cores)


def ping_request(place):
    """A PING's length, unsigned, for who does not look at it."""
    body = "x" * 380
    return place.file(
        "POST /constant HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "User-Agent: Discord-Interactions/1.0\r\n"
        "Content-Type: application/json\r\n"
        "X-Signature-Ed25519: %s\r\nX-Signature-Timestamp: 1700000000\r\n"
        "Content-Length: %d\r\n\r\n%s" % ("0" * 128, len(body), body))


def ping_specs(place, fronts):
    return ("ping:%d" % fronts.port, "eval:%d:%s:%s" % (
        fronts.port, ping_request(place), place.file('{"type":1}')))


def ping_pair(place, fronts, slice_ms):
    return place.load("sustain", 16, 3, "%d,%d" % (slice_ms, slice_ms),
                      *ping_specs(place, fronts))


def tell_ping_cpu(place, table, fronts, constant):
    """CPU time says the same as a rate on one core, and no neighbour on the
    machine changes it.
    """
    cost = [[0, 0, 0], [0, 0, 0]]
    pairs = list(zip(ping_specs(place, fronts), (fronts.process, constant)))
    for turn in range(2 * place.settings.count(3)):
        spec, program = pairs[turn % 2]
        own = list(p.family(program.pid))
        pids = [*own, *p.family(fronts.nginx.pid)]
        before = [p.cpu_of(pid) for pid in pids]
        done = place.load("sustain", 16, 1, place.settings.ms(700), spec)[0]
        used = [p.cpu_of(pid) - was for pid, was in zip(pids, before)]
        for i, more in enumerate((sum(used), sum(used[:len(own)]),
                                  done["whole"]["n"])):
            cost[turn % 2][i] += more
    cost = [[1e6 * part / n for part in (whole, own)]
            for whole, own, n in cost]
    table.note("CPU of one: %.0f us, of it the program %.0f; of a constant:"
               " %.0f and %.0f; ratio by CPU %.2f" % (
                   *cost[0], *cost[1], cost[1][0] / cost[0][0]))


def ping(place, table):
    cores = sorted(os.sched_getaffinity(0))
    slice_ms = place.settings.ms(2000)
    with quiet(TwoFronts) as fronts, fronts.constant() as constant:
        for process in (fronts.process, constant, fronts.nginx):
            pin(process, cores[:1])
        with p.on_cores(cores[1:2] or cores):
            tell_ping(table, "signed PING/s, nginx on the same core",
                      *ping_pair(place, fronts, slice_ms))
            tell_ping_cpu(place, table, fronts, constant)
            pin(fronts.nginx, cores[1:2] or cores)
            tell_ping(table, "signed PING/s, il-fcgi alone on a core",
                      *ping_pair(place, fronts, slice_ms))
    done = subprocess.run(
        [os.path.join(p.BUILD, "tests", "bench_verify"),
         str(place.settings.count(400))], stdout=subprocess.PIPE, check=True)
    cost = json.loads(done.stdout)
    table.at_most("CPU time of one check", cost["check_us"],
                  cost["verify_us"], 1.3, with_what="libsodium's verify",
                  show=lambda us: "%.1f us" % us)
    table.note("medians of rounds of 50, in turns, %d bytes" % cost["bytes"])


def tell_ping(table, what, ours, theirs):
    table.at_least(what, rate_of(ours), rate_of(theirs), 0.6,
                   with_what="of a constant")
    table.note("16 in flight, %.0f s each, n=%d; %s" % (
        ours["seconds"], ours["counted"], describe(ours)))
