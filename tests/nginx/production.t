#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""nginx with the configuration that `make install` installs, in front of the
real programs; adapted as an operator would: the name, and here the ports."""

import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
from served import Answer, JSON, Served, open_below, wait_for  # noqa: E402
from service import BUILD, ROOT, children, free_port  # noqa: E402
from tap import run, test  # noqa: E402
sys.path.append(os.path.join(os.path.dirname(HERE), "host"))
import steps  # noqa: E402

NAME = "run.example.net"
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
DEBIAN = "/etc/nginx/nginx.conf"
# What the documentation does to it.
ROOM = [command for _, command in steps.production(None)
        if command.endswith("/nginx/connections.sh")]
HERE_CONF = """daemon off;
user root;
worker_processes 1;
pid "{0}/pid";
"""
HTTP_CONF = """client_body_temp_path "{0}/body";
fastcgi_temp_path "{0}/fastcgi";
proxy_temp_path "{0}/proxy";
uwsgi_temp_path "{0}/uwsgi";
scgi_temp_path "{0}/scgi";
"""


def debians():
    """nginx.conf as Debian's package has it, or it had before somebody
    followed the documentation here."""
    with open(DEBIAN) as file:
        text = file.read()
    assert "include /etc/nginx/conf.d/*.conf;" in text, text
    text = re.sub(r"(?m)^worker_rlimit_nofile.*\n", "", text)
    return re.sub(r"(worker_connections) +\d+", r"\1 768", text)


def with_room(path):
    """Do to a file what the documentation does to nginx.conf."""
    assert len(ROOM) == 1, ROOM
    command = ROOM[0].replace("/usr/local/lib/inline", BUILD + "/lib")
    subprocess.run(["sh", "-ec", command + " " + path], check=True)


class Production:
    """What `make install` installs, and nginx with its inline.conf."""

    def __init__(self, served, opened=False, connections=None):
        self.folder = tempfile.mkdtemp(prefix="inline-nginx-")
        self.ports = {80: free_port(), 443: free_port(), 8080: free_port()}
        self.process = None
        prefix = os.path.join(self.folder, "usr")
        subprocess.run(["sandbox/setup/install.sh", BUILD, "", prefix],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=" + NAME, "-keyout",
             self.path("privkey.pem"), "-out", self.path("fullchain.pem")],
            check=True, stderr=subprocess.DEVNULL)
        with open(prefix + "/share/doc/inline/inline.conf") as file:
            conf = file.read().replace("inline.example.org", NAME)
        conf = conf.replace("/etc/letsencrypt/live/" + NAME, self.folder)
        conf = conf.replace("/var/log/nginx", self.folder)
        conf = conf.replace("/var/www/html", self.folder + "/html")
        conf = conf.replace("/run/inline", served.settings["IL_STATE_DIR"])
        conf = re.sub(r"\tlisten \[::\].*\n", "", conf)
        for port, here in self.ports.items():
            conf = re.sub(r"(listen (127\.0\.0\.1:)?)%d\b" % port,
                          lambda found: "listen 127.0.0.1:%d" % here, conf)
        if opened:
            conf, count = re.subn(r"\n\t#include ", "\n\tinclude ", conf)
            assert count == 1, count
        with open(self.path("inline.conf"), "w") as file:
            file.write(HTTP_CONF.format(self.folder) + conf)
        self.write_main(connections)

    def write_main(self, connections):
        """Debian's, as the documentation wants it, but for whom and where;
        connections: of one worker, or as many as the documentation says."""
        with open(self.path("nginx.conf"), "w") as file:
            file.write(debians())
        with_room(self.path("nginx.conf"))
        with open(self.path("nginx.conf")) as file:
            conf = file.read()
        conf = re.sub(r"(?m)^(user|worker_processes|pid|worker_cpu_affinity) "
                      r".*\n", "", conf)
        conf = conf.replace("/var/log/nginx", self.folder)
        conf = conf.replace("/etc/nginx/conf.d/*", self.path("inline"))
        conf = conf.replace("include /etc/nginx/sites-enabled/*;", "")
        if connections:
            conf, count = re.subn("worker_connections [0-9]+;",
                                  f"worker_connections {connections};", conf)
            assert count == 1, conf
        with open(self.path("nginx.conf"), "w") as file:
            file.write(HERE_CONF.format(self.folder) + conf)

    def path(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        self.process = subprocess.Popen(
            [NGINX, "-e", "stderr", "-c", self.path("nginx.conf")],
            stdin=subprocess.DEVNULL)
        wait_for(self.listens)
        return self

    def listens(self):
        assert self.process.poll() is None, "nginx ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[8080])) == 0

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def logged(self):
        """Bytes of all logs."""
        return sum(os.path.getsize(self.path(name))
                   for name in os.listdir(self.folder)
                   if name.endswith(".log"))

    def spooled(self):
        """How many bodies are on the disk."""
        return open_below(self.path("body/"), children([self.process.pid]))

    def connect(self, port):
        if port != 443:
            return http.client.HTTPConnection("127.0.0.1", self.ports[port],
                                              timeout=60)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.ports[443], timeout=60,
            context=ssl._create_unverified_context())

    def ask(self, method, path, body=None, port=8080, **headers):
        """A body that is no bytes is sent as JSON."""
        headers = {key.replace("_", "-"): value
                   for key, value in headers.items()}
        if port == 443:
            headers.setdefault("Host", NAME)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {**JSON, **headers}
        link = self.connect(port)
        try:
            link.request(method, path, body, headers)
            return Answer(link.getresponse())
        finally:
            link.close()

    def raw(self, data, port=8080):
        """What comes back for these bytes: (status, headers, body)."""
        with socket.create_connection(("127.0.0.1", self.ports[port]),
                                      timeout=60) as link:
            link.sendall(data)
            reply = http.client.HTTPResponse(link)
            reply.begin()
            return Answer(reply)


def is_json(answer):
    return answer.headers["Content-Type"] == "application/json" and \
        isinstance(answer.json, dict)


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
served = Served(IL_API_CELLS="2", IL_TUNE_API_QUEUE="8")
CODE = {"input": "print(6 * 7)"}


@test
def every_route_of_the_apis_is_there_on_loopback():
    with Production(served) as nginx:
        assert nginx.ask("POST", "/eval", CODE).json["stdout"] == "42\n"
        answer = nginx.ask("POST", "/v1/execute", {"code": "6 * 7"})
        assert answer.json["stdout"] == "42\n", answer
        for path in ("/health", "/versions", "/openapi.json", "/docs",
                     "/metrics", "/v1/files"):
            answer = nginx.ask("GET", path)
            assert answer.status == 200, (path, answer)
        made = nginx.ask("POST", "/v1/sessions", {})
        assert made.status == 201, made
        one = "/v1/sessions/" + made.json["session_id"]
        answer = nginx.ask("POST", one + "/bash", {"cmd": "echo 1"})
        assert answer.json["stdout"] == "1\n", answer
        assert nginx.ask("DELETE", one).status == 204
        answer = nginx.ask("GET", "/else")
        assert answer.status == 404 and is_json(answer), answer


@test
def a_stream_leaves_while_the_code_still_runs():
    with Production(served) as nginx:
        link = nginx.connect(8080)
        link.request("POST", "/v1/execute/stream", json.dumps({
            "code": "print('first', flush=True)\nwhile True: pass",
            "timeout_ms": 50000}), JSON)
        reply = link.getresponse()
        assert b"event: output" in reply.readline(), reply.headers
        assert b"first" in reply.readline()
        link.close()


@test
def a_file_of_100_mb_fits_and_one_byte_more_than_all_does_not():
    with Production(served) as nginx:
        head = (b"--b\r\nContent-Disposition: form-data; name=\"file\";"
                b" filename=\"a\"\r\n\r\n")
        size = 100 * 1024 * 1024
        answer = nginx.ask("POST", "/v1/files",
                           head + bytes(size) + b"\r\n--b--\r\n",
                           Content_Type="multipart/form-data; boundary=b")
        assert answer.status == 201, answer
        assert answer.json["size_bytes"] == size, answer
        nginx.ask("DELETE", "/v1/files/" + answer.json["file_id"])
        for path, want in (
                ("/eval", b'{"title": "413 Content Too Large"}'),
                ("/v1/files",
                 b'{"detail":"File size exceeds maximum of 100 MB"}'),
                ("/mcp", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,'
                 b'"message":"Content Too Large"}}'),
                ("/v1/execute", b'{"detail":"Content Too Large"}')):
            answer = nginx.raw(
                b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length:"
                b" %d\r\n\r\n" % (path.encode(), (128 << 20) + 1))
            assert answer.status == 413 and answer.body == want, answer
            assert is_json(answer), answer.headers


@test
def nginxs_own_refusals_are_json():
    host = b" HTTP/1.1\r\nHost: localhost\r\n"
    with Production(served) as nginx:
        for status, data in (
                (400, b"nonsense\r\n\r\n"),
                (400, b"GET /eval" + host + b"A: " + b"a" * 40000),
                (400, b"POST /eval" + host + b"Content-Length: x\r\n\r\n"),
                (414, b"GET /" + b"a" * 40000 + host + b"\r\n"),
                (405, b"TRACE /eval" + host + b"\r\n"),
                (405, b"TRACE /v1/execute" + host + b"\r\n"),
                (405, b"TRACE /" + host + b"\r\n")):
            answer = nginx.raw(data)
            assert answer.status == status and is_json(answer), (
                data[:40], answer, str(answer.headers))
        answer = nginx.ask("GET", "/interactions", port=443)
        assert answer.status == 405 and is_json(answer), answer
        answer = nginx.raw(b"GET / HTTP/1.0\r\n\r\n", port=443)
        assert answer.status == 400 and is_json(answer), answer


@test
def a_page_from_elsewhere_reaches_nothing():
    with Production(served) as nginx:
        for path in "/eval", "/v1/execute", "/v1/files":
            answer = nginx.ask("POST", path, {},
                               Origin="https://evil.example")
            assert answer.status == 403 and is_json(answer), answer
        for path in "/v1/files", "/metrics", "/health":
            answer = nginx.ask("GET", path, Host="evil.example")
            assert answer.status == 421 and is_json(answer), answer
        answer = nginx.ask("POST", "/eval", CODE, Host="localhost:8080",
                           Origin="http://localhost:8080")
        assert answer.status == 200, answer


def answers(nginx, port, method, path, count, host=NAME):
    """How many answers come for so many requests sent at once."""
    with socket.create_connection(("127.0.0.1", nginx.ports[port]),
                                  30) as plain:
        link = plain if port != 443 else \
            ssl._create_unverified_context().wrap_socket(plain)
        link.sendall(b"%s %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (
            method.encode(), path.encode(), host.encode()) * count)
        got = b""
        try:
            while more := link.recv(65536):
                got += more
        except OSError:
            pass  # what it did not read of ours resets the connection
        return got.count(b"HTTP/1.1 ")


@test
def a_refusal_is_one_answer_for_a_connection():
    """No limit counts who is refused: thousands of requests in a row, whose
    answers nobody reads, would keep a connection each."""
    with Production(served, opened=True) as nginx:
        for port, path in ((80, "/"), (80, "/.well-known/acme-challenge/x"),
                           (443, "/"), (443, "/nothing"), (443, "/interactions"),
                           (443, "/.inline-gate"), (443, "/health"),
                           (443, "/v1/nothing"), (443, "/eval/nothing"),
                           (443, "/metrics"), (443, "/v1/files")):
            count = answers(nginx, port, "GET", path, 3)
            assert count == 1, (port, path, count)
        for path in ("/nothing", "/metrics", "/health", "/versions", "/docs",
                     "/openapi.json", "/metrics/discord"):
            count = answers(nginx, 8080, "GET", path, 3, "localhost")
            assert count == 1, (path, count)
        assert answers(nginx, 8080, "GET", "/", 3, "else.example") == 1
        # Those who may, keep theirs.
        assert answers(nginx, 8080, "DELETE", "/eval", 3, "localhost") == 3


FEW = 1400


def flood(nginx, port, request):
    """More connections than nginx has, that read no answer; others are served
    meanwhile."""
    links = []
    for n in range(FEW + 200):
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200_000)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        link.settimeout(60)
        link.connect(("127.0.0.1", nginx.ports[port]))
        link.setblocking(False)
        try:
            link.send(request)
        except OSError:
            pass  # its first answer was its last
        links.append(link)
        if n % 20 == 0:
            assert nginx.ask("GET", "/health").status == 200, n
    answer = nginx.ask("POST", "/interactions", {}, 443)
    assert answer.status == 401, answer
    for link in links:
        link.close()


@test
def who_reads_nothing_keeps_nobody_out():
    with Production(served, connections=FEW) as nginx:
        flood(nginx, 80, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 900)
        # A redirect of seven kilobytes.
        flood(nginx, 8080, b"POST /v1/files/?q=%s HTTP/1.1\r\n"
              b"Host: localhost\r\n\r\n" % (b"a" * 7000) * 14)


@test
def debians_nginx_conf_gets_room_for_what_the_limits_assume():
    """In its first shape and in others; what it has is not lost, and a second
    time changes nothing."""
    with tempfile.TemporaryDirectory(prefix="inline-conf-") as folder:
        path = os.path.join(folder, "nginx.conf")
        for text in (debians(), "events { worker_connections 768; }\nhttp {}",
                     "worker_rlimit_nofile 1024;\n" + debians(),
                     debians().replace("worker_connections 768;",
                                       "worker_connections\t1024;"),
                     debians().replace("user ",
                                       "\tworker_rlimit_nofile\t10;\nuser "),
                     debians().replace("\t", "    ").replace(
                         "user ", "  worker_rlimit_nofile 10;\nuser ")):
            for _ in range(2):
                with open(path, "w") as file:
                    file.write(text)
                with_room(path)
                with open(path) as file:
                    made = file.read()
                assert re.findall(r"worker_\w+ +\d+;", made) == [
                    "worker_rlimit_nofile 16384;",
                    "worker_connections 8192;"], made
                assert made.count("\n") == 1 + re.sub(
                    r"(?m)^\s*worker_rlimit.*\n", "", text).count("\n"), made
                text = made
        with open(path, "w") as file:
            file.write("worker_rlimit_nofile 1024; worker_processes 3;\n" +
                       debians())
        with_room(path)
        with open(path) as file:
            assert "\n worker_processes 3;\n" in file.read()


def doctor(nginx):
    """What the doctor says of the nginx that reads this configuration."""
    with tempfile.TemporaryDirectory(prefix="inline-doctor-") as folder:
        with open(folder + "/nginx", "w") as file:
            file.write("#!/bin/sh\nexec %s -c %s \"$@\"\n" % (
                NGINX, nginx.path("nginx.conf")))
        os.chmod(folder + "/nginx", 0o755)
        text = subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), "doctor"],
            capture_output=True, text=True, env={
                "PATH": folder + ":" + os.environ["PATH"],
                "IL_STATE_DIR": folder, "IL_BASE_DIR": folder,
                "IL_TUNE_LIB_DIR": nginx.path("usr/lib/inline")}).stdout
    return next(line for line in text.split("\n") if "  nginx: " in line)


@test
def the_doctor_knows_whether_it_has():
    with Production(served) as nginx:
        said = doctor(nginx)
        assert said.startswith("ok  ") and "8192" in said, said
    with Production(served, connections=768) as nginx:
        said = doctor(nginx)
        assert said.startswith("FAIL") and "768" in said, said


@test
def one_strangers_slow_bodies_leave_connections_for_discord():
    """As many as an address may have, in a worker of Debian's nginx."""
    with Production(served) as nginx:
        links = []
        context = ssl._create_unverified_context()
        for n in range(1600):
            link = context.wrap_socket(
                socket.create_connection(("127.0.0.1", nginx.ports[443]), 60))
            link.sendall(b"POST /interactions HTTP/1.1\r\nHost: %s\r\n"
                         b"Content-Length: 50000\r\n\r\nx" % NAME.encode())
            links.append(link)
            if n % 100 == 0:
                for one in links:
                    with contextlib.suppress(OSError):  # one too many
                        one.send(b"x")  # so slow, and not too slow
                assert nginx.ask("GET", "/health").status == 200, n
        # Its own are taken; what else is served has connections.
        assert nginx.ask("POST", "/interactions", {}, 443).status == 429
        assert nginx.ask("GET", "/nothing", port=443).status == 404
        assert nginx.ask("POST", "/eval", CODE).status == 200
        for link in links:
            link.close()


# What a line of the logs has at most (nginx/DECISIONS.md), and what is between.
LINE = 600 + 50
LONG = b"a" * 7000
RAW = b"\x80" * 7900


TOGETHER = 4  # less than one stranger may have


def bytes_for_each(nginx, port, request, count=TOGETHER, tls=True):
    """How much is logged for such a request: (bytes, the last one's answer)."""
    begun = nginx.logged()
    for _ in range(count // TOGETHER):
        # All are connected before any asks: they come fast, however slow this
        # machine is.
        links = [socket.create_connection(("127.0.0.1", nginx.ports[port]), 30)
                 for _ in range(TOGETHER)]
        if port == 443 and tls:
            links = list(map(ssl._create_unverified_context().wrap_socket,
                             links))
        for link in links:
            with contextlib.suppress(OSError):
                link.sendall(request)
        for link in links:
            head = b""
            # what it did not read of ours resets the connection
            with contextlib.suppress(OSError):
                head = link.recv(100)
            link.close()
    # nginx hears of their ends before it hears of this.
    nginx.ask("GET", "/health")
    return (nginx.logged() - begun) / count, head


@test
def what_strangers_make_nginx_log_is_bounded():
    host = b" HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\n"
    close = b"Connection: close\r\n\r\n"
    token = b"Authorization: Bearer il_" + b"0" * 64 + b"\r\n"
    long = []
    with Production(served, opened=True) as nginx:
        for port, status, request in (
                (80, 404, b"GET /.well-known/acme-challenge/" + b"a" * 250 +
                 b"?" + LONG + host + close),
                (80, 404, b"GET /.well-known/acme-challenge/" + host + close),
                (80, 413, b"POST /?" + LONG + host +
                 b"Content-Length: 9000000\r\n" + close),
                (80, 400, b"GET /" + LONG + b" HTTP/1.1\r\n\r\n"),
                (443, 404, b"GET /" + RAW + host + close),
                (443, 404, b"A" * 7000 + b" /" + host + close),
                (443, 404, b"GET / HTTP/1.1\r\nHost: " + NAME.encode() +
                 b"\r\nReferer: " + LONG + b"\r\n" + close),
                (443, 413, b"POST /interactions?" + LONG + host +
                 b"Content-Length: 9000000\r\n" + close),
                (443, 401, b"POST /interactions?" + LONG + host +
                 b"Content-Length: 2\r\n" + close + b"{}"),
                (443, 413, b"POST /v1/nothing?" + LONG + host +
                 b"Transfer-Encoding: chunked\r\n" + close + b"5000\r\n" +
                 b"a" * 0x5000 + b"\r\n0\r\n\r\n"),
                (443, 403, b"GET /v1/" + RAW + host + close),
                (443, 403, b"POST /v1/sessions/" + RAW + b"/bash" + host +
                 token + close),
                # By now it comes too often.
                (443, 429, b"POST /v1/sessions/" + RAW + b"/bash" + host +
                 close)):
            size, head = bytes_for_each(nginx, port, request,
                                        200 if status == 429 else TOGETHER)
            what = port, request[:60], head[:40], size
            assert head.split()[1] == str(status).encode(), what
            if size > LINE:
                long.append(what)
        assert not long, long


@test
def the_log_says_what_was_asked_and_which_program_did_not_answer():
    with Served() as other, Production(other) as nginx:
        # who would start it again looks away
        os.kill(other.process.pid, signal.SIGSTOP)
        try:
            for pid in other.pids("il-fcgi"):
                os.kill(pid, signal.SIGKILL)
            nginx.ask("POST", "/interactions?secret", b"{}", port=443)
        finally:
            os.kill(other.process.pid, signal.SIGCONT)

        def lines():
            with open(nginx.path("inline.log")) as file:
                return [one for one in file if "/interactions" in one
                        and one.endswith("\n")]
        line = wait_for(lines)[-1]  # it is written after the answer
        assert " POST /interactions 50" in line and "secret" not in line, line
        assert line.endswith("fcgi.sock\n"), line


@test
def garbage_in_the_place_of_tls_is_logged_in_short():
    with Production(served) as nginx:
        for data in (b"GET /" + LONG + b" HTTP/1.1\r\n\r\n",
                     b"\x16\x03\x01\x00\x05hello" + LONG, LONG,
                     b"\x15\x03\x01\x00\x02\x02\x28"):
            size = bytes_for_each(nginx, 443, data, tls=False)[0]
            assert size <= LINE, (data[:20], size)


@test
def a_challenge_is_shown():
    with Production(served) as nginx:
        folder = nginx.path("html/.well-known/acme-challenge")
        os.makedirs(folder)
        with open(folder + "/token", "w") as file:
            file.write("proof")
        answer = nginx.ask("GET", "/.well-known/acme-challenge/token", port=80)
        assert (answer.status, answer.text) == (200, "proof"), answer


@test
def what_nobody_serves_is_limited_too():
    """`return` would answer before the limits are looked at."""
    with open(os.path.join(ROOT, "nginx/inline.conf")) as file:
        conf = file.read()
    assert "limit_req zone=inline_requests burst=2000 nodelay;" in conf
    with Production(served) as nginx:
        path = nginx.path("inline.conf")
        with open(path) as file:
            conf = file.read()
        with open(path, "w") as file:
            file.write(conf.replace("burst=2000", "burst=20"))
        nginx.process.send_signal(signal.SIGHUP)
        wait_for(lambda: 429 in [
            nginx.ask("GET", "/nothing", port=443).status
            for _ in range(200)])


@test
def discords_server_has_nothing_else():
    with Production(served) as nginx:
        assert nginx.ask("POST", "/interactions", {}, 443).status == 401
        for path in ("/", "/eval", "/v1/execute", "/v1/files", "/metrics",
                     "/health", "/docs", "/versions"):
            for method in "GET", "POST":
                answer = nginx.ask(method, path, port=443)
                assert answer.status == 404 and is_json(answer), answer
        answer = nginx.ask("GET", "/interactions", port=80, Host=NAME)
        assert answer.status == 301, answer
        assert answer.headers["Location"] == "https://%s/interactions" % NAME


@test
def opened_without_tokens_it_runs_nothing_for_others():
    with Production(served, opened=True) as nginx:
        for host in NAME, "localhost", "127.0.0.1":
            answer = nginx.ask("POST", "/eval", CODE, 443, Host=host)
            assert answer.status == 403, answer
            assert answer.json["title"] == "403 Forbidden", answer
            assert "IL_API_TOKENS_FILE" in answer.json["description"], answer
            assert "/docs" in answer.json["description"], answer
            answer = nginx.ask("POST", "/v1/execute", {"code": "1"}, 443,
                               Host=host)
            assert answer.status == 403 and "IL_API_TOKENS_FILE" in \
                answer.json["detail"], answer
            for path in "/v1/files", "/versions", "/metrics":
                answer = nginx.ask("GET", path, port=443, Host=host)
                assert answer.status == 403 and is_json(answer), answer
        assert nginx.ask("POST", "/eval", CODE).status == 200
        assert nginx.ask("GET", "/health", port=443).status == 200


@test
def a_full_queue_is_503_and_says_when_to_come_again():
    with Served(IL_API_CELLS="1", IL_TUNE_API_QUEUE="1") as small, \
            Production(small) as nginx:
        seen = []
        sleep = "import time; time.sleep(2)"
        threads = [threading.Thread(target=lambda path=path, body=body: seen
                                    .append(nginx.ask("POST", path, body)))
                   for path, body in (("/eval", {"input": sleep}),
                                      ("/v1/execute", {"code": sleep})) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        busy = [answer for answer in seen if answer.status == 503]
        assert len(busy) >= 4, seen
        for answer in busy:
            assert is_json(answer), answer.headers
            assert answer.headers["Retry-After"] == "1", answer.headers


def large_bodies_are_counted(nginx, bearer):
    """Where strangers' connections are counted, too."""
    def begin(size):
        link = nginx.connect(443)
        link.putrequest("POST", "/v1/files", skip_host=True)
        link.putheader("Host", NAME)
        link.putheader("Authorization", bearer)
        link.putheader("Content-Length", "90000000")
        link.endheaders(bytes(size))
        return link

    links = [begin(1 << 20), begin(1 << 20)]
    wait_for(lambda: nginx.spooled() == 2)
    answer = Answer(begin(0).getresponse())
    assert answer.status == 503, answer
    for link in links:
        link.close()
    wait_for(lambda: nginx.spooled() == 0)


def a_page_of_its_own_may_ask(nginx, bearer):
    """/docs by the server's name may, with a token; no other name's page."""
    for origin, want in (("https://" + NAME, 200),
                         ("https://" + NAME + ":444", 403),
                         ("https://x" + NAME, 403),
                         ("https://evil.example", 403),
                         ("https://evil.example " + NAME, 403),
                         ("null", 403)):
        answer = nginx.ask("POST", "/eval", CODE, 443, Authorization=bearer,
                           Origin=origin)
        assert answer.status == want, (origin, answer)
    answer = nginx.ask("POST", "/eval", CODE, 443, Origin="https://" + NAME)
    assert answer.status == 401, answer


@test
def opened_with_tokens_it_asks_for_them():
    folder = tempfile.mkdtemp(prefix="inline-tokens-")
    tokens = os.path.join(folder, "tokens")
    try:
        made = subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", tokens,
             "add", "alice"], capture_output=True, text=True, check=True)
        bearer = "Bearer " + made.stdout.strip()
        with Served(IL_API_TOKENS_FILE=tokens) as closed, \
                Production(closed, opened=True) as nginx:
            for path, body in (("/eval", CODE),
                               ("/v1/execute", {"code": "print(42)"})):
                answer = nginx.ask("POST", path, body, 443)
                assert answer.status == 401, answer
                answer = nginx.ask("POST", path, body, 443,
                                   Authorization=bearer)
                assert answer.json["stdout"] == "42\n", answer
                answer = nginx.ask("POST", path, body)
                assert answer.status == 401, answer
            a_page_of_its_own_may_ask(nginx, bearer)
            large_bodies_are_counted(nginx, bearer)
            answer = nginx.ask("GET", "/metrics", port=443,
                               Authorization=bearer)
            assert answer.status == 403, answer
            assert "prometheus" in answer.text, answer
            answer = nginx.ask("GET", "/metrics", port=443)
            assert answer.status == 401, answer
            answer = nginx.ask("GET", "/metrics", Authorization=bearer)
            assert answer.status == 200, answer
            made = subprocess.run(
                [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", tokens,
                 "add", "prometheus"], capture_output=True, text=True,
                check=True)
            answer = nginx.ask("GET", "/metrics", port=443,
                               Authorization="Bearer " + made.stdout.strip())
            assert "inline_broker_up 1" in answer.text, answer
            answer = nginx.ask("GET", "/health", port=443)
            assert answer.status == 200 and "inline" not in answer.json, answer
            answer = nginx.ask("GET", "/health", port=443,
                               Authorization=bearer)
            assert "free_bytes" in answer.json["inline"], answer
    finally:
        shutil.rmtree(folder)


with served:
    run()
