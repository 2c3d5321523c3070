#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make the C file that holds an image with one program and no other file:
image.py PROGRAM >FILE.c.  The same program gives the same bytes."""

import hashlib
import io
import sys
import tarfile

image = io.BytesIO()
with tarfile.open(fileobj=image, mode="w", format=tarfile.USTAR_FORMAT) as tar:
    with open(sys.argv[1], "rb") as program:
        entry = tarfile.TarInfo("mounter")
        entry.size = program.seek(0, io.SEEK_END)
        entry.mode = 0o555
        program.seek(0)
        tar.addfile(entry, program)
data = image.getvalue()
print("/* Made by sandbox/mounter/image.py; do not edit. */")
print('#include "broker/engine.h"\n')
print('const char mounter_image_id[] = "%s";'
      % hashlib.sha256(data).hexdigest())
print("const char mounter_image[] = {")
for start in range(0, len(data), 16):
    print("".join(f"{byte if byte < 128 else byte - 256}," for byte in
                  data[start:start + 16]))
print("};")
print("const size_t mounter_image_len = sizeof(mounter_image);")
