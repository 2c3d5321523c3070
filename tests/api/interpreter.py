# SPDX-License-Identifier: MIT
"""A client of the code-interpreter routes, for tests.

    with Served() as served:
        client = Interpreter(served)
        file_id = client.put("a.csv", b"1,2")
        client.refused(served.post("/v1/execute", {}), 422, [...])
        with client.stream("print(1)") as stream:
            for event in stream: event.name, event.data
"""

import collections
import contextlib
import json

from served import JSON

FORM = {"Content-Type": "multipart/form-data; boundary=b"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"
Event = collections.namedtuple("Event", "name data raw")


def compact(value):
    """JSON as the service writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def place(where):
    """A place in a body, for people: files[0].path."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}"
                   for part in where)
    return text.removeprefix(".") or "The body"


def missing(*where, given=None):
    """The error of a field that is not there."""
    more = ": send a form with a file of that name" if where == ("file",) \
        else ""
    return {"type": "missing", "loc": ["body", *where],
            "msg": place(where) + " is missing" + more, "input": given}


def part(data, disposition, *headers):
    """One part of a form whose boundary is "b", as bytes."""
    if isinstance(disposition, str):
        disposition = disposition.encode()
    lines = [b"Content-Disposition: form-data; " + disposition, *headers]
    return b"--b\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + data + b"\r\n"


def form(*parts):
    """A whole form."""
    return b"".join(parts) + b"--b--\r\n"


def refused(answer, status, detail):
    """The answer is this one, byte for byte."""
    want = (status, "application/json", compact({"detail": detail}))
    got = (answer.status, answer.headers["Content-Type"], answer.text)
    assert got == want, f"\ngot  {got!r}\nwant {want!r}"


class Interpreter:
    """What clients do."""

    def __init__(self, served):
        self.served = served

    def post_form(self, body, content_type=None):
        """POST /v1/files; the Answer."""
        headers = FORM if content_type is None else {
            "Content-Type": content_type}
        return self.served.request("POST", "/v1/files", body, headers)

    def upload(self, name, data):
        """Upload one file; the Answer."""
        return self.post_form(form(part(
            data, 'name="file"; filename="%s"' % name)))

    def put(self, name, data):
        """Upload one file; its id."""
        answer = self.upload(name, data)
        assert answer.status == 201, answer
        return answer.json["file_id"]

    def download(self, file_id):
        return self.served.get("/v1/files/" + file_id)

    def delete(self, file_id):
        return self.served.request("DELETE", "/v1/files/" + file_id)

    def listed(self):
        """GET /v1/files, by id."""
        answer = self.served.get("/v1/files")
        assert answer.status == 200, answer
        return {f["file_id"]: f for f in answer.json["files"]}

    def made(self, fields):
        """The contents of the files of an answer, by path."""
        return {f["path"]: self.download(f["file_id"]).body
                for f in fields["files"]}

    @contextlib.contextmanager
    def stream(self, code, timeout=60, **fields):
        """POST /v1/execute/stream."""
        link = self.served.connect(timeout)
        try:
            link.request("POST", "/v1/execute/stream",
                         json.dumps({"code": code, **fields}), JSON)
            yield Stream(link)
        finally:
            link.close()

    def streamed(self, code, **fields):
        """All events of a stream."""
        with self.stream(code, **fields) as stream:
            return list(stream)


class Stream:
    """An answer of /v1/execute/stream as it comes."""

    def __init__(self, link):
        self.response = link.getresponse()
        self.status = self.response.status
        self.headers = self.response.headers

    def __iter__(self):
        """The frames; each is "event: …\\ndata: …\\n\\n" and nothing else."""
        while True:
            head = self.response.readline()
            if head == b"":
                return
            data = self.response.readline()
            end = self.response.readline()
            raw = head + data + end
            assert head.startswith(b"event: ") and end == b"\n" and \
                data.startswith(b"data: ") and data.endswith(b"\n"), raw
            yield Event(head[7:-1].decode(), json.loads(data[6:]), raw)


def text_of(events, stream="stdout"):
    """What the events say that a stream held."""
    return "".join(e.data["data"] for e in events
                   if e.name == "output" and e.data["stream"] == stream)
