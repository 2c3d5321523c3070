# SPDX-License-Identifier: MIT
"""Faults on order: what the stand-in does wrong, where, and how often.

A fault is an object with `kind`, and optionally
  route        edit, followup, callback, get, delete, commands, me,
               attachment, or any (the default)
  count        how many requests it hits (default 1; 0 is no end)
  skip         how many matching requests pass first
  seconds      kinds slow and hang: how long; others: the fault's own life
  within       only within so many seconds after the interaction's answer
  interaction  only for this interaction
  retry_after  kind rate_limit and cloudflare: seconds to wait (default 1)
  scope        kind rate_limit: user, shared or global
  status       kind status: the HTTP status (default 500)
  code, message, body, headers   kind status: what else it says
  applied      the request is carried out before its answer goes wrong
"""

import threading
import time

KINDS = ("not_found", "rate_limit", "cloudflare", "status", "reset", "hang",
         "slow", "garbage", "truncated")
ROUTES = ("any", "edit", "followup", "callback", "get", "delete", "commands",
          "me", "attachment")


class Fault:
    """One fault, and how often it has struck."""

    def __init__(self, order):
        unknown = set(order) - {
            "kind", "route", "count", "skip", "seconds", "within",
            "interaction", "retry_after", "scope", "status", "code",
            "message", "body", "headers", "applied"}
        if unknown:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        if order.get("kind") not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}")
        if order.get("route", "any") not in ROUTES:
            raise ValueError(f"route must be one of {ROUTES}")
        self.order = order
        self.kind = order["kind"]
        self.route = order.get("route", "any")
        self.left = order.get("count", 1) or float("inf")
        self.skip = order.get("skip", 0)
        self.interaction = order.get("interaction")
        self.within = order.get("within")
        self.applied = bool(order.get("applied", False))
        self.seconds = float(order.get("seconds", 1.0))
        self.until = float("inf")
        if "seconds" in order and self.kind not in ("hang", "slow"):
            self.until = time.monotonic() + self.seconds
            if "count" not in order:
                self.left = float("inf")
        if self.within is not None and "count" not in order:
            self.left = float("inf")
        self.hits = 0

    def matches(self, route, interaction):
        """Whether this request is one that the fault is for."""
        if self.left <= 0 or time.monotonic() > self.until:
            return False
        if self.route not in ("any", route):
            return False
        if self.interaction and (
                interaction is None or interaction.id != self.interaction):
            return False
        if self.within is not None:
            if interaction is None or interaction.answered_at is None:
                return False
            return time.monotonic() < interaction.answered_at + self.within
        return True

    def view(self):
        """Return the fault as the control API shows it."""
        left = None if self.left == float("inf") else self.left
        return dict(self.order, hits=self.hits, left=left)


class Faults:
    """The faults in force."""

    def __init__(self):
        self._lock = threading.Lock()
        self._faults = []

    def add(self, order):
        """Put a fault in force; ValueError says what is wrong with it."""
        fault = Fault(order)
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self):
        """End all faults."""
        with self._lock:
            self._faults.clear()

    def view(self):
        """Return all faults with how often each has struck."""
        with self._lock:
            return [fault.view() for fault in self._faults]

    def strike(self, route, interaction):
        """Return the fault that hits this request, or None."""
        with self._lock:
            for fault in self._faults:
                if not fault.matches(route, interaction):
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.left -= 1
                fault.hits += 1
                return fault
        return None


def fault_answer(fault):
    """Return (status, headers, body or JSON value) of a fault's answer."""
    order = fault.order
    retry = order.get("retry_after", 1)
    if fault.kind == "not_found":
        return 404, [], {"message": "Unknown Webhook", "code": 10015}
    if fault.kind == "rate_limit":
        scope = order.get("scope", "user")
        headers = [("Retry-After", str(max(1, round(retry)))),
                   ("X-RateLimit-Scope", scope)]
        if scope == "global":
            headers.append(("X-RateLimit-Global", "true"))
        return 429, headers, {
            "message": "You are being rate limited.",
            "retry_after": retry, "global": scope == "global"}
    if fault.kind == "cloudflare":
        return 429, [("Retry-After", str(retry)), ("Server", "cloudflare"),
                     ("Content-Type", "text/html; charset=UTF-8")], (
            b"<!DOCTYPE html><title>Access denied | discord.com used "
            b"Cloudflare to restrict access</title>error code: 1015")
    if fault.kind == "garbage":
        return 200, [("Content-Type", "text/html")], b"<html>welcome</html>"
    status = order.get("status", 500)
    body = order.get("body")
    if body is None:
        body = {"message": order.get("message", f"{status}: Error"),
                "code": order.get("code", 0)}
    elif isinstance(body, str):
        body = body.encode()
    return status, [tuple(pair) for pair in order.get("headers", [])], body
