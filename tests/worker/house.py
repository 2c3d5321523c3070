# SPDX-License-Identifier: MIT
"""One il-worker in a house of its own, for what real parts cannot be made to do.

The database is real, Discord is the stand-in.  In il-fcgi's place stands a
function that defers and inserts the job, and in il-sandboxd's place a Broker
whose cells do what a test says: refuse, lie, hang, die.  So these tests need no
Docker.  The real parts together are tested in tests/e2e.

    with House() as house:
        house.sandbox("alice")
        house.broker.cell = says(b"hello\n")
        sent = house.send("py", text="print('hello')")
        sent.wait_final(match="hello")
"""

import array
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))

from client import Standin  # noqa: E402  (needs the path above)
from fakeapp import FakeApp  # noqa: E402
from wire import N, pack, unpack  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
BIN = os.path.join(BUILD, "bin")
PATIENCE = 120
EPHEMERAL = {"type": 5, "data": {"flags": 64}}
PUBLIC = {"type": 5}
UPDATE = {"type": 6}
HELD = object()  # what the worker gives is the first response


# ---- in the broker's place ----

class Cell:
    """The cell's end of a lease, with the request that came on it."""

    def __init__(self, sock):
        self.sock = sock
        self.request = {}
        self.parts = {}

    def take_request(self):
        """Receive a whole request; False when the worker hung up."""
        self.parts = {}
        while True:
            packet = self.sock.recv(65536)
            if not packet:
                return False
            kind, fields = unpack(packet)
            if kind == "REQUEST":
                self.request = fields
            elif kind == "BYTES":
                part = fields["PART"]
                self.parts[part] = self.parts.get(part, b"") + fields["DATA"]
            elif kind == "GO":
                return True

    @property
    def op(self):
        """The operation's name, as "RUN"."""
        return next(name[3:] for name, number in N.items()
                    if name.startswith("OP_")
                    and number == self.request["OP"])

    def send(self, kind, *fields):
        """Send a frame."""
        self.sock.send(pack(kind, *fields))

    def output(self, data):
        """Send output."""
        for at in range(0, len(data), 32768):
            self.send("OUTPUT", ("STREAM", 1), ("DATA", data[at:at + 32768]))

    def file(self, path, data):
        """Send a file."""
        self.send("FILE", ("PATH", path), ("SIZE", len(data)), ("MTIME", 0))
        for at in range(0, len(data), 32768):
            self.send("BYTES", ("PART", N["PART_CONTENT"]),
                      ("DATA", data[at:at + 32768]))

    def result(self, reason="EXIT", **fields):
        """Send the result."""
        made = {"STATUS": 0, "WALL_US": 12000, "CPU_US": 1000,
                "MAX_RSS": 9 << 20, "USED_BYTES": 4096, "USED_FILES": 1}
        made.update(fields)
        self.send("RESULT", ("REASON", N["REASON_" + reason]),
                  *made.items())

    def wait_hang_up(self):
        """Wait until the worker closes the lease; returns how long."""
        began = time.monotonic()
        while self.sock.recv(65536):
            pass
        return time.monotonic() - began


def says(data, files=(), **result):
    """A cell whose run prints this, makes these files and ends."""
    def run(cell):
        cell.send("STARTED")
        cell.output(data)
        for path, content in files:
            cell.file(path, content)
        cell.result(**result)
    return run


def fails(error):
    """A cell whose operation fails with this error."""
    def run(cell):
        cell.result("ERROR", CODE=N["ERROR_" + error])
    return run


class Broker:
    """Listens where il-sandboxd would."""

    def __init__(self, path):
        self.cell = says(b"")
        self.refusal = None         # name of a refusal: no leases
        self.refuse_leases = []     # names of refusals: of the next leases
        self.refuse_remove = None
        self.asked = []             # frames seen: (kind's name, fields)
        self.status = (("ENGINE", 1), ("IMAGE", 1), ("PYTHON", "3.11.2"),
                       ("IMAGE_NAME", "python:3.11"), ("CELLS", 2),
                       ("LEASED", 1), ("STARTING", 0), ("WAITING", 0),
                       ("FREE_BYTES", 1 << 30))
        self.changed = threading.Condition()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Stop listening."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def wait_asked(self, kind, count=1, seconds=PATIENCE):
        """Wait until so many frames of a kind have come; returns them."""
        def found():
            return [fields for name, fields in self.asked if name == kind]
        with self.changed:
            if not self.changed.wait_for(lambda: len(found()) >= count,
                                         seconds):
                raise AssertionError(f"no {kind}: {self.asked}")
            return found()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,),
                             daemon=True).start()

    def _note(self, kind, fields):
        with self.changed:
            self.asked.append((kind, fields))
            self.changed.notify_all()

    def _serve(self, sock):
        try:
            with sock:
                packet = sock.recv(65536)
                if not packet:
                    return
                self._answer(sock, *unpack(packet))
        except OSError:
            pass    # the worker was killed: that is what some tests do

    def _answer(self, sock, name, fields):
        once = self.refuse_leases.pop(0) if (
            name == "LEASE" and self.refuse_leases) else None
        refusal = {"LEASE": once or self.refusal, "CREATE": self.refusal,
                   "REMOVE": self.refuse_remove}.get(name)
        if name == "STATUS":
            sock.send(pack("STATUS_IS", *self.status))
        elif refusal:
            sock.send(pack("REFUSED", ("CODE", N["REFUSAL_" + refusal]),
                           ("TEXT", "on order")))
        elif name == "LEASE":
            self._lease(sock, name, fields)
            return
        else:
            sock.send(pack("GRANTED"))
        self._note(name, fields)

    def _lease(self, sock, name, fields):
        ours, theirs = socket.socketpair(socket.AF_UNIX,
                                         socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                sock.sendmsg([pack("GRANTED", ("CELL_NAME", "a-cell"))],
                             [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                               array.array("i", [theirs.fileno()]))])
            self._note(name, fields)
            cell = Cell(ours)
            while cell.take_request():
                self._note(cell.op, cell.request)
                self.cell(cell)


# ---- the house ----

class House:
    """Database, stand-in, broker, and a worker that may be started again."""

    def __init__(self, start=True, **settings):
        self.folder = tempfile.mkdtemp(prefix="inline-worker-")
        self.state = os.path.join(self.folder, "state")
        self.settings = settings
        self.start_worker = start
        self.workers = {}
        self.job = None             # columns of the job to insert next
        self.answer = self.late = EPHEMERAL
        self.app = self.discord = self.broker = self.waiting = None
        self.given = self.given_at = None

    def __enter__(self):
        try:
            return self._start()
        except BaseException:
            self.close(True)
            raise

    def __exit__(self, kind, *_):
        self.close(kind is not None)

    def _start(self):
        os.mkdir(self.state)
        self.waiting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.mkdir(os.path.join(self.state, "answers"))
        self.waiting.bind(os.path.join(self.state, "answers", "0"))
        self.waiting.listen(8)
        self.waiting.settimeout(PATIENCE)
        self.app = FakeApp(self._front)
        self.discord = Standin(self.app.url)
        self.discord.start()
        self.app.use(self.discord)
        folder = os.path.join(self.state, "broker", "worker")
        os.makedirs(folder)
        self.broker = Broker(os.path.join(folder, "lease.sock"))
        subprocess.run([os.path.join(BIN, "ilctl"), "migrate"], check=True,
                       env=self.environment(), stdout=subprocess.DEVNULL)
        if self.start_worker:
            self.start()
        return self

    def close(self, show_log=False):
        """End everything, remove everything."""
        for slot in list(self.workers):
            self.stop(slot, signal.SIGKILL)
        if self.broker:
            self.broker.close()
        if self.discord:
            self.discord.stop()
        if self.app:
            self.app.close()
        if self.waiting:
            self.waiting.close()
        if show_log:
            print("# " + self.log().replace("\n", "\n# "), flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self):
        """Return the environment that the worker gets."""
        made = {key: value for key, value in os.environ.items()
                if not key.startswith(("IL_", "SANDBOX_", "DISCORD_"))}
        made.update(IL_STATE_DIR=self.state,
                    IL_BASE_DIR=os.path.join(self.folder, "sandboxes"))
        made.update(self.discord.environment())
        made.update(self.settings)
        return made

    # The worker

    def start(self, slot=0):
        """Start a worker."""
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.workers[slot] = subprocess.Popen(
                [os.path.join(BIN, "il-worker"), "-s", str(slot)],
                env=self.environment(), stdin=subprocess.DEVNULL, stderr=log)

    def stop(self, slot=0, number=signal.SIGTERM, seconds=PATIENCE):
        """End a worker; returns its exit status."""
        process = self.workers.pop(slot)
        process.send_signal(number)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("the worker did not end")

    def log(self):
        """Return what the workers have logged."""
        try:
            with open(os.path.join(self.folder, "log"),
                      errors="replace") as log:
                return log.read()
        except OSError:
            return ""

    def ctl(self, *arguments, **environment):
        """Run ilctl; returns the finished process."""
        return subprocess.run([os.path.join(BIN, "ilctl"), *arguments],
                              env={**self.environment(), **environment},
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE)

    # The database

    def sql(self, text, *values):
        """Run one statement; returns its rows."""
        link = sqlite3.connect(os.path.join(self.state, "inline.db"),
                               timeout=60)
        try:
            with link:
                return link.execute(text, values).fetchall()
        finally:
            link.close()

    def user_id(self, user="alice"):
        """Return a person's id."""
        asked = self.discord.send({"command": "health", "user": user})
        return int(asked.wait_answered().view["user"])

    def sandbox(self, user="alice", days=7.0, **columns):
        """Make a sandbox's row; returns its id."""
        now = int(time.time())
        row = {"id": os.urandom(16).hex(), "user_id": self.user_id(user),
               "created_at": now, "used_at": now,
               "expires_at": now + int(days * 86400), **columns}
        self.sql(f"INSERT INTO sandboxes ({', '.join(row)}) "
                 f"VALUES ({', '.join('?' * len(row))})", *row.values())
        return row["id"]

    def wait_sql(self, text, *values, want=None, seconds=PATIENCE):
        """Wait until a statement gives a row (or the wanted rows)."""
        deadline = time.monotonic() + seconds
        while True:
            rows = self.sql(text, *values)
            if rows and (want is None or rows == want):
                return rows
            if time.monotonic() > deadline:
                raise AssertionError(f"{text}: {rows}")
            time.sleep(0.02)    # SQLite cannot be waited for

    def wait_state(self, sent, state, seconds=PATIENCE):
        """Wait until the job of an interaction is in a state."""
        self.wait_sql("SELECT 1 FROM jobs WHERE interaction_id = ? AND "
                      "state = ?", int(sent.id), state, seconds=seconds)

    def outcome(self, sent):
        """Return (state, outcome) of an interaction's job."""
        return self.sql("SELECT state, outcome FROM jobs WHERE "
                        "interaction_id = ?", int(sent.id))[0]

    # What people do

    def _front(self, interaction):
        """In il-fcgi's place: insert the job; defer, or wait for it."""
        job, self.job = self.job, None
        answer = self.answer if job is not None else EPHEMERAL
        if job is not None:
            self._insert(interaction, job)
        return self._hold() if answer is HELD else answer

    def _hold(self, word=b"S", kill=False):
        """Take the response that the worker gives; word: what becomes of it.
        Or kill that worker.
        """
        link = self.waiting.accept()[0]
        with link:
            packet = link.recv(1 << 17)
            self.given = int.from_bytes(packet[:8], "little")
            self.given_at = time.time()
            if kill:
                self.stop(0, signal.SIGKILL)
            elif word:
                link.send(word if packet[8:] else b"L")
        return json.loads(packet[8:] or json.dumps(self.late))

    def too_late(self, word=b"L", kill=False):
        """Tell the next worker that its response comes too late; or another
        word, or nothing, or kill it.
        """
        late = threading.Thread(target=self._hold, args=(word, kill),
                                daemon=True)
        late.start()
        return late

    def _insert(self, interaction, job):
        user = (interaction.get("member") or interaction)["user"]
        row = {"interaction_id": int(interaction["id"]),
               "application_id": int(interaction["application_id"]),
               "user_id": int(user["id"]), "token": interaction["token"],
               "received_ms": int(time.time() * 1000), "answer": "deferred",
               "attachment_limit": 10 << 20, "may_attach": 1, **job}
        self.sql(f"INSERT INTO jobs ({', '.join(row)}) "
                 f"VALUES ({', '.join('?' * len(row))})", *row.values())

    def wake(self):
        """Write the byte that the front writes."""
        try:
            fifo = os.open(os.path.join(self.state, "wake"),
                           os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return              # no worker has made it yet
        try:
            os.write(fifo, b"\0")
        except OSError:
            pass                # full, or nobody there
        finally:
            os.close(fifo)

    def _begin(self, kind, columns, answer):
        self.job = {"kind": kind, **columns}
        if "text" in columns:
            self.job["has_text"] = 1
        self.answer = answer

    def send(self, kind, *, user="alice", answer=EPHEMERAL, order=None,
             **columns):
        """Send a command whose job has these columns."""
        self._begin(kind, columns, answer)
        sent = self.discord.send({"command": "health", "user": user,
                                  **(order or {})})
        sent.wait_answered()
        self.wake()
        return sent

    def press(self, message, button, kind, **columns):
        """Press a button whose job has these columns."""
        self._begin(kind, {"answer": "deferred-update", **columns}, UPDATE)
        sent = self.discord.press(message, button)
        sent.wait_answered()
        self.wake()
        return sent

    def editor(self, path, **columns):
        """Send `/il write` without content."""
        return self.begin("write-edit", **{"path": path, **columns},
                          kind_of_answer="callback")

    def begin(self, kind, *, user="alice", answer=HELD, late=EPHEMERAL,
              kind_of_answer="deferred", **columns):
        """Send a command whose answer may be the first response; late: what
        is said where it is not."""
        self.late = late
        self._begin(kind, {"held_by": 0, "answer": kind_of_answer, **columns},
                    answer)
        sent = self.discord.send({"command": "health", "user": user})
        self.wait_sql("SELECT 1 FROM jobs WHERE interaction_id = ?",
                      int(sent.id))
        self.wake()
        return sent
