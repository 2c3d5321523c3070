# SPDX-License-Identifier: MIT
"""An S3 service in memory, for what a real one does not do on demand.  Each
request's signature is computed anew by botocore, which is Amazon's own, from
what has arrived, and the body's hash from the body."""

import hashlib
import http.server
import os
import re
import threading
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from snapshotlib import Snapshotter

KEY, SECRET, REGION = "an-id", "a+secret/with=signs", "eu-test-1"


def node_of(url, key=f"{KEY}:{SECRET}\n", place="s3://bucket/some/prefix",
            **settings):
    """An il-snapshot that is to use it."""
    node = Snapshotter(place, start=False)
    path = os.path.join(node.folder, "key")
    with open(path, "w") as file:
        file.write(key)
    os.chmod(path, 0o600)
    node.settings = {"IL_SNAPSHOTS_ENDPOINT": url,
                     "IL_SNAPSHOTS_REGION": REGION,
                     "IL_SNAPSHOTS_KEY_FILE": path, **settings}
    return node.start()


def signature(method, url, headers, signed, date):
    """What Amazon's code makes of it."""
    request = botocore.awsrequest.AWSRequest(method=method, url=url)
    for name in signed:
        request.headers[name] = headers[name]
    request.context["timestamp"] = date
    request.context["payload_signing_enabled"] = True
    auth = botocore.auth.S3SigV4Auth(
        botocore.credentials.Credentials(KEY, SECRET), "s3", REGION)
    auth.payload = lambda _: headers["x-amz-content-sha256"]
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 200:
            self.send_header("ETag", '"%s"' % hashlib.md5(body).hexdigest())
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def wrong(self, status, code, **headers):
        self.say(status, f"<?xml version='1.0'?><Error><Code>{code}</Code>"
                 "</Error>".encode(), **headers)

    def is_signed(self, body):
        auth = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/"
            r"aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?"
            r"Signature=([0-9a-f]{64})", self.headers["Authorization"] or "")
        if not auth or auth[1] != KEY or auth[3] != REGION:
            return False
        date = self.headers["x-amz-date"]
        signed = auth[4].split(";")
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
            return False
        if self.headers["x-amz-content-sha256"] != \
                hashlib.sha256(body).hexdigest():
            return False
        return signature(
            self.command, f"http://{self.headers['Host']}{self.path}",
            self.headers, signed, date) == auth[5]

    def list(self, query):
        prefix = query["prefix"][0]
        names = sorted(n for n in self.server.objects
                       if n.startswith(prefix))
        first = int(query.get("continuation-token", ["] 0"])[0].split()[1])
        page = names[first:first + self.server.page]
        more = first + len(page) < len(names)
        self.say(200, (
            "<ListBucketResult>" + f"<IsTruncated>{str(more).lower()}"
            "</IsTruncated>" + (
                f"<NextContinuationToken>]+{first + len(page)}"
                "</NextContinuationToken>" if more else "") +
            "".join(
                f"<Contents><Key>{n}</Key><LastModified>" + time.strftime(
                    "%Y-%m-%dT%H:%M:%S.000Z",
                    time.gmtime(self.server.times[n])) +
                "</LastModified></Contents>" for n in page) +
            "</ListBucketResult>").encode())

    def serve(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        url = urllib.parse.urlsplit(self.path)
        name = url.path[len("/bucket/"):]
        with server.lock:
            server.seen.append((self.command, name, time.monotonic()))
            fault = next((f for f in server.faults if f[1](self.command, name)
                          and f[0] > 0), None)
            if fault:
                fault[0] -= 1
        if fault:
            return fault[2](self, name)
        if not self.is_signed(body):
            server.unsigned += 1
            return self.wrong(403, "SignatureDoesNotMatch")
        if not url.path.startswith("/bucket"):
            return self.wrong(404, "NoSuchBucket")
        if self.command == "PUT":
            server.times[name] = time.time()
            server.objects[name] = body
            return self.say(200)
        if self.command == "DELETE":
            server.objects.pop(name, None)
            return self.say(204)
        if url.query:
            return self.list(urllib.parse.parse_qs(
                url.query.replace("%5D%2B", "%5D%20"), strict_parsing=True))
        if name not in server.objects:
            return self.wrong(404, "NoSuchKey")
        return self.say(200, server.objects[name])

    do_GET = do_PUT = do_DELETE = serve


class Bucket(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.faults, self.seen = {}, [], []
        self.times = {}     # when each was put
        self.unsigned, self.page = 0, 3
        self.lock, self.over = threading.Lock(), threading.Event()
        scheme = "http"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass

    def fail(self, count, how, method=None, name=""):
        """The next so many requests of a kind are answered so."""
        self.faults.insert(0, [count, lambda m, n: method in (None, m) and
                               name in n, how])

    def well(self):
        self.faults.clear()


def half(handler, name):
    """A length that is promised, and half of it."""
    data = handler.server.objects.get(name, b"x" * 100)
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.send_header("ETag", '"x"')
    handler.end_headers()
    handler.wfile.write(data[:len(data) // 2])
    handler.close_connection = True


def uncounted(handler, name):
    """The same where no length was promised: as if it were all."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.send_header("ETag", '"x"')
    handler.end_headers()
    handler.wfile.write(handler.server.objects[name][:-30])
    handler.close_connection = True


def too_much(handler, _):
    handler.say(200, b"x" * (1 << 20))


def page_of_a_proxy(handler, _):
    """A 200 of somebody else."""
    body = b"<html>Log in, please</html>"
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def nothing(handler, _):
    handler.say(204, ETag='"x"')


def status(number, code, **headers):
    return lambda handler, _: handler.wrong(number, code, **headers)


def silence(handler, _):
    handler.server.over.wait(60)
    handler.close_connection = True
