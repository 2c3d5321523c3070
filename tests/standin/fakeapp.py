# SPDX-License-Identifier: MIT
"""A small interactions endpoint, to test the stand-in without Inline.

It checks signatures as Inline must, and answers what its `answers` function
says: a (status, JSON value or bytes) pair, or a JSON value alone.
"""

import ctypes
import http.client
import http.server
import json
import socketserver
import threading

USER_AGENT = "DiscordBot (https://example.org/inline, 0.1)"
NO_PING = {"parse": []}


class FakeApp:
    """The endpoint, and a client of the REST API."""

    def __init__(self, answers):
        self.answers = answers
        self.public_key = None
        self.standin = None
        self.seen = []
        self._sodium = ctypes.CDLL("libsodium.so.23")
        self._sodium.sodium_init()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                """Keep quiet."""

            def do_POST(self):
                """Take an interaction."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fake.take(self, body)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            """One thread for each connection."""

            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, request, client_address):
                """Say nothing of a stand-in that did not wait."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/interactions"
        threading.Thread(target=self._server.serve_forever, args=(0.05,),
                         daemon=True).start()

    def close(self):
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def use(self, standin):
        """Answer to this stand-in from now on."""
        self.standin = standin
        known = standin.environment()
        self.public_key = bytes.fromhex(known["DISCORD_PUBLIC_KEY"])
        self.application_id = known["DISCORD_APPLICATION_ID"]
        self.bot_token = known["DISCORD_TOKEN"]

    def verifies(self, headers, body):
        """Whether the request is signed as Discord signs."""
        stamp = headers.get("X-Signature-Timestamp", "")
        try:
            signature = bytes.fromhex(headers.get("X-Signature-Ed25519", ""))
        except ValueError:
            return False
        if len(signature) != 64 or len(stamp) != 10:
            return False
        message = stamp.encode() + body
        return self._sodium.crypto_sign_verify_detached(
            signature, message, ctypes.c_ulonglong(len(message)),
            self.public_key) == 0

    def take(self, handler, body):
        """Answer one interaction."""
        status, value = 401, {"error": "bad signature"}
        if self.verifies(handler.headers, body):
            interaction = json.loads(body)
            self.seen.append((dict(handler.headers), body))
            status, value = 200, {"type": 1}
            if interaction["type"] != 1:
                value = self.answers(interaction)
                if isinstance(value, tuple):
                    status, value = value
        data = value if isinstance(value, bytes) else json.dumps(
            value).encode()
        kind = "text/plain" if isinstance(value, bytes) else \
            "application/json"
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def call(self, method, path, value=None, files=(), headers=None):
        """Call the REST API; returns (status, JSON value, headers)."""
        sent = {"User-Agent": USER_AGENT}
        body = None
        if files:
            sent["Content-Type"] = "multipart/form-data; boundary=XyZ"
            body = multipart(value, files)
        elif value is not None:
            sent["Content-Type"] = "application/json"
            body = json.dumps(value).encode()
        sent.update(headers or {})
        sent = {key: one for key, one in sent.items() if one is not None}
        link = http.client.HTTPConnection("127.0.0.1", self.standin.port,
                                          timeout=60)
        try:
            link.putrequest(method, "/api/v10" + path,
                            skip_accept_encoding=True)
            for key, one in sent.items():
                link.putheader(key, one)
            if body is not None:
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body)
            answer = link.getresponse()
            text = answer.read()
            try:
                found = json.loads(text) if text else None
            except ValueError:
                found = text
            return answer.status, found, dict(answer.getheaders())
        finally:
            link.close()

    def hook(self, token, suffix=""):
        """Return a path under an interaction's webhook."""
        return f"/webhooks/{self.application_id}/{token}{suffix}"

    def edit(self, token, value, files=(), message="@original"):
        """Edit a message; allowed_mentions is added where not given."""
        value = dict({"allowed_mentions": NO_PING}, **value)
        return self.call("PATCH", self.hook(token, "/messages/" + message),
                         value, files)

    def follow_up(self, token, value, files=()):
        """Send a follow-up message."""
        value = dict({"allowed_mentions": NO_PING}, **value)
        return self.call("POST", self.hook(token), value, files)


def multipart(value, files):
    """Return a multipart body with payload_json and files (name, bytes)."""
    parts = [b'--XyZ\r\nContent-Disposition: form-data; name="payload_json"'
             b"\r\nContent-Type: application/json\r\n\r\n"
             + json.dumps(value).encode() + b"\r\n"]
    for number, (name, data) in enumerate(files):
        parts.append(
            f'--XyZ\r\nContent-Disposition: form-data; name="files[{number}]'
            f'"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n")
    return b"".join(parts) + b"--XyZ--\r\n"
