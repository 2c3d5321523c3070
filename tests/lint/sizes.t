#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files and functions stay small enough to be read at once."""

import re
import statistics

from source import check, code_lines, files, finish, read

FILE_MAX = 800
HEADER_MAX = 200
FUNCTION_MAX = 100
MAIN_MAX = 60
MEDIAN_MAX = 20
# Longer, with the reason.
LONGER = {
    "sandbox/protocol/frame.h": 438,  # the whole protocol in one place
}
TEST_MAX = 800  # one subject, many cases


def long_files():
    for path in files(".c", ".h", ".py", ".js", ".awk", ".t", ".sh"):
        length = read(path).count("\n")
        limit = HEADER_MAX if path.endswith(".h") else FILE_MAX
        if path.startswith("tests/"):
            limit = TEST_MAX
        limit = LONGER.get(path, limit)
        if length > limit:
            yield f"{path}: {length} lines (at most {limit})"


def functions():
    """(path, name, lines) of every function of the C files."""
    for path in files(".c", tests=False):
        name = start = None
        for number, line in code_lines(path):
            match = re.match(r"([a-z_]\w*)\(", line)
            if match:
                name = match.group(1)
            if line == "{" and name:
                start = number
            elif line == "}" and start:
                yield path, name, number - start - 1
                name = start = None


def long_functions():
    for path, name, lines in functions():
        limit = MAIN_MAX if name == "main" else FUNCTION_MAX
        if lines > limit:
            yield f"{path}: {name} has {lines} lines (at most {limit})"


def long_median():
    median = statistics.median(lines for _, _, lines in functions())
    if median > MEDIAN_MAX:
        yield f"the median function has {median} lines"


def long_makefile():
    length = read("GNUmakefile").count("\n")
    if length > 200:
        yield f"GNUmakefile: {length} lines"


check("no file is too long", long_files())
check("no function is too long", long_functions())
check("the median function is short", long_median())
check("the makefile is short", long_makefile())
finish()
