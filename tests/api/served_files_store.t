#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The store behind /v1/files, over HTTP: what is not its own is not followed,
what is not used ends, what is full says so, what dies leaves nothing."""

import os
import signal
import socket
import struct
import threading
import time

from interpreter import FORM, UNKNOWN, Interpreter, form, part, refused
from served import Served, wait_for
from service import own_mounts
from tap import run, test

own_mounts()
served = Served(IL_API_CELLS="1").__enter__()
client = Interpreter(served)
FOLDER = os.path.join(served.settings["IL_STATE_DIR"], "files")
FULL = "The file store is full"
PLANTED = ["%08d-0000-4000-8000-000000000000" % n for n in range(1, 7)]


class FastCGI:
    """A request that goes to il-api as nginx sends it, and no further than one
    wants."""

    def __init__(self, service, name, path, body_length, **params):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(os.path.join(service.settings["IL_STATE_DIR"],
                                       name))
        self.record(1, struct.pack(">HB5x", 1, 0))
        params = {"REQUEST_METHOD": "POST", "DOCUMENT_URI": path,
                  "CONTENT_TYPE": FORM["Content-Type"],
                  "CONTENT_LENGTH": str(body_length), **params}
        self.record(4, b"".join(
            bytes([len(key), len(value)]) + key.encode() + value.encode()
            for key, value in params.items()))
        self.record(4, b"")

    def record(self, kind, data):
        self.sock.sendall(struct.pack(">BBHHBx", 1, kind, 1, len(data), 0) +
                          data)

    def send(self, data):
        """Some of the body."""
        for at in range(0, len(data), 32768):
            self.record(5, data[at:at + 32768])

    def close(self):
        self.sock.close()


def half_an_upload(service):
    """An upload that has got stuck half-way, and the name of its file."""
    before = set(os.listdir(FOLDER))
    upload = FastCGI(service, "api.sock", "/v1/files", 10_000_000)
    upload.send(part(bytes(1_000_000), 'name="file"; filename="f"'))
    (name,) = wait_for(lambda: [n for n in os.listdir(FOLDER)
                                if n.startswith("new-") and n not in before])
    wait_for(lambda: os.stat(os.path.join(FOLDER, name)).st_size > 900_000)
    return upload, name


def count(service, name):
    """A number of /metrics."""
    (line,) = [text for text in service.get("/metrics").text.splitlines()
               if text.startswith(name + " ")]
    return int(line.split()[1])


# ---- what is not its own ----

@test
def what_was_planted_is_not_followed_nor_listed_nor_removed():
    secret = os.path.join(served.folder, "secret")
    with open(secret, "w") as file:
        file.write("secret")
    at = [os.path.join(FOLDER, name) for name in PLANTED]
    os.symlink(secret, at[0])
    os.symlink("/etc/passwd", at[1])
    os.mkdir(at[2])
    os.mkfifo(at[3])
    os.symlink(at[2], at[4])
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(at[5])
    for file_id in PLANTED:
        want = "File with ID '%s' not found" % file_id
        refused(client.download(file_id), 404, want)
        refused(client.delete(file_id), 404, want)
        for path in ("/v1/execute", "/v1/execute/stream", "/v1/sessions"):
            refused(served.post(path, {"code": "1", "files": [
                {"path": "p", "file_id": file_id}]}), 404,
                "File with ID '%s' not found for path 'p'." % file_id)
    assert client.listed() == {}, client.listed()
    for path in at:
        assert os.path.lexists(path), path
    with open(secret) as file:
        assert file.read() == "secret"
    os.rmdir(at[2])
    for path in at[:2] + at[3:]:
        os.remove(path)


@test
def metadata_that_is_a_link_is_not_followed():
    file_id = client.put("name", b"abc")
    meta = os.path.join(FOLDER, file_id + ".meta")
    os.remove(meta)
    for target in ("/etc/passwd", "/dev/zero"):
        os.symlink(target, meta)
        assert client.listed()[file_id]["filename"] == "unnamed"
        assert client.download(file_id).body == b"abc"
        os.remove(meta)
    os.mkfifo(meta)
    assert client.listed()[file_id]["filename"] == "unnamed"
    os.remove(meta)
    for text in ("", "1 ", "2 5\nx", "1 -5\nx", "1 99999999999999999999\nx",
                 "1 5", "\0" * 100000):
        with open(meta, "w") as file:
            file.write(text)
        assert client.listed()[file_id]["filename"] == "unnamed", text
    assert client.delete(file_id).status == 204
    wait_for(lambda: os.listdir(FOLDER) == [])


@test
def only_lower_case_uuids_of_version_4_are_ids():
    file_id = client.put("name", b"abc")
    for bad in (file_id.upper(), file_id.replace("-", ""),
                "{%s}" % file_id, file_id[:14] + "1" + file_id[15:],
                file_id[:19] + "c" + file_id[20:], file_id + "0",
                file_id[:-1], file_id + ".meta", "new-" + file_id,
                UNKNOWN):
        if bad == file_id:
            continue
        os.link(os.path.join(FOLDER, file_id), os.path.join(FOLDER, "other"))
        if bad.lower() != file_id and not bad.endswith(".meta"):
            os.rename(os.path.join(FOLDER, "other"),
                      os.path.join(FOLDER, bad))
        if bad != UNKNOWN:
            refused(client.download(bad), 404,
                    "File with ID '%s' not found" % bad)
        assert bad == UNKNOWN or bad not in client.listed()
        for name in ("other", bad):
            path = os.path.join(FOLDER, name)
            if os.path.exists(path) and not name.endswith(".meta"):
                os.remove(path)
    assert client.download(file_id).body == b"abc"
    client.delete(file_id)


@test
def its_folder_and_files_are_private():
    file_id = client.put("name", b"abc")
    assert os.stat(FOLDER).st_mode & 0o777 == 0o700
    for name in (file_id, file_id + ".meta"):
        mode = os.stat(os.path.join(FOLDER, name)).st_mode
        assert mode & 0o777 == 0o600, oct(mode)
    client.delete(file_id)


# ---- what dies ----

@test
def an_upload_whose_sender_goes_leaves_nothing():
    upload, name = half_an_upload(served)
    assert client.listed() == {}
    upload.close()
    wait_for(lambda: os.listdir(FOLDER) == [])


@test
def a_sender_that_hangs_up_on_nginx_leaves_nothing():
    link = served.connect()
    link.connect()
    link.sock.sendall(b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Type: "
                      + FORM["Content-Type"].encode() +
                      b"\r\nContent-Length: 10000000\r\n\r\n" +
                      part(bytes(2_000_000), 'name="file"; filename="f"'))
    link.close()
    assert client.listed() == {}
    assert os.listdir(FOLDER) == []
    folder = os.path.join(served.settings["IL_STATE_DIR"], "nginx", "body")
    wait_for(lambda: not [f for _, _, names in os.walk(folder)
                          for f in names])


@test
def a_child_that_is_killed_in_mid_upload_leaves_no_file():
    pids = set(served.pids("il-api"))
    upload, name = half_an_upload(served)
    (child,) = [pid for pid in all_pids() if holds(pid, name)]
    os.kill(child, signal.SIGKILL)
    upload.close()
    assert client.listed() == {}
    assert client.upload("a", b"x").status == 201
    assert set(served.pids("il-api")) == pids, "the master went on"
    for file_id in client.listed():
        client.delete(file_id)


@test
def il_api_that_is_killed_in_mid_upload_has_left_nothing_when_it_is_back():
    upload, name = half_an_upload(served)
    open(os.path.join(FOLDER, "new-%s.meta" % PLANTED[0]), "w").close()
    open(os.path.join(FOLDER, "%s.meta" % PLANTED[1]), "w").close()
    open(os.path.join(FOLDER, "README"), "w").close()
    served.kill("il-api")
    upload.close()
    wait_for(lambda: served.get("/v1/files").status == 200)
    assert os.listdir(FOLDER) == ["README"], os.listdir(FOLDER)
    os.remove(os.path.join(FOLDER, "README"))
    assert count(served, "inline_api_stored_bytes") == 0
    assert count(served, "inline_api_stored_files") == 0


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def holds(pid, name):
    """Does a process have the store's file of that name open?"""
    try:
        return any(os.readlink("/proc/%d/fd/%s" % (pid, fd)).endswith(name)
                   for fd in os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return False


# ---- what is not used ----

@test
def what_is_not_used_for_its_time_is_gone():
    with Served(IL_API_CELLS="1", IL_API_FILES_SECONDS="3") as short:
        other = Interpreter(short)
        folder = os.path.join(short.settings["IL_STATE_DIR"], "files")
        began = time.monotonic()
        used, unused = other.put("used", b"1"), other.put("unused", b"2")
        made = short.execute("_ = open('f', 'w').write('1')")["files"][0][
            "file_id"]
        while time.monotonic() < began + 6:
            assert short.execute("1", files=[{"path": "p", "file_id": used}])[
                "exit_code"] == 0, "gone while it was used"
            assert other.download(used).status == 200
            other.listed()  # which is no use
            time.sleep(0.2)
        for gone in (unused, made):
            refused(other.download(gone), 404,
                    "File with ID '%s' not found" % gone)
            refused(short.post("/v1/execute", {"code": "1", "files": [
                {"path": "p", "file_id": gone}]}), 404,
                "File with ID '%s' not found for path 'p'." % gone)
        assert set(other.listed()) == {used}, other.listed()
        wait_for(lambda: other.listed() == {})
        refused(other.delete(used), 404,
                "File with ID '%s' not found" % used)
        short.kill("il-api")  # it sweeps when it starts
        wait_for(lambda: short.get("/v1/files").status == 200)
        assert os.listdir(folder) == [], os.listdir(folder)


# ---- what is full ----

@test
def a_full_store_is_507_and_runs_go_on():
    with Served(IL_API_CELLS="2", IL_API_FILES_QUOTA="1m") as small:
        other = Interpreter(small)
        first = other.put("a", bytes(700_000))
        for data in (bytes(700_000), bytes((1 << 20) + 1)):
            refused(other.upload("b", data), 507, FULL)
        answer = small.post("/v1/execute", {
            "code": "print('went')\nopen('big', 'wb').write(bytes(700_000))\n"
                    "_ = open('small', 'w').write('1')"},
            {"Inline-Extras": "1"})
        assert answer.json["stdout"] == "went\n", answer
        assert other.made(answer.json) == {"small": b"1"}, answer
        assert answer.json["left_out"] == [
            {"path": "big", "size_bytes": 700_000,
             "why": "the store is full"}], answer
        assert small.execute("1", files=[{"path": "p", "file_id": first}])[
            "stdout"] == "1\n"
        events = other.streamed("_ = open('big', 'wb').write(bytes(700_000))")
        assert events[-1].name == "result", events
        assert events[-1].data["files"] == [], events
        assert other.delete(first).status == 204
        assert other.upload("b", bytes(700_000)).status == 201
        assert len(other.listed()) == 2, other.listed()
        assert not [n for n in os.listdir(os.path.join(
            small.settings["IL_STATE_DIR"], "files")) if n[:4] == "new-"]


@test
def a_quota_holds_for_uploads_at_the_same_time():
    with Served(IL_API_CELLS="4", IL_API_FILES_QUOTA="10m") as small:
        other = Interpreter(small)
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(
            other.upload("a", bytes(3 << 20)).status)) for _ in range(12)]
        threads += [threading.Thread(target=lambda: seen.append(len(
            small.execute("_ = open('f', 'wb').write(bytes(3 << 20))")[
                "files"]))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = other.listed()
        assert sum(f["size_bytes"] for f in kept.values()) <= 10 << 20, kept
        assert len(kept) == seen.count(201) + seen.count(1), (seen, kept)
        assert set(seen) <= {201, 507, 0, 1} and len(kept) <= 3, seen
        for file_id in kept:
            other.delete(file_id)
        assert count(small, "inline_api_stored_bytes") == 0
        assert other.upload("a", bytes(9 << 20)).status == 201


@test
def a_disk_that_is_nearly_full_is_507_and_runs_go_on():
    small = Served(IL_API_CELLS="1")
    small.settings["IL_API_FILES"] = small.mount_memory("disk", "300m")
    with small:
        other = Interpreter(small)
        kept = other.put("a", bytes(30 << 20))
        refused(other.upload("b", bytes(30 << 20)), 507, FULL)
        answer = small.execute("_ = open('f', 'wb').write(bytes(30 << 20))")
        assert answer["exit_code"] == 0 and answer["files"] == [], answer
        assert other.download(kept).body == bytes(30 << 20)
        other.delete(kept)
        assert other.upload("b", bytes(30 << 20)).status == 201


@test
def a_disk_that_is_gone_is_500_or_507_and_runs_go_on():
    small = Served(IL_API_CELLS="1")
    small.settings["IL_API_FILES"] = small.mount_memory("disk", "8m")
    with small:
        other = Interpreter(small)
        for data in (b"", b"abc"):
            refused(other.upload("b", data), 507, FULL)
        answer = small.execute("_ = open('f', 'w').write('1')")
        assert answer["exit_code"] == 0 and answer["files"] == [], answer


# ---- what is long ----

@test
def a_list_of_thousands_is_whole():
    want = {}
    for number in range(3000):
        file_id = "%08x-0000-4000-8000-%012x" % (number, number)
        path = os.path.join(FOLDER, file_id)
        with open(path + ".meta", "w") as file:
            file.write("1 1700000000250\nnäme\u2028%d" % number)
        with open(path, "w") as file:
            file.write("x" * (number % 10))
        want[file_id] = {"file_id": file_id, "filename": "näme\u2028%d" %
                         number, "size_bytes": number % 10,
                         "upload_time": 1700000000.25}
    assert client.listed() == want
    for file_id in want:
        os.remove(os.path.join(FOLDER, file_id))
        os.remove(os.path.join(FOLDER, file_id + ".meta"))


@test
def nobody_died_of_it():
    body = form(part(b"abc", 'name="file"; filename="f"'))
    assert client.post_form(body).status == 201


try:
    run()
finally:
    served.close()
