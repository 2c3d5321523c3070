# SPDX-License-Identifier: MIT
"""What the broker's tests share: the protocol, a broker of one's own, TAP.

Every Broker has a folder of its own under /tmp, hence an instance id of its
own: tests run beside each other and beside a broker in service.
"""
import array
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "standin"))
import wire  # noqa: E402
from wire import N, pack, refusal_name  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
PROGRAM = os.path.join(BUILD, "bin/il-sandboxd")
IMAGE = os.environ.get("SANDBOX_IMAGE", "ilt:3.11")
DOCKER = os.environ.get("DOCKER_BINARY", "docker")
PATIENCE = 60.0
MIB = 1 << 20


def unpack(packet):
    """(kind, {tag: value}); None at the end of the stream."""
    return wire.unpack(packet) if packet else (None, {})


def receive(sock):
    """(kind, fields, fd or None)."""
    room = socket.CMSG_SPACE(2 * 4)
    packet, control, _, _ = sock.recvmsg(65536, room)
    fds = array.array("i")
    for _, _, data in control:
        fds.frombytes(data[:len(data) - len(data) % 4])
    kind, fields = unpack(packet)
    return kind, fields, fds[0] if fds else None


def pip_network():
    """The network of pip's cells here: an engine may have no bridge."""
    done = subprocess.run([DOCKER, "run", "--rm", "--network", "bridge",
                           "--log-driver", "none", "--entrypoint", "python3",
                           IMAGE, "-c", ""], stderr=subprocess.DEVNULL)
    return "bridge" if done.returncode == 0 else "none"


def sandbox_id(n):
    return "%032x" % n


class Asked:
    """One connection to the broker, on which something was asked."""

    def __init__(self, path, packet):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(path)
        self.sock.settimeout(PATIENCE)
        self.began = time.monotonic()
        self.cell = None
        if packet:
            self.sock.send(packet)

    def answer(self, patience=PATIENCE):
        """(kind, fields); the cell's descriptor is kept in self.cell."""
        self.sock.settimeout(patience)
        try:
            kind, self.fields, fd = receive(self.sock)
        except ConnectionResetError:
            kind, self.fields, fd = None, {}, None
        self.ms = (time.monotonic() - self.began) * 1000
        if fd is not None:
            self.cell = socket.socket(fileno=fd)
            self.cell.settimeout(PATIENCE)
        return kind, self.fields

    def name(self):
        return self.fields["CELL_NAME"].decode()

    def run(self, source, wall_ms=20000, output_max=MIB, keep=None):
        """Run code: (result fields, output)."""
        self.start(source, wall_ms, output_max, keep)
        return self.result()

    def start(self, source, wall_ms=120000, output_max=MIB, keep=None):
        """Begin to run code; result() tells what became of it."""
        self.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]),
                            ("WALL_MS", wall_ms), ("MERGE", 1),
                            ("OUTPUT_MAX", output_max), ("KEEP", keep)))
        self.cell.send(pack("BYTES", ("PART", N["PART_SOURCE"]),
                            ("DATA", source)))
        self.cell.send(pack("GO"))

    def run_api(self, source, wall_ms=20000, output_max=MIB):
        """Run `python -c source`: (result fields, output)."""
        self.start_api(source, wall_ms, output_max)
        return self.result()

    def start_api(self, source, wall_ms=20000, output_max=MIB):
        """Begin to run `python -c source`."""
        self.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]), ("PLAIN", 1),
                            ("WALL_MS", wall_ms), ("MERGE", 1),
                            ("OUTPUT_MAX", output_max)))
        for data in ("-c\0", source + "\0"):
            self.cell.send(pack("BYTES", ("PART", N["PART_ARGS"]),
                                ("DATA", data)))
        self.cell.send(pack("GO"))

    def wait_output(self, text):
        """Until a run has said that; it goes on."""
        seen = b""
        while text not in seen:
            kind, fields = unpack(self.cell.recv(65536))
            assert kind not in ("RESULT", None), (kind, fields, seen)
            seen += fields.get("DATA", b"")

    def op(self, name, *fields, content=None):
        """One operation on files: (result fields, bytes of a file)."""
        self.cell.send(pack("REQUEST", ("OP", N["OP_" + name]),
                            ("WALL_MS", 60000), ("MAX_BYTES", 1 << 30),
                            ("COUNT", 100), *fields))
        for at in range(0, len(content or b""), 32768):
            self.cell.send(pack("BYTES", ("PART", N["PART_CONTENT"]),
                                ("DATA", content[at:at + 32768])))
        self.cell.send(pack("GO"))
        return self.result()

    def access(self):
        """What the lease was granted for."""
        return {N[k]: k[7:] for k in N if k.startswith("ACCESS_")}[
            self.fields.get("ACCESS", N["ACCESS_WRITE"])]

    def result(self):
        output = b""
        while True:
            kind, fields = unpack(self.cell.recv(65536))
            if kind in ("OUTPUT", "BYTES"):
                output += fields["DATA"]
            elif kind in ("RESULT", None):
                return fields, output

    def close(self):
        if self.cell:
            self.cell.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Broker:
    """A broker of our own, with `settings` over the defaults."""

    def __init__(self, start=True, folder=None, **settings):
        self.folder = folder or tempfile.mkdtemp(prefix="broker-test-")
        self.state = os.path.join(self.folder, "state")
        self.base = settings.pop("IL_BASE_DIR",
                                 os.path.join(self.folder, "base"))
        self.path = self.socket_of("worker")
        self.log = os.path.join(self.folder, "log")
        self.settings = settings
        self.process = None
        self.asked = []
        if start:
            self.start()

    def environment(self, more):
        env = {"PATH": os.environ["PATH"], "IL_STATE_DIR": self.state,
               "IL_BASE_DIR": self.base, "SANDBOX_IMAGE": IMAGE,
               "DOCKER_BINARY": DOCKER, "SANDBOX_PULL_ON_STARTUP": "0",
               "IL_TUNE_DERIVE": "0",
               "IL_QUOTA": "16m", "IL_TUNE_FILES": "100000", "IL_PIP_QUOTA": "32m",
               "IL_TUNE_API_WARM": "0", "IL_TUNE_SPARE_CELLS": "0",
               "IL_STOP_SECONDS": "0"}
        for key in ("DOCKER_HOST", "HOME", "ASAN_OPTIONS", "DOCKER_CONFIG"):
            if key in os.environ:
                env[key] = os.environ[key]
        env.update(self.settings)
        env.update(more)
        return env

    def start(self, **more):
        """Start it and wait until it listens."""
        before = self.logged().count("serving ")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-v"], env=self.environment(more), stdin=log,
                stdout=log, stderr=log, cwd="/")
        self.wait_log("serving ", before + 1)

    def wait_log(self, text, count=1, patience=PATIENCE):
        """Until the log holds text so often."""
        end = time.monotonic() + patience
        while self.logged().count(text) < count:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("no %r in the log:\n%s"
                                   % (text, self.logged()))
            time.sleep(0.01)

    def logged(self):
        try:
            with open(self.log, errors="replace") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def instance(self):
        with open(os.path.join(self.state, "instance")) as file:
            return file.read()

    def containers(self):
        """Ids of all containers of this broker."""
        return subprocess.run(
            [os.environ.get("DOCKER_BINARY", "docker"), "ps", "-aq",
             "--no-trunc", "--filter",
             "label=inline.instance=" + self.instance()],
            stdout=subprocess.PIPE, check=True).stdout.decode().split()

    def wait_no_container(self, patience=PATIENCE):
        """Seconds until the engine has none of ours."""
        began = time.monotonic()
        ids = self.containers()
        if ids:
            subprocess.run([DOCKER, "wait"] + ids, timeout=patience,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        while self.containers():
            if time.monotonic() - began > patience:
                raise RuntimeError("containers are left")
        return time.monotonic() - began

    def folders(self):
        """What is in IL_BASE_DIR, but for the counter of users."""
        return sorted(set(os.listdir(self.base)) - {".uids"})

    # ---- asking ----

    def socket_of(self, program):
        return os.path.join(self.state, "broker", program, "lease.sock")

    def ask(self, packet, program="worker"):
        asked = Asked(self.socket_of(program), packet)
        self.asked.append(asked)
        return asked

    def ask_lease(self, n, cls="user", lease_ms=60000, access=None,
                  version=None, keep=None):
        """access: WRITE (when it is not said), TIDY, ANY or LOOK."""
        fields = [("CLASS", cls), ("SANDBOX", sandbox_id(n)),
                  ("LEASE_MS", lease_ms), ("KEEP", keep)]
        if access is not None:
            fields.append(("ACCESS", N["ACCESS_" + access]))
        if version is not None:
            fields.append(("INTERPRETER", version))
        return self.ask(pack("LEASE", *fields))

    def ask_api(self, interpreter=None, cls="api", lease_ms=60000,
                imports=0):
        """A lease for an interpreter, not for a sandbox."""
        fields = [("CLASS", cls), ("LEASE_MS", lease_ms), ("IMPORTS", imports)]
        if interpreter is not None:
            fields.append(("INTERPRETER", interpreter))
        return self.ask(pack("LEASE", *fields), "api")

    def lease_api(self, interpreter=None, cls="api", lease_ms=60000,
                  imports=0):
        asked = self.ask_api(interpreter, cls, lease_ms, imports)
        kind, fields = asked.answer()
        if kind != "GRANTED":
            raise RuntimeError("%s %s" % (kind, fields))
        return asked

    def lease(self, n, cls="user", lease_ms=60000, access=None, version=None):
        """A granted lease, or an exception."""
        asked = self.ask_lease(n, cls, lease_ms, access, version)
        kind, fields = asked.answer()
        if kind != "GRANTED":
            raise RuntimeError("%s %s" % (kind, fields))
        return asked

    def refusal(self, n, cls="user", access=None, version=None):
        """The name of the refusal, or GRANTED (and the lease is closed)."""
        asked = self.ask_lease(n, cls, access=access, version=version)
        kind, fields = asked.answer()
        asked.close()
        return refusal_name(fields) if kind == "REFUSED" else kind

    def wait_granted(self, n, patience=PATIENCE):
        """Until a lease is granted; False when it never is."""
        end = time.monotonic() + patience
        while self.refusal(n) != "GRANTED":
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def create(self, n, quota=16 * MIB, files=200):
        asked = self.ask(pack("CREATE", ("SANDBOX", sandbox_id(n)),
                              ("QUOTA_BYTES", quota), ("QUOTA_FILES", files)))
        kind, fields = asked.answer()
        asked.close()
        return refusal_name(fields) if kind == "REFUSED" else kind

    def create_packages(self, n, version):
        asked = self.ask(pack("CREATE", ("SANDBOX", sandbox_id(n)),
                              ("INTERPRETER", version)))
        kind, fields = asked.answer()
        asked.close()
        return refusal_name(fields) if kind == "REFUSED" else kind

    def reserve(self, size):
        return self.ask(pack("RESERVE", ("SIZE", size)), "api")

    def remove(self, n):
        asked = self.ask(pack("REMOVE", ("SANDBOX", sandbox_id(n))))
        kind, fields = asked.answer()
        asked.close()
        return refusal_name(fields) if kind == "REFUSED" else kind

    def status(self):
        asked = self.ask(pack("STATUS"))
        _, fields = asked.answer()
        asked.close()
        return fields

    def wait_status(self, patience=PATIENCE, **wanted):
        """Until the status says so; seconds."""
        began = time.monotonic()
        while True:
            fields = self.status()
            if all(fields[k] == v for k, v in wanted.items()):
                return time.monotonic() - began
            if time.monotonic() - began > patience:
                raise RuntimeError("status %s, wanted %s" % (fields, wanted))
            time.sleep(0.01)

    def wait_until(self, so, patience=PATIENCE):
        """Until the status is so; it."""
        end = time.monotonic() + patience
        while not so(fields := self.status()):
            if time.monotonic() > end:
                raise RuntimeError("status %s" % fields)
            time.sleep(0.01)
        return fields

    # ---- the end ----

    def stop(self, patience=PATIENCE):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def close(self):
        for asked in self.asked:
            asked.close()
        if self.process and self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                note("the broker did not end")
        try:
            ids = self.containers()
            if ids:
                subprocess.run([DOCKER, "rm", "-f", "-v"] + ids,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError):
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print("# " + self.logged().replace("\n", "\n# "))
        self.close()


class Disk:
    """A small ext4 of its own, on a loop device; gone at the end."""

    def __init__(self, mib, files=None):
        """files: how many there can be, if not as many as is usual."""
        self.image = tempfile.mktemp(prefix="broker-disk-", dir="/tmp")
        self.path = self.image + ".mnt"
        self.mib = mib
        self.options = [] if files is None else ["-N", str(files)]

    def __enter__(self):
        with open(self.image, "w") as file:
            file.truncate(self.mib * MIB)
        os.mkdir(self.path)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", *self.options,
                        self.image],
                       check=True)
        subprocess.run(["mount", "-o", "loop,discard", self.image, self.path],
                       check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path])
        os.rmdir(self.path)
        os.remove(self.image)

    def free(self):
        fs = os.statvfs(self.path)
        return fs.f_bavail * fs.f_frsize

    def fill(self, leave, name="others"):
        """Let somebody else take all but so many bytes."""
        with open(os.path.join(self.path, name), "wb") as file:
            piece, at = 256 * MIB, 0
            while piece >= 4096:
                try:
                    if self.free() - leave < piece:
                        raise OSError
                    os.posix_fallocate(file.fileno(), at, piece)
                    at += piece
                except OSError:
                    piece //= 2


# ---- TAP ----

count = 0
failed = 0


def ok(good, name):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, name), flush=True)
    return good


def is_(got, want, name):
    if not ok(got == want, name):
        print("# got  %r\n# want %r" % (got, want), flush=True)


def note(text):
    print("# " + str(text).replace("\n", "\n# "), flush=True)


def main(*tests):
    """Run them all; one that raises is a failure, and the others go on."""
    for test in tests:
        try:
            test()
        except Exception:
            ok(False, test.__name__ + " ran to its end")
            note(traceback.format_exc())
    print("1..%d" % count, flush=True)
    sys.exit(1 if failed else 0)
