#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""README, manual page and example agree with the table in the code."""

import json
import os
import re
import subprocess

from source import ROOT, check, files, finish, read, words_of

ILCTL = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")),
                     "bin", "ilctl")
MANUAL = "sandbox/base/inline.conf.5"
SLASH = 1  # types of commands
SUB_GROUP = 2
README_KEYS_MAX = 12
README_LINES_MAX = 130
ROOM_WORDS_MAX = 400
WORDS_MAX = 30000  # of all, without .github
DECISION_LINES_MAX = 4
# The page for all, and the map with its glossary.
LONGER = {"README.md", "sandbox/README.md"}
SETTINGS = "systemd/INSTALL.md"
GLOSSARY_MAX = 25
CELL_MAX = 40
PICTURES = ".github/pictures/"
PICTURE_MAX = 70000  # bytes
BROWSER_TEST = "tests/e2e/browser.t"
THIS = "tests/lint/docs.t"
SPOKEN = (".c", ".h", ".py", ".t", ".md", ".sh", ".sql", ".5", ".8", ".conf",
          ".service", ".json", "GNUmakefile")
# context, batch, slot, run process, reason, mount table, supervisor
PRIVATE = re.compile(r"\b(?:[a-z]+_)*(?:desk|crowd|seat|inmate|hindrance|"
                     r"grounds|keeper)s?(?:_[a-z]+)*\b", re.I)


def printed(command):
    """What `ilctl <command>` prints."""
    try:
        return subprocess.run([ILCTL, command], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Bail out! ilctl {command}: {error}")
        raise SystemExit(1) from error


def keys(rows):
    found = []
    for row in rows:
        match = re.match(r"\|\s*`?([A-Z][A-Z_]+)`?\s*\|", row)
        if match:
            found.append(match.group(1))
    return found


def cells(row):
    """The three columns of a row, as plain words."""
    return [plain(cell) for cell in row.strip("|").split("|")]


def plain(text):
    """Text without marks and without what only sets it apart, to compare."""
    return " ".join(re.sub(r"[`()]", "", text).lower().split())


def wrong_in_table(rows):
    """The page for installing has the keys that people change, word for word."""
    described = [line for line in read(SETTINGS).split("\n") if keys([line])]
    if not 0 < len(described) <= README_KEYS_MAX:
        yield f"{SETTINGS} describes {len(described)} keys"
    for line in described:
        if line not in rows:
            yield f"{SETTINGS}: `ilctl config` prints no such row: {line}"


def registered():
    """Each slash command as people type it: `/il write name [content]`.  A
    short form has no row of its own.
    """
    root, *others = json.loads(printed("commands"))
    found = []
    for sub in root["options"]:
        if sub["type"] == SUB_GROUP:
            found += [(f"/il {sub['name']} ", one) for one in sub["options"]]
        else:
            found.append(("/il ", sub))
    names = {command["name"] for _, command in found}
    found += [("/", other) for other in others
              if other["type"] == SLASH and other["name"] not in names]
    for prefix, command in found:
        words = [option["name"] if option.get("required") else
                 f"[{option['name']}]" for option in command.get("options", ())]
        yield prefix + " ".join([command["name"], *words])


def wrong_commands():
    told = [name for cell in re.findall(r"^\| (`/[^|]*) \|",
                                        read("README.md"), re.M)
            for name in re.findall(r"`(/[^`]*)`", cell)]
    if told != list(registered()):
        yield f"README.md has {told}, registered are {list(registered())}"


def manual_entries():
    """What inline.conf(5) says of each key, as plain words."""
    text = read(MANUAL).split(".Sh KEYS", 1)[1].split("\n.Sh ", 1)[0]
    text = re.sub(r"^\.(?:El|Ss|Bl)\b.*", "", text, flags=re.M)
    entries = {}
    for entry in text.split(".It Ev ")[1:]:
        key, said = entry.split("\n", 1)
        said = re.sub(r"^\.(?:Pq )?[A-Z][a-z] ", "", said, flags=re.M)
        said = re.sub(r" ([,;:.]+)$", r"\1", said, flags=re.M)
        said = said.replace("\\(aq", "'").replace("\\-", "-")
        entries[key] = plain(said.replace("\\&", ""))
    return entries


def wrong_in_manual(rows):
    """inline.conf(5) has all keys in the table's order, each with what it does
    and, at its end, the default.
    """
    entries = manual_entries()
    if list(entries) != keys(rows):
        yield f"{MANUAL}: has {list(entries)}, the table {keys(rows)}"
        return
    for row in rows:
        key, default, meaning = cells(row)
        said = entries[key.upper()]
        if not said.endswith(f"default: {default or 'empty'}."):
            yield f"{MANUAL}: {key.upper()}: the default is {default}: {said}"
        if meaning not in said:
            yield f"{MANUAL}: {key.upper()}: lacks: {meaning}: {said}"


def tests_that_are_gone():
    for path in "tests/README.md", "sandbox/DESIGN.md":
        for name in re.findall(r"`([a-z0-9_]+/[a-z0-9_]+\.[a-z]+)`",
                               read(path)):
            if not any(os.path.exists(os.path.join(ROOT, folder, name))
                       for folder in ("tests", "sandbox")):
                yield f"{path}: there is no {name}"


def too_long():
    """What a newcomer reads first is short."""
    lines = read("README.md").count("\n")
    if lines > README_LINES_MAX:
        yield f"README.md: {lines} lines"
    glossary = read("sandbox/README.md").split("## Glossary\n", 1)[1]
    words = re.findall(r"^\| ", glossary.split("\n## ")[0], re.M)
    if len(words) - 1 > GLOSSARY_MAX:
        yield f"sandbox/README.md: {len(words) - 1} words in the glossary"


def long_pages():
    """A room's page is read in two minutes; decisions stand apart."""
    pages = {path: words_of(path) for path in files(".md")
             if not path.startswith(".github/")}
    for path, count in pages.items():
        if (path.endswith("README.md") and path not in LONGER and
                count > ROOM_WORDS_MAX):
            yield f"{path}: {count} words"
    if sum(pages.values()) > WORDS_MAX:
        yield f"all pages: {sum(pages.values())} words"


def long_decisions():
    for path in files("DECISIONS.md"):
        for block in read(path).split("\n\n"):
            lines = block.strip("\n").count("\n") + 1
            if block.lstrip().startswith("**") and lines > DECISION_LINES_MAX:
                yield f"{path}: {lines} lines: {block.strip()[:60]}"


def unknown_in_example(rows):
    for line in read("systemd/inline.env.example").split("\n"):
        key = line.split("=")[0]
        if key and not key.startswith("#") and key not in keys(rows):
            yield f"systemd/inline.env.example: unknown {key}"


def long_cells():
    """A table is for looking up; a text is for reading."""
    for path in files(".md"):
        for number, line in enumerate(read(path).split("\n"), 1):
            for cell in line.strip("|").split("|") * line.startswith("|"):
                if len(cell.split()) > CELL_MAX:
                    yield (f"{path}:{number}: a cell of {len(cell.split())} "
                           f"words: {cell[:40]}")


def shown_pictures():
    """Names of the pictures that PICTURES.md and the README show."""
    for path, folder in ((".github/PICTURES.md", "pictures/"),
                         ("README.md", PICTURES)):
        for name in re.findall(r"""(?:\]\(|src=")([^)"]+\.png)[)"]""",
                               read(path)):
            yield name.removeprefix(folder)


def wrong_pictures():
    """What is shown is there and is small, and the browser test takes it."""
    shown = set(shown_pictures())
    there = {path.removeprefix(PICTURES) for path in files(".png")
             if path.startswith(PICTURES)}
    for name in sorted(shown ^ there):
        yield f"{PICTURES}{name}: is " + (
            "not there" if name in shown else "shown nowhere")
    test = read(BROWSER_TEST)
    for name in sorted(shown | there):
        taken = name.removesuffix(".png").removesuffix("-small")
        if f'picture("{taken}")' not in test:
            yield f"{PICTURES}{name}: {BROWSER_TEST} takes no such picture"
    for name in sorted(there):
        size = os.path.getsize(os.path.join(ROOT, PICTURES, name))
        if size > PICTURE_MAX:
            yield f"{PICTURES}{name}: {size} bytes"


def words_of_our_own():
    """Words that this tree had for what the field has a word for."""
    for path in files(*SPOKEN):
        if path.startswith("tests/fuzz/corpus/") or path == THIS:
            continue
        for number, line in enumerate(read(path).split("\n"), 1):
            for found in PRIVATE.findall(line):
                yield f"{path}:{number}: {found}"


settings = [line for line in printed("config").split("\n") if line]
check("ilctl prints a table", [] if len(keys(settings)) > 20 else ["no rows"])
check("the keys that people change are the table's rows, at most "
      f"{README_KEYS_MAX}", wrong_in_table(settings))
check("the README has every command with its options", wrong_commands())
check("inline.conf(5) has every key, what it does and its default",
      wrong_in_manual(settings))
check("the example has no other key", unknown_in_example(settings))
check("the tests that are spoken of exist", tests_that_are_gone())
check("the README and the glossary are short", too_long())
check(f"a room's README has at most {ROOM_WORDS_MAX} words, all pages "
      f"{WORDS_MAX}", long_pages())
check(f"a decision has at most {DECISION_LINES_MAX} lines", long_decisions())
check(f"no cell of a table has over {CELL_MAX} words", long_cells())
check("the pictures are those that are shown, and the browser test takes each",
      wrong_pictures())
check("one word for one thing: the field's", words_of_our_own())
finish()
