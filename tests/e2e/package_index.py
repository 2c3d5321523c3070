# SPDX-License-Identifier: MIT
"""A package index on this machine: wheels made here, over TLS, and slow or
hostile when told to be.

    with Index(folder, address) as index:
        index.add_wheel("demo", "1.0", {"demo.py": "x = 1"}, ["other>=2"])
        index.url           # for IL_PIP_INDEX_URL
        index.ca            # for IL_PIP_CA_BUNDLE
        index.paths         # what was asked for
"""

import base64
import contextlib
import hashlib
import http.server
import io
import os
import ssl
import subprocess
import tarfile
import threading
import time
import zipfile

from service import docker


@contextlib.contextmanager
def network(name):
    """A Docker network of our own; yields this machine's address in it."""
    docker("network", "create", name)
    try:
        yield docker("network", "inspect", "--format",
                     "{{(index .IPAM.Config 0).Gateway}}", name).strip()
    finally:
        docker("network", "rm", name)


def make_certificates(folder, address):
    """Make an authority and a server's certificate; returns their files."""
    def path(name):
        return os.path.join(folder, name)

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    with open(path("ext"), "w") as file:
        file.write(f"subjectAltName=IP:{address}\n"
                   "authorityKeyIdentifier=keyid\n")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes")
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=Test CA",
            "-keyout", path("ca.key"), "-out", path("ca.pem"))
    openssl("req", *curve, "-subj", "/CN=index", "-keyout", path("key.pem"),
            "-out", path("req.pem"))
    openssl("x509", "-req", "-in", path("req.pem"), "-CA", path("ca.pem"),
            "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "2",
            "-extfile", path("ext"), "-out", path("cert.pem"))
    os.chmod(path("ca.pem"), 0o644)
    return path("ca.pem"), path("cert.pem"), path("key.pem")


def metadata(name, version, needs):
    """Return the text of METADATA."""
    return (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            + "".join(f"Requires-Dist: {need}\n" for need in needs))


def make_wheel(name, version, files, needs=(), scripts=""):
    """Return the bytes of a wheel; `files` maps paths to str or bytes."""
    info = f"{name}-{version}.dist-info"
    files = dict(files)
    files[f"{info}/METADATA"] = metadata(name, version, needs)
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: test\n"
                              "Root-Is-Purelib: true\nTag: py3-none-any\n")
    if scripts:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n"
    out = io.BytesIO()
    record = ""
    with zipfile.ZipFile(out, "w") as wheel:
        for path, data in files.items():
            data = data.encode() if isinstance(data, str) else data
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record += (f"{path},sha256={digest.decode().rstrip('=')},"
                       f"{len(data)}\n")
            wheel.writestr(path, data)
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return out.getvalue()


def make_sdist(name, version, files):
    """Return the bytes of a source distribution."""
    out = io.BytesIO()
    files = dict(files)
    files["PKG-INFO"] = metadata(name, version, ())
    with tarfile.open(fileobj=out, mode="w:gz") as sdist:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            sdist.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


class Index:
    """The index, served by threads of this process."""

    def __init__(self, folder, address, listen=None):
        """address: by which clients know it; listen: where it is, if that
        is another.
        """
        self.ca, cert, key = make_certificates(folder, address)
        self.files = {}     # name -> {filename: bytes}
        self.slow = {}      # filename -> seconds until it comes
        self.paths = []
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                index.answer(self)

            def log_message(self, *arguments):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server = http.server.ThreadingHTTPServer(
            (listen or address, 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *arguments: None
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True,
            do_handshake_on_connect=False)
        self.origin = f"https://{address}:{self.server.server_port}"
        self.url = self.origin + "/simple/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        """Answer one GET."""
        self.paths.append(request.path)
        parts = request.path.strip("/").split("/")
        body, kind = None, "text/html"
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.files:
            body = "".join(f'<a href="/files/{parts[1]}/{name}">{name}</a>\n'
                           for name in self.files[parts[1]]).encode()
        elif parts[0] == "files" and len(parts) == 3:
            body = self.files.get(parts[1], {}).get(parts[2])
            kind = "application/octet-stream"
            time.sleep(self.slow.get(parts[2], 0))
        request.send_response(404 if body is None else 200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body or b"")))
        request.end_headers()
        request.wfile.write(body or b"")

    def add_wheel(self, name, version, files, needs=(), scripts="", slow=0):
        """Offer a wheel."""
        filename = f"{name}-{version}-py3-none-any.whl"
        self.files.setdefault(name, {})[filename] = make_wheel(
            name, version, files, needs, scripts)
        self.slow[filename] = slow

    def add_sdist(self, name, version, files):
        """Offer a source distribution."""
        self.files.setdefault(name, {})[f"{name}-{version}.tar.gz"] = \
            make_sdist(name, version, files)
