#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make the C file that holds a file's text: embed.py FILE >FILE.c."""

import os
import sys

name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
with open(sys.argv[1], "rb") as file:
    data = file.read()
print("/* Made by fcgi/contract/embed.py; do not edit. */")
print("#include <stddef.h>\n")
print(f"extern const char {name}[];\nextern const size_t {name}_len;")
print(f"const char {name}[] = {{")
for start in range(0, len(data), 16):
    print("".join(f"{byte}," for byte in data[start:start + 16]))
print("0 };")
print(f"const size_t {name}_len = sizeof({name}) - 1;")
