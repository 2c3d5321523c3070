#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What stands where, and in what form."""

import ast
import os
import re
import subprocess

from source import ROOT, check, files, finish, read

TOP = {"fcgi", "sandbox", "nginx", "sql", "tests", "systemd", "GNUmakefile",
       "README.md", "LICENSE"}
PROGRAMS = {"il-fcgi", "il-api", "il-node", "il-worker", "il-sandboxd",
            "ilctl"}
TEXT = (".c", ".h", ".py", ".js", ".css", ".html", ".sh", ".t", ".awk", ".sql",
        ".md", ".json", "GNUmakefile", ".in", ".service", ".socket")


def stray_names():
    for path in files():
        top = path.split("/")[0]
        if top not in TOP and not top.startswith("."):
            yield f"{path}: {top} has no place at the top"


def missing_readmes():
    for folder in sorted({os.path.dirname(p) for p in files(".c", ".py", ".sh",
                                                           ".service")}):
        if not folder.startswith("tests/"):
            if not os.path.exists(os.path.join(ROOT, folder, "README.md")):
                yield f"{folder}: has no README.md"


def missing_manuals():
    """A program's manual page stands beside its main file."""
    mains = {os.path.basename(path)[:-2]: path[:-2]
             for path in files(".c", tests=False)}
    for program in sorted(PROGRAMS):
        if program not in mains:
            yield f"{program}.c is missing"
        elif not os.path.exists(os.path.join(ROOT, mains[program] + ".8")):
            yield f"{mains[program]}.8 is missing"


def not_executable():
    for path in files(".t", ".ci/run", ".sh"):
        if path == "sandbox/setup/env.sh":
            continue  # sourced
        if not os.access(os.path.join(ROOT, path), os.X_OK):
            yield f"{path}: is not executable"


def sloppy_text():
    for path in files(*TEXT):
        if path.startswith("tests/fuzz/corpus/"):
            continue  # bytes, not text
        text = read(path)
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield f"{path}:{number}: ends in blanks"
        if text and not text.endswith("\n"):
            yield f"{path}: has no newline at its end"


def long_lines():
    for path in files(".c", ".h"):
        for number, line in enumerate(read(path).split("\n"), 1):
            if len(line.expandtabs(8)) > 80:
                yield f"{path}:{number}: {len(line.expandtabs(8))} columns"


def without_licence():
    for path in files(".c", ".h", ".def", ".py", ".t", ".sh", ".sql", ".awk",
                      ".conf", ".js", ".css"):
        if "SPDX-License-Identifier: MIT" not in "".join(
                read(path).split("\n")[:2]):
            yield f"{path}: does not name its licence at its head"


def broken_scripts():
    for path in files(".sh", ".t", ".py", ".ci/run"):
        text = read(path)
        if path.endswith(".py") or re.match(r"#!.*python", text):
            try:
                ast.parse(text, path)
            except SyntaxError as error:
                yield str(error)
        elif re.match(r"#!/bin/(ba)?sh", text):
            shell = "bash" if text.startswith("#!/bin/bash") else "sh"
            result = subprocess.run(
                [shell, "-n", os.path.join(ROOT, path)],
                stderr=subprocess.PIPE, text=True)
            if result.returncode != 0:
                yield result.stderr.strip()


check("nothing stray stands at the top", stray_names())
check("each folder has a README.md", missing_readmes())
check("each program has its manual page", missing_manuals())
check("scripts and tests are executable", not_executable())
check("text has no trailing blanks", sloppy_text())
check("C has no line over 80 columns", long_lines())
check("scripts can be parsed", broken_scripts())
check("each source names its licence", without_licence())
finish()
