#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /mcp: both eras of the Model Context Protocol, tools, resources."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess

from mcp_client import LEGACY, META, MODERN, Mcp
from served import JSON, Answer, Served, wait_for
from tap import Skip, run, test

served = Served(IL_API_CELLS="2").__enter__()
mcp = Mcp(served)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg==")


def error(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/json", answer
    assert answer.json["error"]["code"] == code, answer
    return answer.json


def refused(answer, status, code):
    """By nginx, or before the message is looked at: by nobody's id."""
    answer = error(answer, status, code)
    assert sorted(answer) == ["error", "id", "jsonrpc"], answer
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", None), answer
    assert answer["error"]["message"], answer


# ---- the protocol ----

@test
def the_handshake_of_the_legacy_era():
    for asked, got in ((LEGACY, LEGACY), ("2025-03-26", "2025-03-26"),
                       ("1999-01-01", LEGACY)):
        result = mcp.result(mcp.legacy("initialize", {
            "protocolVersion": asked, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}, version=None))
        assert result["protocolVersion"] == got, result
        assert result["serverInfo"]["name"] == "inline", result
        assert result["capabilities"] == {"tools": {}, "resources": {}}
        assert "session" in result["instructions"], result
    answer = mcp.post({"jsonrpc": "2.0",
                       "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (202, b""), answer
    assert mcp.result(mcp.legacy("ping")) == {}
    assert "Mcp-Session-Id" not in mcp.legacy("ping").headers


@test
def the_modern_era_has_no_handshake():
    result = mcp.result(mcp.modern("server/discover"))
    assert result["supportedVersions"][0] == MODERN, result
    assert result["resultType"] == "complete", result
    assert result["_meta"][META + "serverInfo"]["name"] == "inline", result
    for method in ("server/discover", "tools/list", "resources/list",
                   "resources/templates/list"):
        result = mcp.result(mcp.modern(method))
        assert result["ttlMs"] >= 0, result
        assert result["cacheScope"] in ("public", "private"), result
    result = mcp.result(mcp.modern("tools/call", {
        "name": "run_python", "arguments": {"code": "6*7"}}))
    assert result["structuredContent"]["stdout"] == "42\n", result
    for method in ("initialize", "ping", "logging/setLevel",
                   "subscriptions/listen"):
        error(mcp.modern(method), 404, -32601)


@test
def the_list_of_tools_is_always_the_same():
    first = mcp.result(mcp.legacy("tools/list"))["tools"]
    assert [tool["name"] for tool in first] == [
        "run_python", "run_shell", "create_session", "close_session",
        "list_files", "read_file", "write_file"]
    assert mcp.result(mcp.modern("tools/list"))["tools"] == first
    for tool in first:
        assert tool["inputSchema"]["additionalProperties"] is False, tool
        assert tool["outputSchema"]["type"] == "object", tool
        assert len(tool["annotations"]) == 5, tool
    error(mcp.legacy("tools/list", {"cursor": "x"}), 200, -32602)


@test
def what_is_no_request_is_told_so():
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    for body, code, its_id in (
            (b"{", -32700, None), (b"", -32700, None),
            (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', -32700, None),
            (b"[" * 5000, -32700, None),
            ([ping], -32600, None), ([], -32600, None), (7, -32600, None),
            ({**ping, "jsonrpc": "1.0"}, -32600, 7),
            ({**ping, "id": None}, -32600, None),
            ({**ping, "id": 1.5}, -32600, None),
            ({**ping, "id": [1]}, -32600, None),
            ({**ping, "method": 1}, -32600, 7),
            ({**ping, "params": [1]}, -32602, 7)):
        answer = mcp.post(body)
        assert error(answer, 400, code)["id"] == its_id, (body, answer)
    answer = error(mcp.legacy("no/such"), 200, -32601)
    assert answer["id"] == mcp.last, answer
    answer = error(mcp.legacy("tools/call", {"name": "x"}), 200, -32602)
    assert answer["error"]["message"] == "Unknown tool: x", answer
    error(mcp.legacy("ping", version="2020-01-01"), 400, -32600)
    error(mcp.post(ping, {"Content-Type": "text/plain"}), 415, -32600)


@test
def headers_say_what_the_body_says():
    for headers in ({"Mcp-Method": "tools/call"},
                    {"MCP-Protocol-Version": LEGACY}):
        error(mcp.modern("tools/list", headers=headers), 400, -32020)
    call = {"name": "run_python", "arguments": {"code": "1"}}
    error(mcp.modern("tools/call", call, {"Mcp-Name": "run_shell"}), 400,
          -32020)
    answer = mcp.modern("tools/call", call,
                        {"Mcp-Name": "=?base64?cnVuX3B5dGhvbg==?="})
    assert answer.status == 200, answer
    answer = mcp.modern("tools/list", meta={META + "protocolVersion": "2030"},
                        headers={"MCP-Protocol-Version": "2030"})
    data = error(answer, 400, -32022)["error"]["data"]
    assert data == {"requested": "2030", "supported": mcp.result(
        mcp.modern("server/discover"))["supportedVersions"]}, data
    for missing in ("protocolVersion", "clientCapabilities"):
        error(mcp.modern("tools/list", meta={META + missing: None}), 400,
              -32602)


@test
def what_is_not_known_of_a_request_does_no_harm():
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for parent in trace, "no trace", 7, None, {"a": []}:
        meta = {"traceparent": parent, "tracestate": parent,
                "baggage": parent, "example.org/x": parent,
                META + "clientCapabilities": {
                    "extensions": {"example.org/unknown": {"a": 1},
                                   META + "tasks": {}, META + "ui": {}},
                    "elicitation": {}, "unknown": parent}}
        result = mcp.result(mcp.modern("tools/call", {
            "name": "run_python", "arguments": {"code": "6*7"}}, meta=meta))
        # Whoever could take a task is answered by the result itself.
        assert result["resultType"] == "complete", result
        assert result["structuredContent"]["stdout"] == "42\n", result
        result = mcp.result(mcp.legacy("tools/call", {
            "name": "run_python", "arguments": {"code": "6*7"},
            "_meta": meta}))
        assert result["structuredContent"]["stdout"] == "42\n", result
        result = mcp.result(mcp.legacy("initialize", {
            "protocolVersion": LEGACY, "clientInfo": {},
            "capabilities": meta[META + "clientCapabilities"]}, version=None))
        assert "extensions" not in result["capabilities"], result
    tools = json.dumps(mcp.result(mcp.legacy("tools/list")))
    assert "$ref" not in tools, tools


@test
def both_eras_take_turns_on_one_connection():
    link = served.connect()
    for number in range(4):
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
        headers = {"Content-Type": "application/json"}
        if number % 2:
            body["params"] = {"_meta": {META + "protocolVersion": MODERN,
                                        META + "clientCapabilities": {}}}
            headers.update({"MCP-Protocol-Version": MODERN,
                            "Mcp-Method": "tools/list"})
        link.request("POST", "/mcp", json.dumps(body), headers)
        answer = link.getresponse()
        result = json.loads(answer.read())["result"]
        assert answer.status == 200
        assert ("resultType" in result) == bool(number % 2), result
    link.close()


@test
def nothing_else_is_served_there():
    for method in ("GET", "DELETE", "PUT"):
        answer = served.request(method, "/mcp")
        refused(answer, 405, -32600)
        assert answer.headers["Allow"] == "POST", answer.headers
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp",
                 "oauth-authorization-server", "openid-configuration"):
        answer = served.get("/.well-known/" + path)
        assert answer.status == 404, (path, answer)


@test
def foreign_pages_and_names_are_refused():
    own = "localhost:%d" % served.port
    body = mcp.body("ping", None)
    for host, origin in (("evil.example.com", "http://evil.example.com"),
                         (own, "http://evil.example.com"),
                         ("evil.example.com", None), (own, "null")):
        headers = {"Host": host, **({"Origin": origin} if origin else {})}
        refused(mcp.post(body, headers), 403, -32600)
    for origin in ("http://" + own, "http://127.0.0.1:6274"):
        answer = mcp.post(body, {"Host": own, "Origin": origin})
        assert answer.status == 200, (origin, answer)


# ---- tools ----

@test
def a_run_tells_what_it_printed_and_how_it_ended():
    result = mcp.call("run_python", code="import sys; print(sys.stdin.read(), "
                      "sys.argv[1:]); 1/0", stdin="h\u00e9", args=["a"])
    assert result["isError"] is True, result
    data = result["structuredContent"]
    assert data["stdout"] == "h\u00e9 ['a']\n", data
    assert data["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert (data["exit_code"], data["reason"]) == (1, "exit"), data
    text = result["content"][0]["text"]
    assert text.startswith("h\u00e9 ['a']\n[stderr]\nTraceback"), text
    assert re.search(r"\[exit code 1, \d+ ms\]\n$", text), text


def run_python(code, **more):
    """The result's data, with the pictures that are seen."""
    result = mcp.call("run_python", code=code, **more)
    data = result["structuredContent"]
    data["seen"] = [base64.b64decode(item["data"])
                    for item in result["content"] if item["type"] == "image"]
    return data


@test
def a_program_has_its_source():
    code = ("import inspect\ndef f():\n    return 1 / 0\n"
            "print(inspect.getsource(f))\nf()")
    with mcp.session() as session:
        for more, name in ({}, "__main__"), ({"session": session},
                                             ".inline-main"):
            data = run_python(code, **more)
            assert data["stdout"] == "def f():\n    return 1 / 0\n\n", data
            lines = [line for line in data["stderr"].splitlines()
                     if not line.strip(" ^~") == ""]
            assert lines == [
                "Traceback (most recent call last):",
                '  File "/workspace/%s.py", line 5, in <module>' % name,
                "    f()",
                '  File "/workspace/%s.py", line 3, in f' % name,
                "    return 1 / 0",
                "ZeroDivisionError: division by zero"], data
            assert data["files"] == data["left_out"] == [], data


@test
def await_stands_at_the_top_level():
    data = run_python("import asyncio\nawait asyncio.sleep(0)\n"
                      "async def f(): return 42\nawait f()")
    assert (data["stdout"], data["exit_code"]) == ("42\n", 0), data
    data = run_python("async def f(): 1/0\nawait f()")
    assert data["stderr"].splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "/workspace/__main__.py", line 2, in <module>'], data
    assert "cell" not in data["stderr"], data
    data = run_python("%pip install nowhere\n!echo shell")
    assert data["stdout"] == (
        "Packages are installed by the operator of this service: "
        "ilctl packages add nowhere\nshell\n"), data


# A picture as notebooks know one, where there is no library.
SHOWS = ("class P:\n    def _repr_png_(self): return %r\n    "
         "def __repr__(self): return 'P'\n" % PNG)


@test
def what_is_displayed_is_seen():
    data = run_python(SHOWS + "display(P(), 5)\nP()")
    assert data["seen"] == [PNG, PNG] and data["stdout"] == "5\n", data
    assert [f["path"] for f in data["files"]] == [
        "picture-1.png", "picture-2.png"], data
    data = run_python(SHOWS + "import os\nos.mkdir('d'); os.chdir('d')\n"
                      "open('/workspace/picture-7.png', 'w').close()\n"
                      "for i in range(12): display(P())")
    assert len(data["seen"]) == 10 and data["stderr"].startswith(
        "2 more pictures are not shown"), data
    assert "picture-8.png" in [f["path"] for f in data["files"]], data
    with mcp.session() as session:
        for number in range(1, 4):
            data = run_python(SHOWS + "P()", session=session)
            assert data["seen"][:1] == [PNG], data
            assert "picture-%d.png" % number in [
                f["path"] for f in data["files"]], data


@test
def so_are_figures_of_the_real_matplotlib():
    image = "inline-python:3.11-scientific"
    if subprocess.run(["docker", "image", "inspect", image],
                      capture_output=True).returncode:
        raise Skip("no image %s" % image)
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3])\n"
    ahead = "import sys\nprint('matplotlib.py' + 'plot' in sys.modules)\n"
    # Imported by the run, and before it.
    for preload in "none", "matplotlib.pyplot":
        with Served(SANDBOX_IMAGE=image, IL_API_CELLS="1",
                    IL_PRELOAD=preload) as science:
            there = Mcp(science)
            # A call that finds no cell free says that it is to come again.
            wait_for(lambda: str(preload != "none") == there.call(
                "run_python", code=ahead + "if 0:\n import matplotlib.pyplot"
                ).get("structuredContent", {}).get("stdout", "").strip(), 120)
            for code in (plot + "plt.show()", plot + "display(plt.gcf())",
                         plot + "None", plot + "plt.gcf()",
                         "from PIL import Image\nImage.new('1', (9, 9)).show()"):
                result = there.tool("run_python", code=code)
                data = result["structuredContent"]
                assert [item["type"] for item in result["content"][1:]] == [
                    "image"], (preload, code, data)
                assert data["stdout"] == data["stderr"] == "", data
            # What it warns of is the program's, not ours.
            data = there.tool("run_python", code=plot + "plt.title(chr(0x1f9ff)"
                              ")\nplt.show()")["structuredContent"]
            first, *more = data["stderr"].splitlines()
            assert first.startswith("/workspace/__main__.py:4: UserWarning: "
                                    "Glyph 129535 "), data
            assert more == ["  plt.show()"], data


@test
def no_other_contract_has_that():
    code = "print('display' in dir(__builtins__))\nawait x"
    for answer in (served.execute(code), served.execute(code, files=[])):
        assert "SyntaxError" in answer["stderr"], answer
    assert served.execute("'display' in dir(__builtins__)")["stdout"] == (
        "False\n")
    assert served.eval(input="print('display' in dir(__builtins__))")[
        "stdout"] == "False\n"


@test
def the_true_reason_of_an_end():
    data = mcp.call("run_python", code="import time; print(1, flush=True); "
                    "time.sleep(60)", timeout_seconds=1)["structuredContent"]
    assert (data["timed_out"], data["exit_code"], data["reason"],
            data["stdout"]) == (True, None, "time", "1\n"), data
    data = mcp.call("run_python", code="import os; os.kill(os.getpid(), 9)"
                    )["structuredContent"]
    assert (data["exit_code"], data["reason"]) == (137, "signal"), data
    data = mcp.call("run_python", code="a = []\nwhile 1: a.append(bytearray("
                    "10**7))")["structuredContent"]
    assert data["reason"] in ("memory", "exit"), data


@test
def long_output_is_cut_in_its_middle():
    data = mcp.tool("run_python", code="print('a' * 50000 + 'end')"
                    )["structuredContent"]
    assert data["truncated"] and data["stdout"].endswith("aend\n"), data
    assert 20000 < len(data["stdout"]) < 20100, len(data["stdout"])


@test
def pictures_are_seen_and_other_files_are_linked():
    result = mcp.tool(
        "run_python", files=[{"path": "in/a.png",
                              "base64": base64.b64encode(PNG).decode()}],
        code="import shutil; shutil.copy('in/a.png', 'b.png')\n"
        "open('t.csv', 'w').write('1,\u00e9')\nopen('no.png', 'w')."
        "write('text')\nopen('s.svg', 'w').write('<svg/>')")
    kinds = {item["type"]: item for item in result["content"][1:]
             if item["type"] != "resource_link"}
    assert base64.b64decode(kinds["image"]["data"]) == PNG, kinds
    assert kinds["image"]["mimeType"] == "image/png", kinds
    assert kinds["text"]["text"] == "<svg/>", kinds
    told = result["content"][0]["text"]
    links = {item["name"]: item for item in result["content"]
             if item["type"] == "resource_link"}
    assert set(links) == {"t.csv", "no.png"}, links
    files = {f["path"]: f for f in result["structuredContent"]["files"]}
    assert set(files) == {"b.png", "t.csv", "no.png", "s.svg"}, files
    # Each is told once more for who reads the content alone.
    for name, file in files.items():
        linked = name in links and links[name]["uri"] == file["uri"]
        assert linked != (file["uri"] in told), (name, told)
    for file in files.values():
        content = mcp.result(mcp.legacy("resources/read", {
            "uri": file["uri"]}))["contents"][0]
        assert content["uri"] == file["uri"], content
    content = mcp.result(mcp.legacy("resources/read", {
        "uri": files["t.csv"]["uri"]}))["contents"][0]
    assert content["text"] == "1,\u00e9", content
    content = mcp.result(mcp.modern("resources/read", {
        "uri": files["b.png"]["uri"]}))["contents"][0]
    assert base64.b64decode(content["blob"]) == PNG, content
    listed = mcp.result(mcp.legacy("resources/list"))["resources"]
    assert {f["uri"] for f in files.values()} <= {r["uri"] for r in listed}
    # By its id the file goes into the next run.
    file_id = files["t.csv"]["uri"].split("/")[3]
    data = mcp.tool("run_python", code="print(open('x').read())", files=[
        {"path": "x", "file_id": file_id}])["structuredContent"]
    assert data["stdout"] == "1,\u00e9\n", data
    # Clients of 2025-03-26 know no links.
    result = mcp.result(mcp.legacy("tools/call", {
        "name": "run_python", "arguments": {
            "code": "open('f', 'wb').write(b'\\0')"}}, version=None))
    assert [c["type"] for c in result["content"]] == ["text"], result


@test
def what_is_no_regular_file_is_named_in_a_run_and_in_a_session():
    code = ("import os\nopen('f', 'w').write('1'); os.mkfifo('fifo')\n"
            "os.symlink('f', 'link')")
    with mcp.session() as session:
        for more in {}, {"session": session}:
            data = mcp.tool("run_python", code=code, **more
                            )["structuredContent"]
            assert [f["path"] for f in data["files"]] == ["f"], data
            assert sorted((f["path"], f["why"]) for f in data["left_out"]) == [
                (path, "not a regular file") for path in ("fifo", "link")], data


@test
def caches_are_no_files_of_a_run():
    code = ("import os\nfor name in ('CACHE', 'CONFIG'):\n"
            "    place = os.environ.get(f'XDG_{name}_HOME') or "
            "os.path.expanduser(f'~/.{name.lower()}')\n"
            "    os.makedirs(place); open(place + '/f', 'x')")
    data = mcp.tool("run_python", code=code)["structuredContent"]
    assert (data["exit_code"], data["files"]) == (0, []), data


@test
def a_picture_that_the_store_does_not_take_is_seen_all_the_same():
    with Served(IL_API_CELLS="1") as broken:
        shutil.rmtree(os.path.join(broken.settings["IL_STATE_DIR"], "files"))
        result = Mcp(broken).tool("run_python", code="open('b.png', 'wb')."
                                  "write(%r + bytes(600000))" % PNG)
        data = result["structuredContent"]
        assert data["files"] == [] and data["left_out"] == [{
            "path": "b.png", "size": len(PNG) + 600000,
            "why": "the store failed"}], data
        shown = [base64.b64decode(item["data"]) for item in result["content"]
                 if item["type"] == "image"]
        assert shown == [PNG + bytes(600000)], result["content"][0]


@test
def the_newest_resource_comes_first_and_what_is_too_large_is_told():
    for name, size in ("small", 8 << 20), ("large", (8 << 20) + 1):
        files = mcp.tool("run_python", code="open('%s', 'wb').write(bytes(%d))"
                         % (name, size))["structuredContent"]["files"]
        listed = mcp.result(mcp.legacy("resources/list"))["resources"]
        assert listed[0]["name"] == name, listed[:2]
        answer = mcp.legacy("resources/read", {"uri": files[0]["uri"]}).json
        if name == "small":
            blob = answer["result"]["contents"][0]["blob"]
            assert len(base64.b64decode(blob)) == size
    assert answer["error"]["code"] == -32002, answer
    assert answer["error"]["message"].startswith("Resource too large"), answer


@test
def resources_that_are_not_there():
    for uri in ("inline://files/00000000-0000-4000-8000-000000000000/a",
                "inline://files/../../etc/passwd", "file:///etc/passwd", ""):
        answer = error(mcp.legacy("resources/read", {"uri": uri}), 200,
                       -32002)
        assert answer["error"]["data"] == {"uri": uri}, answer
        answer = error(mcp.modern("resources/read", {"uri": uri}), 400,
                       -32602)
        assert answer["error"]["data"] == {"uri": uri}, answer
    for params in {}, {"uri": "x" * 70000}:
        error(mcp.legacy("resources/read", params), 200, -32602)


@test
def a_shell_command_runs_without_a_session():
    data = mcp.tool("run_shell", command="pwd; cat; echo x > f", stdin="in"
                    )["structuredContent"]
    assert data["stdout"] == "/workspace\nin", data
    assert [f["path"] for f in data["files"]] == ["f"], data
    result = mcp.call("run_shell", command="exit 3")
    assert result["structuredContent"]["exit_code"] == 3, result
    assert result["isError"] is True, result


@test
def files_stay_in_a_session():
    made = mcp.tool("create_session", ttl_seconds=600)["structuredContent"]
    session = made["session"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
                        made["expires_at"]), made
    mcp.tool("write_file", session=session, path="d/a.txt", text="h\u00e9llo")
    mcp.tool("write_file", session=session, path="m.py", text="x = 5")
    result = mcp.tool("run_python", session=session, code="import m\n"
                      "print(m.x, open('d/a.txt').read())\n"
                      "open('new.csv', 'w').write('1,2')\nm.x + 1")
    data = result["structuredContent"]
    assert data["stdout"] == "5 h\u00e9llo\n6\n", data
    assert "new.csv" in [f["path"] for f in data["files"]], data
    data = mcp.tool("run_shell", session=session, command="ls -A; cat new.csv"
                    )["structuredContent"]
    assert data["stdout"] == "d\nm.py\nnew.csv\n1,2", data
    files = mcp.tool("list_files", session=session)["structuredContent"]
    assert files == {"files": [
        {"path": "d", "kind": "folder", "size": 0},
        {"path": "m.py", "kind": "file", "size": 5},
        {"path": "new.csv", "kind": "file", "size": 3}],
        "truncated": False}, files
    files = mcp.tool("list_files", session=session, path="./d")
    assert files["structuredContent"]["files"][0]["path"] == "d/a.txt", files
    # Next offsets stand between characters.
    got, offset = "", 0
    while offset is not None:
        part = mcp.tool("read_file", session=session, path="d/a.txt",
                        offset=offset, limit=4)["structuredContent"]
        assert part["size"] == 6, part
        got, offset = got + part["text"], part["next_offset"]
    assert got == "h\u00e9llo", got
    part = mcp.tool("read_file", session=session, path="d/a.txt", limit=4)
    assert part["content"][1]["text"] == (
        "[4 of 6 bytes; the next offset is 4]"), part
    mcp.tool("write_file", session=session, path="p.png",
             base64=base64.b64encode(PNG).decode())
    result = mcp.tool("read_file", session=session, path="p.png")
    assert result["content"][0]["type"] == "image", result
    assert base64.b64decode(
        result["structuredContent"]["base64"]) == PNG, result
    for path, text in (("nope", "'nope' is not there."),
                       ("d", "'d' is a folder."),
                       ("m.py/x", "'m.py/x' is no folder.")):
        assert mcp.trouble("read_file", session=session, path=path) == text
    mcp.tool("close_session", session=session)
    for name, more in (("run_python", {"code": "1"}), ("list_files", {}),
                       ("close_session", {})):
        text = mcp.trouble(name, session=session, **more)
        assert "create_session" in text, text


@test
def the_program_of_a_session_is_nobodys_file():
    session = mcp.tool("create_session")["structuredContent"]["session"]
    files = [{"path": "./.inline-main.py", "text": "print('theirs')"}]
    text = mcp.trouble("run_python", session=session, code="1", files=files)
    assert text == "files[0]: .inline-main.py is the program itself.", text
    # Elsewhere it is a file as any other.
    for name, arguments in (
            ("run_python", {"code": "open('.inline-main.py').read()"}),
            ("run_shell", {"command": "cat .inline-main.py",
                           "session": session})):
        data = mcp.tool(name, files=files, **arguments)["structuredContent"]
        assert "print('theirs')" in data["stdout"], data
    files = [{"path": "__main__.py", "text": "x = 3"}]
    data = mcp.tool("run_python", session=session, files=files,
                    code="print(open('__main__.py').read())"
                    )["structuredContent"]
    assert data["stdout"] == "x = 3\n", data
    mcp.tool("close_session", session=session)


@test
def of_a_sessions_files_those_that_have_changed_are_told():
    session = mcp.tool("create_session")["structuredContent"]["session"]
    mcp.tool("run_python", session=session, code="import os\n"
             "for name, at in ('old', 1e9), ('longer', 1e9), ('later', 4e9):\n"
             "    open(name, 'w').write('x')\n    os.utime(name, (at, at))\n"
             "import time; time.sleep(0.05)  # longer than MARGIN_NS")
    data = mcp.tool("run_python", session=session, code="import os\n"
                    "open('longer', 'a').write('y')\n"
                    "os.mkdir('.cache'); open('.cache/f', 'w')\n"
                    "os.utime('longer', (1e9, 1e9))")["structuredContent"]
    assert sorted(f["path"] for f in data["files"]) == [
        ".cache/f", "longer"], data
    mcp.tool("close_session", session=session)


@test
def a_session_ends_when_its_time_is_over():
    session = mcp.tool("create_session", ttl_seconds=1)["structuredContent"][
        "session"]
    wait_for(lambda: mcp.call("list_files", session=session)["isError"])
    text = mcp.trouble("list_files", session=session)
    assert text.startswith("There is no session"), text


@test
def a_handle_that_is_none():
    for session in ("x", "code-session-" + "0" * 32, "../api.sock"):
        text = mcp.trouble("list_files", session=session)
        assert text.startswith("There is no session '%s'" % session), text


@test
def what_the_model_can_mend_is_one_line():
    for name, arguments in (("run_python", {"cod": "1"}),
                            ("run_python", {"code": "1",
                                            "timeout_seconds": 1000}),
                            ("run_python", {"code": "1", "files": [
                                {"path": "a", "file_id": "b"}]}),
                            ("run_python", {"code": "1", "files": [
                                {"path": "__main__.py", "text": ""}]}),
                            ("write_file", {"session": "s", "path": "a"})):
        text = mcp.trouble(name, **arguments)
        assert "\n" not in text and len(text) < 300, text


@test
def ten_megabytes_of_arguments():
    data = mcp.tool("run_python", code="import os; os.path.getsize('f')",
                    files=[{"path": "f", "text": "x" * (10 << 20)}]
                    )["structuredContent"]
    assert data["stdout"] == "%d\n" % (10 << 20), data
    answer = mcp.legacy("tools/call", {"name": "run_python", "arguments": {
        "code": "x" * (17 << 20)}})
    refused(answer, 413, -32600)


@test
def who_serves_it_is_lost_and_nobody_serves_it():
    link = served.connect()
    link.request("POST", "/mcp", json.dumps(mcp.body("tools/call", {
        "name": "run_python", "arguments": {
            "code": "import time; time.sleep(100)",
            "timeout_seconds": 110}})), {**JSON, "Accept": "*/*"})
    wait_for(lambda: "\ninline_api_running 1\n" in served.get("/metrics").text)
    for pid in served.serving("mcp.sock"):
        os.kill(pid, signal.SIGKILL)
    answer = Answer(link.getresponse())
    link.close()
    refused(answer, 502, -32603)
    path = os.path.join(served.settings["IL_STATE_DIR"], "mcp.sock")
    os.rename(path, path + ".away")
    answer = mcp.legacy("ping")
    os.rename(path + ".away", path)
    refused(answer, 503, -32603)
    assert answer.headers["Retry-After"] == "1", answer.headers


@test
def who_cannot_accept_gives_way_to_another():
    served.leave_no_descriptor("mcp.sock")
    for _ in range(20):
        assert mcp.result(mcp.legacy("ping")) == {}


@test
def nothing_is_forgotten_by_a_restart():
    served.kill("il-api")
    assert mcp.tool("run_python", code="1")["structuredContent"][
        "stdout"] == "1\n"
    assert mcp.result(mcp.legacy("ping")) == {}


@test
def it_is_counted():
    text = served.get("/metrics").text
    assert 'route="/mcp",status="200"}' in text, text[:2000]
    assert re.search(r'\{api="mcp",outcome="exit"\} [1-9]', text), [
        line for line in text.split("\n") if "mcp" in line]


try:
    run()
finally:
    served.close()
