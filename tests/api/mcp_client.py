# SPDX-License-Identifier: MIT
"""Clients of POST /mcp, of both eras, by hand: what they send is seen here.

    mcp = Mcp(served)
    mcp.tool("run_python", code="1")["structuredContent"]["stdout"]
    mcp.modern("tools/list").json
"""

import contextlib
import json

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ACCEPT = "application/json, text/event-stream"


class Mcp:
    """Requests to one service, with ids of their own."""

    def __init__(self, served, **headers):
        self.served = served
        self.headers = {"Accept": ACCEPT, **headers}
        self.last = 0

    def post(self, body, headers=None, **more):
        return self.served.post("/mcp", body,
                                {**self.headers, **(headers or {})}, **more)

    def body(self, method, params):
        self.last += 1
        body = {"jsonrpc": "2.0", "id": self.last, "method": method}
        return body if params is None else {**body, "params": params}

    def legacy(self, method, params=None, headers=None, version=LEGACY,
               **more):
        """The answer, whatever it is."""
        sent = {"MCP-Protocol-Version": version} if version else {}
        return self.post(self.body(method, params), {**sent,
                                                     **(headers or {})},
                         **more)

    def modern(self, method, params=None, headers=None, meta=None, **more):
        params = dict(params or {})
        sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        name = params.get("uri" if method == "resources/read" else "name")
        if name is not None:
            sent["Mcp-Name"] = name
        params["_meta"] = {META + "protocolVersion": MODERN,
                           META + "clientCapabilities": {}, **(meta or {})}
        return self.post(self.body(method, params),
                         {**sent, **(headers or {})}, **more)

    def result(self, answer):
        """The result, also at the end of a stream."""
        assert answer.status == 200, answer
        assert all(byte < 0x80 for byte in answer.body), answer
        if answer.headers["Content-Type"] == "application/json":
            last = answer.json
        else:
            last = events(answer.text)[1][-1]
        assert last["id"] == self.last, answer
        return last["result"]

    def call(self, name, headers=None, **arguments):
        """A tool's result, in the legacy era."""
        return self.result(self.legacy(
            "tools/call", {"name": name, "arguments": arguments}, headers))

    def tool(self, name, **arguments):
        """The same of one that went well."""
        result = self.call(name, **arguments)
        assert result["isError"] is False, result
        return result

    @contextlib.contextmanager
    def session(self):
        """A session, closed at the end."""
        made = self.tool("create_session")["structuredContent"]["session"]
        try:
            yield made
        finally:
            self.tool("close_session", session=made)

    def trouble(self, name, **arguments):
        """What the model is told."""
        result = self.call(name, **arguments)
        assert result["isError"] is True, result
        return result["content"][0]["text"]


def events(text):
    """(comments, messages) of a stream."""
    comments, messages = 0, []
    assert text.endswith("\n\n"), text
    for frame in text.split("\n\n")[:-1]:
        if frame.startswith(":"):
            comments += 1
            continue
        head, data = frame.split("\n")
        assert head == "event: message" and data.startswith("data: "), frame
        messages.append(json.loads(data[6:]))
    return comments, messages
