#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All SQL is prepared against the schema that the migrations make."""

import re
import sqlite3

from source import check, files, finish, read


def schema():
    """An empty database of the newest version."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    for path in files(".sql"):
        if path.startswith("sql/migrations/"):
            db.executescript(read(path))
    return db


def columns(match):
    """What @job and @:job stand for: sql/embed.awk does the same."""
    colon, word = match.groups()
    rows = re.findall(rf"^{word.upper()}\([^,]*, *(\w+)", read(
        "sandbox/store/columns.def"), re.MULTILINE)
    return ", ".join(colon + row for row in rows)


def statements(path):
    """(name, text) of a file with `-- name:` lines."""
    parts = re.split(r"^-- name: *(\S+) *$",
                     re.sub(r"@(:?)([a-z_]+)", columns, read(path)),
                     flags=re.MULTILINE)
    return zip(parts[1::2], parts[2::2])


def without_parameters(text):
    """The named parameters, as a dictionary of NULLs."""
    plain = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", text)
    return dict.fromkeys(re.findall(r"[:@$](\w+)", plain))


def unprepared(db):
    for path in files(".sql"):
        if re.fullmatch(r"sql/[^/]+\.sql", path):
            for name, text in statements(path):
                if text.split()[0:1] in (["PRAGMA"], ["BEGIN"]):
                    continue
                try:
                    db.execute("EXPLAIN " + text.strip().rstrip(";"),
                               without_parameters(text)).fetchall()
                except sqlite3.Error as error:
                    yield f"{path}: {name}: {error}"


def unnamed():
    for path in files(".sql"):
        if re.fullmatch(r"sql/[^/]+\.sql", path):
            if not list(statements(path)):
                yield f"{path}: has no `-- name:`"


def sql_in_c():
    word = re.compile(
        r'"\s*(SELECT\s|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|'
        r'CREATE\s+TABLE|PRAGMA\s)')
    for path in files(".c", ".h", tests=False):
        for number, line in enumerate(read(path).split("\n"), 1):
            if word.search(line):
                yield f"{path}:{number}: SQL belongs into sql/"


def loose_tables(db):
    for name, text in db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite_%'"):
        if not re.search(r"\)\s*(\w+\s+\w+,\s*)?STRICT", text):
            yield f"table {name} is not STRICT"


database = schema()
check("every statement can be prepared", unprepared(database))
check("every statement file has names", unnamed())
check("SQL stands in sql/ only", sql_in_c())
check("every table is STRICT", loose_tables(database))
finish()
