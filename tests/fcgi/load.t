#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A thousand commands at once: all acknowledged in time, all in the database,
each once."""
import asyncio
import os
import resource
import select
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

USERS = range(1000, 2000)
DISCORD_SECONDS = 3.0
ORDER = [(7 * n) % 60 + 1 for n in range(60)] + [1]
tap = f.Tap()


def request(front, user):
    """Return the bytes of a command; signed beforehand, as Discord's are."""
    body = f.encode(f.command("py", user=user, code="print(%d)" % user))
    head = "POST /interactions HTTP/1.1\r\nHost: localhost\r\n" \
        "Connection: close\r\nContent-Length: %d\r\n" % len(body)
    for name, value in front.headers(body).items():
        head += "%s: %s\r\n" % (name, value)
    return head.encode() + b"\r\n" + body


async def send(port, data, start):
    """Connect, wait for the others, send; return (answer, seconds)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await start.wait()
    started = time.monotonic()
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer, time.monotonic() - started


async def send_all(port, requests):
    start = asyncio.Event()
    tasks = [asyncio.create_task(send(port, data, start))
             for data in requests]
    await asyncio.sleep(0)
    start.set()
    return await asyncio.gather(*tasks)


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))



def flood(front):
    """All at once; returns those not acknowledged, and the slowest's time."""
    for user in USERS:
        front.add_sandbox(user)
    results = asyncio.run(send_all(
        front.port, [request(front, user) for user in USERS]))
    slowest = max(seconds for _, seconds in results)
    print("# slowest: %.3f s" % slowest)
    return [answer[:200] for answer, _ in results if not answer.endswith(
        b'{"type":5,"data":{"flags":64}}')], slowest


def check_flood(front, last):
    """False where it is to be tried again: others are busy here, too."""
    refused, slowest = flood(front)
    if slowest >= DISCORD_SECONDS and not last:
        return False
    tap.equal(refused, [], "every one is acknowledged")
    tap.ok(slowest < DISCORD_SECONDS, "within Discord's three seconds",
           "slowest: %.2f s" % slowest)
    jobs = front.jobs()
    tap.equal(len(jobs), len(USERS), "every one is in the database")
    tap.equal(sorted((j["user_id"], j["text"]) for j in jobs),
              [(u, "print(%d)" % u) for u in USERS], "with its own words")
    tap.ok(front.alive(), "the process is alive")
    return True


for last in False, False, True:
    with f.Front() as front:
        if check_flood(front, last):
            break

with f.Front() as front:
    # All are there before the first is looked at, and one process takes them:
    # one batch, in their order.
    os.mkfifo(front.path("wake"), 0o660)
    fifo = os.open(front.path("wake"), os.O_RDWR | os.O_NONBLOCK)
    child = front.children()[0]
    with front.only(child):
        os.kill(child, signal.SIGSTOP)
        waiting = []
        for user in ORDER:
            body = f.encode(f.command("create", user=user))
            sock = front.connect()
            sock.sendall(front.records("POST", "/interactions", body,
                                       front.headers(body)))
            waiting.append(sock)
        os.kill(child, signal.SIGCONT)
        answers = [f.read_answer(sock) for sock in waiting]
    for sock in waiting:
        sock.close()
    tap.ok(answers[-1].type == 4 and "still running" in answers[-1].text,
           "of one person's two in a batch the second is refused", answers[-1])
    tap.ok(all(a.type == 5 for a in answers[:-1]), "all others are taken",
           answers)
    tap.equal([job["user_id"] for job in front.jobs()], ORDER[:-1],
              "who came first is first in the queue")
    wakes = b""
    while len(wakes) < len(ORDER) - 1 and select.select([fifo], [], [], 60)[0]:
        wakes += os.read(fifo, 4096)
    tap.equal(len(wakes), len(ORDER) - 1, "each wakes a worker")
tap.done()
