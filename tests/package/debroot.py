# SPDX-License-Identifier: MIT
"""A copy of this machine's root in which packages are installed: an overlay of
our own mount namespace, gone with this process.  dpkg, apt and all else in it
are real; `systemctl` only writes down what it is told, as nothing is booted here,
but for what it does to files.
"""

import atexit
import ctypes
import os
import subprocess
import tempfile

from tap import Skip

ENV = "/etc/inline/inline.env"
TOLD = "/tmp/told"              # what systemctl was told
ACTIVE = "/tmp/active"          # names of units that are active
RESTARTED = "/tmp/restarted"    # the database when the target was restarted
ENABLED = "/etc/systemd/system/multi-user.target.wants/inline.target"

SYSTEMCTL = f"""#!/bin/sh
echo "$@" >>{TOLD}
case " $* " in
*" is-active "*)
	for last; do :; done
	grep -qsx "$last" {ACTIVE} ;;
*" is-enabled "*)
	if [ -L {ENABLED} ]; then echo enabled; else echo disabled; false; fi ;;
*" try-restart "*) cp /var/lib/inline/inline.db {RESTARTED} 2>/dev/null || : ;;
*" preset "*) exec /usr/bin/systemctl.real "$@" ;;
esac
"""

# The real engine, but for images: those that are derived are not ours alone.
DOCKER = """#!/bin/sh
[ "$1" != images ] || exit 0
exec /usr/bin/docker "$@"
"""


def mount(*words):
    """Run mount(8)."""
    subprocess.run(["mount", *words], check=True, capture_output=True)


class Root:
    """The copy."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x20000):       # CLONE_NEWNS
            raise Skip("this needs root, for a mount namespace")
        mount("--make-rprivate", "/")
        self.folder = tempfile.mkdtemp(prefix="inline-package-")
        self.path = os.path.join(self.folder, "root")
        layers = os.path.join(self.folder, "layers")
        for one in self.path, layers:
            os.mkdir(one)
        atexit.register(self.close)
        mount("-t", "tmpfs", "-o", "size=512m,mode=755", "inline-package",
              layers)
        for one in "upper", "work":
            os.mkdir(os.path.join(layers, one))
        mount("-t", "overlay", "inline-package", "-o",
              f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work",
              self.path)
        mount("-t", "proc", "proc", self.at("/proc"))
        mount("--rbind", "/dev", self.at("/dev"))
        for one in "/run", "/tmp":
            mount("-t", "tmpfs", "-o", "mode=1777", "inline-package",
                  self.at(one))
        self.clear()

    def close(self):
        """Unmount it.  Folders are removed only if nothing is in them."""
        for one in self.path, os.path.join(self.folder, "layers"):
            subprocess.run(["umount", "--recursive", "--lazy", one],
                           capture_output=True, check=False)
            os.rmdir(one)
        os.rmdir(self.folder)

    def clear(self):
        """Nothing of an Inline that this machine may have."""
        self.sh("for p in inline-standin inline; do "
                "! dpkg -s $p >/dev/null 2>&1 || dpkg --purge $p; done; "
                "rm -rf /etc/inline /var/lib/inline* /usr/sbin/policy-rc.d "
                "/usr/local/lib/inline /usr/local/bin/ilctl "
                "/usr/local/lib/systemd/system/inline.target "
                "/etc/apparmor.d/inline-api*; mkdir -p /run/systemd/system")
        os.rename(self.at("/usr/bin/systemctl"),
                  self.at("/usr/bin/systemctl.real"))
        self.write("/usr/bin/systemctl", SYSTEMCTL, 0o755)
        self.write("/usr/local/bin/docker", DOCKER, 0o755)

    def at(self, path):
        """Where a path of the copy is for us."""
        return self.path + path

    def write(self, path, text, mode=0o644):
        """Make a file."""
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        if os.path.lexists(self.at(path)):
            os.unlink(self.at(path))
        with open(self.at(path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.at(path), mode)

    def read(self, path):
        """The text of a file; "" where there is none."""
        try:
            with open(self.at(path), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def there(self, path):
        """Is there such a file?"""
        return os.path.lexists(self.at(path))

    def run(self, script, seconds=120):
        """Run a script in it, with nothing to be asked on; (status, output).
        """
        done = subprocess.run(
            ["chroot", self.path, "/bin/sh", "-c", script], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=seconds, check=False,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                         "/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"})
        return done.returncode, done.stdout

    def sh(self, script, seconds=120):
        """The output of a script that must succeed."""
        status, text = self.run(script, seconds)
        assert status == 0, f"{script}: status {status}:\n{text}"
        return text

    def told(self):
        """What systemctl was told since the last call, without questions."""
        lines = [line.replace("--quiet ", "").replace("--system ", "")
                 for line in self.read(TOLD).splitlines()
                 if "is-" not in line and "preset" not in line]
        if self.there(TOLD):
            os.unlink(self.at(TOLD))
        return lines

    def dpkg(self, *words):
        """Run dpkg; its output.  man-db's index is not of interest."""
        return self.sh("dpkg --no-triggers --force-unsafe-io " +
                       " ".join(words))
