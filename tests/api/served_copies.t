#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two nodes whose files have copies (IL_NODES, IL_SNAPSHOTS): what one has made
is had through the other when it is lost, by who made it and by nobody else."""

import base64
import json
import os
import re
import shutil
import signal

from libre import Libre
from mcp_client import Mcp
from served import Served, wait_for
from service import BUILD, ROOT, free_port
from shared_nodes import alice, bob, folder, key_file, tokens, upload
from tap import run, test

if not os.path.exists(os.path.join(BUILD, "bin", "il-snapshot")):
    print("1..0 # SKIP il-snapshot is built where libzstd is")
    raise SystemExit

store = os.path.join(folder.name, "store")
os.mkdir(store)
NODES = ",".join(f"{name}=127.0.0.1:{free_port()}" for name in "abz")


def node(name):
    return Served(IL_NODE=name, IL_NODES=NODES, IL_NODES_KEY_FILE=key_file,
                  IL_API_TOKENS_FILE=tokens, IL_API_CELLS="2", IL_WORKERS="1",
                  IL_LIBRECHAT_OPEN="1", IL_SNAPSHOTS=store).__enter__()


a = node("a")
b = node("b")
with open(os.path.join(ROOT, "fcgi", "api", "openapi.json")) as file:
    OPENAPI = json.load(file)
LARGE = os.urandom(9 << 20)     # of more than one part
made = {}       # what a has made: name: id, or LibreChat's (session, id)


def get(served, path, who=alice):
    return served.request("GET", path, None, who)


def execute(code, who=alice, **files):
    return b.post("/v1/execute", {"code": code, "files": [
        {"path": path, "file_id": file_id}
        for path, file_id in files.items()]}, who)


def is_its_example(answer, status, method, path):
    """The answer is as openapi.json has it."""
    want = OPENAPI["paths"][path][method]["responses"][str(status)]
    assert answer.status == status, answer
    assert answer.json == want["content"]["application/json"]["example"], answer
    assert not want.get("headers") or answer.headers["Retry-After"] == "1", \
        answer


def copy_of(file_id):
    return os.path.join(store, "files", file_id)


def wait_copied(*file_ids):
    for file_id in file_ids:
        wait_for(lambda one=file_id: os.path.exists(
            os.path.join(copy_of(one), "head")))


def told(answer, name):
    return answer.status, answer.text.replace(name, "X")


@test
def all_that_a_node_makes_is_copied():
    made["large"] = upload(a, LARGE, name="a b.bin")
    made["small"] = upload(a, b"far", name="x.txt")
    made["empty"] = upload(a, b"")
    made["damaged"] = upload(a, b"damaged")
    made["gone"] = upload(a, b"gone")
    answer = a.post("/v1/execute", {
        "code": "_ = open('y', 'w').write('of a run')"}, alice)
    made["run"] = answer.json["files"][0]["file_id"]
    made["libre"] = Libre(a, alice).put("x.csv", b"libre")
    made["libre-fixed"] = Libre(a, alice).put("x", b"1", read_only="true")
    wait_copied(*(made[name] for name in (
        "large", "small", "empty", "damaged", "gone", "run")))
    wait_for(lambda: len([one for one in os.listdir(
        os.path.join(store, "files")) if os.path.exists(
            os.path.join(copy_of(one), "head"))]) == 8)


@test
def what_is_deleted_has_no_copy():
    assert a.request("DELETE", "/v1/files/" + made["gone"], None,
                     alice).status == 204
    wait_for(lambda: not os.path.exists(copy_of(made["gone"])))


@test
def a_node_that_is_there_is_asked_itself():
    """The copy is not looked at: here it is another one."""
    away = copy_of(made["small"])
    os.rename(away, away + "-away")
    assert get(b, "/v1/files/" + made["small"]).body == b"far"
    os.rename(away + "-away", away)
    head = os.path.join(copy_of(made["damaged"]), "head")
    with open(head, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    assert get(b, "/v1/files/" + made["damaged"]).body == b"damaged"


@test
def a_file_is_not_lost_with_the_node_of_its_session():
    """z, which never was, is the session's; a, whose file it is, is there."""
    with open(os.path.join(b.settings["IL_STATE_DIR"], "nginx.conf")) as file:
        tag = re.search(r'"0 (\w+)" \w+; # z', file.read())[1]
    session, file_id = Libre(a, alice).put("z.csv", b"near")
    files = os.path.join(a.settings["IL_STATE_DIR"], "files")
    for name in os.listdir(files):
        path = os.path.join(files, name)
        with open(path, "r+b") as file:
            text = file.read() if name.endswith(".meta") else b""
            if session.encode() in text:
                uuid = name[:-len(".meta")]
                wait_copied(uuid)
                file.seek(0)
                file.write(text.replace(session.encode(),
                                        (tag + session[len(tag):]).encode()))
    shutil.rmtree(copy_of(uuid))
    answer = Libre(b, alice).get(
        f"/download/{tag + session[len(tag):]}/{file_id}")
    assert answer.status == 200 and answer.body == b"near", answer


@test
def a_lost_nodes_files_are_had_through_the_other():
    near = get(b, "/v1/files/" + made["large"])
    a.stop(signal.SIGINT)
    far = get(b, "/v1/files/" + made["large"])
    assert far.status == 200 and far.body == LARGE, far.status
    for header in "Content-Disposition", "Content-Length", "Content-Type":
        assert far.headers[header] == near.headers[header], far.headers
    assert get(b, "/v1/files/" + made["empty"]).body == b""
    assert get(b, "/v1/files/" + made["run"]).body == b"of a run"


@test
def a_run_has_them():
    files = os.path.join(b.settings["IL_STATE_DIR"], "files")
    before = set(os.listdir(files))
    answer = execute(
        "import os\nprint(open('x').read(), os.stat('l').st_size, "
        "open('y').read(), os.stat('e').st_size)", x=made["small"],
        l=made["large"], y=made["run"], e=made["empty"])
    assert answer.status == 200, answer
    assert answer.json["stdout"] == "far %d of a run 0\n" % len(LARGE), answer
    assert set(os.listdir(files)) == before, "they are nobody's here"


@test
def mcp_has_them():
    read = Mcp(b, **alice)
    content = read.result(read.legacy("resources/read", {
        "uri": f"inline://files/{made['small']}/x.txt"}))["contents"][0]
    assert (content.get("text") or base64.b64decode(
        content["blob"]).decode()) == "far", content


@test
def librechat_has_them():
    there = Libre(b, alice)
    session, file_id = made["libre"]
    path = f"/download/{session}/{file_id}"
    answer = there.get(path)
    assert answer.status == 200 and answer.body == b"libre", answer
    assert "x.csv" in answer.headers["Content-Disposition"], answer.headers
    assert Libre(b, bob).get(path).status == 404
    other = made["libre-fixed"][0]
    assert there.get(f"/download/{other}/{file_id}").status == 404
    assert there.get(f"/sessions/{session}/objects/{file_id}").status == 200
    done = there.exec(
        "import os\nprint(open('x.csv').read(), "
        "oct(os.stat('x').st_mode & 0o777))",
        files=[{"id": file, "storage_session_id": place, "name": name,
                "kind": "user", "resource_id": "u"}
               for name, (place, file) in (("x.csv", made["libre"]),
                                           ("x", made["libre-fixed"]))])
    assert done["stdout"] == "libre 0o444\n", done


@test
def anothers_is_as_if_it_were_not_there():
    small = made["small"]
    unknown = ("0" if small[9] != "0" else "1").join((small[:9], small[10:]))
    for ask in (lambda f, who: get(b, "/v1/files/" + f, who),
                lambda f, who: execute("1", who, p=f)):
        assert told(ask(small, bob), small) == told(ask(unknown, alice),
                                                    unknown)
        assert ask(small, bob).status == 404
    assert get(b, "/v1/files/" + small, {}).status == 401


@test
def what_is_deleted_or_damaged_is_unknown():
    for name in "gone", "damaged":
        assert get(b, "/v1/files/" + made[name]).status == 404, name
        assert execute("1", p=made[name]).status == 404, name
    # after its first part, which was sent on its way by then
    part = os.path.join(copy_of(made["large"]), "02")
    with open(part, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    assert get(b, "/v1/files/" + made["large"]).status == 404
    answer = execute("1", p=made["large"], q=made["small"])
    assert answer.status == 404 and made["large"] in answer.text, answer
    # and what is elsewhere is not said to be gone
    answer = b.request("DELETE", "/v1/files/" + made["small"], None, alice)
    is_its_example(answer, 503, "delete", "/v1/files/{file_id}")
    session, file_id = made["libre"]
    answer = Libre(b, alice).request("DELETE", f"/files/{session}/{file_id}")
    is_its_example(answer, 503, "delete",
                   "/librechat/files/{session_id}/{file_id}")
    assert get(b, "/v1/files/" + made["small"]).status == 200


@test
def where_copies_cannot_be_had_it_is_to_be_tried_again():
    away = store + "-away"
    os.rename(store, away)
    is_its_example(get(b, "/v1/files/" + made["small"]), 503, "get",
                   "/v1/files/{file_id}")
    assert execute("1", p=made["small"]).status == 503
    session, file_id = made["libre"]
    for path, where in (
            ("/download/{session_id}/{file_id}", "download/%s/%s"),
            ("/sessions/{session_id}/objects/{file_id}",
             "sessions/%s/objects/%s")):
        is_its_example(Libre(b, alice).get("/" + where % (session, file_id)),
                       503, "get", "/librechat" + path)
    os.rename(away, store)
    assert get(b, "/v1/files/" + made["small"]).body == b"far"


@test
def that_nobody_brings_them_is_told_in_the_contracts_words():
    """il-api cannot be reached: nginx answers in its place."""
    path = os.path.join(b.settings["IL_STATE_DIR"], "files.sock")
    os.rename(path, path + "-away")
    answer = get(b, "/v1/files/" + made["small"])
    session, file_id = made["libre"]
    libre = Libre(b, alice).get(f"/download/{session}/{file_id}")
    os.rename(path + "-away", path)
    assert answer.status == 503 and answer.json["detail"], answer
    assert libre.status == 503 and libre.json["error"], libre


@test
def they_are_its_own_again_when_it_is_back():
    a.start()
    assert get(a, "/v1/files/" + made["small"]).body == b"far"
    shutil.rmtree(copy_of(made["small"]))
    assert get(b, "/v1/files/" + made["small"]).body == b"far"
    assert b.request("DELETE", "/v1/files/" + made["large"], None,
                     alice).status == 204
    wait_for(lambda: not os.path.exists(copy_of(made["large"])))


@test
def nothing_is_left():
    for served in a, b:
        served.stop()
        assert served.left_over() == [], served.left_over()


run()
