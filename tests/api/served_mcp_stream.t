#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /mcp: streams, progress, what ends a run, many who wait, who never
reads."""

import json
import os
import select
import shlex
import socket
import subprocess
import tempfile

from mcp_client import LEGACY, Mcp, events
from served import JSON, Served, has_process, wait_for
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory()
TOKENS = os.path.join(folder.name, "tokens")
served = Served(IL_API_CELLS="2", IL_API_SESSIONS="2").__enter__()
mcp = Mcp(served)
MARK = "inline-mcp-%d" % os.getpid()
SLEEP = "import time; print('begun', flush=True); time.sleep(100)"


def running():
    text = served.get("/metrics").text
    return int(text.split("\ninline_api_running ")[1].split("\n")[0])


def begin(arguments, service=served, name="run_python", meta=None,
          headers=None):
    """A call that goes on; its connection."""
    link = service.connect()
    params = {"name": name, "arguments": arguments}
    if meta:
        params["_meta"] = meta
    link.request("POST", "/mcp", json.dumps(mcp.body("tools/call", params)),
                 {**JSON, **mcp.headers, "MCP-Protocol-Version": LEGACY,
                  **(headers or {})})
    return link


@test
def who_wants_progress_is_told():
    answer = mcp.legacy("tools/call", {
        "name": "run_python", "_meta": {"progressToken": "p\u00e9"},
        "arguments": {"code": "import time\nfor i in range(4):\n"
                      " print('line', i, flush=True); time.sleep(.8)"}})
    assert answer.headers["Content-Type"] == "text/event-stream", answer
    assert answer.headers["Cache-Control"] == "no-cache", answer.headers
    _, messages = events(answer.text)
    told, last = messages[:-1], messages[-1]
    assert last["id"] == mcp.last and "result" in last, last
    assert len(told) >= 2, told
    for message in told:
        assert message["method"] == "notifications/progress", message
        assert message["params"]["progressToken"] == "p\u00e9", message
        assert message["params"]["total"] == 30, message
    steps = [message["params"]["progress"] for message in told]
    assert steps == sorted(set(steps)), steps
    assert told[-1]["params"]["message"].startswith("line "), told[-1]


@test
def what_lasts_becomes_a_stream_with_signs_of_life():
    answer = mcp.legacy("tools/call", {
        "name": "run_python", "arguments": {
            "code": "import time; time.sleep(17)", "timeout_seconds": 40}})
    assert answer.headers["Content-Type"] == "text/event-stream", answer
    comments, messages = events(answer.text)
    assert comments >= 2 and len(messages) == 1, answer
    assert messages[0]["result"]["isError"] is False, answer


@test
def who_takes_no_stream_gets_one_object():
    answer = mcp.legacy("tools/call", {
        "name": "run_python", "_meta": {"progressToken": 1}, "arguments": {
            "code": "import time; time.sleep(6)"}},
        {"Accept": "application/json"})
    assert answer.headers["Content-Type"] == "application/json", answer
    answer = mcp.legacy("ping", headers={"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "text/event-stream", answer
    assert events(answer.text)[1][0]["result"] == {}, answer


@test
def a_closed_connection_ends_the_run():
    link = begin({"code": SLEEP, "timeout_seconds": 90})
    wait_for(lambda: running() == 1)
    link.close()
    wait_for(lambda: running() == 0, 60)    # of 90 that it would have
    text = served.get("/metrics").text
    assert '{api="mcp",outcome="gone"} 1' in text, [
        line for line in text.split("\n") if "mcp" in line]


@test
def a_closed_connection_ends_all_processes_of_the_run():
    session = mcp.tool("create_session")["structuredContent"]["session"]
    sleep = ["python3", "-c", "import time; time.sleep(1000)", MARK]
    python = {"code": "import subprocess; subprocess.run(%r)" % sleep}
    shell = {"command": shlex.join(sleep) + " & wait"}
    for where in {}, {"session": session}:
        for name, code in (("run_python", python), ("run_shell", shell)):
            link = begin({**where, **code, "timeout_seconds": 120}, name=name)
            wait_for(lambda: has_process(MARK))
            if where and name == "run_shell":
                text = mcp.trouble("list_files", session=session)
                assert text.startswith("The session is busy"), text
            link.close()
            wait_for(lambda: not has_process(MARK), 20)    # of 120
    mcp.tool("close_session", session=session)


@test
def a_closed_connection_ends_a_run_but_not_its_session():
    session = mcp.tool("create_session")["structuredContent"]["session"]
    for name, code in (("run_python", {"code": "open('f', 'w').write('x')\n"
                                       + SLEEP}),
                       ("run_shell", {"command": "echo y >g; echo begun; "
                                                "sleep 100"})):
        link = begin({"session": session, "timeout_seconds": 90, **code},
                     name=name, meta={"progressToken": 1})
        stream = link.getresponse()
        while b'"begun"' not in stream.readline():
            pass
        stream.close()
        link.close()
        wait_for(lambda: running() == 0, 60)
    files = mcp.tool("list_files", session=session)["structuredContent"]
    assert [f["path"] for f in files["files"]] == ["f", "g"], files
    mcp.tool("close_session", session=session)


@test
def a_cancellation_of_nobody_knows_whom_is_taken_and_changes_nothing():
    link = begin({"code": "import time; time.sleep(3); print('whole')"})
    answer = mcp.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                       "params": {"requestId": mcp.last}})
    assert (answer.status, answer.body) == (202, b""), answer
    response = link.getresponse()
    assert b"whole" in response.read()
    link.close()


@test
def many_who_wait_keep_nobody_from_what_is_answered_at_once():
    links = [begin({"code": SLEEP, "timeout_seconds": 90},
                   meta={"progressToken": i}) for i in range(60)]
    wait_for(lambda: running() == 2)
    for _ in range(5):
        assert mcp.result(mcp.legacy("ping")) == {}
    text = mcp.trouble("run_python", code="1")
    assert text.startswith("Inline is busy: nothing was run."), text
    for link in links:
        link.close()
    wait_for(lambda: running() == 0)
    wait_for(lambda: mcp.call("run_python", code="1")["isError"] is False)


@test
def a_thousand_at_once_are_all_answered():
    links = [begin({"code": SLEEP, "timeout_seconds": 90},
                   meta={"progressToken": i}) for i in range(1000)]
    wait_for(lambda: running() == 2)
    assert mcp.result(mcp.legacy("ping")) == {}
    busy = 0
    # All but those that run or wait have an answer that ends.
    poll = select.poll()
    by_fd = {link.sock.fileno(): link for link in links}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    while busy < 1000 - 2 - 2 - 8:
        ready = poll.poll(60000)
        assert ready, busy
        for fd, _ in ready:
            poll.unregister(fd)
            answer = by_fd[fd].getresponse()
            if answer.headers["Content-Type"] == "text/event-stream":
                continue    # it runs, or waits, or is told in its stream
            assert answer.status in (200, 503), answer.status
            answer.read()
            busy += 1
    for link in links:
        link.close()
    wait_for(lambda: running() == 0)
    wait_for(lambda: mcp.call("run_python", code="1")["isError"] is False)


@test
def who_never_reads_what_is_large_keeps_nobody_from_running():
    files = mcp.tool("run_python", code="import os\nopen('f', 'wb').write("
                     "os.urandom(8 << 20))")["structuredContent"]["files"]
    uri = files[0]["uri"]
    links = []
    for _ in range(30):
        link = socket.create_connection(("127.0.0.1", served.port))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps(mcp.body("resources/read", {"uri": uri})).encode()
        link.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                     b"application/json\r\nContent-Length: %d\r\n\r\n%s" %
                     (len(body), body))
        links.append(link)
    # By now they have all that readers may have: the next one is told so.
    wait_for(lambda: "error" in mcp.legacy("resources/read",
                                           {"uri": uri}).json)
    answer = mcp.legacy("resources/read", {"uri": uri}).json
    assert answer["error"]["code"] == -32603, answer
    assert mcp.result(mcp.legacy("ping")) == {}
    assert mcp.tool("run_python", code="1")["structuredContent"][
        "stdout"] == "1\n"
    for link in links:
        link.close()
    wait_for(lambda: "result" in mcp.legacy("resources/read",
                                            {"uri": uri}).json)


@test
def who_never_reads_keeps_nobody_out():
    links = []
    for _ in range(30):
        link = socket.create_connection(("127.0.0.1", served.port))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps(mcp.body("tools/list", None)).encode()
        request = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   b"application/json\r\nContent-Length: %d\r\n\r\n%s" %
                   (len(body), body))
        link.sendall(request * 20)
        links.append(link)
    assert mcp.result(mcp.legacy("ping")) == {}
    for link in links:
        link.close()


@test
def limits_are_by_token_as_for_the_rest():
    def token(name, *limits):
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", TOKENS,
             *limits, "add", name], capture_output=True, text=True, check=True)
        return {"Authorization": "Bearer " + next(
            word for word in done.stdout.split() if word.startswith("il_"))}

    open(TOKENS, "w").close()
    few, other = token("few", "-c", "1"), token("other")
    with Served(IL_API_CELLS="2", IL_API_TOKENS_FILE=TOKENS) as asked:
        theirs = Mcp(asked, **few)
        ours = Mcp(asked, **other)
        answer = Mcp(asked).legacy("ping")
        assert answer.status == 401, answer
        assert answer.json == {
            "jsonrpc": "2.0", "id": None, "error": {
                "code": -32600, "message": "Not authenticated"}}, answer
        assert answer.headers["WWW-Authenticate"] == "Bearer", answer.headers
        session = theirs.tool("create_session")["structuredContent"]["session"]
        text = theirs.trouble("run_python", code="1")
        assert text.startswith("All cells of this token are in use"), text
        assert ours.tool("run_python", code="1")["structuredContent"][
            "stdout"] == "1\n"
        # Another one's session and files are not there.
        text = ours.trouble("list_files", session=session)
        assert text.startswith("There is no session"), text
        files = theirs.tool("run_shell", session=session, command="echo >f")[
            "structuredContent"]["files"]
        answer = ours.legacy("resources/read", {"uri": files[0]["uri"]})
        assert answer.json["error"]["code"] == -32002, answer
        assert ours.result(ours.legacy("resources/list"))["resources"] == []
        assert theirs.result(theirs.legacy("resources/read", {
            "uri": files[0]["uri"]}))["contents"][0]["text"] == "\n"


try:
    run()
finally:
    served.close()
    folder.cleanup()
