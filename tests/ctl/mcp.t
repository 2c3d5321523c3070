#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl mcp`: lines in, lines out; both eras; a cancelled run ends; what is
wrong with the way to Inline is told."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
from mcp_client import LEGACY, META, MODERN  # noqa: E402
from served import Served, wait_for  # noqa: E402
from service import BUILD, free_port  # noqa: E402
from tap import run, test  # noqa: E402

served = Served(IL_API_CELLS="1").__enter__()
URL = "http://127.0.0.1:%d/mcp" % served.port


class Bridge:
    """A running `ilctl mcp`."""

    def __init__(self, url=URL, **env):
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "bin", "ilctl"), "mcp",
             *(["-u", url] if url else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**os.environ, **env})

    def send(self, **message):
        self.process.stdin.write(json.dumps(
            {"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def close(self):
        """End of input: what is asked is answered first."""
        rest = self.process.communicate(timeout=60)[0]
        assert self.process.returncode == 0, self.process.returncode
        return [json.loads(line) for line in rest.splitlines()]


def call(code, meta=None, **more):
    params = {"name": "run_python", "arguments": {"code": code, **more}}
    return {"method": "tools/call",
            "params": {**params, **({"_meta": meta} if meta else {})}}


def running():
    text = served.get("/metrics").text
    return int(text.split("\ninline_api_running ")[1].split("\n")[0])


@test
def the_port_that_is_in_use_is_found():
    code, out, errors = served.ilctl("doctor", IL_HTTP_PORT="1")
    assert f"HTTP APIs: http://127.0.0.1:{served.port}/health answers" in out, \
        (code, out, errors)
    bridge = Bridge(None, IL_STATE_DIR=served.settings["IL_STATE_DIR"],
                    IL_HTTP_PORT="1")
    bridge.send(id=1, method="initialize", params={
        "protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}})
    assert bridge.receive()["result"]["protocolVersion"] == LEGACY
    assert bridge.close() == []


@test
def the_legacy_era():
    bridge = Bridge()
    bridge.send(id=1, method="initialize", params={
        "protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}})
    assert bridge.receive()["result"]["protocolVersion"] == LEGACY
    bridge.send(method="notifications/initialized")
    bridge.send(id="a", **call("open('f', 'wb').write(b'\\0'); print(1)"))
    answer = bridge.receive()
    assert answer["id"] == "a", answer
    # Its version is passed on: there are links.
    assert [c["type"] for c in answer["result"]["content"]] == [
        "text", "resource_link"], answer
    assert bridge.close() == []


@test
def the_modern_era():
    bridge = Bridge()
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    bridge.send(id=1, **call("print('\u00e9')", meta))
    answer = bridge.receive()
    assert answer["result"]["structuredContent"]["stdout"] == "\u00e9\n"
    assert answer["result"]["resultType"] == "complete", answer
    bridge.send(id=2, method="resources/read", params={
        "uri": "inline://\u00e9", "_meta": meta})
    assert bridge.receive()["error"]["code"] == -32602
    assert bridge.close() == []


@test
def progress_comes_as_it_is_made():
    bridge = Bridge()
    bridge.send(id=1, **call("import time; time.sleep(2)",
                             {"progressToken": 7}))
    told = bridge.receive()
    assert told["method"] == "notifications/progress", told
    assert bridge.close()[-1]["id"] == 1


@test
def a_cancelled_request_ends_its_run():
    bridge = Bridge()
    bridge.send(id=5, **call("import time; time.sleep(100)",
                             timeout_seconds=110))
    wait_for(lambda: running() == 1)
    bridge.send(method="notifications/cancelled", params={"requestId": 5})
    wait_for(lambda: running() == 0)
    bridge.send(id=6, method="ping")
    assert bridge.receive() == {"jsonrpc": "2.0", "id": 6, "result": {}}
    assert bridge.close() == []


@test
def what_is_no_json_is_told_by_inline():
    bridge = Bridge()
    bridge.process.stdin.write(b"{\n\n")
    bridge.process.stdin.flush()
    assert bridge.receive()["error"]["code"] == -32700
    assert bridge.close() == []


@test
def a_line_that_is_too_long_is_left_out():
    bridge = Bridge()
    bridge.process.stdin.write(b"x" * (17 << 20) + b"\n")
    bridge.send(id=1, method="ping")
    assert bridge.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert bridge.close() == []


@test
def where_there_is_no_inline_who_asks_is_told():
    bridge = Bridge("http://127.0.0.1:%d/mcp" % free_port())
    bridge.send(id=1, method="ping")
    answer = bridge.receive()
    assert answer["id"] == 1 and answer["error"]["code"] == -32603, answer
    bridge.send(method="notifications/initialized")
    assert bridge.close() == []


try:
    run()
finally:
    served.close()
