"""The table of results in tests/README.md."""

import datetime
import re

BEGIN = "<!-- make check-host FILL=1 begins -->"
END = "<!-- it ends -->"


def rows(reports):
    """A row for each test: what, and how it fared on each suite."""
    names = []
    fared = {}
    for house, report in reports:
        for group, passed, what in report.results:
            # A step's seconds are one run's.
            name = (group, re.sub(r" \(\d+ s\).*$", "", what))
            if name not in fared:
                fared[name] = {}
                names.append(name)
            fared[name][house.suite] = "yes" if passed else "NO"
    for name in names:
        yield name, [fared[name].get(house.suite, "-")
                     for house, _ in reports]


def render(reports):
    """The text between the marks."""
    today = datetime.date.today().isoformat()
    commits = sorted({house.commit[:7] for house, _ in reports})
    lines = [f"- {today}, commit {', '.join(commits)}"]
    for house, _ in reports:
        lines.append(f"- {house.suite}: {house.recall('versions')}")
    lines.append("")
    heads = [house.suite for house, _ in reports]
    lines.append("| group | what | " + " | ".join(heads) + " |")
    lines.append("|---|---|" + "---|" * len(heads))
    for (group, what), marks in rows(reports):
        what = what.replace("|", "\\|")
        lines.append(f"| {group} | {what} | " + " | ".join(marks) + " |")
    lines.append("")
    for house, report in reports:
        for group, text in report.figures:
            lines.append(f"- {house.suite}, {group}: {text}")
    return "\n".join(lines)


def fill(path, reports):
    """Put the table in its place."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(BEGIN) + len(BEGIN)
    end = text.index(END, begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + render(reports) + "\n" + text[end:])
