#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All that people read is marked, and said in each language: with the same
placeholders and commands, and where it has a limit, within that.  The texts are
extracted as `make locale` does (sandbox/locale/README.md)."""

import ast
import glob
import json
import os
import re
import subprocess

from source import ROOT, check, files, finish, read

ILCTL = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")),
                     "bin", "ilctl")
# https://discord.com/developers/docs/reference#locales
DISCORDS = set("id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR "
               "ro fi sv-SE vi tr cs el bg ru uk hi th zh-CN ja zh-TW "
               "ko".split())
NAME = re.compile(r"[-_'\w]{1,32}")
DESCRIPTION_MAX = 100
SHORT, LABEL_MAX = 30, 80   # what is short in English may be a button's label
# The files that make texts for people, and the calls that do not.
SPEAKING = re.compile(r"fcgi/discord/|sandbox/worker/render/|"
                      r"sandbox/worker/commands/|sandbox/store/editor\.h|"
                      r"sandbox/store/commands\.def")
SILENT = re.compile(r"log_\w+|err_\w+|http_answer|strstr|strspn|strcspn|strchr|"
                    r"memmem|log_has|line_has|line_begins|looks_has|"
                    r"looks_begins|source_is_one_of|deny|reply_status|"
                    r"reply_set|EXAMPLE|__attribute__|json_pack|xprintf|"
                    r"static_assert|_Static_assert|sscanf")
# What has letters and a blank, and is not said to people in our words.
OTHER = {
    "fcgi/discord/front.c": "headers and log labels",
    "fcgi/discord/il-fcgi.c": "for the operator",
    "sandbox/worker/commands/source_scan.c": "tags of blocks, Python's words",
    "sandbox/worker/commands/source_shape.c": "prompts of shells, options",
    "sandbox/worker/render/packages.def": "names of packages",
    "sandbox/worker/render/requirement.c": "patterns, and Python's words",
}
WORDS = {
    "No matching distribution found for ": "pip's",
    "Inline: no project ": "the cell's",
    "Inline: no version ": "the cell's",
    "EOFError: EOF when reading a line": "Python's",
    "Traceback (most recent call last)": "Python's",
    "Traceback (most recent call last):\n": "Python's",
    "%d min %d s": "units",
    '{"content":"Sandbox error: the answer is lost.",'
    '"allowed_mentions":{"parse":[]}}': "where nothing else can be made",
}


def entries(text):
    """{english: {"": comments, "msgid_plural": …, "msgstr[0]": …}}"""
    found = {}
    for entry in text.split("\n\n"):
        fields, key = {"": ""}, None
        for line in entry.strip().split("\n"):
            if line.startswith("#"):
                fields[""] += line + "\n"
            elif line:
                word, quoted = re.fullmatch(r'(\S*?) ?(".*")', line).groups()
                key = word or key
                fields[key] = fields.get(key, "") + ast.literal_eval(quoted)
        if fields.get("msgid"):
            found[fields["msgid"]] = fields
    return found


TEXTS = entries(subprocess.run(
    [os.path.join(ROOT, "sandbox/locale/merge.sh"), "--template"], check=True,
    stdout=subprocess.PIPE).stdout.decode())
LANGUAGES = {os.path.basename(path)[:-3]: entries(read(path)) for path in
             sorted(glob.glob("sandbox/locale/po/*.po", root_dir=ROOT))}


def forms(fields):
    """The translations of an entry."""
    return [text for key, text in fields.items() if key.startswith("msgstr")]


def translated():
    """(language, english, how it is said there), a form of a plural each."""
    for language, there in LANGUAGES.items():
        for english, fields in there.items():
            for text in forms(fields):
                if text and english in TEXTS:
                    yield language, english, text


# ---- marked ----

LITERAL = r'"(?:\\.|[^"\\\n])*"'
GROUP = re.compile(rf"{LITERAL}(?:(?:\s|\\\n)+(?:{LITERAL}|PRI\w+))*")


def caller(code, at):
    """The function, or what else stands before the bracket, around a place."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if code[i] == ")":
            depth += 1
        elif code[i] == "(" and depth:
            depth -= 1
        elif code[i] == "(":
            return re.search(r"\w*$", code[:i]).group(0)
        elif code[i] in ";{}" and not depth:
            break
    return ""


def literals(path):
    """(line, text, code before it, who is called with it)"""
    code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  read(path), flags=re.DOTALL)
    for match in GROUP.finditer(code):
        line = code[code.rfind("\n", 0, match.start()) + 1:match.start()]
        text = "".join(
            ast.literal_eval(part) if part[0] == '"' else f"<{part}>"
            for part in re.findall(rf"{LITERAL}|PRI\w+", match.group(0)))
        yield (code.count("\n", 0, match.start()) + 1, text, line,
               caller(code, match.start()))


def is_sentence(text):
    plain = re.sub(r"%[-+*.\d]*(?:<PRI\w+>|[lzh]*[a-z])|\[Errno|Python|Inline",
                   "", text)
    return re.search(r"[A-Za-z]{2}", plain) and (
        " " in plain.strip() or re.fullmatch(r"[A-Z][a-z]+", plain))


def unmarked():
    plurals = {fields.get("msgid_plural") for fields in TEXTS.values()}
    for path in files(".c", ".h", ".def", tests=False):
        if not SPEAKING.match(path) or path in OTHER:
            continue
        for number, text, line, call in literals(path):
            known = text in TEXTS or text in plurals or \
                re.sub(r"<PRI\w+>", "d", text) in WORDS
            if is_sentence(text) and not known and \
                    not SILENT.fullmatch(call) and \
                    not re.search(r"#\s*include|outcome = |\{ $|"
                                  r"^(SAY|REFUSED)\(\w+, $|"
                                  r"\[R[A-Z]+_\w+\] = $", line):
                yield f"{path}:{number}: not marked: {text!r}"


# ---- translated ----

def missing():
    for language, there in LANGUAGES.items():
        for english in TEXTS.keys() - there.keys():
            yield f"{language}: lacks {english!r} (make locale)"
        for english, fields in there.items():
            if english not in TEXTS:
                yield f"{language}: not said any more: {english!r} (make locale)"
            elif not all(forms(fields)):
                yield f"{language}: not translated: {english!r}"
            elif re.search("^#,.*fuzzy", fields[""], re.MULTILINE):
                yield f"{language}: fuzzy, to be looked at: {english!r}"


def foreign_names():
    for language in LANGUAGES:
        if language not in DISCORDS:
            yield f"{language} is no locale of Discord's"


# ---- what must be the same ----

OPTIONS = set()


def commands():
    """Each command, group and option, with its siblings."""
    listed = subprocess.run([ILCTL, "commands"], stdout=subprocess.PIPE,
                            check=True).stdout
    todo = [json.loads(listed)]
    while todo:
        siblings = todo.pop()
        for one in siblings:
            todo.append(one.get("options", []))
            yield one, siblings


def find_options():
    for one, _ in commands():
        if one["type"] > 2 and "description" in one:
            OPTIONS.add(one["name"])


def marks(text, names):
    """What stands in a text beside words, option names through names()."""
    text = re.sub(r"%\d+\$", "%", text)
    ticked = [re.sub(r"\w[-\w]*(?=:)|^\w[-\w]*$", lambda m: names(m.group(0)),
                     span) for span in re.findall(r"`([^`]+)`", text)]
    return sorted(ticked), sorted(re.findall(
        r"\{\}|<t:|:R>|\*\*|^-#|%[-+*.\d]*(?:<PRI\w+>|[lzh]*[a-zA-Z%])",
        re.sub(r"`[^`%]*`", "", text)))


def differing():
    for language, english, text in translated():
        there = LANGUAGES[language]

        def localised(word):
            return there[word]["msgstr"] if word in OPTIONS else word
        forms_of = {english, TEXTS[english].get("msgid_plural", english)}
        if marks(text, str) not in [marks(e, localised) for e in forms_of]:
            yield f"{language}: other marks than {english!r}: {text!r}"
        edges = re.match(r"[ \n]*", english)[0], re.search(r"[ \n]*$", english)[0]
        if edges != (re.match(r"[ \n]*", text)[0],
                     re.search(r"[ \n]*$", text)[0]):
            yield f"{language}: other blanks around {english!r}: {text!r}"


# ---- limits ----

def too_long():
    for language, english, text in translated():
        limit = re.search(r"at most (\d+) characters", TEXTS[english][""])
        most = int(limit[1]) if limit else \
            LABEL_MAX if len(english) <= SHORT else None
        if most is not None and len(text) > most:
            yield f"{language}: {len(text)} of {most} characters: {text!r}"


def badly_registered():
    for one, siblings in commands():
        for language, text in one.get("description_localizations", {}).items():
            if not 0 < len(text) <= DESCRIPTION_MAX:
                yield f"{language}: {len(text)} characters: {text}"
        for language, name in one.get("name_localizations", {}).items():
            same = [other for other in siblings if name in (
                other["name"], other.get("name_localizations",
                                         {}).get(language))]
            menu = "description" not in one
            if not menu and (not NAME.fullmatch(name) or
                             name != name.lower()):
                yield f"{language}: no name of an option: {name}"
            if len(name) > 32 or len(same) > 1:
                yield f"{language}: too long, or named twice: {name}"


find_options()
check("texts are extracted", [] if len(TEXTS) > 100 else ["hardly any"])
check("what people read is marked", unmarked())
check("languages are Discord's", foreign_names())
check("each text is translated into each language", missing())
check("placeholders, commands and blanks are those of the English", differing())
check("what has a limit keeps it", too_long())
check("Discord takes the localised names and descriptions", badly_registered())
finish()
