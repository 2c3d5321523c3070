#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""compile.py PO...: print the table of translations that locale.c includes.

gettext's tools check each file, and leave out what is not translated, or not
for sure; what cannot be so is refused here, and with it the build.
"""

import ast
import os
import re
import subprocess
import sys

PLURAL = re.compile(r"nplurals *= *([1-6]) *; *plural *= *([n0-9%=!&|?:<>() ]+);")


def catalogue(path):
    """{english: [text, or each form of a plural]} of a .po file."""
    subprocess.run(["msgfmt", "--check-format", "--check-header",
                    "--check-domain", "-o", os.devnull, path], check=True)
    plain = subprocess.run(
        ["msgattrib", "--no-fuzzy", "--no-obsolete", "--no-wrap", path], stdout=subprocess.PIPE, check=True).stdout
    texts = {}
    for entry in plain.decode().split("\n\n"):
        fields = {}
        for line in entry.split("\n"):
            if not line.startswith("#") and line:
                word, quoted = re.fullmatch(r'(\S*?) ?(".*")', line).groups()
                key = word or key
                fields[key] = fields.get(key, "") + ast.literal_eval(quoted)
        forms = [fields[key] for key in sorted(fields)
                 if key.startswith("msgstr")]
        if all(forms):
            texts[fields["msgid"]] = forms
    return texts


def literal(text):
    """As C; <PRId64> is what xgettext makes of the macro."""
    quoted = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode())
    return '"' + re.sub(r"<(PRI[a-z0-9]+)>", r'" \1 "', quoted) + '"'


def main(paths):
    languages = []
    for path in paths:
        texts = catalogue(path)
        plural = PLURAL.search(texts.pop("", [""])[0])
        if plural is None:
            raise SystemExit(f"{path}: no Plural-Forms that can be used")
        languages.append((os.path.basename(path)[:-3], plural, texts))
    print(f"#define LANGUAGES {len(languages)}")
    for number, (_, plural, _) in enumerate(languages):
        unused = "" if "n" in plural[2] else "\t(void)n;\n"
        print(f"static size_t\nplural_{number}(uint64_t n)\n{{\n{unused}"
              f"\treturn (size_t)({plural[2]});\n}}")
    print("static const struct language languages[] = {")
    for number, (name, plural, _) in enumerate(languages):
        print(f'\t{{ "{name}", {plural[1]}, plural_{number} }},')
    print("};\nstatic const struct {\n\tconst char *english;\n"
          "\tconst char *in[LANGUAGES];\n} entries[] = {")
    for english in sorted(set().union(*(texts for _, _, texts in languages))):
        print(f"\t{{ {literal(english)}, {{")
        for _, _, texts in languages:
            forms = texts.get(english)
            print("\t\t%s," % (' "\\0" '.join(map(literal, forms)) if forms
                               else "NULL"))
        print("\t} },")
    print("};")


main(sys.argv[1:])
