# SPDX-License-Identifier: MIT
"""What the tests of il-fcgi and il-api share: the real program behind a real
nginx with a real database, and a signer in Discord's place.

    with Front() as front:
        front.add_sandbox(user=7)
        answer = front.send(command("py", code="print(1)", user=7))
        tap.equal(answer.status, 200, "it is taken")
"""

import contextlib
import http.client
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "discord")
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

import keys  # noqa: E402
import wire  # noqa: E402
from ports import free_port  # noqa: E402

# RFC 8032, section 7.1, test 1: the key that the stored vectors are signed with.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
APPLICATION = "200000000000000001"
USER = 100000000000000001
DISCORD_EPOCH_MS = 1420070400000
START_SECONDS = 60
PRIVATE = 64


class Tap:
    """The Test Anything Protocol; end with done()."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, *notes):
        self.count += 1
        print("%sok %d - %s" % ("" if good else "not ", self.count, name))
        if not good:
            self.failed += 1
            for text in notes:
                print("# " + str(text).replace("\n", "\n# "))
        sys.stdout.flush()
        return good

    def equal(self, got, want, name):
        return self.ok(got == want, name, "got  %r" % (got,),
                       "want %r" % (want,))

    def done(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)


class Validator:
    """Validates answers against Discord's OpenAPI where that is present."""

    NAMES = {1: "PongInteractionCallbackRequest",
             4: "CreateMessageInteractionCallbackRequest",
             5: "CreateMessageInteractionCallbackRequest",
             6: "UpdateMessageInteractionCallbackRequest",
             7: "UpdateMessageInteractionCallbackRequest",
             8: "ApplicationCommandAutocompleteCallbackRequest",
             9: "ModalInteractionCallbackRequest"}

    def __init__(self):
        self.document = None
        path = os.path.join(SHARED, "openapi-subset.json")
        try:
            import jsonschema
            self.jsonschema = jsonschema
            with open(path, encoding="utf-8") as file:
                self.document = json.load(file)
        except (ImportError, FileNotFoundError):
            print("# answers are not validated: jsonschema or %s is missing"
                  % path)

    def complaints(self, answer):
        """Return what is wrong with a 200 answer, as texts."""
        wrong = []
        data = answer.get("data") or {}
        if answer["type"] in (4, 7) and \
                data.get("allowed_mentions") != {"parse": []}:
            wrong.append("allowed_mentions is not {parse: []}")
        if self.document is None:
            return wrong
        name = self.NAMES[answer["type"]]
        schema = {"$ref": "#/components/schemas/" + name,
                  "components": self.document["components"]}
        validator = self.jsonschema.Draft202012Validator(schema)
        return wrong + [e.message for e in validator.iter_errors(answer)]


class Answer:
    """An HTTP answer; `type` and `text` are those of an interaction's."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body
        self.json = None
        if body and (headers.get("Content-Type") or "").startswith(
                "application/json"):
            self.json = json.loads(body)

    @property
    def type(self):
        return (self.json or {}).get("type")

    @property
    def data(self):
        return (self.json or {}).get("data") or {}

    @property
    def text(self):
        return self.data.get("content", "")

    @property
    def private(self):
        return self.data.get("flags") == PRIVATE

    def __repr__(self):
        return "%d %s" % (self.status, self.body[:300])


_last_id = [0]


def snowflake():
    """Return an id of now that was not given out before."""
    milliseconds = int(time.time() * 1000) - DISCORD_EPOCH_MS
    _last_id[0] = max(_last_id[0] + 1, milliseconds << 22)
    return _last_id[0]


def interaction(kind, data, user=USER, guild=True, **extra):
    """Return an interaction as Discord makes it, as a dict."""
    person = {"id": str(user), "username": "example", "global_name": "Example"}
    body = {
        "app_permissions": "2248473465835073", "application_id": APPLICATION,
        "attachment_size_limit": 20971520, "channel_id": "400000000000000001",
        "context": 0 if guild else 2, "entitlements": [],
        "id": str(snowflake()), "locale": "en-US",
        "token": "aW50ZXJhY3Rpb24tdG9rZW4-" + str(user), "type": kind,
        "version": 1}
    if data is not None:
        body["data"] = data
    if guild:
        body["member"] = {"user": person, "roles": [], "permissions": "1"}
        body["guild_id"] = "300000000000000001"
    else:
        body["user"] = person
    body.update(extra)
    return {k: v for k, v in body.items() if v is not None}


OPTION_TYPES = {bool: 5, int: 4, str: 3}


class File:
    """The value of an attachment option."""

    def __init__(self, name="data.csv", size=14, url=None):
        self.id = str(snowflake())
        self.view = {
            "id": self.id, "filename": name, "size": size, "ephemeral": True,
            "url": url or "https://cdn.discordapp.com/ephemeral-attachments/1/"
            + self.id + "/" + name}


def options(values):
    """Return (options, attachments) for keyword arguments."""
    leaves, attachments = [], {}
    for name, value in values.items():
        if isinstance(value, File):
            leaves.append({"name": name, "type": 11, "value": value.id})
            attachments[value.id] = value.view
        else:
            leaves.append({"name": name, "type": OPTION_TYPES[type(value)],
                           "value": value})
    return leaves, attachments


def command(sub, user=USER, guild=True, root="il", extra=None, **values):
    """Return `/il <sub>` with the options; sub "" is a command without,
    "group/sub" one of a group."""
    leaves, attachments = options(values)
    data = {"id": "500000000000000001", "name": root, "type": 1}
    data["options"] = nest(sub, leaves)
    if attachments:
        data["resolved"] = {"attachments": attachments}
    return interaction(2, data, user, guild, **(extra or {}))


def nest(sub, leaves):
    """Return the options of a sub-command, or of "group/sub"."""
    for depth, part in enumerate(reversed(sub.split("/") if sub else [])):
        leaves = [{"name": part, "type": 1 + depth, "options": leaves}]
    return leaves


def typing(sub, name, value, user=USER, root="il", kind=3):
    """Return what comes at a key: the value of an option is half-typed."""
    leaf = {"name": name, "type": kind, "value": value, "focused": True}
    return interaction(4, {"id": "500000000000000001", "name": root, "type": 1,
                           "options": nest(sub, [leaf])}, user)


def menu(name, user=USER, guild=True, forwarded=None, **message):
    """Return a command of a message's menu; forwarded: what it forwards."""
    message = {"id": "7", "type": 0, "content": "", "attachments": [],
               "embeds": [], "components": [], "author": {"id": "8"},
               **message}
    if forwarded:
        message["message_snapshots"] = [{"message": forwarded}]
    return interaction(2, {"id": "500000000000000002", "name": name, "type": 3,
                           "target_id": "7",
                           "resolved": {"messages": {"7": message}}},
                       user, guild)


def press(custom_id, user=USER, **extra):
    """Return the press of a button."""
    data = {"component_type": 2, "custom_id": custom_id, "id": 2}
    return interaction(3, data, user, message={"id": "1"}, **extra)


def choose(custom_id, *values, user=USER, **extra):
    """Return the choice in a menu."""
    data = {"component_type": 3, "custom_id": custom_id, "id": 2,
            "values": list(values)}
    return interaction(3, data, user, message={"id": "1"}, **extra)


def submit(custom_id, user=USER, legacy=False, **fields):
    """Return the submission of a modal."""
    parts = []
    for name, value in fields.items():
        text = {"type": 4, "id": 2, "custom_id": name, "value": value}
        parts.append({"type": 1, "components": [text]} if legacy else
                     {"type": 18, "id": 1, "component": text})
    return interaction(5, {"custom_id": custom_id, "components": parts}, user)


def encode(body):
    """Return the bytes that Discord would send."""
    return json.dumps(body, separators=(",", ":"), sort_keys=True,
                      ensure_ascii=False).encode()


def migrate(path):
    """Make the database as it is in the tree."""
    folder = os.path.join(ROOT, "sql", "migrations")
    database = sqlite3.connect(path)
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            database.executescript("BEGIN;" + file.read() + ";COMMIT;")
    database.execute("PRAGMA journal_mode = WAL")
    database.close()


def wait_for_socket(address, process, seconds=START_SECONDS,
                    kind=socket.SOCK_STREAM):
    """Wait until somebody listens."""
    deadline = time.monotonic() + seconds
    family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
    while time.monotonic() < deadline:
        with socket.socket(family, kind) as sock:
            try:
                sock.connect(address)
                return
            except OSError:
                if process.poll() is not None:
                    break
        select.select([], [], [], 0.02)
    raise AssertionError("nobody listens on %s" % (address,))


def until(what, seconds=60):
    """Wait for something that SQLite or a file says."""
    deadline = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


def wait_gone(pid, seconds=60):
    """Wait until a process that is no child of ours has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended = select.select([descriptor], [], [], seconds)[0]
        assert ended, "%d has not ended" % pid
    finally:
        os.close(descriptor)


def record(kind, content):
    """Return a FastCGI record."""
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def read_answer(sock):
    """Return the Answer that comes as FastCGI records, or None."""
    data = b""
    file = sock.makefile("rb")
    try:
        while True:
            head = file.read(8)
            if len(head) < 8:
                return None
            _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", head)
            content = file.read(length + padding)[:length]
            if kind == STDOUT:
                data += content
            if kind == END:
                break
    except ConnectionResetError:
        return None
    head, _, body = data.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1)
                   for line in head.decode().split("\r\n"))
    return Answer(int(headers["Status"].split()[0]), headers, body)


class Others:
    """In the place of a worker and of il-sandboxd: they are there, and well.
    What they tell is sandbox/protocol/condition.h and lease.h."""

    SLOTS, SLOT = 256, struct.Struct("=4q")     # pid, beat, due, rests
    HEAD, FRAME = struct.Struct("=4q"), 8192    # turn, pid, told, length

    def __init__(self, folder):
        with open(os.path.join(ROOT, "GNUmakefile")) as file:
            version = re.search(r"^VERSION := (\S+)", file.read(), re.M)[1]
        self.pulse = os.path.join(folder, "worker", "pulse-" + version)
        self.status = os.path.join(folder, "broker", "status-" + version)
        self.over = threading.Event()
        for path in self.pulse, self.status:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.tell()
        self.thread = threading.Thread(target=self._go_on, daemon=True)
        self.thread.start()

    def _write(self, path, data, size):
        with open(path + ".new", "wb") as file:
            file.write(data.ljust(size, b"\0"))
        os.rename(path + ".new", path)

    def tell(self):
        """They have just been there."""
        now = int(time.monotonic() * 1000)
        frame = wire.pack("STATUS_IS", ("ENGINE", 1), ("IMAGE", 1),
                               ("ENGINE_AGE", 0),
                               ("FREE_BYTES", 1 << 30))
        self._write(self.pulse, self.SLOT.pack(os.getpid(), now, now + 60000,
                                               0), self.SLOTS * self.SLOT.size)
        self._write(self.status, self.HEAD.pack(0, os.getpid(), now,
                                                len(frame)) + frame,
                    self.HEAD.size + self.FRAME)

    def _go_on(self):
        while not self.over.wait(3):
            self.tell()

    def end(self):
        """They are not there any more."""
        self.over.set()
        self.thread.join()
        os.unlink(self.pulse)
        os.unlink(self.status)


class Metrics:
    """il-api in the state folder of other programs: what they have counted."""

    def __init__(self, folder, **environment):
        self.path = os.path.join(folder, "api.sock")
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "bin", "il-api")], stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "IL_STATE_DIR": folder,
                 **environment}, stdin=subprocess.DEVNULL)
        wait_for_socket(self.path, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def numbers(self):
        """{'name{labels}': number} of /metrics, as now."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(self.path)
            sock.sendall(Front.records(self, "GET", "/metrics"))
            text = read_answer(sock).body.decode()
        return {key: float(number) for key, number in (
            line.rsplit(" ", 1) for line in text.splitlines()
            if line[0] != "#")}


class Front:
    """il-fcgi (or program="il-api") and nginx in a folder of their own."""

    def __init__(self, program="il-fcgi", nginx=True, start=True,
                 database=True, others=True, **environment):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="inline-fcgi-")
        self.database = os.path.join(self.folder, "inline.db")
        self.identity = keys.Identity(bytes.fromhex(SEED), APPLICATION, "t")
        self.port = free_port()
        self.environment = {
            "PATH": os.environ["PATH"], "IL_STATE_DIR": self.folder,
            "DISCORD_PUBLIC_KEY": self.identity.public_key,
            "DISCORD_APPLICATION_ID": APPLICATION, "IL_TUNE_QUEUE_MAX": "5000",
            "IL_TUNE_INSTANT_MS": "0"}
        self.environment.update(environment)
        self.process = None
        self.nginx = None
        self.others = Others(self.folder) if others else None
        self.log_path = os.path.join(self.folder, "log")
        self.validator = Validator()
        self.complaints = []
        try:
            if database:
                migrate(self.database)
            if start:
                self.start()
            if nginx:
                self._start_nginx()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in (self.nginx, self.process):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if self.others is not None and not self.others.over.is_set():
            self.others.end()
        if error[0] is not None:
            sys.stdout.write("# " + self.logs().replace("\n", "\n# ") + "\n")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def socket_path(self):
        name = {"il-fcgi": "fcgi.sock", "il-api": "api.sock"}[self.program]
        return os.path.join(self.folder, name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, **more):
        """Start the program and wait until it listens."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "bin", self.program)],
                env=self.environment, cwd=self.folder, stderr=log,
                stdin=subprocess.DEVNULL, **more)
        wait_for_socket(self.socket_path, self.process)

    def _nodes(self):
        """What nginx has to know of other nodes, if there are any."""
        return subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), "nginx"], check=True,
            env={**self.environment, "IL_TUNE_LIB_DIR": os.path.join(BUILD, "lib")},
            capture_output=True, text=True).stdout

    def _start_nginx(self):
        with open(os.path.join(ROOT, "nginx", "nginx.conf.in"),
                  encoding="utf-8") as file:
            conf = "user %s;\n" % pwd.getpwuid(os.geteuid()).pw_name + \
                file.read()
        for name in "nginx", "nodes":
            os.makedirs(self.path(name), exist_ok=True)
        for name, value in (
                ("STATE_DIR", self.folder),
                ("LIB_DIR", os.path.join(BUILD, "lib")),
                ("HTTP_ADDRESS", "127.0.0.1"), ("HTTP_PORT", str(self.port)),
                ("HTTP_NEAR", ""), ("STOP", "1s"), ("NODES", self._nodes()),
                ("STANDIN_PORT", "9"), ("NO_STANDIN", ""), ("STANDIN", "#")):
            conf = conf.replace("@%s@" % name, value)
        with open(self.path("nginx.conf"), "w", encoding="utf-8") as file:
            file.write(conf)
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        with open(self.path("nginx.log"), "ab") as log:
            self.nginx = subprocess.Popen(
                [shutil.which("nginx", path=path), "-e", "stderr",
                 "-c", self.path("nginx.conf")], stderr=log,
                stdin=subprocess.DEVNULL)
        wait_for_socket(("127.0.0.1", self.port), self.nginx)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def logs(self):
        """The program's and nginx's, as far as there are any."""
        text = ""
        for path in (self.log_path, self.path("nginx.log")):
            with contextlib.suppress(FileNotFoundError), \
                    open(path, encoding="utf-8") as file:
                text += file.read()
        return text

    def alive(self):
        return self.process.poll() is None

    def children(self, gone=None, count=2):
        """The pids of those that answer, once there are so many, and `gone` is
        not among them.
        """
        path = "/proc/%d/task/%d/children" % (
            self.process.pid, self.process.pid)
        deadline = time.monotonic() + 60
        while True:
            with open(path) as file:
                pids = [int(word) for word in file.read().split()]
            if gone not in pids and len(pids) == count:
                return pids
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.005)

    def signal(self, number):
        """To all of its processes."""
        for pid in (*self.children(), self.process.pid):
            os.kill(pid, number)

    @contextlib.contextmanager
    def only(self, child):
        """All others stand still meanwhile."""
        others = [pid for pid in self.children() if pid != child]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    # ---- requests ----

    def request(self, method, path, body=b"", headers=None, timeout=90):
        """One HTTP request through nginx, exactly as given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def headers(self, body, timestamp=None):
        """Return the headers that Discord would send with the bytes."""
        if timestamp is None:
            timestamp = str(int(time.time()))
        signature = self.identity.sign(timestamp.encode() + body)
        return {"Content-Type": "application/json",
                "X-Signature-Ed25519": signature,
                "X-Signature-Timestamp": timestamp}

    def send(self, body, timestamp=None):
        """Sign and send an interaction (dict or bytes); check the answer."""
        if isinstance(body, dict):
            body = encode(body)
        answer = self.request("POST", "/interactions", body,
                              self.headers(body, timestamp))
        if answer.status == 200:
            self.complaints += self.validator.complaints(answer.json)
        return answer

    def records(self, method, path, body=b"", headers=None):
        """Return the request as nginx would pass it on, in FastCGI records."""
        values = {"REQUEST_METHOD": method, "DOCUMENT_URI": path}
        if body is not None:
            values["CONTENT_LENGTH"] = str(len(body))
        for name, value in (headers or {}).items():
            values["HTTP_" + name.upper().replace("-", "_")] = value
        params = b""
        for name, value in values.items():
            for text in (name, value):
                params += bytes([len(text)]) if len(text) < 128 else \
                    struct.pack(">I", len(text) | 0x80000000)
            params += name.encode() + value.encode()
        data = record(BEGIN, struct.pack(">HB5x", 1, 0)) + \
            record(PARAMS, params) + record(PARAMS, b"")
        body = body or b""
        for start in range(0, len(body), 32768):
            data += record(STDIN, body[start:start + 32768])
        return data + record(STDIN, b"")

    def connect(self):
        """Return a connection past nginx."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60)
        sock.connect(self.socket_path)
        return sock

    def direct(self, method, path, body=b"", headers=None):
        """One request past nginx, for what nginx does not let through."""
        with self.connect() as sock:
            sock.sendall(self.records(method, path, body, headers))
            return read_answer(sock)

    # ---- database ----

    def query(self, sql, *values):
        """Run SQL and return the rows as dicts."""
        database = sqlite3.connect(self.database, timeout=60)
        database.row_factory = sqlite3.Row
        try:
            with database:
                return [dict(row) for row in database.execute(sql, values)]
        finally:
            database.close()

    def add_sandbox(self, user=USER, expires_in=86400, state="active",
                    pinned=0, identity=None):
        """Insert a row as `/il create` would; return its id."""
        identity = identity or "%032x" % snowflake()
        now = int(time.time())
        self.query(
            "INSERT INTO sandboxes (id, user_id, state, created_at, used_at,"
            " expires_at, pinned) VALUES (?, ?, ?, ?, ?, ?, ?)",
            identity, user, state, now, now, now + expires_in, pinned)
        return identity

    def add_view(self, kind, user=USER, path="", page=1, share=0):
        """Insert a view; return its id."""
        self.query(
            "INSERT INTO views (user_id, kind, path, page, share, created_ms)"
            " VALUES (?, ?, ?, ?, ?, 0)", user, kind, path, page, share)
        return self.query("SELECT max(id) AS id FROM views")[0]["id"]

    def jobs(self, user=None):
        rows = self.query("SELECT * FROM jobs ORDER BY id")
        return [r for r in rows if user is None or r["user_id"] == user]

    def job(self, user=USER):
        """Return the newest job of the user, or an empty dict."""
        jobs = self.jobs(user)
        return jobs[-1] if jobs else {}

    def finish_jobs(self):
        """Play the worker: everything is done and told."""
        self.query("UPDATE jobs SET state = 'delivered', token = '',"
                   " text = '', input = '', claimed_by = 0")
