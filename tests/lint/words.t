#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sentences have a subject, and a name stands for one thing.

    tests/lint/words.t [FOLDER...]      all that is found below these folders
"""

import collections
import os
import re
import sys

from source import ROOT, check, code_lines, files, finish, read

# In percent of all; what is beyond is named, whole.
HEADLESS_MAX = 0.5
SHARED_MAX = 2
# Names of files that a folder says more about.
COMMON = {"README.md", "main.c"}

# A sentence or a label that begins so has no subject, or none with a name,
# where it is no question.
HEADLESS = re.compile(
    r"(?:(?:who|whom|whoever|what|whatever|whose|which|how|nobody|nor|those)"
    r"|one (?:that|who|whose|which)"
    r"|(?:of|for|to|by|from|with|in|on|at) "
    r"(?:such|those|whom|whose|what|who|whoever|whatever|which))\b", re.I)
LITERAL = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
COMMENT = re.compile(LITERAL + r"|/\*(?P<text>.*?)\*/", re.S)
END = re.compile(r"(?<=[.?!:])\s+(?=[A-Z`\"(])|\n\s*(?=[-*] )")
PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|$))+")
# Code, tables and titles are no sentences.
MARKED = re.compile(r"^ *```.*?^ *```|^    [^\n]*$|^\|[^\n]*$|^#[^\n]*$",
                    re.M | re.S)


def prose(path):
    """(line, text) of what a file says in words."""
    text = read(path)
    if path.endswith(".md"):
        yield 1, MARKED.sub(lambda m: "\n" * m[0].count("\n"), text)
        return
    for match in COMMENT.finditer(text):
        if match["text"] is not None:
            yield (text.count("\n", 0, match.start()) + 1,
                   re.sub(r"(?m)^[ \t]*\*", "", match["text"]))


def sentences(path):
    """(line, sentence) of three words or more, without marks of lists."""
    for line, text in prose(path):
        for block in PARAGRAPH.finditer(text):
            first = line + text.count("\n", 0, block.start())
            for part in END.split(block[0]):
                sentence = " ".join(part.split()).lstrip("-* ")
                if sentence.count(" ") >= 2:
                    yield (first + block[0].count(
                        "\n", 0, block[0].find(part)), sentence)


def headless(paths):
    """How many sentences there are, and those without a subject."""
    count, found = 0, []
    for path in paths:
        for line, sentence in sentences(path):
            count += 1
            if HEADLESS.match(sentence) and not sentence.endswith("?"):
                found.append(f"{path}:{line}: {sentence[:100]}")
    return count, found


def functions():
    """{name: [files that define it]}"""
    names = collections.defaultdict(list)
    for path in files(".c", tests=False):
        name = None
        for _, line in code_lines(path):
            match = re.match(r"([a-z_]\w*)\(", line)
            if match:
                name = match[1]
            elif line == "{" and name:
                names[name].append(path)
                name = None
    del names["main"]
    return names


def shared(folders):
    """How many functions there are, and those that share their name."""
    names = functions()
    twice = {name: paths for name, paths in names.items() if len(paths) > 1}
    found = [f"{name}: {', '.join(paths)}"
             for name, paths in sorted(twice.items())
             if any(path.startswith(folders) for path in paths)]
    return (sum(map(len, names.values())), sum(map(len, twice.values())),
            found)


def beyond(count, of, most, found):
    if 100 * count > most * of:
        yield f"{count} of {of}: {100 * count / of:.1f} %, at most {most}"
        yield from found


def same_file_names():
    names = collections.defaultdict(list)
    for path in files(".c", tests=False):
        names[os.path.basename(path)].append(path)
    for name, paths in names.items():
        if len(paths) > 1 and name not in COMMON:
            yield f"{name}: {', '.join(paths)}"


def worded(folders):
    return [path for path in files(".c", ".h", ".def", ".md")
            if path.startswith(folders)]


if len(sys.argv) > 1:
    under = tuple(os.path.relpath(os.path.abspath(name), ROOT)
                  for name in sys.argv[1:])
    print(*headless(worded(under))[1], *shared(under)[2], sep="\n")
    sys.exit()
total, without = headless(worded(""))
check("sentences have a subject",
      beyond(len(without), total, HEADLESS_MAX, without))
total, same, named = shared("")
check("a function's name stands for one function",
      beyond(same, total, SHARED_MAX, named))
check("a file's name stands for one file", same_file_names())
finish()
