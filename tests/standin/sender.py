# SPDX-License-Identifier: MIT
"""Sends signed interactions to the endpoint and takes the answers."""

import http.client
import json
import queue
import socket
import ssl
import threading
import time
import urllib.parse

from callbacks import COMMAND, acknowledge
from chat import add_notice
from errors import ApiError
from interactions import Builder, OrderError
from state import FAILED, PENDING, REFUSED

USER_AGENT = "Discord-Interactions/1.0 (+https://discord.com)"
NOT_RESPONDING = "The application did not respond"
MAX_ANSWER = 8 << 20
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


class Pool:
    """Daemon threads that are made when needed, up to a number."""

    def __init__(self, most):
        self._most = most
        self._queue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    def submit(self, function, *arguments):
        """Run function(*arguments) as soon as a thread is free."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._run, daemon=True).start()
            else:
                self._idle -= 1
        self._queue.put((function, arguments))

    def _run(self):
        while True:
            function, arguments = self._queue.get()
            function(*arguments)
            with self._lock:
                self._idle += 1


def broken_signature(mode, signature, identity, message):
    """Return a signature that is wrong in the way `mode` names.

    A mode that begins with = is the header's value itself.
    """
    if mode == "wrong":
        return format(int(signature[0], 16) ^ 1, "x") + signature[1:]
    if mode == "short":
        return signature[:126]
    if mode == "long":
        return signature + "00"
    if mode == "odd":
        return signature[:127]
    if mode == "not_hex":
        return "zz" + signature[2:]
    if mode == "empty":
        return ""
    if mode == "missing":
        return None
    if mode == "malleated":
        scalar = int.from_bytes(bytes.fromhex(signature[64:]), "little")
        scalar += GROUP_ORDER
        return signature[:64] + scalar.to_bytes(32, "little").hex()
    if mode == "other_body":
        return identity.sign(message + b" ")
    if mode.startswith("="):
        return mode[1:]
    raise OrderError(f"signature: no mode {mode!r}")


class Sender:
    """Signs, sends, and records what came back."""

    def __init__(self, store, threads, schemas):
        self.store = store
        self.schemas = schemas
        self.pool = Pool(threads)
        self.tls = ssl.create_default_context()

    def order(self, order):
        """Build an interaction and send it; returns it at once."""
        interaction, body = Builder(self.store, order).build()
        headers = self._headers(order, body)
        interaction.sent = {"headers": dict(headers),
                            "body": body.decode("utf-8", "replace")}
        self.store.changed(interaction)
        self.pool.submit(self._send, interaction, headers, body)
        return interaction

    def _headers(self, order, body):
        identity = self.store.identity
        stamp = str(int(time.time() + order.get("skew", 0)))
        if "repeat" in order and order.get("stale"):
            first = self.store.interactions[order["repeat"]]
            return list(first.sent["headers"].items())
        stamp = order.get("timestamp", stamp)
        message = (stamp if stamp is not None else "").encode() + body
        signature = identity.sign(message)
        if "signature" in order:
            signature = broken_signature(order["signature"], signature,
                                         identity, message)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "X-Signature-Ed25519": signature,
            "X-Signature-Timestamp": stamp,
        }
        headers.update(order.get("headers", {}))
        return [(key, value) for key, value in headers.items()
                if value is not None]

    def _send(self, interaction, headers, body):
        deadline = self.store.settings.deadline
        interaction.sent_at = time.monotonic()
        try:
            answer = self.post(self.store.endpoint, headers, body, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            answer = None
            reason = f"{type(error).__name__}: {error}"
        ms = round((time.monotonic() - interaction.sent_at) * 1000, 2)
        with self.store.lock:
            if answer is None:
                interaction.http = {"error": reason, "ms": ms}
                if interaction.state == PENDING:
                    self._fail(interaction, reason)
                return
            status, got, text = answer
            interaction.http = {
                "status": status, "headers": got, "ms": ms,
                "body": text.decode("utf-8", "replace")}
            if ms > deadline * 1000 and interaction.state == PENDING:
                self._fail(interaction, f"answered after {ms} ms")
                return
            if status == 202 and not text:
                self._await_callback(interaction, deadline)
                return
            self._take(interaction, status, got, text, ms)

    def _await_callback(self, interaction, deadline):
        """Wait for the callback that a 202 promises."""
        left = interaction.sent_at + deadline - time.monotonic()
        interaction.condition.wait_for(
            lambda: interaction.state != PENDING
            or self.store.stopping.is_set(), max(0.0, left))
        if interaction.state == PENDING:
            self._fail(interaction, "202, but no callback came")

    def _take(self, interaction, status, headers, text, ms):
        answer = None
        try:
            if status != 200:
                raise ValueError(f"the endpoint answered {status}")
            kind = headers.get("content-type", "")
            if kind.split(";")[0].strip() != "application/json":
                raise ValueError(f"Content-Type is {kind!r}")
            answer = json.loads(text)
            acknowledge(self.store, interaction, answer, {}, "http")
            interaction.answer_ms = ms
        except ApiError as error:
            self._refused(interaction, f"{error} {error.errors or ''}")
        except (ValueError, RecursionError) as error:
            self._refused(interaction, str(error))
        # Last, as it takes milliseconds: whoever edits meanwhile waits for
        # the lock, and is not too early.
        for error in self.schemas.answer_errors(answer):
            self.store.violate("schema", error, interaction)

    def _refused(self, interaction, reason):
        if interaction.state != PENDING:
            self.store.violate("double-answer", reason, interaction)
        elif interaction.hostile and interaction.http["status"] >= 400:
            interaction.state = REFUSED
            interaction.error = reason
            self.store.changed(interaction)
        else:
            self.store.violate("endpoint", reason, interaction)
            self._fail(interaction, reason)

    def _fail(self, interaction, reason):
        interaction.state = FAILED
        interaction.error = reason
        if interaction.type == COMMAND:
            add_notice(self.store, interaction, NOT_RESPONDING)
        self.store.changed(interaction)

    def post(self, url, headers, body, timeout):
        """POST `body`; returns (status, {lower-case header: value}, bytes).
        """
        if not url:
            raise ValueError("no endpoint is set")
        end = time.monotonic() + timeout
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise ValueError(f"{url}: not an http address")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        name = f"{parts.hostname}:{port}:"
        moved = self.store.settings.connect_to or ""
        address = (parts.hostname, port)
        if moved.startswith(name):
            there, _, number = moved[len(name):].rpartition(":")
            address = (there, int(number))
        plain = socket.create_connection(address, timeout)
        with plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = plain
            if parts.scheme == "https":
                link = self.tls.wrap_socket(plain,
                                            server_hostname=parts.hostname)
            target = parts.path or "/"
            if parts.query:
                target += "?" + parts.query
            lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc}",
                     "Connection: close"]
            lines += [f"{key}: {value}" for key, value in headers]
            if not any(key.lower() == "content-length"
                       for key, _ in headers):
                lines.append(f"Content-Length: {len(body)}")
            link.settimeout(max(0.001, end - time.monotonic()))
            try:
                link.sendall("\r\n".join(lines).encode("latin-1")
                             + b"\r\n\r\n" + body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a refusal may come before all of the body is read
            answer = http.client.HTTPResponse(link, method="POST")
            answer.begin()
            text = b""
            while len(text) < MAX_ANSWER:
                link.settimeout(max(0.001, end - time.monotonic()))
                piece = answer.read1(65536)
                if not piece:
                    break
                text += piece
            return answer.status, {key.lower(): value for key, value
                                   in answer.getheaders()}, text

    def verify_endpoint(self, url):
        """Check a new endpoint as Discord does; returns what is wrong."""
        for mode, wanted in (("ok", 200), ("wrong", 401)):
            order = {"ping": True}
            if mode != "ok":
                order["signature"] = mode
            interaction, body = Builder(self.store, order).build()
            try:
                status, headers, text = self.post(
                    url, self._headers(order, body), body,
                    self.store.settings.deadline)
            except (OSError, http.client.HTTPException, ValueError) as error:
                return f"{type(error).__name__}: {error}"
            with self.store.lock:
                interaction.state = REFUSED
            if status != wanted:
                return f"{mode} signature was answered {status}"
            if wanted == 200 and not (
                    headers.get("content-type", "").startswith(
                        "application/json") and _is_pong(text)):
                return "the PING was not answered with a PONG"
        return None


def _is_pong(text):
    try:
        return json.loads(text).get("type") == 1
    except (ValueError, AttributeError):
        return False
