# SPDX-License-Identifier: MIT
"""Drives a real cell without the broker: starts the container, plays broker on
the control socket and client on leases.

    with Cell() as cell:
        with cell.lease() as lease:
            lease.run("print(1)").stdout
"""

import array
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
SOURCE = os.path.join(BUILD, "lib", "cell")  # as it is installed
IMAGE = os.environ.get("SANDBOX_IMAGE", "ilt:3.11")
DOCKER = os.environ.get("DOCKER_BINARY", "docker")
PATIENCE = 60.0
USER = 0x78000001     # of the host: a sandbox has such a number


sys.path.append(os.path.join(ROOT, "tests", "standin"))     # for tap, wire
import wire  # noqa: E402
from wire import N as F, pack  # noqa: E402

N = types.SimpleNamespace(**F)      # N.REASON_EXIT, ...


def unpack(packet):
    """(kind, {tag: value}); what the header calls text is one."""
    kind, fields = wire.unpack(packet)
    return kind, {tag: value.decode() if wire.TYPES[tag] == "text" else value
                  for tag, value in fields.items()}


class Result:
    """All that came back for one request."""

    def __init__(self):
        self.output = b""       # both streams, as it came
        self.stdout = b""
        self.stderr = b""
        self.frames = []
        self.entries = []
        self.files = {}
        self.left_out = {}
        self.fields = {}

    def __getattr__(self, name):
        return self.__dict__["fields"].get(name.upper())

    def __repr__(self):
        return "<%r %r %r>" % (self.fields, self.output[:2000],
                               self.stderr[-3000:])


class Lease:
    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, kind, *fields):
        self.sock.send(pack(kind, *fields))

    def send_part(self, part, data):
        for at in range(0, len(data), F["FRAME_CHUNK"]):
            self.send("BYTES", ("PART", F["PART_" + part]),
                      ("DATA", data[at:at + F["FRAME_CHUNK"]]))

    def start(self, op, source=None, stdin=b"", content=b"", inputs=(),
              args=(), **fields):
        head = [("OP", F["OP_" + op])]
        head += [(k.upper(), v) for k, v in fields.items()]
        head += [("ARG", arg) for arg in args]
        self.send("REQUEST", *head)
        for part, data in (("SOURCE", source), ("STDIN", stdin),
                           ("CONTENT", content)):
            if isinstance(data, str):
                data = data.encode()
            self.send_part(part, data or b"")
        for path, data in inputs:
            self.send("INPUT", ("PATH", path))
            self.send_part("CONTENT", data)
        self.send("GO")

    def frame(self):
        packet = self.sock.recv(F["FRAME_MAX"] + 1)
        if not packet:
            raise EOFError("the cell closed the lease")
        return unpack(packet)

    def finish(self):
        result, path = Result(), None
        while True:
            kind, fields = self.frame()
            result.frames.append((kind, fields))
            if kind == "OUTPUT":
                result.output += fields["DATA"]
                if fields["STREAM"] == 1:
                    result.stdout += fields["DATA"]
                else:
                    result.stderr += fields["DATA"]
            elif kind == "ENTRY":
                result.entries.append(fields)
            elif kind == "FILE":
                path = fields["PATH"]
                result.files[path] = b""
            elif kind == "BYTES":
                result.files[path] += fields["DATA"]
            elif kind == "LEFT_OUT":
                result.left_out[fields["PATH"]] = fields["WHY"]
            elif kind == "RESULT":
                result.fields = fields
                return result

    def ask(self, op, **fields):
        self.start(op, **fields)
        return self.finish()

    def start_run(self, source=None, **fields):
        fields.setdefault("wall_ms", 20000)
        fields.setdefault("output_max", 1000000)
        self.start("RUN", source=source, **fields)

    def run(self, source=None, **fields):
        self.start_run(source, **fields)
        return self.finish()


class Cell:
    """A container.  options: more words for `docker run`."""

    def __init__(self, options=(), workspace=True, memory="256m", pids=64,
                 workspace_size="64m", inodes=4096, cpus="1.0", image=IMAGE,
                 network="none", site=None, python="python3", kind=None,
                 seccomp="seccomp.json"):
        self.folder = tempfile.mkdtemp(prefix="cell-test-")
        self.name = "cell-test-" + os.path.basename(self.folder)[10:].replace(
            "_", "-")
        own = "uid=%d,gid=%d,nosuid,nodev" % (USER, USER)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.chmod(self.folder, 0o755)
        listener.bind(self.folder + "/cell.sock")
        os.chmod(self.folder + "/cell.sock", 0o666)
        listener.listen(1)
        listener.settimeout(PATIENCE)
        argv = [DOCKER, "run", "-d", "--rm", "--pull", "never", "--init=false",
                "--network", network, "--read-only", "--user", "%d:%d" % (USER, USER),
                "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
                "--security-opt", "seccomp=%s/%s" % (os.path.dirname(SOURCE), seccomp),
                "--ipc", "private", "--log-driver", "none", "--workdir", "/",
                "--name", self.name, "--label", "inline.test=cell",
                "--memory", memory, "--memory-swap", memory, "--cpus", cpus,
                "--pids-limit", str(pids), "--ulimit", "nofile=1024:1024",
                "--ulimit", "core=0", "--ulimit", "msgqueue=0:0", "--shm-size", "16m",
                "--env", "LANG=C.UTF-8", "--env", "LD_BIND_NOW=1",
                "--tmpfs", "/tmp:mode=1777,size=32m,nr_inodes=4096,nosuid,nodev",
                "--tmpfs", "/code:size=20m,nr_inodes=16,noexec,mode=0755," + own,
                "-v", self.folder + ":/run/inline:ro",
                "-v", SOURCE + ":/run/cell:ro"]
        if site:
            argv += ["-v", site + ":/site"]
        elif workspace:
            argv += ["--tmpfs", "/workspace:exec,size=%s,nr_inodes=%d,mode=0755,%s"
                     % (workspace_size, inodes, own)]
        argv += list(options)
        argv += ["--entrypoint", python, image, "-s", "-u", "-B",
                 "/run/cell/cell.py", "/run/inline/cell.sock"]
        argv += [kind] if kind else []
        try:
            done = subprocess.run(argv, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.decode())
            self.control, _ = listener.accept()
            self.control.settimeout(PATIENCE)
            shutil.rmtree(self.folder)      # as the broker does
            self.ready = unpack(self.control.recv(65536))
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if hasattr(self, "control"):
            self.control.close()
        subprocess.run([DOCKER, "rm", "-f", "-v", self.name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def lease(self, kind="SERVE", **terms):
        """terms: fields of the frame by which the broker gives it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.sendmsg([pack(kind, *((tag.upper(), value)
                                         for tag, value in terms.items()))], [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS,
             array.array("i", [theirs.fileno()]))])
        theirs.close()
        return Lease(ours)

    def idle(self):
        """Wait for IDLE on the control socket."""
        return unpack(self.control.recv(65536))[0] == "IDLE"

    def spare(self):
        """Wait for the process of the next run, which PID 1 forks ahead: its
        host pid.  Whether it is ready by then is no matter."""
        root = self.root_pid()
        wait_until(lambda: len(self.processes()) == 2)
        return max(set(self.processes()) - {root})

    def run_ahead(self, *args, **fields):
        """A run in that process: the first of a lease of its own."""
        self.spare()
        with self.lease() as lease:
            told = lease.run(*args, **fields)
        assert self.idle()
        return told

    def root_pid(self):
        """PID 1 as the host sees it."""
        return int(subprocess.check_output(
            [DOCKER, "inspect", "--format", "{{.State.Pid}}", self.name]))

    def processes(self):
        """Host pids of everything in the container, the oldest first: numbers
        begin anew when they are used up."""
        out = subprocess.check_output([DOCKER, "top", self.name, "-eo", "pid"])
        return sorted(map(int, out.split()[1:]), key=started)

    def is_running(self):
        done = subprocess.run([DOCKER, "inspect", self.name],
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return done.returncode == 0


def started(pid):
    """When a process was, in ticks; 0: it is gone."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def wait_until(condition, seconds=PATIENCE):
    """Poll a condition that has no descriptor to wait on."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.02)
