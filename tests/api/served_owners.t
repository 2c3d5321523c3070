#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""With tokens, what one made is not there for another: sessions and files."""

import contextlib
import ctypes
import os
import struct
import subprocess
import tempfile

from served import Served
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-api-")
path = os.path.join(folder.name, "tokens")


def add(name):
    made = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, "add", name], check=True, capture_output=True,
                          text=True).stdout
    return {"Authorization": "Bearer " + made.split()[-1]}


alice = add("alice")
bob = add("bob")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="1",
                IL_API_FILES_QUOTA="4m").__enter__()
NOWHERE = "01234567-89ab-4cde-8f01-23456789abcd"


def upload(who, content):
    answer = served.request(
        "POST", "/v1/files", b'--b\r\nContent-Disposition: form-data; '
        b'name="file"; filename="f"\r\n\r\n' + content + b'\r\n--b--\r\n',
        {"Content-Type": "multipart/form-data; boundary=b", **who})
    assert answer.status == 201, answer
    return answer.json["file_id"]


def listed(who):
    return {entry["file_id"]
            for entry in served.get("/v1/files", **who).json["files"]}


def told(answer, name):
    """All that there is of an answer, with the name taken out."""
    headers = {key: value for key, value in answer.headers.items()
               if key not in ("Date", "Content-Length")}
    return answer.status, headers, answer.text.replace(name, "X")


@test
def another_ones_session_is_not_there():
    session = served.post("/v1/sessions", {}, alice).json["session_id"]
    nothing = "code-session-" + "0" * 32
    for method, end, body in (("DELETE", "", None),
                              ("POST", "/bash", b'{"cmd": "true"}')):
        def ask(name):
            return told(served.request(
                method, "/v1/sessions/" + name + end, body,
                {"Content-Type": "application/json", **bob}), name)
        assert ask(session) == ask(nothing), (ask(session), ask(nothing))
        assert ask(session)[0] == 404
    bash = "/v1/sessions/%s/bash" % session
    answer = served.post(bash, {"cmd": "echo 1"}, alice)
    assert answer.status == 200 and answer.json["stdout"] == "1\n", answer
    assert served.request("DELETE", "/v1/sessions/" + session,
                          headers=alice).status == 204


@test
def another_ones_file_is_not_there():
    file_id = upload(alice, b"secret")
    other = upload(bob, b"other")
    assert listed(alice) == {file_id} and listed(bob) == {other}
    for method in ("GET", "DELETE"):
        def ask(name):
            return told(served.request(method, "/v1/files/" + name,
                                       headers=bob), name)
        assert ask(file_id) == ask(NOWHERE), ask(file_id)
        assert ask(file_id)[0] == 404
    for path_, body in (("/v1/execute", {"code": "1"}),
                        ("/v1/execute/stream", {"code": "1"}),
                        ("/v1/sessions", {})):
        def ask(name):
            return told(served.post(path_, {**body, "files": [
                {"path": "f", "file_id": name}]}, bob), name)
        assert ask(file_id) == ask(NOWHERE), ask(file_id)
        assert ask(file_id)[0] == 404
    assert served.get("/v1/files/" + file_id, **alice).body == b"secret"


@test
def what_a_run_leaves_belongs_to_its_token():
    answer = served.post("/v1/execute",
                         {"code": "open('f', 'w').write('x')"}, alice)
    made = answer.json["files"][0]["file_id"]
    assert served.get("/v1/files/" + made, **bob).status == 404
    assert served.get("/v1/files/" + made, **alice).body == b"x"
    answer = served.post("/v1/execute", {"code": "open('g').read()", "files": [
        {"path": "g", "file_id": made}]}, alice)
    assert answer.json["stdout"] == "'x'\n", answer
    assert served.request("DELETE", "/v1/files/" + made,
                          headers=alice).status == 204
    assert made not in listed(alice)


@test
def each_has_a_share_of_the_store_and_no_more():
    def put(who, size):
        return served.request(
            "POST", "/v1/files", b'--b\r\nContent-Disposition: form-data; '
            b'name="file"; filename="f"\r\n\r\n' + bytes(size) +
            b'\r\n--b--\r\n',
            {"Content-Type": "multipart/form-data; boundary=b", **who})

    before = put(alice, 600_000)
    assert before.status == 201, before
    for size in 600_000, 3_000_000:
        answer = put(alice, size)
        assert (answer.status, answer.json["detail"]) == (
            507, "This token's share of the file store is full"), answer
    assert put(bob, 600_000).status == 201
    assert served.request("DELETE", "/v1/files/" + before.json["file_id"],
                          headers=alice).status == 204
    answer = put(alice, 1_000_000)
    assert answer.status == 201, answer
    answer = served.post("/v1/execute", {
        "code": "open('big', 'wb').write(bytes(900_000))"}, alice)
    assert answer.status == 200, answer
    assert not answer.json["files"] or not answer.json["files"][0].get(
        "file_id"), answer
    for who in alice, bob:
        for name in listed(who):
            assert served.request("DELETE", "/v1/files/" + name,
                                  headers=who).status == 204


class Looks:
    """How often a folder is opened, to be read."""

    # One event of two that are equal is dropped: a close is between two opens.
    IN_CLOSE_NOWRITE, IN_OPEN, IN_ISDIR = 0x10, 0x20, 0x40000000

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.folder = folder.encode()
        self.count = 0

    def __enter__(self):
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        assert self.libc.inotify_add_watch(
            self.fd, self.folder, self.IN_OPEN | self.IN_CLOSE_NOWRITE) > 0
        self.count = 0

    def __exit__(self, *_):
        data = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                data += os.read(self.fd, 1 << 16)
        os.close(self.fd)
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            self.count += mask == self.IN_OPEN | self.IN_ISDIR
            data = data[16 + length:]


@test
def what_one_asks_for_is_no_work_of_minutes():
    """The folder may be long: it is not read for each file."""
    where = os.path.join(served.settings["IL_STATE_DIR"], "files")
    looks = Looks(where)
    own = upload(alice, b"x")
    planted = os.path.join(where, own[:8] + "-0000-4000-8000-000000000000")
    with open(planted, "wb") as file:
        file.truncate(2_000_000)
    with looks:
        answer = served.request(
            "POST", "/v1/files", 998 * (
                b'--b\r\nContent-Disposition: form-data; '
                b'name="file"; filename="f"\r\n\r\n\r\n') + b"--b--\r\n",
            {"Content-Type": "multipart/form-data; boundary=b", **alice})
    assert answer.status in (201, 507), answer
    assert looks.count <= 3, looks.count
    os.unlink(planted)
    with looks:
        answer = served.post("/v1/execute", {
            "code": "for n in range(60): open(str(n), 'w').write('x')"}, alice)
    assert len(answer.json["files"]) == 60, answer
    assert looks.count <= 3, looks.count


try:
    run()
finally:
    served.close()
    folder.cleanup()
