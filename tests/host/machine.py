# SPDX-License-Identifier: MIT
"""A virtual machine with Debian, driven over SSH.

    machine = Machine("trixie", disk)
    machine.boot()
    machine.sh("systemctl is-active inline.target")
    machine.cut()           # as when the power fails
    machine.boot()
    machine.shut_down()

It is QEMU without acceleration, so that it runs where no /dev/kvm is: some ten
times slower than the machine it is on.  Its user network brings the guest to
the host's loopback as 10.0.2.2.
"""

import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "standin"))

from ports import free_port  # noqa: E402

BOOT_SECONDS = 600
SSH_SECONDS = 900
MEMORY_MIB = 4096
HOST = "10.0.2.2"       # this machine, as the guest sees it


class MachineError(Exception):
    """The machine did not do as told."""


def overlay(disk, base, kind):
    """Make `disk`, which holds what differs from `base`."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind,
                    "-b", os.path.abspath(base), disk], check=True)


class Machine:
    """One disk, and the processor that runs it while it is booted."""

    def __init__(self, base, disk, folder, key, payload=None):
        """base: a folder of root.sh; disk: a qcow2, None where another
        program runs it; folder: for logs and sockets; payload: a file that
        the guest finds as /dev/vdb.
        """
        self.base, self.disk, self.folder = base, disk, folder
        self.key, self.payload = key, payload
        self.process = None
        self.ports = {}
        # A socket's path is short, and a clone's may not be.
        self.control = os.path.join(
            tempfile.gettempdir(), "inline-host-" + hashlib.sha256(
                os.path.abspath(folder).encode()).hexdigest()[:12])
        os.makedirs(folder, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def path(self, name):
        """A file of this machine's."""
        return os.path.join(self.folder, name)

    # Life

    def boot(self, cache="none"):
        """Start it and wait for its SSH server.

        cache: QEMU's.  "none" keeps what the guest has flushed, whatever
        becomes of QEMU, and may lose what it has not; "unsafe" is faster.
        """
        self.ports = {"ssh": free_port(), "https": free_port()}
        forwards = "".join(
            f",hostfwd=tcp:127.0.0.1:{self.ports[name]}-:{port}"
            for name, port in (("ssh", 22), ("https", 443)))
        command = [
            "qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-smp", "2",
            "-accel", "tcg,thread=multi,tb-size=512",
            "-m", str(MEMORY_MIB), "-display", "none", "-no-reboot",
            "-serial", f"file:{self.path('serial.log')}",
            "-kernel", os.path.join(self.base, "vmlinuz"),
            "-initrd", os.path.join(self.base, "initrd"),
            "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0",
            "-drive", f"file={self.disk},if=virtio,format=qcow2,"
                      f"cache={cache},discard=unmap",
            "-device", "virtio-rng-pci",
            "-nic", "user,model=virtio-net-pci" + forwards]
        if self.payload:
            command += ["-drive", f"file={self.payload},if=virtio,"
                                  "format=raw,readonly=on"]
        with open(self.path("qemu.log"), "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        if os.environ.get("HOST_NICE"):
            # Its session is what the kernel weighs, not its threads.
            with open(f"/proc/{self.process.pid}/autogroup", "w",
                      encoding="ascii") as file:
                file.write(os.environ["HOST_NICE"])
        self._await_ssh()

    def _await_ssh(self):
        """SSH has to be asked: nothing on this side tells that it is up."""
        end = time.monotonic() + BOOT_SECONDS
        while not self._answers():
            if self.process.poll() is not None:
                raise MachineError(f"QEMU ended: see {self.path('qemu.log')}")
            if time.monotonic() > end:
                raise MachineError("no SSH server after "
                                   f"{BOOT_SECONDS} s: see "
                                   f"{self.path('serial.log')}")
            time.sleep(1)

    def _answers(self):
        done = subprocess.run([*self._ssh(), "true"], capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def cut(self):
        """The power fails."""
        if self.process is None:
            return
        process, self.process = self.process, None
        self._hang_up()
        process.kill()
        process.wait()

    def shut_down(self):
        """An orderly end."""
        process, self.process = self.process, None
        subprocess.run([*self._ssh(), "systemctl", "poweroff"], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True)
        self._hang_up()
        ended = os.pidfd_open(process.pid)
        try:
            clean = select.select([ended], [], [], BOOT_SECONDS)[0]
        finally:
            os.close(ended)
        if not clean:
            process.kill()
        process.wait()
        if not clean:
            raise MachineError("it did not power off")

    def _hang_up(self):
        """End the SSH connection that calls share."""
        subprocess.run([*self._ssh()[:-1], "-O", "exit", "root@127.0.0.1"],
                       check=False, capture_output=True)

    # Commands

    def _ssh(self):
        return ["ssh", "-q", "-i", self.key, "-p", str(self.ports["ssh"]),
                "-o", "StrictHostKeyChecking=no",
                "-o", "UserKnownHostsFile=/dev/null",
                "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=30",
                "-o", "BatchMode=yes", "-o", "ControlMaster=auto",
                "-o", f"ControlPath={self.control}",
                "-o", "ControlPersist=600", "root@127.0.0.1"]

    def run(self, script, feed="", seconds=SSH_SECONDS):
        """Run a script by the guest's bash; returns (status, output), with
        standard error among it.
        """
        done = subprocess.run(
            [*self._ssh(), "bash", "-c", _quoted(f"{{ {script}\n}} 2>&1")],
            input=feed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, errors="replace", timeout=seconds, check=False)
        return done.returncode, done.stdout

    def sh(self, script, feed="", seconds=SSH_SECONDS):
        """The output of a script, which must succeed."""
        status, text = self.run(script, feed, seconds)
        assert status == 0, f"{script}: status {status}: {text[-2000:]}"
        return text.strip()

    def python(self, code, *arguments, seconds=SSH_SECONDS):
        """The output of a Python program in the guest."""
        words = " ".join(map(_quoted, arguments))
        return self.sh("python3 - " + words, code, seconds)

    def start(self, script):
        """Run a script beside; returns its Popen, whose output is a pipe."""
        return subprocess.Popen(
            [*self._ssh(), "bash", "-c", _quoted(script)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, errors="replace")

    def write(self, path, text, mode="644"):
        """Put a file there."""
        self.sh(f"install -D -m {mode} /dev/stdin {path}", text)


def _quoted(text):
    return "'" + str(text).replace("'", "'\\''") + "'"


def clean(folder):
    """Remove a machine's folder."""
    shutil.rmtree(folder, ignore_errors=True)


def end_on_signals():
    """A signal ends this program as an exception does, so that no QEMU is
    left.
    """
    def leave(number, _):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
