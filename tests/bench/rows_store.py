# SPDX-License-Identifier: MIT
"""The store alone: SQLite, PostgreSQL on a socket, PostgreSQL half a
millisecond away.  Its folder is in memory, or $BENCH_STORE: what a disk takes
for a flush is the disk's."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import place as p
from table import ms

sys.path.insert(0, os.path.join(p.ROOT, "tests", "store"))
from cluster import Cluster, programs  # noqa: E402

DELAY = 0.0005      # of a round: what hosts in one place are apart
PROGRAM = os.path.join(p.BUILD, "tests", "bench_store")


def store(address, *words, **more):
    done = subprocess.run([PROGRAM, address, *map(str, words)],
                          capture_output=True, text=True, timeout=600, **more)
    if done.returncode != 0:
        raise p.Failed("bench_store: " + done.stderr[-500:])
    return json.loads(done.stdout) if done.stdout else None


class Wire:
    """Half of the delay on the way there, half on the way back; the server's
    answers to rounds are counted."""

    def __init__(self, folder, target):
        self.rounds = 0
        self.delay = DELAY / 2
        self.target = target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(folder, ".s.PGSQL.5432"))
        os.chmod(os.path.join(folder, ".s.PGSQL.5432"), 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for a, b in (client, server), (server, client):
                threading.Thread(target=self.carry, args=(a, b, a is server),
                                 daemon=True).start()

    def carry(self, a, b, counts):
        """ReadyForQuery is five bytes and the last ones of an answer."""
        with b, contextlib.suppress(OSError):
            while data := a.recv(1 << 20):
                time.sleep(self.delay)
                self.rounds += counts and data[-6:-1] == b"Z\0\0\0\5"
                b.sendall(data)


def memory(cluster):
    """Bytes of a backend that are its own (Pss), in the mean."""
    pids = cluster.sql("SELECT pid FROM pg_stat_activity WHERE "
                       "application_name = 'il-worker'").split()
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) << 10 for line in file
                         if line.startswith("Pss:"))
    return total / max(len(pids), 1)


def notify_rate(cluster, address, seconds):
    """NOTIFYs of a channel that nobody listens to, in a second."""
    done = subprocess.run(
        [cluster.bin + "/pgbench", "-n", "-c", "8", "-j", "2", "-T",
         str(seconds), "-f", "/dev/stdin", address],
        input="NOTIFY il_jobs_0;\n", capture_output=True, text=True,
        timeout=600)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if not found:
        raise p.Failed("pgbench: " + done.stderr[-500:])
    return float(found[1])


def listen(cluster, address, listeners, times):
    process = subprocess.Popen(
        [PROGRAM, address, "listen", str(listeners), str(times)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    size = memory(cluster)
    others = notify_rate(cluster, address, 1 if times < 10 else 5)
    text = process.communicate("\n", timeout=600)[0]
    if process.returncode != 0:
        raise p.Failed("bench_store listen")
    return json.loads(text), size, others


def sqlite(folder, number=[0]):
    number[0] += 1
    path = os.path.join(folder, f"{number[0]}.db")
    store(path, "migrate")
    return path


def postgres(cluster, number=[0]):
    number[0] += 1
    address = cluster.database(f"bench{number[0]}")
    store(address, "migrate")
    return address


def commands(table, addresses, wire, count):
    steps = ("insert", "claim", "start", "finish", "flush", "told")
    took, rounds = [], 0
    for address in addresses:
        before = wire.rounds
        took.append(store(address, "commands", count))
        rounds = (wire.rounds - before) / count
    p50 = [sum(one[step]["p50"] for step in steps) for one in took]
    table.add("Store: a command's six steps, PostgreSQL", ms(p50[1]),
              ms(p50[0]), None, "", None)
    table.note("n=%d; beside SQLite; by a relay that takes %.1f ms and its "
               "own time for a round %s in %.1f rounds; each (start, finish, "
               "flush and told are one): %s" % (
                   count, 1000 * DELAY, ms(p50[2]), rounds,
                   "; ".join("%s %s" % (step, ", ".join(
                       ms(one[step]["p50"]) for one in took))
                       for step in steps)))


def store_rows(place, table):
    if programs() is None:
        table.add("Store: PostgreSQL", "not installed")
        return
    quick = place.settings.quick
    most = 1 if quick else 4
    base = os.environ.get("BENCH_STORE", "/dev/shm")
    tempfile.tempdir = base
    with tempfile.TemporaryDirectory(prefix="bench-store-") as folder, \
            Cluster(["max_connections=1100", "fsync=on", "autovacuum=on",
                     "shared_buffers=256MB"]) as cluster:
        tempfile.tempdir = None
        os.chmod(folder, 0o755)
        wire = Wire(folder, cluster.folder + "/.s.PGSQL.5432")
        far = postgres(cluster)
        commands(table, [sqlite(folder), postgres(cluster),
                         far.replace(cluster.folder, folder)], wire,
                 2 if quick else 500)
        for processes, group in ((1, 1), (4, 1), (4, 16))[:most]:
            both = [store(address, "fronts", processes, group,
                          1 if quick else 5)["per_second"]
                    for address in (sqlite(folder), postgres(cluster))]
            table.add("Store: %d fronts, groups of %d, PostgreSQL" % (
                processes, group), "%.0f/s" % both[1], "%.0f/s" % both[0],
                      None, "", None)
        for workers in (4, 16, 64)[:most]:
            both = [store(address, "claims", workers,
                          64 if quick else 4000, 0)["per_second"]
                    for address in (sqlite(folder), postgres(cluster))]
            table.add("Store: jobs of %d workers, PostgreSQL" % workers,
                      "%.0f/s" % both[1], "%.0f/s" % both[0], None, "", None)
        for listeners in (4, 32, 200, 1000)[:most]:
            took, size, others = listen(cluster, postgres(cluster), listeners,
                                2 if quick else 100)
            table.add("Store: NOTIFY to %d, the last" % listeners,
                      ms(took["last"]["p50"]), ms(took["commit"]["p50"]),
                      None, "", None)
            table.note("beside the commit alone; a session has %.1f MiB; "
                       "NOTIFYs of another channel meanwhile: %.0f/s" % (
                           size / 2**20, others))
