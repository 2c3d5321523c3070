#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""PostgreSQL that is away, is slow, is full, is not what it should be: each
program is told what is wrong, soon, and no password is shown."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "standin"))

from cluster import Cluster, skip_unless_installed  # noqa: E402
from ports import free_port  # noqa: E402

BUILD = os.environ["BUILD"]
PASSWORD = "geheim-0815"
AT_ONCE = 8
count = 0
failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def start(*words, **settings):
    """ilctl, or another program by its name."""
    program = words[0] if words[0].startswith("il-") else "ilctl"
    return subprocess.Popen(
        [os.path.join(BUILD, "bin", program),
         *words[program != "ilctl":]],
        env=dict(os.environ, IL_STATE_DIR=STATE, **settings),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)


def finish(process):
    return process.communicate(timeout=60)[0], process.returncode


def ilctl(*words, **settings):
    return finish(start(*words, **settings))


def says(text, status, *words):
    return status != 0 and all(word in text for word in words)


def test_migrate(cluster, address):
    """All at one time, and a second time."""
    results = [finish(one) for one in
               [start("migrate", IL_DATABASE=address) for _ in range(AT_ONCE)]]
    ok(all(status == 0 for _, status in results),
       f"{AT_ONCE} at once: none fails", results)
    ok(sum(", 0 migrations" not in text for text, _ in results) == 1 and
       sum(", 0 migrations" in text for text, _ in results) == AT_ONCE - 1,
       "one does it, the others find it done", results)
    ok(all("inline@" not in text for text, _ in results),
       "no user is shown", results)
    version = cluster.sql("SELECT version FROM inline_schema", "faults")
    ok(ilctl("jobs", IL_DATABASE=address)[1] == 0, "then it is used")
    text, status = ilctl("jobs",
                         IL_DATABASE=cluster.database("empty"))
    ok(says(text, status, "run ilctl migrate"), "an empty one is not", text)
    cluster.sql("UPDATE inline_schema SET version = 9999", "faults")
    text, status = ilctl("jobs", IL_DATABASE=address)
    ok(says(text, status, "newer programs"), "a newer one", text)
    text, status = ilctl("migrate", IL_DATABASE=address)
    ok(says(text, status, "9999"), "is not migrated down", text)
    cluster.sql(f"UPDATE inline_schema SET version = {version}", "faults")


def test_not_there(cluster, address):
    text, status = ilctl("jobs", IL_DATABASE=address.replace("faults", "none"))
    ok(says(text, status, "none", "does not exist"), "no such database", text)
    text, status = ilctl("jobs", IL_DATABASE=address.replace(
        "inline@", "nobody@"))
    ok(says(text, status, "nobody"), "no such user", text)
    text, status = ilctl("jobs", IL_DATABASE=f"postgresql:///x?host={STATE}")
    ok(says(text, status, "No such file"), "no server", text)
    text, status = finish(start(
        "il-worker", "-s", "0", IL_DATABASE=f"postgresql:///x?host={STATE}",
        DISCORD_APPLICATION_ID="1", DISCORD_TOKEN="x",
        DISCORD_PUBLIC_KEY="00" * 32))
    ok(status == 1, "a worker ends with 1: it is started again", text)
    cluster.sql("ALTER DATABASE faults SET default_transaction_read_only = on")
    text, status = ilctl("jobs", IL_DATABASE=address)
    ok(says(text, status, "read-only"), "one that only reads", text)
    cluster.sql("ALTER DATABASE faults RESET default_transaction_read_only")
    for words in (["backup", STATE + "/backup"], ["restore", STATE]):
        text, status = ilctl(*words, IL_DATABASE=address)
        ok(says(text, status, "pg_dump") and
           not os.path.exists(STATE + "/backup"),
           f"{words[0]} says what saves a server", text)


@contextlib.contextmanager
def locked(cluster, database):
    """While somebody holds a lock."""
    holder = subprocess.Popen(
        [cluster.bin + "/psql", "-XAtq", "-h", cluster.folder, "-p",
         cluster.port, "-U", "postgres", database],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdin.write("BEGIN; LOCK TABLE jobs; SELECT 1;\n")
    holder.stdin.flush()
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate("ROLLBACK;\n")


def test_waits(cluster):
    """It takes the connection and says nothing, or not what it should; or it
    has a lock in the way.  All at one time: each takes its time limit."""
    slow = cluster.database("slow")
    ilctl("migrate", IL_DATABASE=slow)
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            socket.create_server(("127.0.0.1", 0)) as liar, \
            locked(cluster, "slow"):
        def lie():
            link = liar.accept()[0]
            link.recv(100)
            link.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 100)
            link.close()
        threading.Thread(target=lie, daemon=True).start()
        begun = time.monotonic()
        both = [start("jobs", IL_DATABASE="postgresql://x@127.0.0.1:"
                      f"{one.getsockname()[1]}/x?sslmode=disable")
                for one in (silent, liar)]
        two = cluster.address("faults").replace("host=", "host=127.0.0.1,")
        two = start("jobs", IL_DATABASE=two.replace(
            "port=", f"port={silent.getsockname()[1]},"))
        slow = start("jobs", IL_DATABASE=slow)
        text, status = finish(both[0])
        ok(says(text, status, "in time") and time.monotonic() - begun < 30,
           "one that says nothing is given up", text)
        text, status = finish(two)
        ok(status == 0, "of two hosts the one that answers is taken", text)
        text, status = finish(both[1])
        ok(status not in (0, None) and status > 0, "one that lies", text)
        text, status = finish(slow)
        ok(says(text, status, "timeout"),
           "a lock is waited for, not for ever", text)


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


def babble(listener, how):
    """Lets a client in, or not yet, and has always something to tell it."""
    notice = message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mhm\0\0") * 50000
    link = listener.accept()[0]
    with link, contextlib.suppress(OSError):
        link.recv(1000)
        link.sendall(message(b"R", struct.pack("!I", 0)))
        if how == "in":
            link.sendall(message(b"S", b"server_version\00015.0\0") +
                         message(b"S", b"in_hot_standby\0off\0") +
                         message(b"S", b"default_transaction_read_only\0off\0")
                         + message(b"Z", b"I"))
        while True:
            link.sendall(notice)


def test_babbler():
    """What never ends is given up as what never begins."""
    for how in ("before", "in"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=babble, args=(listener, how),
                             daemon=True).start()
            text, status = ilctl(
                "jobs", IL_DATABASE="postgresql://x@127.0.0.1:"
                f"{listener.getsockname()[1]}/x?sslmode=disable")
            ok(says(text, status, "in time"),
               f"a server that never stops talking is given up: {how}", text)


def test_environment(cluster, address):
    """The address says all: what libpq would take from the environment would
    have each program elsewhere, or under settings of somebody else's."""
    text, status = ilctl(
        "jobs", IL_DATABASE=address, PGHOSTADDR="192.0.2.1", PGUSER="nobody",
        PGOPTIONS="-c search_path=elsewhere", PGSERVICE="none",
        PGTARGETSESSIONATTRS="standby")
    ok(status == 0, "libpq's environment does not count", text)


def test_settings(cluster, address):
    """Settings of a database's that the store could not work with."""
    cluster.sql("CREATE DATABASE latin OWNER inline ENCODING 'LATIN1' "
                "LOCALE 'C' TEMPLATE template0")
    text, status = ilctl("migrate", IL_DATABASE=cluster.address("latin"))
    ok(says(text, status, "UTF8"), "one that cannot keep any text", text)
    strict = cluster.database("strict")
    cluster.sql("ALTER DATABASE strict SET default_transaction_isolation = "
                "'serializable'")
    done = subprocess.run(
        [os.path.join(BUILD, "tests/test_store_race")],
        env=dict(os.environ, TEST_STORE=strict), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120)
    ok(done.returncode == 0, "another isolation is not taken over",
       done.stdout)


def test_pooler(cluster, address):
    """What gives a server's session to one client after the other has a
    process number of its own."""
    def pool(client):
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{cluster.folder}/.s.PGSQL.{cluster.port}")
        threading.Thread(target=carry, args=(client, server, False),
                         daemon=True).start()
        carry(server, client, True)

    def carry(a, b, change):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                at = data.find(b"K\0\0\0\x0c") if change else -1
                if at >= 0:
                    data = data[:at + 5] + b"\0\0\0\7" + data[at + 9:]
                b.sendall(data)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: pool(listener.accept()[0]),
                         daemon=True).start()
        text, status = ilctl(
            "expire", IL_DATABASE="postgresql://inline@127.0.0.1:"
            f"{listener.getsockname()[1]}/faults?sslmode=disable")
        ok(says(text, status, "pooler"), "a pooler is told", text)


def test_stopped(cluster, address):
    """Its process stands still in the middle: the client has a time limit."""
    postmaster = cluster.process.pid
    os.kill(postmaster, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        text, status = ilctl("jobs", IL_DATABASE=address)
        ok(says(text, status, "in time") and time.monotonic() - begun < 30,
           "a server that stands still is given up", text)
    finally:
        os.kill(postmaster, signal.SIGCONT)


def test_flush(cluster):
    """With a standby that is not there: it is waited for."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                        "sql", "postgres", "connection.sql")
    with open(path) as file:
        flush = file.read().split("-- name: pg_flush\n")[1].split(";")[0]
    cluster.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    cluster.sql("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 30
    while cluster.sql("SHOW synchronous_standby_names") != "nobody":
        assert time.monotonic() < deadline
    waiting = subprocess.Popen(
        [cluster.bin + "/psql", "-XAtq", "-h", cluster.folder, "-p",
         cluster.port, "-U", "inline", "-d", "faults", "-c", flush],
        stdout=subprocess.DEVNULL)
    seen = "0"
    while seen == "0" and waiting.poll() is None:
        assert time.monotonic() < deadline
        seen = cluster.sql("SELECT count(pg_cancel_backend(pid)) FROM "
                           "pg_stat_activity WHERE wait_event = 'SyncRep'")
    ok(seen == "1", "a flush waits for the replica", seen)
    waiting.wait(30)
    cluster.sql("ALTER SYSTEM RESET synchronous_standby_names")
    cluster.sql("SELECT pg_reload_conf()")


def test_password(cluster):
    """By a file only, and never shown."""
    cluster.sql(f"CREATE ROLE secret LOGIN PASSWORD '{PASSWORD}' IN ROLE "
                "il_worker, il_reader")
    port = cluster.port

    def address(password):
        return (f"postgresql://secret:{password}@127.0.0.1:{port}/faults"
                "?sslmode=disable")
    path = os.path.join(STATE, "address")
    text, status = ilctl("jobs", IL_DATABASE=address(PASSWORD))
    ok(says(text, status, "IL_DATABASE_FILE") and PASSWORD not in text,
       "not in the environment", text)
    with open(path, "w") as file:
        file.write(address(PASSWORD) + "\n")
    text, status = ilctl("jobs", IL_DATABASE_FILE=path)
    ok(status == 0, "by a file", text)
    text, status = ilctl("jobs", IL_DATABASE_FILE=path, IL_DATABASE="x")
    ok(says(text, status, "is set, too"), "one of the two", text)
    with open(path, "w") as file:
        file.write(address("wrong" + PASSWORD) + "\n")
    text, status = ilctl("jobs", IL_DATABASE_FILE=path)
    ok(status == 78 and "authentication" in text and PASSWORD not in text,
       "a wrong one is not shown, nor tried again", text)
    text, status = ilctl("jobs", IL_DATABASE=address(PASSWORD + "?"))
    ok(says(text, status, "IL_DATABASE_FILE") and PASSWORD not in text,
       "one with a mark in it is not taken there either", text)
    with open(path, "w") as file:
        file.write(address(PASSWORD) + "\n")
    cluster.sql("ALTER ROLE secret CONNECTION LIMIT 0")
    text, status = ilctl("jobs", IL_DATABASE_FILE=path)
    ok(status == 1 and "too many connections" in text,
       "too many connections: that may end by itself", text)
    cluster.sql("ALTER ROLE secret CONNECTION LIMIT -1")
    text, status = ilctl("jobs", IL_DATABASE="postgresql://h:p%zz/x?=")
    ok(status == 78 or status == 1, "an address that is none", text)


def certificate(cluster):
    """A CA of our own, and a server's certificate for another name."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=STATE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=other.example", "-keyout", "key", "-out", "cert")
    for name in ("key", "cert"):
        with open(os.path.join(STATE, name), "rb") as file:
            data = file.read()
        path = os.path.join(cluster.data, "server." +
                            {"key": "key", "cert": "crt"}[name])
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o600)
        if cluster.user:
            os.chown(path, cluster.user.pw_uid, cluster.user.pw_gid)
    with open(os.path.join(cluster.data, "pg_hba.conf"), "w") as file:
        file.write("local all all trust\nhost all secret all scram-sha-256\n"
                   "host all all all trust\n")


def test_certificate(cluster):
    port = cluster.port
    base = f"postgresql://inline@localhost:{port}/faults?"
    root = "sslrootcert=" + os.path.join(STATE, "cert")
    text, status = ilctl("jobs", IL_DATABASE=base + root)
    ok(says(text, status, "other.example"),
       "a certificate for another name is refused", text)
    text, status = ilctl("jobs", IL_DATABASE=base + root + "&sslmode=verify-ca")
    ok(status == 0, "unless the operator says so", text)
    text, status = ilctl("jobs", HOME=STATE, IL_DATABASE=base)
    ok(says(text, status, "certificate"), "without a root nothing is trusted",
       text)


def test_full(cluster):
    """A tablespace of 40 MiB."""
    mounted = os.path.join(cluster.folder, "small")
    os.mkdir(mounted)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "inline",
                           mounted], capture_output=True)
    if done.returncode != 0:
        ok(True, "a full disk # SKIP no right to mount")
        return
    try:
        space = os.path.join(mounted, "space")
        os.mkdir(space)
        if cluster.user:
            os.chown(space, cluster.user.pw_uid, cluster.user.pw_gid)
        cluster.sql(f"CREATE TABLESPACE small LOCATION '{space}'")
        cluster.sql("CREATE DATABASE small OWNER inline TABLESPACE small")
        done = subprocess.run(
            [os.path.join(BUILD, "tests/test_store_group")],
            env=dict(os.environ, TEST_FULL="1",
                     TEST_STORE=cluster.address("small")),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=120)
        ok(done.returncode == 0 and done.stdout.count("\nok") >= 7,
           "full: told; nothing promised is lost; in order again", done.stdout)
        cluster.sql("DROP DATABASE small WITH (FORCE)")
        cluster.sql("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=False)


skip_unless_installed()
with tempfile.TemporaryDirectory(prefix="inline-test-") as STATE:
    os.chmod(STATE, 0o755)
    with Cluster(["listen_addresses=127.0.0.1", f"port={free_port()}",
                  "ssl=on"], tls=certificate) as cluster:
        address = cluster.database("faults")
        test_migrate(cluster, address)
        test_not_there(cluster, address)
        test_waits(cluster)
        test_babbler()
        test_environment(cluster, address)
        test_settings(cluster, address)
        test_pooler(cluster, address)
        test_stopped(cluster, address)
        test_flush(cluster)
        test_password(cluster)
        test_certificate(cluster)
        test_full(cluster)
print(f"1..{count}")
sys.exit(failed != 0)
