# SPDX-License-Identifier: MIT
"""One interaction at a time, and the edits that follow it: where a row needs to
see what they hold, or to press what is in them.
"""

import contextlib
import email
import http.client
import http.server
import json
import queue
import threading
import time

import front


class Edit:
    """One edit of a message: when its last byte was there, and what it is."""

    def __init__(self, when, body, headers):
        self.when = when
        kind = headers["Content-Type"]
        if not kind.startswith("multipart/"):
            parts = {"payload_json": body}
        else:
            whole = email.message_from_bytes(
                b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
            parts = {one.get_param("name", header="Content-Disposition"):
                     one.get_payload(decode=True)
                     for one in whole.get_payload()}
        self.message = json.loads(parts.pop("payload_json"))
        self.files = parts


class Edits(http.server.BaseHTTPRequestHandler):
    """Discord's end: takes edits, and tells when each has come."""

    protocol_version = "HTTP/1.1"

    def do_PATCH(self):
        """One edit."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.edits.put(Edit(time.monotonic(), body, self.headers))
        answer = b'{"id":"600000000000000001"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Nothing."""


@contextlib.contextmanager
def edits_of(place):
    """Yields a queue of each Edit that comes while it is open."""
    server = http.server.ThreadingHTTPServer(
        place.rest.getsockname(), Edits, bind_and_activate=False)
    server.socket.close()
    server.socket = place.rest.dup()
    server.socket.setblocking(True)
    server.edits = queue.Queue()
    thread = threading.Thread(target=server.serve_forever, args=(0.1,))
    thread.start()
    try:
        yield server.edits
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(place, service, body):
    """Sign and send an interaction; returns the answer's JSON."""
    data = front.encode(body)
    stamp = str(int(time.time()))
    link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    with contextlib.closing(link):
        link.request("POST", "/interactions", data, {
            "Content-Type": "application/json", "X-Signature-Timestamp": stamp,
            "X-Signature-Ed25519": place.identity.sign(stamp.encode() + data)})
        return json.loads(link.getresponse().read())
