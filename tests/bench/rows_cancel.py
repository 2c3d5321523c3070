# SPDX-License-Identifier: MIT
"""From the press of Cancel to the end of the run, as its owner sees it."""

import contextlib
import http.client
import http.server
import json
import queue
import threading
import time

import front
import place as p
from table import ms

ENDLESS = "while True:\n    pass"


class Edits(http.server.BaseHTTPRequestHandler):
    """Discord's end: takes edits, and tells when each has come."""

    protocol_version = "HTTP/1.1"

    def do_PATCH(self):
        """One edit."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.edits.put((time.monotonic(), json.loads(body)))
        answer = b'{"id":"600000000000000001"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Nothing."""


@contextlib.contextmanager
def discord(place):
    """Yields a queue of (when, edit)."""
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


def once(place, service, edits):
    """Begin a run, cancel it; returns how many milliseconds that took."""
    send(place, service, front.command("py", user=p.USER, code=ENDLESS))
    button = edits.get(timeout=30)[1]["components"][0]["components"][0]
    pressed = time.monotonic()
    answer = send(place, service, front.press(button["custom_id"],
                                              user=p.USER))
    if answer["type"] != 6:
        raise p.Failed("Cancel was answered %r" % answer)
    while True:
        when, edit = edits.get(timeout=30)
        if "cancelled" in edit["content"]:
            return 1000 * (when - pressed)


def cancel(place, table):
    """What people wait for, and the engine's own way beside it."""
    count = place.settings.count(7)
    with place.service(users=1, IL_TIMEOUT_SECONDS="60") as service, \
            discord(place) as edits:
        took = sorted(once(place, service, edits) for _ in range(count))
        kept = service.containers()
    p50 = took[len(took) // 2]
    table.add("Cancel to the end of the run, p50", ms(p50), "", None,
              "<= 200 ms", p50 <= 200)
    table.note("n=%d, longest %s; from the press to the edit that says so;"
               " containers then: %d" % (count, ms(took[-1]), len(kept)))
