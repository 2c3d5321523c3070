#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""How large the tree is, in the figures that its maintainers look at.

Code lines are those with more than comments and blanks.  `make lint` prints
this; what has a limit is held by sizes.t, layers.t and docs.t.
"""

import collections
import re
import statistics

from source import code_lines, files, read, words_of

ROOMS = re.compile(r"(fcgi|sandbox)/[a-z]+")


def c_lines():
    """{room: code lines}, and the share of comment lines in .c files."""
    rooms, comments, lines = collections.Counter(), 0, 0
    for path in files(".c", ".h", tests=False):
        whole = read(path).split("\n")
        for (_, code), line in zip(code_lines(path), whole):
            rooms[ROOMS.match(path)[0]] += bool(code.strip())
            if path.endswith(".c") and line.strip():
                lines += 1
                # Literals are blanked, too, but their quotes are left.
                comments += re.search(r"/\*|^\s*\*|\*/", line) is not None
    return rooms, comments / lines


def functions():
    """Lines between the braces of each function."""
    for path in files(".c", tests=False):
        start = None
        for number, line in code_lines(path):
            if line == "{":
                start = number
            elif line == "}" and start:
                yield number - start - 1
                start = None


def python_lines():
    return sum(bool(re.match(r"\s*[^\s#]", line))
               for path in files(".py", tests=False)
               for line in read(path).split("\n"))


def main():
    rooms, share = c_lines()
    sizes = list(functions())
    print(f"C       {sum(rooms.values())} lines of code: " + ", ".join(
        f"{room} {count}" for room, count in rooms.most_common()))
    print(f"        {share:.1%} of the lines of .c files have a comment; "
          f"{len(sizes)} functions, median {statistics.median(sizes):.0f} "
          f"lines, {sum(n <= 8 for n in sizes) / len(sizes):.0%} of 8 or less")
    print(f"Python  {python_lines()} lines of code")
    count = len(files(".c", ".h", tests=False))
    names = re.findall(r'"((?:IL|SANDBOX|DISCORD)_\w+)",',
                       read("sandbox/base/config.def"))
    rows = sum(not name.startswith("IL_TUNE_") for name in names)
    ways = re.findall(r"^way (.*)\n((?:(?:traced|read|often) .*\n)*)",
                      read("tests/ways/ways.txt"), re.M)
    files_of = {name: lines.count("\n") for name, lines in ways}
    print("Targets " + "; ".join(
        f"{what} {value}, {'at most' if most else 'at least'} {target}"
        + ("" if (value <= target) == most or value == target
           else " (NOT YET)")
        for what, value, most, target in (
            ("lines of C", sum(rooms.values()), True, 50000),
            ("files of C", count, True, 290),
            ("lines a file", sum(rooms.values()) // count, False, 170),
            ("settings but IL_TUNE_*", rows, True, 50),
            ("files on the way of /il py", files_of["/il py"], True, 55),
            ("of POST /eval", files_of["POST /eval"], True, 36),
            ("of ilctl backup", files_of["ilctl backup"], True, 15))))
    words = re.findall(r"^\| ", read("sandbox/README.md").split(
        "## Glossary\n")[1].split("\n## ")[0], re.M)
    count = read("README.md").count("\n")
    pages = [p for p in files(".md") if not p.startswith(".github/")]
    said = sum(map(words_of, pages))
    print(f"README  {count} lines; {len(words) - 1} words in the glossary; "
          f"{said} words in {len(pages)} pages")


main()
