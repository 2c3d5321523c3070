# SPDX-License-Identifier: MIT
"""The stand-in's HTTP server: REST API, control API, files, chat page."""

import hashlib
import http.server
import json
import os
import re
import socket
import socketserver
import struct
import time
import traceback
import urllib.parse

import rest
from control import ControlError, Feed
from errors import ApiError
from faults import fault_answer
from files import find_attachment, served_headers

MAX_BODY = 64 << 20
HEARTBEAT = 15.0
PAGE_TYPES = {".html": "text/html; charset=utf-8",
              ".js": "text/javascript; charset=utf-8",
              ".css": "text/css; charset=utf-8",
              ".svg": "image/svg+xml"}
PAGE_POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; "
               "img-src 'self' blob:; connect-src 'self'; "
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?\Z")


class Broken(Exception):
    """The connection is to end now."""


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Listens on the loopback interface, one thread for each connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    allow_reuse_address = True
    timeout = 0

    def __init__(self, port, fd, store, api, control, faults, limits):
        self.store = store
        self.api = api
        self.control = control
        self.faults = faults
        self.limits = limits
        self.page = _load_page()
        super().__init__(("127.0.0.1", port), Handler, fd is None)
        if fd is not None:
            self.socket.close()
            self.socket = socket.socket(fileno=fd)
            self.take_address()

    def server_bind(self):
        """Bind without the look-up of a host name."""
        socketserver.TCPServer.server_bind(self)
        self.take_address()

    def take_address(self):
        """Tell where it listens, without such a look-up, too."""
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        """Say nothing of clients that go away."""
        pass


def _load_page():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
    page = {}
    for name in sorted(os.listdir(folder)):
        kind = PAGE_TYPES.get(os.path.splitext(name)[1])
        if kind:
            with open(os.path.join(folder, name), "rb") as file:
                page["/" + name] = (kind, file.read())
    if "/page.html" in page:
        page["/"] = page.pop("/page.html")
    return page


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "standin"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = 300

    def log_message(self, *arguments):
        """Keep quiet; the request log is under /control."""

    def parse_request(self):
        """Read the request line and headers, then answer."""
        if not super().parse_request():
            return False
        try:
            self._answer()
        except Broken:
            self.close_connection = True
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception:
            traceback.print_exc()
            self.close_connection = True
        return False

    def _answer(self):
        path, _, query = self.path.partition("?")
        query = urllib.parse.parse_qs(query, keep_blank_values=True)
        body = self._read_body()
        if path.startswith("/api/"):
            self._rest(path, query, body)
        elif path.startswith("/attachments/"):
            self._attachment(path, query)
        elif path == "/control/feed":
            self._feed(query)
        elif path.startswith("/control/"):
            self._control(path, query, body)
        elif self.command in ("GET", "HEAD"):
            self._page(path)
        else:
            self._send(405, [], {"error": "method not allowed"})

    def _read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            self._send(413, [], {"message": "Request entity too large",
                                 "code": 40005})
            raise Broken
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise Broken
        return body

    def _read_chunks(self):
        body = b""
        while len(body) <= MAX_BODY:
            size = int(self.rfile.readline(64).split(b";")[0], 16)
            if size == 0:
                while self.rfile.readline(4096).strip():
                    pass
                return body
            body += self.rfile.read(size)
            self.rfile.readline(8)
        raise Broken

    def _send(self, status, headers, body):
        """Send an answer in one write; a JSON value is written as JSON."""
        headers = list(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode(
                "utf-8", "replace")
            headers.append(("Content-Type", "application/json"))
        lines = [f"HTTP/1.1 {status} "
                 + http.server.BaseHTTPRequestHandler.responses.get(
                     status, ("Status",))[0]]
        lines += [f"{key}: {value}" for key, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        if self.close_connection:
            lines.append("Connection: close")
        data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        if body is not None and self.command != "HEAD":
            data += body
        self.wfile.write(data)

    # Discord's REST API

    def _rest(self, path, query, body):
        server, started = self.server, time.time()
        store = server.store
        with store.lock:
            store.request_count += 1
            number = store.request_count
        request = rest.Request(number, self.command, path, query,
                               self.headers, body)
        matched = rest.match(self.command, path)
        headers = []
        try:
            if matched is None:
                raise ApiError(0, status=404, message="404: Not Found")
            request.route, request.parameters = matched
            if "token" in request.parameters:
                request.interaction = server.api.find_interaction(request)
            fault = server.faults.strike(request.route, request.interaction)
            if fault is not None:
                request.fault = fault.kind
                self._fault(request, fault)
            headers, value = self._limited(request)
            status = 200
            if value is None:
                status, value = server.api.answer(request)
        except ApiError as error:
            status, value = error.status, error.body()
            if error.code in (50006, 50035, 50109, 40005, 40060, 40333,
                              40094, 10062) or status == 500:
                store.violate(f"rejected-{error.code}",
                              f"{request.method} {path}: {value}",
                              request.interaction, number)
        except _Answer as fixed:
            status, value = fixed.status, fixed.value
            headers = fixed.headers
        except Broken:
            self._log(request, started, None, None)
            raise
        self._log(request, started, status, value)
        if status in (401, 403, 429):
            with store.lock:
                store.invalid_requests += 1
        self._send(status, headers, value)

    def _log(self, request, started, status, value):
        request.status = status
        request.answer = value if isinstance(value, (dict, list)) else None
        request.done(started, time.time())
        with self.server.store.lock:
            self.server.store.requests.append(request)

    def _limited(self, request):
        """Count a request; returns (headers, None) when it may pass."""
        server = self.server
        key = request.parameters.get("token", "")
        headers, retry, hammered = server.limits.take(request.route, key)
        if hammered:
            server.store.violate("hammered", f"{request.method} "
                                 f"{request.path} before retry_after was over",
                                 request.interaction, request.number)
        if retry is None:
            return headers, None
        server.store.violate("ratelimit", f"{request.method} {request.path} "
                             "although nothing remained", request.interaction,
                             request.number)
        headers += [("Retry-After", str(max(1, round(retry)))),
                    ("X-RateLimit-Scope", "user")]
        raise _Answer(429, headers, {
            "message": "You are being rate limited.",
            "retry_after": round(retry, 3), "global": False})

    def _fault(self, request, fault):
        """Do what a fault says; returns when the request goes on."""
        server = self.server
        if fault.applied:
            try:
                server.api.answer(request)
            except ApiError:
                pass
        if fault.kind == "slow":
            server.store.stopping.wait(fault.seconds)
            return
        if fault.kind == "hang":
            server.store.stopping.wait(fault.seconds)
            raise Broken
        if fault.kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            self.rfile.close()
            self.connection.close()
            raise Broken
        if fault.kind == "truncated":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/"
                             b'json\r\nContent-Length: 4096\r\n\r\n{"id":"')
            raise Broken
        status, headers, value = fault_answer(fault)
        if status == 429:
            server.limits.block(request.route,
                                request.parameters.get("token", ""),
                                fault.order.get("retry_after", 1))
        raise _Answer(status, headers, value)

    # Everything else

    def _attachment(self, path, query):
        server = self.server
        fault = server.faults.strike("attachment", None)
        attachment = find_attachment(server.store, path, query)
        try:
            if fault is not None:
                self._fault(_NoRequest(), fault)
        except _Answer as fixed:
            self._send(fixed.status, fixed.headers, fixed.value)
            return
        if attachment is None:
            self._send(404, [("Content-Type", "text/plain")],
                       b"This content is no longer available.")
            return
        mark = hashlib.sha256(attachment.id.encode()).hexdigest()[:16]
        self._send(200, served_headers(attachment) + [("ETag", f'"{mark}"')],
                   attachment.data)

    def _is_local(self):
        """Whether a request is not another site's doing."""
        origin = self.headers.get("Origin")
        host = self.headers.get("Host", "")
        if origin is not None and not LOOPBACK.match(
                urllib.parse.urlsplit(origin).netloc):
            return False
        return bool(LOOPBACK.match(host))

    def _control(self, path, query, body):
        if not self._is_local():
            self._send(403, [], {"error": "not from this machine"})
            return
        try:
            status, value = self.server.control.answer(
                self.command, path, query, body,
                self.headers.get("Content-Type", ""))
        except ControlError as error:
            status, value = error.status, {"error": str(error)}
        self._send(status, [("Cache-Control", "no-store")], value)

    def _feed(self, query):
        """Stream server-sent events to one chat page."""
        if not self._is_local():
            self._send(403, [], {"error": "not from this machine"})
            return
        store = self.server.store
        feed = Feed(store, query.get("user", ["alice"])[0])
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
            b"Connection: close\r\n\r\nretry: 500\n\n")
        self._event("state", feed.state())
        while not store.leaving.is_set():
            events = feed.next_events(HEARTBEAT)
            for kind, value in events:
                self._event(kind, value)
            if not events:
                self.wfile.write(b": still here\n\n")

    def _event(self, kind, value):
        text = json.dumps(value, ensure_ascii=False)
        self.wfile.write(f"event: {kind}\ndata: {text}\n\n".encode(
            "utf-8", "replace"))

    def _page(self, path):
        found = self.server.page.get(path)
        if found is None:
            status = 204 if path == "/favicon.ico" else 404
            self._send(status, [], None if status == 204
                       else {"error": "no such page"})
            return
        kind, data = found
        self._send(200, [("Content-Type", kind),
                         ("Content-Security-Policy", PAGE_POLICY),
                         ("X-Content-Type-Options", "nosniff"),
                         ("Referrer-Policy", "no-referrer"),
                         ("Cache-Control", "no-store")], data)


class _Answer(Exception):
    """An answer that is fixed before the request is looked at."""

    def __init__(self, status, headers, value):
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.value = value


class _NoRequest:
    """Stands for a REST request where a file is asked for."""

    route = "attachment"
    parameters = {}
