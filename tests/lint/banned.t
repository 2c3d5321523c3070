#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Functions and habits that this tree does without."""

import re

from source import check, code_lines, files, finish, read

FUNCTIONS = {
    "strcpy": "buf or memcpy", "strcat": "buf", "stpcpy": "buf",
    "strncpy": "buf", "strncat": "buf", "sprintf": "snprintf or buf_addf",
    "vsprintf": "vsnprintf or buf_addv", "gets": "nothing",
    "atoi": "text_parse_int", "atol": "text_parse_int",
    "atoll": "text_parse_int", "atof": "text_parse_*",
    "strtok": "a loop", "alloca": "xmalloc", "system": "process_run",
    "popen": "process_run", "sleep": "a descriptor and poll",
    "usleep": "a descriptor and poll", "nanosleep": "a descriptor and poll",
    "clock_nanosleep": "a descriptor and poll",
    "tmpnam": "mkstemp", "mktemp": "mkstemp", "rand": "getrandom",
    "sqlite3_exec": "db_statement", "sqlite3_mprintf": "db_bind_*",
    "vfork": "process_start", "readdir_r": "readdir",
    "pthread_create": "a process",
}
# Where one of them is right after all.
ALLOWED = {("sandbox/store/db.c", "sqlite3_exec"),       # what is not kept
           ("sandbox/store/db_open.c", "sqlite3_exec")}  # migrations, whole files
CALL = re.compile(r"(?<![\w.>])(" + "|".join(FUNCTIONS) + r")\s*\(")


def banned_calls():
    for path in files(".c", ".h", tests=False):
        for number, line in code_lines(path):
            for match in CALL.finditer(line):
                name = match.group(1)
                if (path, name) in ALLOWED:
                    continue
                yield f"{path}:{number}: {name}(): use {FUNCTIONS[name]}"


def banned_forms():
    forms = {
        r"#\s*pragma\s+once": "#ifndef NAME_H",
        r"\btypedef\s+(struct|enum|union)\b": "struct name",
        r"\bgoto\s+(?!out\b)\w+": "goto out, or a smaller function",
    }
    for path in files(".c", ".h", tests=False):
        for number, line in code_lines(path):
            for form, instead in forms.items():
                if re.search(form, line):
                    yield f"{path}:{number}: use {instead}: {line.strip()}"


def todo_without_issue():
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b(?!.*#[0-9])")
    for path in files(".c", ".h", ".py", ".sh", ".js", ".sql"):
        if path == "tests/lint/banned.t":
            continue
        for number, line in enumerate(read(path).split("\n"), 1):
            if mark.search(line):
                yield f"{path}:{number}: names no issue: {line.strip()}"


def shell_in_python():
    for path in files(".py", ".t"):
        if path == "tests/lint/banned.t":
            continue
        for number, line in enumerate(read(path).split("\n"), 1):
            if re.search(r"shell\s*=\s*True|os\.(system|popen)\(", line) and \
                    not path.startswith("tests/cell/"):
                yield f"{path}:{number}: starts a shell"


check("no banned function is called", banned_calls())
check("no banned form is used", banned_forms())
check("what is to do names its issue", todo_without_issue())
check("no shell is started from Python", shell_in_python())
finish()
