# SPDX-License-Identifier: MIT
"""A docker that fails, hangs or is slow on order: fake-docker, steered."""
from brokerlib import *

REAL = shutil.which(DOCKER) or DOCKER


class Fake:
    """A folder that steers fake-docker."""

    def __init__(self, **how):
        self.folder = tempfile.mkdtemp(prefix="broker-fake-")
        os.environ.update(FAKE=self.folder, REAL_DOCKER=REAL)
        self.settings = {"DOCKER_BINARY": os.path.join(HERE, "fake-docker"),
                         "FAKE": self.folder, "REAL_DOCKER": REAL}
        self.set(**how)

    def set(self, **how):
        for what, mode in how.items():
            with open(os.path.join(self.folder, what + ".new"), "w") as file:
                file.write(mode)
            os.rename(os.path.join(self.folder, what + ".new"),
                      os.path.join(self.folder, what))

    def calls(self):
        try:
            with open(os.path.join(self.folder, "calls")) as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def wait_called(self, what, count=1):
        """Until docker has been called for it so often."""
        end = time.monotonic() + PATIENCE
        while self.calls().count(what) < count:
            if time.monotonic() > end:
                raise RuntimeError("docker %s was not called" % what)
            time.sleep(0.01)

    def close(self):
        shutil.rmtree(self.folder)
