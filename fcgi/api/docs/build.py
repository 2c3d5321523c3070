#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make the C file with what GET /openapi.json and GET /docs answer.

    build.py OPENAPI.JSON >pages.c

The page is page.html with guide.html, page.css and page.js in it and, made
here, an index and a section for each operation.  il-api puts the values of
settings in the places of @@NAMES@@.  Its policy lets in that style and that script
by their hashes, and nothing else.  ../routes.h declares what is made.
"""

import base64
import hashlib
import html
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
METHODS = ("get", "post", "put", "delete", "patch", "head", "options")
BOUNDS = (("minimum", "At least"), ("maximum", "At most"),
          ("default", "Default"), ("example", "For example"))
POLICY = ("default-src 'none'; style-src '{style}'; script-src '{script}'; "
          "connect-src 'self'; img-src blob: data:; "
          "require-trusted-types-for 'script'; trusted-types 'none'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def tag(name, *children, **attributes):
    """An element; its children are HTML, its attributes are text."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" +
        ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items() if value not in (None, False))
    start = f"<{name}{given}>"
    return start if name == "input" else \
        f"{start}{''.join(children)}</{name}>"


def code(text):
    return tag("code", html.escape(text, quote=False))


def prose(text):
    """A description in one line: what stands between backticks is code."""
    parts = text.split("`")
    return "".join(code(part) if number % 2 else html.escape(part, quote=False)
                   for number, part in enumerate(parts))


def paragraphs(text):
    return "".join(tag("p", prose(part))
                   for part in (text or "").split("\n\n") if part)


def as_json(value, indent=None):
    return json.dumps(value, indent=indent, ensure_ascii=False)


def example_text(media, indent=2):
    """The example of a media type as it is sent, or ""."""
    example = media.get("example", "")
    return example if isinstance(example, str) else as_json(example, indent)


def sample(media, indent=2):
    text = html.escape(example_text(media, indent), quote=False)
    return tag("pre", text) if text else ""


class Document:
    """The parts of an OpenAPI document as HTML."""

    def __init__(self, text):
        self.root = json.loads(text)

    def resolve(self, node):
        """What a {"$ref": "#/…"} stands for."""
        while "$ref" in node:
            parts = node["$ref"].removeprefix("#/").split("/")
            node = self.root
            for part in parts:
                node = node[part]
        return node

    def operations(self, label):
        """(path, method, operation) of each that has this tag."""
        for path, item in self.root["paths"].items():
            for method in METHODS:
                if method in item and label in item[method]["tags"]:
                    yield path, method, item[method]

    # Schemas

    def type_of(self, schema):
        """`string`, `integer or null`, `list of string`."""
        schema = self.resolve(schema)
        kind = schema.get("type", "any")
        if "anyOf" in schema and "type" not in schema:
            return " or ".join(map(self.type_of, schema["anyOf"]))
        if isinstance(kind, list):
            return " or ".join(kind)
        if kind == "array":
            return "list of " + self.type_of(schema.get("items", {}))
        return "base64" if "contentEncoding" in schema else kind

    def remarks(self, schema):
        """The description, and what a value may be."""
        yield prose(schema.get("description", ""))
        if "enum" in schema:
            yield "One of " + ", ".join(map(code, map(str, schema["enum"]))) \
                + "."
        for key, word in BOUNDS:
            if key in schema:
                yield f"{word} {code(as_json(schema[key]))}."

    def members(self, schema, before=""):
        """The rows of an object's members and of those that they hold."""
        schema = self.resolve(schema)
        required = schema.get("required", ())
        for name, member in schema.get("properties", {}).items():
            inner = self.resolve(member)
            kind = self.type_of(member)
            yield tag(
                "tr", tag("th", before + name),
                tag("td", html.escape(kind) + (
                    tag("b", ", required") if name in required else "")),
                tag("td", " ".join(filter(None, self.remarks(inner)))))
            path = f"{before}{name}"
            if "items" in inner:
                yield from self.members(inner["items"], path + "[].")
            else:
                yield from self.members(inner, path + ".")

    def content(self, holder):
        """The first media type of a request or an answer."""
        for kind, media in holder.get("content", {}).items():
            schema = self.resolve(media["schema"])
            rows = "".join(self.members(schema))
            return (paragraphs(schema.get("description")) +
                    (tag("table", rows) if rows else "") + sample(media))
        return ""

    # An operation

    def parameters(self, path, op):
        return self.root["paths"][path].get("parameters", []) + \
            op.get("parameters", [])

    def parameter_table(self, parameters):
        if not parameters:
            return ""
        return tag("h4", "Parameters") + tag("table", *(
            tag("tr", tag("th", p["name"]),
                tag("td", "in the " + p["in"] + (
                    tag("b", ", required") if p.get("required") else "")),
                tag("td", prose(p.get("description", ""))))
            for p in parameters))

    def request(self, op):
        for kind in op.get("requestBody", {}).get("content", {}):
            return (tag("h4", "Request ", tag("small", kind)) +
                    self.content(op["requestBody"]))
        return ""

    def answers(self, op):
        """Each good answer whole; of the others a table that opens."""
        good, bad = [], []
        for status, answer in op["responses"].items():
            kinds = list(answer.get("content", {}))
            if status[0] != "2":
                bad.append((status, answer))
                continue
            good.append(tag("h4", f"Answer {status} ",
                            tag("small", *kinds)))
            good.append(tag("p", prose(answer["description"]),
                            data_status=status))
            good.append(self.headers(answer))
            good.append(self.content(answer))
        if not bad:
            return "".join(good)
        return "".join(good) + tag(
            "details", tag("summary", "Errors: ", ", ".join(
                status for status, _ in bad)),
            tag("table", *(
                tag("tr", tag("th", status),
                    tag("td", tag("p", prose(answer["description"])),
                        self.headers(answer),
                        *(sample(media, None) for media in
                          answer.get("content", {}).values())))
                for status, answer in bad)), class_="errors")

    def headers(self, answer):
        return "".join(
            tag("p", code(name), ": ", prose(header["description"])
                if "description" in header else "", class_="header")
            for name, header in answer.get("headers", {}).items())

    def fields(self, parameters, op):
        """What can be filled in of a request."""
        for p in parameters:
            label = code(p["name"]) + tag("small", p["in"])
            if "enum" in p["schema"]:
                yield tag("label", label, tag(
                    "select", tag("option", "not sent", value=""),
                    *(tag("option", html.escape(v))
                      for v in p["schema"]["enum"]),
                    data_in=p["in"], data_name=p["name"]))
            else:
                yield tag("label", label, tag(
                    "input", data_in=p["in"], data_name=p["name"],
                    required=p.get("required"), autocomplete="off"))
        for kind, media in op.get("requestBody", {}).get(
                "content", {}).items():
            if kind != "multipart/form-data":
                text = example_text(media)
                yield tag("label", "Body", tag("small", kind), tag(
                    "textarea", "\n", html.escape(text, quote=False),
                    rows=text.count("\n") + 1, data_in="body",
                    spellcheck="false"))
                yield tag("p", class_="note", role="status")
                return
            for name in self.resolve(media["schema"])["properties"]:
                yield tag("label", code(name), tag("small", kind), tag(
                    "input", type="file", data_in="form", data_name=name,
                    required=True))

    def trial(self, path, method, op):
        """The form; page.js completes and shows it: it is nothing without."""
        kinds = list(op.get("requestBody", {}).get("content", {}))
        form = tag(
            "form", *self.fields(self.parameters(path, op), op),
            data_method=method.upper(), data_path=path,
            data_type=kinds[0] if kinds else None,
            data_stream="text/event-stream" in op["responses"].get(
                "200", {}).get("content", {}))
        return tag("details", tag("summary", "Try it"), form, class_="try",
                   hidden=True)

    def operation(self, path, method, op):
        parameters = self.parameters(path, op)
        return tag(
            "section",
            tag("h3", badge(method), tag("a", code(path),
                                         href="#" + op["operationId"])),
            tag("p", prose(op["summary"]), class_="summary"),
            paragraphs(op.get("description")),
            self.trial(path, method, op),
            self.parameter_table(parameters), self.request(op),
            self.answers(op), id=op["operationId"]) + "\n"

    # The page

    def index(self):
        for label in self.root["tags"]:
            yield tag("h2", label["name"]) + tag("ul", *(
                tag("li", tag("a", badge(method), code(path), " ",
                              tag("span", prose(op["summary"])),
                              href="#" + op["operationId"]))
                for path, method, op in self.operations(label["name"])))

    def parts(self):
        for label in self.root["tags"]:
            yield tag("h2", label["name"]) + \
                paragraphs(label.get("description"))
            for found in self.operations(label["name"]):
                yield self.operation(*found)

    def page(self):
        """The whole page and its policy."""
        info = self.root["info"]
        style, script = squeezed("page.css"), squeezed("page.js")
        assert "</" not in style + script, "it would end the element early"
        slots = {
            "TITLE": html.escape(info["title"]),
            "INTRO": tag("p", prose(info["summary"]), class_="summary"),
            "GUIDE": read("guide.html"),
            "INDEX": "".join(self.index()),
            "OPERATIONS": "".join(self.parts()),
            "TOKEN": prose(self.root["components"]["securitySchemes"][
                "token"]["description"]),
            "STYLE": style,
            "SCRIPT": script,
        }
        page = re.sub("@([A-Z]+)@", lambda slot: slots[slot[1]],
                      read("page.html"))
        return page, POLICY.format(style=digest(style), script=digest(script))


def badge(method):
    return tag("span", method.upper(), class_="method " + method)


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def squeezed(name):
    """A file without its indentation and the lines that are comments."""
    lines = (line.strip() for line in read(name).split("\n"))
    return "\n".join(line for line in lines if line and
                     not re.match(r"//|/\*.*\*/$", line))


def digest(text):
    return "sha256-" + base64.b64encode(
        hashlib.sha256(text.encode()).digest()).decode()


def literal(data):
    """Bytes as C, a line for each of theirs."""
    for line in data.splitlines(keepends=True):
        yield '\t"' + "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\?'
            else f"\\{byte:03o}" for byte in line) + '"'


def constant(name, data):
    yield f"const char {name}[] ="
    yield from literal(data)
    yield ";"
    yield f"const size_t {name}_len = sizeof({name}) - 1;\n"


def main():
    with open(sys.argv[1], "rb") as file:
        text = file.read()
    page, policy = Document(text).page()
    headers = (f"Content-Security-Policy: {policy}\r\n"
               "X-Content-Type-Options: nosniff\r\n"
               "Referrer-Policy: no-referrer\r\n")
    print("/* Made by fcgi/api/docs/build.py; do not edit. */")
    # ISO C asks for 4,095 bytes of a literal, our compilers take more.
    print('#pragma GCC diagnostic ignored "-Woverlength-strings"')
    print('#include "api/routes.h"\n')
    for name, data in (("pages_openapi", text),
                       ("pages_docs", page.encode()),
                       ("pages_docs_headers", headers.encode())):
        print("\n".join(constant(name, data)))


main()
