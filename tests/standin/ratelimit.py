# SPDX-License-Identifier: MIT
"""Rate limits as Discord keeps them: one bucket per route and token."""

import hashlib
import threading
import time


class Bucket:
    """A window of so many requests."""

    def __init__(self):
        self.ends = 0.0
        self.used = 0
        self.blocked_until = 0.0


class RateLimits:
    """All buckets."""

    KEPT = 20000

    def __init__(self, limit, window):
        self.limit = limit
        self.window = window
        self._buckets = {}
        self._lock = threading.Lock()

    def take(self, route, key):
        """Count one request.

        Returns (headers, retry_after, hammered): `retry_after` is None when
        the request may pass; `hammered` says that it came although an
        earlier 429 had asked to wait.
        """
        now = time.monotonic()
        with self._lock:
            bucket = self._buckets.get((route, key))
            if bucket is None:
                if len(self._buckets) >= self.KEPT:
                    self._forget(now)
                bucket = self._buckets[(route, key)] = Bucket()
            hammered = now < bucket.blocked_until - 0.05
            if now >= bucket.ends:
                bucket.ends = now + self.window
                bucket.used = 0
            bucket.used += 1
            over = bucket.used > self.limit
            left = bucket.ends - now
            if over:
                bucket.blocked_until = bucket.ends
            remaining = max(0, self.limit - bucket.used)
        return self._headers(route, remaining, left), (
            left if over else None), hammered

    def block(self, route, key, seconds):
        """Remember a 429 that a fault made, to see whether it is heeded."""
        with self._lock:
            bucket = self._buckets.setdefault((route, key), Bucket())
            bucket.blocked_until = time.monotonic() + seconds

    def _headers(self, route, remaining, left):
        mark = hashlib.md5(route.encode(), usedforsecurity=False).hexdigest()
        return [
            ("X-RateLimit-Limit", str(self.limit)),
            ("X-RateLimit-Remaining", str(remaining)),
            ("X-RateLimit-Reset", f"{time.time() + left:.3f}"),
            ("X-RateLimit-Reset-After", f"{left:.3f}"),
            ("X-RateLimit-Bucket", mark),
        ]

    def _forget(self, now):
        self._buckets = {
            key: bucket for key, bucket in self._buckets.items()
            if max(bucket.ends, bucket.blocked_until) > now}
