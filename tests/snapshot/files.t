#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""il-snapshot copies files of the HTTP APIs, and gives them to il-api of any
host: to S3 and to a folder, with what goes wrong in both."""

import concurrent.futures
import functools
import hashlib
import os
import shutil
import signal
import socket
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import snapshotlib  # noqa: E402
from snapshotlib import *  # noqa: E402,F403
try:
    from bucket import *  # noqa: E402,F403
except ImportError:
    print("1..0 # SKIP no python3-botocore")
    sys.exit()

NODES = {"IL_NODES": "a=127.0.0.1,b=127.0.0.2"}
PART = 4 * MIB
PREFIX = "some/prefix/"


class Host:
    """An il-snapshot, its folder of files, and who asks it."""

    def __init__(self, bucket=None, store=None, folder=True, **settings):
        settings = {**NODES, **settings}
        if bucket:
            self.node = node_of(bucket.url, **settings)
        else:
            self.node = Snapshotter(store, **settings)
        self.files = os.path.join(self.node.state, "files")
        self.socket = os.path.join(self.node.state,
                                   "broker/api/snapshot.sock")
        self.told, self.logged = self.node.told, self.node.logged
        wait_for(lambda: "all compared" in self.logged(), "a look")
        if folder:
            self.make_folder()

        self.close = self.node.close

    def make_folder(self):
        count = self.logged().count("all compared")
        os.mkdir(self.files)
        self.node.forget(99)    # it looks again whenever something happens
        wait_for(lambda: self.logged().count("all compared") > count)

    def restart(self):
        count = self.logged().count("all compared")
        self.node.start()
        wait_for(lambda: self.logged().count("all compared") > count)

    def put(self, data, note=b"", age=0, name=None, wait=True):
        """As il-api: its metadata, and then itself by a rename."""
        name = name or str(uuid.uuid4())
        had = self.told()["files"]
        if note:
            with open(os.path.join(self.files, name + ".meta"), "wb") as file:
                file.write(note)
        draft = os.path.join(self.files, "new-" + name)
        with open(draft, "wb") as file:
            file.write(data)
        os.utime(draft, times=(time.time() - age,) * 2)
        os.rename(draft, os.path.join(self.files, name))
        if wait:
            wait_for(lambda: self.told()["files"] > had, "a copy")
        return name

    def remove(self, name):
        for path in (name, name + ".meta"):
            os.unlink(os.path.join(self.files, path))

    def ask(self, packet, path=None):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(PATIENCE)
        sock.connect(path or self.socket)
        sock.send(packet)
        return sock

    def ask_copy(self, name):
        return self.ask(pack("COPY", ("NAME", name)))

    def get(self, name):
        """(bytes, note), None, or (bytes so far, an error's name)."""
        with self.ask_copy(name) as sock:
            kind, fields = unpack(sock.recv(65536))
            if kind == "GRANTED" and "SIZE" not in fields:
                return None
            note, size, data = fields.get("DATA"), fields.get("SIZE"), b""
            while kind != "REFUSED" and len(data) < size:
                kind, fields = unpack(sock.recv(65536))
                if kind == "BYTES":
                    assert 0 < len(fields["DATA"]) <= N["FRAME_CHUNK"]
                    data += fields["DATA"]
            if kind == "REFUSED":
                return data, CODES.get(fields["CODE"], fields["CODE"])
            assert len(data) == size
            return data, note


def head_of(name, data, note=b"", used=None):
    """As copy_head.h has it."""
    parts = [data[i:i + PART] for i in range(0, len(data), PART)]
    text = (f"inline-file 1 {name} {len(data)} "
            f"{int((used or time.time()) * 1000)} {len(note)}\n".encode() +
            b"".join(hashlib.sha256(part).digest() for part in parts) + note)
    return text + hashlib.sha256(text).digest()


class Pair:
    def __init__(self):
        self.bucket = Bucket()
        self.host, self.away = Host(self.bucket), Host(self.bucket)

    def close(self):
        self.host.close()
        self.away.close()
        self.bucket.over.set()
        self.bucket.shutdown()
        self.bucket.server_close()

    def names(self, name):
        """The last names of its objects."""
        return {n.rsplit("/")[-1] for n in list(self.bucket.objects)
                if n.startswith(f"{PREFIX}files/{name}/")}

    def store(self, name, last, data):
        path = f"{PREFIX}files/{name}/{last}"
        self.bucket.objects[path] = data
        self.bucket.times.setdefault(path, time.time())

    def fails_and_is_made_good(self, why, data=b"data"):
        name = self.host.put(data, b"n", wait=False)
        wait_for(lambda: why in self.host.logged(), why)
        assert self.host.told()["files_failing_ms"]
        assert self.away.get(name) is None
        self.bucket.well()
        wait_for(lambda: self.host.told()["files"], "another try")
        assert self.away.get(name) == (data, b"n")
        assert not self.host.told()["files_failing_ms"]


# A kernel has 128 inotify instances for a user, and each host takes two.
snapshotlib.together = concurrent.futures.ThreadPoolExecutor(6)


def with_pair(function):
    """A test that waits most of its time, with hosts of its own."""
    @functools.wraps(function)
    def told():
        pair = Pair()
        try:
            function(pair)
        finally:
            pair.close()
    return aside(told)


pair = Pair()
bucket, host, away = pair.bucket, pair.host, pair.away


@test
def a_file_is_given_by_another_host_bit_by_bit():
    for size, note in ((0, b""), (0, b"of nothing"), (1000, b"1 a\0b\n"),
                       (PART, b"x" * 16640), (2 * PART + 1, b"many")):
        data = os.urandom(size)
        name = host.put(data, note)
        assert away.get(name) == (data, note), (size, away.logged())
        assert host.get(name) == (data, note)
        assert pair.names(name) == {"head"} | {
            "%02d" % i for i in range((size + PART - 1) // PART)}
    assert away.get(str(uuid.uuid4())) is None
    assert bucket.unsigned == 0
    assert host.told()["files"] == 5 and not host.told()["files_failing_ms"]


@test
def what_is_removed_takes_its_copy_along():
    names = [host.put(os.urandom(size), b"note") for size in (PART + 9, 0)]
    for name in names:
        host.remove(name)
    for name in names:
        wait_for(lambda: not pair.names(name), "a removal")
        assert away.get(name) is None
    gone = host.put(b"soon", b"gone", wait=False)   # before it was copied
    host.remove(gone)
    host.put(b"after it")
    assert not pair.names(gone)


@test
def what_is_no_file_of_ours_is_left_alone():
    had = set(bucket.objects)
    for kind in ("link", "fifo", "folder", "id", "old", "huge", "dot"):
        name = str(uuid.uuid4())
        draft = os.path.join(host.files, "new-" + name)
        if kind == "link":
            os.symlink("/etc/passwd", draft)
        elif kind == "fifo":
            os.mkfifo(draft)
        elif kind == "folder":
            os.mkdir(draft)
        else:
            with open(draft, "wb") as file:
                file.truncate(100 * MIB + 1 if kind == "huge" else 5)
        if kind == "old":
            os.utime(draft, times=(1, 1))
        os.rename(draft, os.path.join(host.files, {
            "id": name.upper(), "dot": name + ".new"}.get(kind, name)))
    last = host.put(b"the last one")
    assert set(bucket.objects) - had == {
        f"{PREFIX}files/{last}/{n}" for n in ("head", "00")}
    assert "too large to be copied file=" in host.logged()
    assert not host.told()["files_failing_ms"]


@test
def each_socket_has_its_own_questions():
    file = str(uuid.uuid4())
    for folder in ("worker", "ctl"):
        path = os.path.join(host.node.state, "broker", folder,
                            "snapshot.sock")
        assert host.node.answer(host.ask(pack("COPY", ("NAME", file)), path)
                                ) == "INPUT", folder
    for packet in (
            pack("FORGET", ("SANDBOX", sandbox_id(1))),
            pack("RESTORE", ("SANDBOX", sandbox_id(1)),
                 ("NAME", sandbox_id(2))),
            pack("COPY", ("NAME", file), ("SANDBOX", sandbox_id(1)))[:-1],
            pack("COPY"), pack("COPY", ("NAME", file + "0")), b"\0",
            pack("COPY", ("NAME", file.upper())),
            pack("COPY", ("NAME", "../../" + file[:30]))):
        assert host.node.answer(host.ask(packet)) == "INPUT", packet


@test
def what_is_damaged_is_not_given():
    data = os.urandom(PART + 100)
    name, other = host.put(data, b"n"), host.put(data, b"o")
    whole = dict(bucket.objects)

    def head(of, end):
        return whole[f"{PREFIX}files/{of}/head"][:end]
    for last, bad, got in (
            ("00", b"x" * PART, b""), ("00", data[:PART - 1], b""),
            ("00", data[:PART] + b"x", b""), ("01", b"x" * 100, data[:PART]),
            ("01", None, data[:PART]), ("00", None, b""),
            ("head", b"", b""), ("head", head(name, -1), b""),
            ("head", head(other, None), b""), ("head", b"x" * MIB, b""),
            ("head", head(name, -1) + b"x", b"")):
        if bad is None:
            del bucket.objects[f"{PREFIX}files/{name}/{last}"]
        else:
            pair.store(name, last, bad)
        assert away.get(name) == (got, "INPUT"), (last, bad and bad[:9])
        bucket.objects.update(whole)
    assert away.get(name) == (data, b"n")
    bucket.objects[f"{PREFIX}files/{other}/head"] = b"junk"
    host.remove(other)      # it is known which parts there can be
    wait_for(lambda: not pair.names(other))


@test
def what_is_past_its_time_is_not_given():
    name = str(uuid.uuid4())
    pair.store(name, "00", b"data")
    pair.store(name, "head", head_of(name, b"data", b"n"))
    assert away.get(name) == (b"data", b"n")
    pair.store(name, "head", head_of(name, b"data", b"n",
                                     time.time() - 3601))
    assert away.get(name) is None
    # nor one that would never end
    pair.store(name, "head", head_of(name, b"data", b"n",
                                     time.time() + 3000))
    assert away.get(name) == (b"data", b"n")
    pair.store(name, "head", head_of(name, b"data", b"n",
                                     time.time() + 4000))
    assert away.get(name) == (b"", "INPUT")


@with_pair
def who_takes_nothing_keeps_no_place(pair):
    away, data = pair.away, os.urandom(PART)
    name = pair.host.put(data, b"n")
    stuck = [away.ask_copy(name) for _ in range(3)]
    wait_for(lambda: len(away.node.children()) == 3)
    waits = away.ask_copy(name)
    # a sandbox has places of its own, and three keep all of il-api's
    assert away.node.restore(1, 2) is None
    assert len(away.node.children()) == 3
    stuck.pop().close()     # one hangs up, and the next one has its place
    assert unpack(waits.recv(65536))[0] == "GRANTED"
    waits.close()
    assert away.get(name) == (data, b"n")
    wait_for(lambda: not away.node.children(), "they are dropped")
    for sock in stuck:      # what was sent, and not all of it
        packets = []
        while packet := sock.recv(65536):
            packets.append(packet)
        assert 0 < len(packets) < 20, len(packets)


@with_pair
def one_that_says_nothing_is_given_up(pair):
    name = pair.host.put(b"data", b"n")
    pair.bucket.fail(1 << 30, silence, "GET")
    asked = [pair.away.ask_copy(name) for _ in range(5)]
    wait_for(lambda: len(pair.away.node.children()) == 3)
    for sock in asked:      # who hangs up is not worked for
        sock.close()
    wait_for(lambda: not pair.away.node.children())
    assert "a copy is not given" not in pair.away.logged()
    begin = time.monotonic()
    asked = [pair.away.ask_copy(name) for _ in range(5)]
    for sock in asked:      # three are at work, two wait for a place
        kind, fields = unpack(sock.recv(65536))
        assert kind == "REFUSED" and CODES[fields["CODE"]] == "UNAVAILABLE"
    assert time.monotonic() - begin < 15
    assert "no answer in time" in pair.away.logged()
    pair.bucket.over.set()
    pair.bucket.well()
    assert pair.away.get(name) == (b"data", b"n")


@with_pair
def a_start_sweeps_and_compares(pair):
    """What is past its time goes, whosever it is; what was used is kept; what
    is only not in the folder stays."""
    host, bucket = pair.host, pair.bucket
    used, torn, off, fresh = (host.put(os.urandom(PART + 5), b"n")
                              for _ in range(4))
    unused = pair.away.put(b"of another host")
    assert host.node.stop() == 0
    for name in ([used, fresh, unused] + [str(uuid.uuid4())] * 2):
        for last in ("head", "00", "01"):
            bucket.times[f"{PREFIX}files/{name}/{last}"] = \
                time.time() - 7300
    lost, young = str(uuid.uuid4()), str(uuid.uuid4())
    for name, age in ((lost, 7300), (young, 7100)):     # without a head
        pair.store(name, "00", b"x")
        bucket.times[f"{PREFIX}files/{name}/00"] = time.time() - age
    bucket.times[f"{PREFIX}files/{fresh}/head"] = time.time() - 800
    del bucket.objects[f"{PREFIX}files/{torn}/01"]
    late = host.put(b"meanwhile", wait=False)
    os.unlink(os.path.join(host.files, off))
    before = len(bucket.seen)
    host.restart()
    seen = {n[len(PREFIX + "files/"):] for m, n, _ in bucket.seen[before:]
            if m == "PUT"}
    assert seen == {used + "/head", torn + "/head", torn + "/00",
                    torn + "/01", late + "/head", late + "/00"}, seen
    for name, there in ((used, 1), (torn, 1), (off, 1), (fresh, 1), (late, 1),
                        (young, 1), (unused, 0), (lost, 0)):
        assert bool(pair.names(name)) == bool(there), name
    assert pair.away.get(torn)[1] == pair.away.get(used)[1] == b"n"
    assert bucket.unsigned == 0


@with_pair
def an_empty_folder_removes_nothing(pair):
    host = pair.host
    name = host.put(b"data", b"n")
    count = host.logged().count("all compared")
    os.kill(host.node.process.pid, signal.SIGSTOP)
    host.put(b"data", b"n", name=name, wait=False)  # it came, and then
    shutil.move(host.files, host.files + ".away")
    os.mkdir(host.files)
    os.kill(host.node.process.pid, signal.SIGCONT)
    host.node.forget(99)
    wait_for(lambda: host.logged().count("all compared") > count)
    assert pair.away.get(name) == (b"data", b"n")
    other = host.put(b"in the new one")
    assert pair.away.get(other)[0] == b"in the new one"
    host.node.stop(signal.SIGKILL)
    shutil.rmtree(host.files)
    host.restart()
    assert pair.away.get(name) == (b"data", b"n")


@with_pair
def killed_in_the_middle_nothing_is_lost(pair):
    host, bucket = pair.host, pair.bucket
    data = os.urandom(2 * PART + 7)
    name = str(uuid.uuid4())
    bucket.fail(1 << 30, silence, "PUT", name + "/01")
    before = host.put(b"before")
    host.put(data, b"n", name=name, wait=False)
    wait_for(lambda: [n for _, n, _ in bucket.seen if name + "/01" in n])
    host.node.make(1)       # it holds up no sandbox
    host.node.wait_saved()
    assert pair.away.get(name) is None
    host.node.stop(signal.SIGKILL)
    bucket.over.set()
    bucket.well()
    host.restart()
    assert pair.away.get(name) == (data, b"n")
    assert pair.away.get(before) == (b"before", b"")


@with_pair
def its_pass_killed_it_goes_on(pair):
    host, bucket = pair.host, pair.bucket
    gone = host.put(b"to go", b"n")
    bucket.fail(1, silence, "DELETE")
    host.remove(gone)
    wait_for(lambda: [n for m, n, _ in bucket.seen
                      if m == "DELETE" and gone in n])
    for pid in wait_for(host.node.children):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "not copied: its process died; again in 5 s" in
             host.logged())
    wait_for(lambda: not pair.names(gone), "a removal")
    bucket.over.set()


@with_pair
def what_comes_just_before_a_stop_is_copied(pair):
    name = pair.host.put(b"the last word", b"n", wait=False)
    assert pair.host.node.stop() == 0
    assert pair.away.get(name) == (b"the last word", b"n")


@with_pair
def what_comes_while_all_are_compared_is_told_before_a_stop(pair):
    host, bucket = pair.host, pair.bucket
    gone = host.put(b"to go", b"n")
    assert host.node.stop() == 0
    bucket.fail(1, silence, "GET")
    host.node.start()
    wait_for(lambda: bucket.faults[0][0] == 0, "a list")
    host.remove(gone)
    name = host.put(b"late", b"n", wait=False)
    host.node.process.send_signal(signal.SIGTERM)
    bucket.over.set()
    assert host.node.process.wait(PATIENCE) == 0
    assert not pair.names(gone)
    assert pair.away.get(name) == (b"late", b"n")


@with_pair
def a_service_that_refuses_is_told_and_tried_again(pair):
    pair.bucket.fail(1 << 30, status(403, "AccessDenied"), "PUT")
    pair.fails_and_is_made_good("not copied: files/")
    assert "403 AccessDenied" in pair.host.logged()


@with_pair
def an_overloaded_one_has_its_pause(pair):
    pair.bucket.fail(1, status(503, "SlowDown", Retry_After="1"), "PUT")
    name = pair.host.put(b"data", b"n")
    assert pair.away.get(name) == (b"data", b"n")
    assert not pair.host.told()["files_failing_ms"]


@with_pair
def half_a_body_is_none_and_then_it_is_whole(pair):
    name = pair.host.put(b"data" * 100, b"n")
    for how in (half, status(404, "NotFound"), page_of_a_proxy):
        pair.bucket.fail(1 << 30, how, "GET")
        assert pair.away.get(name) == (b"", "UNAVAILABLE")
        pair.bucket.well()
    pair.bucket.fail(1, half, "GET")
    assert pair.away.get(name) == (b"data" * 100, b"n")


@aside
def with_a_folder_it_is_the_same():
    host = Host()
    away = Host(store=host.node.store)
    path = os.path.join(host.node.store, "files")
    data = os.urandom(PART + 77)
    name, other = host.put(data, b"n"), away.put(b"of another")
    assert away.get(name) == (data, b"n") and host.get(other)[0]
    with open(os.path.join(path, name, "00"), "r+b") as file:
        file.write(b"damage")
    assert away.get(name) == (b"", "INPUT")
    host.remove(name)
    wait_for(lambda: not os.path.exists(os.path.join(path, name)))
    # killed in the middle: a draft, and parts without a head
    host.node.stop(signal.SIGKILL)
    lost = [os.path.join(path, str(uuid.uuid4())) for _ in range(2)]
    for folder, age in zip(lost, (7300, 7100)):
        os.mkdir(folder)
        for last in ("00", "draft"):
            file = os.path.join(folder, last)
            open(file, "w").close()
            os.utime(file, times=(time.time() - age,) * 2)
    late = host.put(data, b"late", wait=False)
    host.restart()
    assert away.get(late) == (data, b"late")
    assert [os.path.exists(folder) for folder in lost] == [False, True]
    assert away.get(other)[0] == b"of another"


@aside
def more_change_than_are_kept_in_mind():
    host = Host()
    gone = host.put(b"to go")
    os.kill(host.node.process.pid, signal.SIGSTOP)
    draft = os.path.join(host.files, "new")
    for _ in range(10010):
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY))
        os.rename(draft, os.path.join(host.files, str(uuid.uuid4())))
    os.unlink(os.path.join(host.files, gone))
    os.kill(host.node.process.pid, signal.SIGCONT)
    wait_for(lambda: host.told()["files"] == 10011, "all of them")
    assert "more files changed than are kept in mind" in host.logged()
    store = os.path.join(host.node.store, "files")
    assert set(os.listdir(store)) == set(os.listdir(host.files))


@aside
def a_folder_that_cannot_be_had_is_told():
    host = Host(folder=False)
    assert not host.told()["files_failing_ms"]  # there is no file yet
    open(host.files, "w").close()
    host.node.forget(99)
    wait_for(lambda: host.told()["files_failing_ms"])
    assert "files: Not a directory" in host.logged()
    os.unlink(host.files)
    host.make_folder()
    assert not host.told()["files_failing_ms"]
    assert host.get(host.put(b"data", b"n")) == (b"data", b"n")


@test
def one_host_alone_copies_nothing():
    alone = node_of(bucket.url)
    assert set(os.listdir(os.path.join(alone.state, "broker"))) == {
        "ctl", "worker"}
    os.mkdir(os.path.join(alone.state, "files"))
    name = str(uuid.uuid4())
    open(os.path.join(alone.state, "files", name), "w").close()
    alone.make(1)
    alone.wait_saved()
    assert not pair.names(name) and not alone.told()["files"]


run()
