# SPDX-License-Identifier: MIT
"""What the file systems of sandboxes have come to."""
import os
import re
import subprocess


def damage(b):
    """What is wrong with the images, once nobody has them mounted."""
    found = []
    for folder in sorted(os.listdir(b.base)):
        if not re.fullmatch("[0-9a-f]{32}", folder):
            continue
        for image in ("workspace.ext4", "packages-3.11.ext4"):
            path = os.path.join(b.base, folder, image)
            head = subprocess.run(["dumpe2fs", "-h", path],
                                  stdout=subprocess.PIPE, check=True,
                                  stderr=subprocess.DEVNULL).stdout.decode()
            if "FS Error count" in head or "with errors" in head:
                found.append((folder, image, "errors noted"))
            check = subprocess.run(["e2fsck", "-f", "-n", path],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
            if check.returncode != 0:
                found.append((folder, image, check.stdout.decode()))
    return found
