# SPDX-License-Identifier: MIT
"""A client of LibreChat's routes, for tests.

    libre = Libre(served, {"X-API-Key": key})
    answer = libre.exec("print(1)")                 # the JSON of a 200
    session, file_id = libre.put("a/b.csv", b"1")
    refused(libre.post({"lang": "x"}), 400, {"error": …})
"""

import json
import re

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
ID = re.compile(r"[A-Za-z0-9_-]{21}")


def compact(value):
    """JSON as the service writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def refused(answer, status, body):
    """The answer is this one, byte for byte."""
    got = (answer.status, answer.headers["Content-Type"], answer.text)
    want = (status, "application/json", compact(body))
    assert got == want, f"\ngot  {got!r}\nwant {want!r}"


def form(*parts):
    """A whole form of (name, value) and ("file", filename, data)."""
    lines = b""
    for name, *rest in parts:
        head = 'form-data; name="%s"' % name
        if len(rest) == 2:
            head += '; filename="%s"' % rest[0]
        data = rest[-1] if isinstance(rest[-1], bytes) else rest[-1].encode()
        lines += b"--b\r\nContent-Disposition: %s\r\n\r\n%s\r\n" % (
            head.encode(), data)
    return lines + b"--b--\r\n"


class Libre:
    """What LibreChat does, with the credentials of somebody."""

    def __init__(self, served, credentials=None):
        self.served = served
        self.credentials = credentials or {}

    def request(self, method, path, body=None, headers=None, **more):
        return self.served.request(method, "/librechat" + path, body, {
            **self.credentials, **(headers or {})}, **more)

    def get(self, path):
        return self.request("GET", path)

    def post(self, body, path="/exec", **more):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, JSON, **more)

    def exec(self, code, lang="py", **fields):
        answer = self.post({"lang": lang, "code": code, **fields})
        assert answer.status == 200, answer
        told = answer.json
        assert ID.fullmatch(told["session_id"]), told
        return told

    def upload(self, *parts, path="/upload", body=None, content_type=None):
        return self.request("POST", path, form(*parts) if body is None
                            else body, {"Content-Type": content_type}
                            if content_type else FORM)

    def put(self, name, data, **fields):
        """Upload one file: its session and its id."""
        answer = self.upload(*fields.items(), ("file", name, data))
        assert answer.status == 200, answer
        told = answer.json
        assert told["message"] == "success", told
        assert told["session_id"] == told["storage_session_id"], told
        return told["storage_session_id"], told["files"][0]["fileId"]

    def download(self, session, file_id, query=""):
        return self.get("/download/%s/%s%s" % (session, file_id, query))

    def made(self, told):
        """{name: bytes} of what a run has made or changed."""
        return {one["name"]: self.download(one["storage_session_id"],
                                           one["id"]).body
                for one in told["files"] if not one.get("inherited")}


def reference(name, session, file_id, **more):
    """A file as LibreChat names it in a request."""
    return {"id": file_id, "storage_session_id": session, "name": name,
            "kind": "user", **more}


__all__ = ["FORM", "ID", "JSON", "Libre", "compact", "form", "reference",
           "refused"]
