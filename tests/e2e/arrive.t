#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What il-node takes in, byte for byte: a person made here, and then each thing
that can be wrong with one.  Nothing of who is refused is left."""

import errno
import hashlib
import http.client
import json
import os
import re
import secrets
import socket
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fcgi")]

from service import own_mounts, wait_for  # noqa: E402
from client import Standin  # noqa: E402
from moving import Node, put_table  # noqa: E402
from slots import slot_of  # noqa: E402
from tap import run, test  # noqa: E402

BLOCK = 65536
HEAD = 136
own_mounts()    # of the disk
standin = Standin(rate_limit=1000).start()
node = Node("b", standin, IL_TUNE_WARM_SECONDS="1")
DISK = node.settings["IL_BASE_DIR"] = node.mount_disk("disk", 40960)
os.rmdir(os.path.join(DISK, "lost+found"))
os.chmod(node.folder, 0o755)    # no view of its own, which has no loop devices
image = b""     # a volume of ours
ALONE = node.line() + "node a 127.0.0.1:1 joining\n"


def blake(data):
    return hashlib.blake2b(data, digest_size=32)


def rows(sandbox, state="active", view=7 << 50, **other):
    """A sandbox, a name in it, and a view that is shared."""
    return json.dumps({
        "sandbox": {
            "id": sandbox, "state": state, "cwd": "", "created_at": 1,
            "used_at": 2, "expires_at": 9999999999, "pinned": 0,
            "used_bytes": 0, "used_files": 0, "named_files": -1, **other},
        "session": None,
        "names": [{"kind": "file", "python": "", "name": "x.txt"}],
        "views": [{
            "id": view, "kind": "py", "path": "", "page": 1, "share": 1,
            "text": "print(6 * 7)", "input": "", "version": "3.11",
            "timeit": 0, "keep": 0, "output": "42", "files": "",
            "package": "", "source": 0, "bytes": 14, "created_ms": 5}],
        "rule": None}).encode()


def manifest(name, size, blocks, owner=0):
    """As sandbox/volume/manifest.h has it, of one file."""
    whole = struct.pack("<16sqQQ", b"inline-backup 2", 5, 1, len(blocks))
    whole += struct.pack("<100s3I2q2Q", name.encode(), 0o600, owner, owner,
                         size, 0, 0, len(blocks))
    for at, data in blocks:
        whole += struct.pack("<2q32s", at, len(data), blake(data).digest())
    return whole + blake(whole).digest()


def parcel(sandbox, to="b", name=None, of=None, the_rows=None, blocks=None,
           cut=0):
    """A person with one volume."""
    of = of or [(at, image[at:at + BLOCK]) for at in
                range(0, len(image), BLOCK) if any(image[at:at + BLOCK])]
    the_rows = rows(sandbox) if the_rows is None else the_rows
    listed = manifest(name or f"{sandbox}/workspace.ext4", len(image), of)
    sent = b"".join(data for _, data in of) if blocks is None else blocks
    whole = struct.pack("<16s64s3q32s", b"inline-person 2", to.encode(),
                        len(the_rows), len(listed), len(sent),
                        blake(the_rows).digest()) + the_rows + listed + sent
    return whole[:len(whole) - cut]


def put(body, user="77", length=None, key=None, path="/nodes/people/",
        then=None):
    """`then` makes the rest of the body, once its beginning is sent."""
    link = http.client.HTTPConnection("127.0.0.1", node.nodes_port,
                                      timeout=60)
    try:
        link.putrequest("PUT", path + user)
        link.putheader("Content-Length", str(length or len(body)))
        link.putheader("Inline-Node-Key", KEY if key is None else key)
        link.endheaders()
        try:
            link.send(body)
            if then is not None:
                link.send(then())
            elif length is not None:
                link.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    except (http.client.HTTPException, OSError) as error:
        return 0, repr(error)
    finally:
        link.close()


def empty(user="77"):
    """Nothing of this person is here, in the database or on the disk."""
    return not node.rows(user) and not node.rows(user, "views") and \
        not node.drafts() and len(node.folders()) == len(node.sql(
            "SELECT 1 FROM sandboxes"))


def expire():
    """All who are here go, with their files."""
    node.sql("UPDATE sandboxes SET expires_at = 1, pinned = 0")
    assert node.ilctl("expire")[0] == 0
    node.sql("DELETE FROM sandboxes")
    node.sql("DELETE FROM views")
    assert not node.folders()


def view(view_id, user, **more):
    link = http.client.HTTPConnection("127.0.0.1", node.nodes_port,
                                      timeout=60)
    link.request("GET", f"/nodes/views/{view_id}", headers={
        "Inline-Node-Key": KEY, "Inline-User": user, **more})
    answer = link.getresponse()
    return answer.status, answer.read()


@test
def a_whole_person_is_taken_in_and_once():
    sandbox = secrets.token_hex(16)
    body = parcel(sandbox)
    assert put(body) == (200, ""), put(body)
    found = node.sql("SELECT id, state FROM sandboxes WHERE user_id = 77")
    assert found == [(sandbox, "active")], found
    path = os.path.join(node.settings["IL_BASE_DIR"], sandbox,
                        "workspace.ext4")
    with open(path, "rb") as file:
        stored = file.read()
    # the owner of the root folder alone is another one
    assert len(stored) == len(image)
    assert sum(stored[at:at + 4096] != image[at:at + 4096]
               for at in range(0, len(image), 4096)) <= 1
    changed = os.stat(path).st_mtime_ns
    assert put(body) == (200, "") and os.stat(path).st_mtime_ns == changed
    status, said = put(parcel(secrets.token_hex(16)))
    assert status == 409 and "has a sandbox there already" in said, said
    status, said = put(body, user="78")
    assert status == 409 and sandbox in said, said
    assert not node.drafts() and empty("78")


@test
def what_is_shared_is_shown_to_others_and_nothing_else():
    status, said = view(7 << 50, "5")
    assert status == 200 and json.loads(said) == {
        "text": "print(6 * 7)", "input": "", "version": "3.11",
        "timeit": False}, said
    node.sql("UPDATE views SET share = 0 WHERE user_id = 77")
    assert view(7 << 50, "5")[0] == 404 and view(7 << 50, "77")[0] == 200
    for view_id, user in ((7 << 50) + 1, "77"), ("x", "77"), (7 << 50, "x"), (
            7 << 50, ""):
        assert view(view_id, user)[0] == 404, (view_id, user)
    node.sql("UPDATE views SET text = '' WHERE user_id = 77")
    assert view(7 << 50, "77")[0] == 404
    # and no other way leads in
    for key in "", "0" * 64:
        assert put(parcel("0" * 32), key=key)[0] == 403
    assert put(b"", path="/nodes/others/")[0] in (404, 413)
    expire()


@test
def what_has_gone_is_asked_for_where_it_went():
    """By one node of another, which asks none."""
    view_id, said = 1 << 60 | 3 << 12, b'{"text": "theirs"}'
    assert view(view_id, "5")[0] == 404
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(20)    # nobody may come
        put_table(node.line() + "node a\n"
                  f"node c 127.0.0.1:{other.getsockname()[1]}\n")
        time.sleep(2.1)     # until it is read
        node.sql("INSERT INTO moves VALUES (3, 0, 'c', 'gone')")
        asked = threading.Thread(target=answer_once, args=(other, said))
        asked.start()
        assert view(view_id, "5") == (200, said)
        asked.join()
        assert view(view_id, "5", **{"Inline-Moved": "1"})[0] == 404
    assert view(view_id, "5")[0] == 502, "it is away"
    node.sql("DELETE FROM moves")
    assert view(view_id, "5")[0] == 404
    put_table(ALONE)


def answer_once(other, said):
    with other.accept()[0] as peer:
        head = peer.recv(65536).decode()
        assert head.startswith(f"GET /nodes/views/{1 << 60 | 3 << 12} "), head
        for line in ("Inline-User: 5", "Inline-Moved: 1",
                     "Inline-Node-Key: " + KEY):
            assert f"\r\n{line}\r\n" in head, head
        peer.sendall(b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n\r\n%s" % (
            len(said), said))


@test
def a_slot_that_has_come_is_not_one_that_is_about_to():
    """Nor one that has gone again, whatever comes late."""
    put_table(node.line() + "node a\nslots 3 a\n")
    time.sleep(2.1)     # until it is read
    node.sql("INSERT INTO moves VALUES (3, 0, 'a', 'gone')")
    assert put(b"", "3", path="/nodes/come/")[0] == 409
    assert node.moves() == {0: "gone"} and not node.come()
    assert put(b"", "3", path="/nodes/slots/") == (200, "")
    assert not node.moves() and not node.come()
    assert put(b"", "3", path="/nodes/come/") == (200, "")
    assert node.come() == [3]
    for slot in "1024", "-1", "x", "":
        assert put(b"", slot, path="/nodes/come/")[0] == 400, slot
    put_table(ALONE)
    time.sleep(2.1)
    node.sql("DELETE FROM moves")
    assert put(b"", "3", path="/nodes/come/") == (200, "")
    assert not node.come(), "the table says so"


@test
def a_folder_without_a_row_gives_way():
    """Somebody was killed between the name and the rows."""
    sandbox = secrets.token_hex(16)
    folder = os.path.join(node.settings["IL_BASE_DIR"], sandbox)
    os.mkdir(folder)
    with open(os.path.join(folder, "workspace.ext4"), "w") as file:
        file.write("half")
    os.chown(folder, *[os.stat(node.settings["IL_BASE_DIR"]).st_uid] * 2)
    assert put(parcel(sandbox)) == (200, "")
    assert os.path.getsize(os.path.join(folder, "workspace.ext4")) == \
        len(image) and not node.drafts()
    expire()


@test
def what_is_wrong_is_refused_and_nothing_is_left():
    sandbox = secrets.token_hex(16)
    whole = parcel(sandbox)
    first = HEAD + len(rows(sandbox))
    flips = {"the head": 3, "the node": 16, "a length": 80, "the hash": 110,
             "the first row": HEAD, "a row": HEAD + 10,
             "the manifest": first + 5, "a block's hash": first + 210,
             "a block": len(whole) // 2, "the last block": len(whole) - 1}
    for what, at in flips.items():
        bad = bytearray(whole)
        bad[at] ^= 1
        status, said = put(bytes(bad))
        assert status in (400, 409) and said, (what, status, said)
        assert empty(), what
    other = secrets.token_hex(16)
    no_ext4 = [(0, b"x" * BLOCK)]
    cases = {
        "another node": parcel(sandbox, to="c"),
        "no node": parcel(sandbox, to=""),
        "too little": parcel(sandbox, cut=33),
        "too much": whole + b"x",
        "another sandbox's file": parcel(sandbox,
                                         name=f"{other}/workspace.ext4"),
        "a folder": parcel(sandbox, name=f"{sandbox}/"),
        "a name that leads out": parcel(sandbox,
                                        name=f"{sandbox}/../x.ext4"),
        "the database": parcel(sandbox, name=".database"),
        "no file system": parcel(sandbox, of=no_ext4),
        "files without a sandbox": parcel(sandbox, the_rows=b""),
        "files of one that expired": parcel(
            sandbox, the_rows=rows(sandbox, "expired")),
        "a state that there is not": parcel(
            sandbox, the_rows=rows(sandbox, "activ")),
        "fewer files than none": parcel(
            sandbox, the_rows=rows(sandbox, used_files=-1)),
        "a view's id behind all": parcel(
            sandbox, the_rows=rows(sandbox, view=(1 << 63) - 1)),
        "a time behind all": parcel(
            sandbox, the_rows=rows(sandbox, expires_at=1 << 60)),
        "no rows": parcel(sandbox, the_rows=b"{"),
        "a NUL behind the rows": parcel(
            sandbox, the_rows=rows(sandbox) + b"\0"),
        "fewer blocks": parcel(sandbox, blocks=b""),
        "nothing": b"",
    }
    for what, body in cases.items():
        status, said = put(body)
        assert status in (400, 409, 411, 503), (what, status, said)
        assert empty(), what
    status, said = put(whole[:len(whole) // 2], length=len(whole))
    wait_for(empty)
    for user in "0", "x", "-1", "9" * 20:
        assert put(whole, user=user)[0] == 400, user
    node.sql("INSERT INTO moves VALUES (?, 0, 'a', 'gone')",
             slot_of(77))
    status, said = put(whole)
    assert status == 409 and "has given slot" in said, said
    node.sql("DELETE FROM moves")
    assert put(whole) == (200, "")
    expire()


@test
def what_the_broker_promises_to_nobody_is_not_for_who_arrives():
    """2 % of the disk."""
    whole = parcel(secrets.token_hex(16))
    disk = os.statvfs(DISK)
    with open(os.path.join(DISK, ".filler"), "w") as filler:
        os.posix_fallocate(filler.fileno(), 0,
                           disk.f_bavail * disk.f_frsize - (600 << 20))
        status, said = put(whole)
        os.unlink(filler.name)
    assert status == 507 and "has no room" in said, (status, said)
    assert empty()
    assert put(whole) == (200, "")
    expire()


@test
def a_disk_that_fills_up_on_the_way_leaves_nothing():
    sandbox = secrets.token_hex(16)
    # the beginning is that of a file system
    whole = parcel(sandbox, of=[
        (at, image[at:at + BLOCK] if at < 1 << 20 else
         secrets.token_bytes(BLOCK)) for at in range(0, 40 << 20, BLOCK)])
    filler = os.path.join(DISK, ".filler")

    def fill():
        wait_for(node.drafts)
        with open(filler, "wb") as file:
            for size in (1 << 30, 1 << 20, 1 << 12):
                try:
                    while True:
                        os.posix_fallocate(
                            file.fileno(), os.fstat(file.fileno()).st_size,
                            size)
                except OSError as error:
                    assert error.errno == errno.ENOSPC, error
        return whole[8 << 20:]

    try:
        status, said = put(whole[:8 << 20], length=len(whole), then=fill)
        assert status == 507 and "No space left" in said, (status, said)
        assert empty()
    finally:
        if os.path.exists(filler):
            os.unlink(filler)
    # and once there is room they can come
    assert put(whole) == (200, "")
    expire()


put_table(ALONE)
try:
    with node:
        node.ask("alice", "print(1)")
        mine, = node.sql("SELECT id FROM sandboxes")
        with open(os.path.join(node.settings["IL_BASE_DIR"], mine[0],
                               "workspace.ext4"), "rb") as volume:
            image = volume.read()
        expire()
        with open(os.path.join(node.settings["IL_STATE_DIR"],
                               "nginx.conf")) as conf:
            KEY = re.search(r'inline_node_key \{\s*default "(\w+)"',
                            conf.read())[1]
        run()
finally:
    standin.stop()
