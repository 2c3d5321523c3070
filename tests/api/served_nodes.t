#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two nodes (IL_NODES), each with an nginx, il-api, broker and cells of its own:
what one has made is used through the other, by who made it and by nobody else,
and is gone with its node."""

import base64
import contextlib
import json
import os
import re
import signal
import socket
import threading

from libre import Libre
from mcp_client import Mcp, events
from served import Served
from service import free_port
from shared_nodes import (alice, bob, folder, key_file, put_table, table,
                          tokens, upload)
from tap import run, test

ports = {"a": free_port(), "b": free_port()}
put_table("".join(f"node {name} 127.0.0.1:{port}\n"
                  for name, port in ports.items()))


def node(name):
    return Served(IL_NODE=name, IL_NODES=table, IL_NODES_KEY_FILE=key_file,
                  IL_API_TOKENS_FILE=tokens, IL_API_CELLS="2", IL_WORKERS="1",
                  IL_LIBRECHAT_OPEN="1", IL_API_SESSIONS="3").__enter__()


a = node("a")
b = node("b")
lost = []   # (session, file) of LibreChat's, on a node that is gone
with open(os.path.join(a.settings["IL_STATE_DIR"], "nginx.conf")) as file:
    conf = file.read()
KEY = re.search(r'inline_node_key \{\s*default "(\w+)"', conf)[1]
TAG_B = upload(b, b"1")[-6:]
FILE_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                     "[0-9a-f]{12}")
SESSION_ID = re.compile("code-session-[0-9a-f]{32}")


def make_session(served, who=alice, **fields):
    answer = served.post("/v1/sessions", fields, who)
    assert answer.status == 201, answer
    return answer.json["session_id"]


def bash(served, session, command, who=alice):
    return served.post(f"/v1/sessions/{session}/bash", {"cmd": command}, who)


def get(served, path, who=alice, **headers):
    return served.request("GET", path, None, {**who, **headers}, timeout=20)


def delete(served, path, who=alice):
    return served.request("DELETE", path, None, who, timeout=20)


def execute(served, code, who=alice, **fields):
    return served.post("/v1/execute", {"code": code, **fields}, who)


def told(answer, name):
    """All that there is of an answer, with the name taken out."""
    return answer.status, answer.headers["Content-Type"], answer.text.replace(
        name, "X")


def forged(file_id):
    """The same node's, of nobody."""
    return ("0" if file_id[9] != "0" else "1").join((file_id[:9], file_id[10:]))


@test
def ids_have_the_form_that_they_always_had_and_name_their_node():
    files = {upload(b, b"1") for _ in range(3)}
    session = make_session(b)
    assert all(FILE_ID.fullmatch(f) and f.endswith(TAG_B) for f in files), files
    assert len({f[8:30] for f in files}) == 3, files
    assert SESSION_ID.fullmatch(session) and session[13:19] == TAG_B, session
    assert delete(b, "/v1/sessions/" + session).status == 204
    told_id, _ = Libre(b, alice).put("x", b"1")
    assert told_id.startswith(TAG_B), told_id


@test
def a_session_is_used_and_ended_through_the_other_node():
    session = make_session(a)
    assert bash(a, session, "echo 1 >f").status == 200
    answer = bash(b, session, "cat f; echo $((6*7)) | tee g")
    assert answer.status == 200 and answer.json["stdout"] == "1\n42\n", answer
    # one that is not kept in memory, and is asked for before it is read
    answer = bash(b, session, "echo ${#0}; : " + "x" * 30000)
    assert answer.status == 200, answer
    assert bash(a, session, "cat g").json["stdout"] == "42\n"
    assert delete(b, "/v1/sessions/" + session).status == 204
    for served in a, b:
        assert bash(served, session, "true").status == 404
        assert delete(served, "/v1/sessions/" + session).status == 404


@test
def a_file_goes_up_here_and_down_there():
    content = os.urandom(1 << 20)
    file_id = upload(a, content, name="a b.bin")
    answer = get(b, "/v1/files/" + file_id)
    assert answer.status == 200 and answer.body == content
    near = get(a, "/v1/files/" + file_id).headers
    for header in "Content-Disposition", "Content-Length", "Content-Type":
        assert answer.headers[header] == near[header], answer.headers
    assert delete(b, "/v1/files/" + file_id).status == 204
    assert get(a, "/v1/files/" + file_id).status == 404


@test
def a_run_has_files_of_both_nodes():
    far, near = upload(a, b"far"), upload(b, b"near")
    empty = upload(a, b"")
    store = os.path.join(b.settings["IL_STATE_DIR"], "files")
    before = set(os.listdir(store))
    answer = execute(
        b, "print(open('x').read(), open('y').read(), open('e').read())\n"
        "_ = open('z', 'w').write('new')",
        files=[{"path": "x", "file_id": far}, {"path": "y", "file_id": near},
               {"path": "e", "file_id": empty}])
    assert answer.status == 200, answer
    assert answer.json["stdout"] == "far near \n", answer
    made = {f["path"]: f["file_id"] for f in answer.json["files"]}
    assert made["z"].endswith(TAG_B), made
    assert get(a, "/v1/files/" + made["z"]).body == b"new"
    session = make_session(b, files=[{"path": "x", "file_id": far}])
    assert bash(a, session, "cat x").json["stdout"] == "far"
    assert delete(a, "/v1/sessions/" + session).status == 204
    # what was brought is nobody's file here, and has no name
    listed = {f["file_id"] for f in get(b, "/v1/files").json["files"]}
    assert far not in listed and near in listed, listed
    assert set(os.listdir(store)) - before == {
        made["z"], made["z"] + ".meta"}, os.listdir(store)


@test
def a_file_that_its_node_has_not_is_unknown_as_ever():
    near, far = upload(b, b"1"), upload(a, b"1")
    unknown = "01234567-89ab-4cde-8f01-23456789abcd"
    for file_id in forged(near), forged(far), far[:-6] + TAG_B:
        for ask in (lambda f: get(b, "/v1/files/" + f),
                    lambda f: delete(b, "/v1/files/" + f),
                    lambda f: execute(b, "1", files=[{"path": "p",
                                                      "file_id": f}])):
            assert told(ask(file_id), file_id) == told(ask(unknown), unknown)
            assert ask(file_id).status == 404
    session = make_session(a)
    guess = session[:-1] + ("0" if session[-1] != "0" else "1")
    assert told(bash(b, guess, "1"), guess) == told(
        bash(b, "code-session-" + "0" * 32, "1"), "code-session-" + "0" * 32)
    assert delete(a, "/v1/sessions/" + session).status == 204


@test
def another_ones_is_not_there_on_the_other_node_either():
    file_id, session = upload(a, b"secret"), make_session(a)
    guess = forged(file_id)
    for ask in (lambda f: get(b, "/v1/files/" + f, bob),
                lambda f: delete(b, "/v1/files/" + f, bob),
                lambda f: execute(b, "1", bob, files=[{"path": "p",
                                                       "file_id": f}])):
        assert told(ask(file_id), file_id) == told(ask(guess), guess)
    assert bash(b, session, "true", bob).status == 404
    assert delete(b, "/v1/sessions/" + session, bob).status == 404
    assert "no session" in Mcp(b, **bob).trouble("run_shell", command="true",
                                                 session=session)
    for headers in {}, {"Authorization": "Bearer il_" + "0" * 64}:
        assert get(b, "/v1/files/" + file_id, headers).status == 401
        assert bash(b, session, "true", headers).status == 401
    assert get(b, "/v1/files/" + file_id).body == b"secret"
    assert bash(b, session, "true").status == 200
    assert delete(a, "/v1/sessions/" + session).status == 204


@test
def mcp_works_in_a_session_and_with_files_of_the_other_node():
    here, there = Mcp(a, **alice), Mcp(b, **alice)
    file_id = upload(a, b"far", name="x.txt")
    made = here.tool("create_session")["structuredContent"]
    session = made["session"]
    there.tool("write_file", session=session, path="w", text="1")
    done = there.tool("run_python", code="print(open('w').read())",
                      session=session)["structuredContent"]
    assert done["stdout"] == "1\n", done
    done = there.tool("run_python", code="print(open('p').read())",
                      files=[{"path": "p", "file_id": file_id}])
    assert done["structuredContent"]["stdout"] == "far\n", done
    read = there.result(there.legacy("resources/read", {
        "uri": f"inline://files/{file_id}/x.txt"}))["contents"][0]
    assert (read.get("text") or base64.b64decode(read["blob"]).decode()) == \
        "far", read
    # and its stream, which comes as it is made
    answer = there.legacy("tools/call", {
        "name": "run_python", "_meta": {"progressToken": 7},
        "arguments": {"code": "print(2)", "session": session}},
        {"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "text/event-stream", answer.headers
    assert "X-Accel-Redirect" not in answer.headers, answer.headers
    last = events(answer.text)[1][-1]["result"]
    assert last["structuredContent"]["stdout"] == "2\n", last
    there.tool("close_session", session=session)
    assert "no session" in here.trouble("run_shell", command="true",
                                        session=session)


@test
def librechats_files_are_reached_through_the_other_node():
    here, there = Libre(a, alice), Libre(b, alice)
    session, file_id = here.put("x.csv", b"far")
    path = f"/download/{session}/{file_id}"
    answer = there.get(path)
    assert answer.status == 200 and answer.body == b"far", answer
    assert Libre(b, bob).get(path).status == 404
    assert there.get(f"/sessions/{session}/objects/{file_id}").status == 200
    assert [f["name"] for f in there.get(
        f"/files/{session}?detail=summary").json], session
    done = there.exec("print(open('x.csv').read()); open('y', 'w').write('2')",
                      files=[{"id": file_id, "storage_session_id": session,
                              "name": "x.csv", "kind": "user",
                              "resource_id": "u"}])
    assert done["stdout"] == "far\n", done
    made = [f for f in done["files"] if f["name"] == "y"][0]
    assert made["storage_session_id"].startswith(TAG_B), made
    assert here.get("/download/{storage_session_id}/{id}".format(**made)
                    ).body == b"2"
    answer = there.request("DELETE", f"/files/{session}/{file_id}")
    assert answer.status == 200, answer
    assert here.get(path).status == 404


@test
def a_file_that_may_not_be_changed_stays_so_on_the_other_node():
    session, file_id = Libre(a, alice).put("x", b"1", read_only="true")
    done = Libre(b, alice).exec(
        "import os; print(oct(os.stat('x').st_mode & 0o777))",
        files=[{"id": file_id, "storage_session_id": session, "name": "x",
                "kind": "user", "resource_id": "u"}])
    assert done["stdout"] == "0o444\n", done
    other = Libre(a, alice).put("x", b"1")[0]
    done = Libre(b, alice).exec(
        "print(1)", files=[{"id": file_id, "storage_session_id": other,
                            "name": "x", "kind": "user", "resource_id": "u"}])
    assert "x" in done["stderr"], "of another session it is not there"


@test
def a_program_that_calls_tools_goes_on_at_the_other_node():
    body = {"code": "r = await f(n=1)\nopen('o', 'w').write(str(r))\n"
                    "print(r)", "tools": [{"name": "f", "parameters": {
                        "type": "object", "properties": {"n": {}}}}]}
    first = Libre(a, alice).post(body, "/exec/programmatic").json
    assert first["status"] == "tool_call_required", first
    last = Libre(b, alice).post({
        "continuation_token": first["continuation_token"],
        "tool_results": [{"call_id": first["tool_calls"][0]["id"],
                          "result": 5, "is_error": False}]},
        "/exec/programmatic").json
    assert last["status"] == "completed" and last["stdout"] == "5\n", last
    made = last["files"][0]
    place = made.get("storage_session_id", last["session_id"])
    assert place.startswith(TAG_B), "whoever lists it is sent there"
    assert Libre(a, alice).get(f"/download/{place}/{made['id']}").body == b"5"


@test
def whose_sender_is_from_elsewhere_is_known_to_the_other_node_too():
    session, file_id = Libre(a).put("x", b"open")
    path = f"/librechat/download/{session}/{file_id}"
    assert get(b, path, {}).body == b"open"
    for headers in {"Host": "evil.example"}, {
            "Host": "evil.example", "Inline-Foreign": "0"}, {
            "X-Forwarded-For": "1.2.3.4", "Inline-Foreign": "0"}:
        assert get(b, path, {}, **headers).status == 401, headers
    assert get(b, path, {}, Origin="https://evil.example").status == 403


def peer(method, path, **headers):
    """A request to the port that is for nodes."""
    link = Served.connect(b)
    link.port = ports["a"]
    with contextlib.closing(link):
        link.request(method, path, None, headers)
        answer = link.getresponse()
        return answer.status, answer.read()


@test
def who_does_not_know_the_key_is_no_node():
    file_id = upload(a, b"secret")
    path = f"/nodes/files/{file_id}"
    nobody = "0" * 64
    for headers in {}, {"Inline-Node-Key": ""}, {
            "Inline-Node-Key": KEY[:-1]}, {"Inline-Node-Key": KEY + "0"}, {
            "Inline-Node-Key": KEY.upper()}:
        for asked in path, "/health", "/v1/files/" + file_id, "/nonsense":
            status, body = peer("GET", asked, **headers, **alice,
                                **{"Inline-Owner": nobody})
            assert status == 403 and json.loads(body)["detail"] == (
                "For other nodes of this service alone"), (
                asked, headers, status, body)
    with open(os.path.join(a.settings["IL_STATE_DIR"], "files",
                           file_id + ".meta"), encoding="utf-8") as file:
        owner = file.read().split()[1]
    for asks, want in (nobody, 404), (owner, 200):
        assert peer("GET", path, **{"Inline-Node-Key": KEY,
                                    "Inline-Owner": asks})[0] == want, asks
    # and by the public way there is no such thing, key or not
    for served in a, b:
        answer = get(served, path, {}, **{
            "Inline-Node-Key": KEY, "Inline-Owner": nobody,
            "INLINE_FROM_NODE": "1"})
        assert b"secret" not in answer.body and answer.status == 404, answer
    # at the port of clients it shows a node that was led astray: a request that
    # came there is not passed on, so that none goes round
    answer = get(b, "/v1/files/" + file_id, **{"Inline-Node-Key": KEY})
    assert answer.status == 404 and b"secret" not in answer.body, answer
    assert get(b, "/v1/files/" + file_id,
               **{"Inline-Node-Key": nobody}).body == b"secret"


@test
def a_node_asks_no_other_one_for_what_it_was_asked_by_one():
    file_id, session = upload(b, b"1"), make_session(b)
    known = {"Inline-Node-Key": KEY, "Inline-Foreign": "0", **alice}
    assert get(a, "/v1/files/" + file_id).status == 200
    assert peer("GET", "/v1/files/" + file_id, **known)[0] == 404
    assert peer("GET", f"/nodes/files/{file_id}", **known, **{
        "Inline-Owner": "0" * 64})[0] == 404
    # a body that names the other's: looked for there once, and not further
    link = Mcp(a, **known)
    link.served = Peer()
    assert "no session" in link.trouble("run_shell", command="true",
                                        session=session)
    assert delete(b, "/v1/sessions/" + session).status == 204


class Peer(Served):
    """Node a, at the port that is for nodes."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.port = ports["a"]


@test
def heads_that_try_to_end_early_are_sent_nowhere():
    file_id = upload(a, b"1")
    with socket.create_connection(("127.0.0.1", b.port), 20) as link:
        link.sendall(b"GET /v1/files/%s%%0d%%0aInline-Node-Key:%%20%s "
                     b"HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n"
                     b"Connection: close\r\n\r\n" % (
                         file_id.encode(), KEY.encode(),
                         alice["Authorization"].encode()))
        answer = b""
        while piece := link.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 404"), answer


def begin_body(served, method, path, headers):
    """The status for a body in chunks that does not end: 408, if all of it was
    waited for.
    """
    with contextlib.closing(served.connect(20)) as link:
        link.putrequest(method, path, skip_host="Host" in headers)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            link.putheader(name, value)
        link.endheaders(b"5000\r\n" + b"x" * 0x5000 + b"\r\n")
        return link.getresponse().status


@test
def what_takes_no_body_takes_none_on_its_way_to_another_node():
    """In chunks it is not announced: a stranger's would fill the disk here, and
    the places that are for large bodies.
    """
    file_id, session = upload(a, b"1"), make_session(a)
    link_id, libre_file = Libre(a, alice).put("x", b"1")
    foreign = {"Host": "evil.example"}
    for path, who in (("/v1/sessions/" + session, foreign),
                      ("/v1/sessions/" + session, alice),
                      ("/v1/files/" + file_id, alice),
                      (f"/librechat/files/{link_id}/{libre_file}", alice)):
        for served in a, b:
            status = begin_body(served, "DELETE", path, who)
            assert status == 413, (path, who is foreign, served is b, status)
    assert delete(b, "/v1/files/" + file_id).status == 204
    assert delete(b, "/v1/sessions/" + session).status == 204


@test
def files_of_the_other_node_are_bounded_together():
    large = upload(a, bytes(70 << 20))
    files = [{"path": "x", "file_id": large}, {"path": "y", "file_id": large}]
    answer = execute(b, "1", files=files)
    assert answer.status == 413, answer
    assert "of other nodes" in answer.json["detail"], answer
    answer = execute(b, "import os; print(os.stat('x').st_size)",
                     files=files[:1])
    assert answer.json["stdout"] == "%d\n" % (70 << 20), answer
    assert delete(b, "/v1/files/" + large).status == 204


@test
def a_key_that_is_another_one_is_told_in_words():
    wrong = os.path.join(folder.name, "wrong")
    for text, why in (("no key", "64 hex digits"), (None, "No such file")):
        if text:
            with open(wrong, "w") as file:
                file.write(text)
        else:
            os.remove(wrong)
        code, _, said = a.ilctl("nginx", IL_NODES_KEY_FILE=wrong)
        assert code == 78 and why in said, said
    code, _, said = a.ilctl("nginx", IL_NODE="c")
    assert code == 78 and "is not in it" in said, said


def nodes(served, *words):
    code, out, said = served.ilctl("nodes", *words)
    assert code == 0, (code, out, said)
    return out


@test
def ilctl_tells_of_each_node():
    lines = [line.split() for line in nodes(b).splitlines()]
    assert lines[0] == ["NODE", "HOST", "SLOTS", "STATE"], lines
    assert [line[:2] + line[3:] for line in lines[1:]] == [
        [name, f"127.0.0.1:{port}", "ok"] for name, port in ports.items()]
    told = json.loads(nodes(b, "--json"))
    assert [row["node"] for row in told] == ["a", "b"], told
    assert [row["own"] for row in told] == [False, True], told
    assert told[1]["tag"] == TAG_B and told[1]["state"] == "ok", told[1]
    assert sorted(told[0]["slots"] + told[1]["slots"]) == list(range(1024))
    assert [int(line[2]) for line in lines[1:]] == [
        len(row["slots"]) for row in told], lines


@test
def nginx_that_was_killed_comes_back():
    pids = b.kill("nginx")
    assert pids
    file_id = upload(a, b"1")
    b.wait_serving()
    answer = execute(b, "print(open('x').read())",
                     files=[{"path": "x", "file_id": file_id}])
    assert answer.status == 200 and answer.json["stdout"] == "1\n", answer


@test
def what_was_on_a_lost_node_is_unknown_and_nobody_waits():
    file_id, session = upload(a, b"1"), make_session(a)
    libre, libre_file = Libre(a, alice).put("x", b"1")
    lost.extend(Libre(a, alice).put("y", b"1") for _ in range(3))
    a.stop(signal.SIGINT)
    unknown = "01234567-89ab-4cde-8f01-23456789abcd"
    nothing = "code-session-" + "0" * 32
    for ask, name, other in (
            (lambda f: get(b, "/v1/files/" + f), file_id, unknown),
            (lambda f: delete(b, "/v1/files/" + f), file_id, unknown),
            (lambda f: execute(b, "1", files=[{"path": "p", "file_id": f}]),
             file_id, unknown),
            (lambda s: bash(b, s, "true"), session, nothing),
            (lambda s: delete(b, "/v1/sessions/" + s), session, nothing)):
        assert told(ask(name), name) == told(ask(other), other), ask(name)
        assert ask(name).status == 404
    mcp = Mcp(b, **alice)
    assert "no session" in mcp.trouble("run_shell", command="1",
                                       session=session)
    assert "no file" in mcp.trouble("run_python", code="1", files=[
        {"path": "p", "file_id": file_id}])
    answer = Libre(b, alice).get(f"/download/{libre}/{libre_file}")
    assert answer.status == 404 and answer.json["error"] == "File not found"
    done = Libre(b, alice).exec("print(1)", files=[
        {"id": libre_file, "storage_session_id": libre, "name": "x",
         "kind": "user", "resource_id": "u"}])
    assert done["stdout"] == "1\n" and "x" in done["stderr"], done
    assert execute(b, "print(2)").json["stdout"] == "2\n"
    assert [row["state"] for row in json.loads(nodes(b, "--json"))] == [
        "away", "ok"]


@test
def a_node_that_does_not_answer_is_asked_once_in_a_request():
    """Each time may take ten seconds: files are named by the hundred."""
    asked = []

    def take():
        with contextlib.suppress(OSError):
            while True:
                asked.append(1)
                listener.accept()[0].close()
    with socket.create_server(("127.0.0.1", ports["a"])) as listener:
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        done = Libre(b, alice).exec("print(1)", files=[
            {"id": file_id, "storage_session_id": session, "name": f"x{i}",
             "kind": "user", "resource_id": "u"}
            for i, (session, file_id) in enumerate(lost)])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert done["stdout"] == "1\n", done
    assert all(f"x{i}" in done["stderr"] for i in range(len(lost))), done
    assert len(asked) - 1 == 1, len(asked) - 1


@test
def nothing_is_left():
    for served in a, b:
        served.stop()
        assert served.left_over() == [], served.left_over()


try:
    run()
finally:
    a.close()
    b.close()
    folder.cleanup()
