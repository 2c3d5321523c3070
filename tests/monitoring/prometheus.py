# SPDX-License-Identifier: MIT
"""Debian's Prometheus on loopback, with the configuration of the tree.

    with Prometheus(target_port=8080) as prometheus:
        prometheus.query("inline_broker_up")     # [({labels}, number), …]
"""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from ports import free_port
from service import ROOT, wait_for

MONITORING = os.path.join(ROOT, "systemd", "monitoring")


class Prometheus:
    """The server, its folder and what it answers."""

    def __init__(self, target_port):
        self.folder = tempfile.mkdtemp(prefix="inline-prometheus-")
        self.config = os.path.join(self.folder, "prometheus.yml")
        self.port = free_port()
        self.process = None
        with open(os.path.join(MONITORING, "prometheus.yml")) as file:
            text = file.read()
        for old, new in (("127.0.0.1:8080", "127.0.0.1:%d" % target_port),
                         ("@PREFIX@/lib/inline/monitoring", MONITORING),
                         (" 15s", " 1s")):
            assert old in text, old
            text = text.replace(old, new)
        with open(self.config, "w") as file:
            file.write(text)

    def __enter__(self):
        with open(os.path.join(self.folder, "log"), "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=" + self.config,
                 "--storage.tsdb.path=" + os.path.join(self.folder, "data"),
                 "--web.listen-address=127.0.0.1:%d" % self.port],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._is_ready)
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        self.process.wait(60)
        if kind is not None:
            with open(os.path.join(self.folder, "log")) as log:
                print("# " + log.read()[-3000:].replace("\n", "\n# "))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self):
        assert self.process.poll() is None, "it ended"
        try:
            self._get("/-/ready")
        except OSError:
            return False
        return True

    def _get(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (
                self.port, path), timeout=60) as answer:
            return answer.read()

    def ask(self, what, **values):
        """GET /api/v1/WHAT; its data."""
        try:
            answer = json.loads(self._get("/api/v1/%s?%s" % (
                what, urllib.parse.urlencode(values))))
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError("%s %s: %s" % (
                    what, values, error.read().decode())) from error
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expr):
        """What it is now: a list of (labels, number)."""
        return [(one["metric"], float(one["value"][1]))
                for one in self.ask("query", query=expr)["result"]]

    def number(self, expr):
        """The one number of it; 0 where there is none."""
        found = self.query(expr)
        assert len(found) <= 1, found
        return found[0][1] if found else 0
