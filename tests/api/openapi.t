#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The OpenAPI document holds together, its examples are valid, the page says
all of it, runs its own script alone and loads nothing."""

import base64
import hashlib
import html.parser
import json
import os
import re

from probe import ROOT, ask, done, equal, point

try:
    import jsonschema
except ImportError:
    jsonschema = None

with open(os.path.join(ROOT, "fcgi", "api", "openapi.json"), "rb") as file:
    text = file.read()
equal(ask("openapi", b""), text, "it is what is served")
doc = json.loads(text)
METHODS = {"get", "post", "put", "delete", "patch", "head", "options"}
operations = [(path, method, op) for path, item in doc["paths"].items()
              for method, op in item.items() if method in METHODS]


def walk(node, at="#"):
    yield at, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from walk(value, f"{at}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from walk(value, f"{at}/{index}")


def resolve(node):
    while isinstance(node, dict) and "$ref" in node:
        target = doc
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def inline(node):
    """A schema without references."""
    node = resolve(node)
    if isinstance(node, dict):
        return {key: inline(value) for key, value in node.items()}
    if isinstance(node, list):
        return [inline(value) for value in node]
    return node


def none(complaints, name):
    complaints = list(complaints)
    point(not complaints, name)
    for complaint in complaints:
        print(f"# {complaint}")


equal(doc["openapi"], "3.1.0", "OpenAPI 3.1")
equal(doc["info"]["title"], "Code Interpreter API", "the contract's title")
routes = {tuple(line.split()) for line in
          ask("routes", b"").decode().splitlines()}
point(len(routes) >= 16, "there are routes")
equal({(method.upper(), path) for path, method, _ in operations}, routes,
      "every route")


def broken_references():
    used = set()
    for at, node in walk(doc):
        if isinstance(node, dict) and "$ref" in node:
            used.add(node["$ref"])
            try:
                resolve(node)
            except KeyError:
                yield f"{at}: {node['$ref']}"
    for name in doc["components"]["schemas"]:
        if f"#/components/schemas/{name}" not in used:
            yield f"{name} is not used"


def wrong_operations():
    seen = set()
    tags = {tag["name"] for tag in doc["tags"]}
    for path, method, op in operations:
        where = f"{method} {path}"
        if op["operationId"] in seen:
            yield f"{where}: its id is taken"
        seen.add(op["operationId"])
        if not op.get("summary") or set(op["tags"]) - tags:
            yield f"{where}: lacks a summary or a tag"
        for status, response in op["responses"].items():
            if not re.fullmatch("[2-5][0-9][0-9]", status) or \
                    not response["description"]:
                yield f"{where}: {status}"
        names = {p["name"] for p in doc["paths"][path].get("parameters", [])
                 + op.get("parameters", []) if p["in"] == "path"}
        if names != set(re.findall(r"{(\w+)}", path)):
            yield f"{where}: parameters"


def wrong_examples():
    for path, method, op in operations:
        parts = [op.get("requestBody", {})] + list(op["responses"].values())
        for part in parts:
            for media in part.get("content", {}).values():
                if "example" not in media:
                    continue
                try:
                    jsonschema.validate(media["example"],
                                        inline(media["schema"]))
                except jsonschema.ValidationError as error:
                    yield f"{method} {path}: {error.message}"


def wrong_schemas():
    for name, schema in doc["components"]["schemas"].items():
        try:
            jsonschema.Draft202012Validator.check_schema(inline(schema))
        except jsonschema.SchemaError as error:
            yield f"{name}: {error.message}"


none(broken_references(), "every reference leads somewhere")
none(wrong_operations(), "every operation is described")
if jsonschema:
    none(wrong_schemas(), "the schemas are schemas")
    none(wrong_examples(), "the examples are valid")

schemas = doc["components"]["schemas"]
for command, name, required in (
        ("execute", "ExecuteRequest", {"code": "x"}),
        ("session", "CreateSessionRequest", {}),
        ("bash", "BashExecRequest", {"cmd": "x"})):
    got = ask(command, b"application/json\n" +
              json.dumps(required).encode()).decode()
    numbers = [p["default"] for p in schemas[name]["properties"].values()
               if isinstance(p.get("default"), int) and
               p["type"] == "integer"]
    point(all(f" {n}\n" in got for n in numbers), f"the defaults of {name}")
    equal(schemas[name].get("required", []), list(required),
          f"what {name} needs")
    for op_path, _, op in operations:
        example = op.get("requestBody", {}).get("content", {}).get(
            "application/json", {})
        if example.get("schema", {}).get("$ref", "").endswith(name):
            point(ask(command, b"application/json\n" + json.dumps(
                example["example"]).encode()).startswith(b"RUN"),
                f"the example of {op_path} runs")
versions = json.loads(ask("versions", b""))
equal([v["name"] for v in versions["versions"]], ["3.11", "3.13"],
      "the interpreters")
for version in versions["versions"]:
    got = ask("eval", b"-\n" + json.dumps(
        {"input": "", "executable_path": version["executable_path"]}).encode())
    point(b"interpreter 4 " + version["name"].encode() in got,
          f"{version['name']} can be chosen as listed")


class Page(html.parser.HTMLParser):
    """What opens is closed; nothing is loaded, and one script is run."""
    EMPTY = {"meta", "input", "link"}
    SILENT = {"script", "style"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.wrong = []
        self.text = ""
        self.ids = set()
        self.links = set()
        self.forms = []
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag in ("img", "link", "iframe", "object", "base") and \
                attrs != {"rel": "icon", "href": "data:,"} or \
                any(a.startswith("on") or a in ("src", "style", "action")
                    for a in attrs):
            self.wrong.append(f"{tag} {attrs}")
        if tag == "script":
            self.scripts += 1
        if tag == "form":
            self.forms.append((attrs["data-path"], attrs["data-method"]))
        if "id" in attrs:
            if attrs["id"] in self.ids:
                self.wrong.append(f"{attrs['id']} twice")
            self.ids.add(attrs["id"])
        if tag == "a":
            self.links.add(attrs["href"])

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        if self.open[-1:] and self.open[-1] not in self.SILENT:
            self.text += data


markup = ask("docs", b"").decode()
page = Page()
page.feed(markup)
page.close()
none(page.wrong + page.open, "the page is well formed and loads nothing")
ids = {op["operationId"] for _, _, op in operations} | {"operations"}
equal(page.links, {"#" + name for name in ids} | {"/openapi.json"},
      "its contents")
equal(page.ids, ids, "its parts")
equal(sorted(page.forms), sorted((path, method.upper())
                                 for path, method, _ in operations),
      "each operation has a form")
none((f"{p} {o['summary']}" for p, _, o in operations
      if p not in page.text or o["summary"] not in page.text),
     "it says every operation")
none((f"{name}.{member}" for name, schema in schemas.items()
      for member in schema.get("properties", {})
      if name not in ("ValidationError", "Invalid", "Detail", "EvalError",
                      "WorkspaceFile") and member not in page.text),
     "and every member")
point("url(" not in markup and "http" not in markup.replace(
    "http-equiv", "").replace("http://localhost:8080/v1/", ""),
    "it names no other place")
none((mark for mark in re.findall(r"@@(\w*)@@", markup) if mark not in (
    "CELLS", "QUEUE", "SESSIONS", "KEEP", "PISTON", "MEMORY", "STORE")),
     "il-api knows each place for a setting")
headers = ask("docs-headers", b"").decode()
equal(page.scripts, 1, "it has one script")


def digest(element):
    text = re.search(f"<{element}>(.*?)</{element}>", markup, re.S).group(1)
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


equal(re.search("^Content-Security-Policy: (.*)\r$", headers, re.M).group(1),
      f"default-src 'none'; style-src 'sha256-{digest('style')}'; "
      f"script-src 'sha256-{digest('script')}'; connect-src 'self'; "
      "img-src blob: data:; require-trusted-types-for 'script'; "
      "trusted-types 'none'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'",
      "its policy lets in its own style, its own script and its own server")
point(len(markup.encode()) < 114688, "it is small: %d bytes" % len(markup.encode()))
point(all(re.fullmatch(r"[A-Za-z-]+: [^\r\n]+", line)
          for line in headers.split("\r\n")[:-1]) and
      headers.endswith("\r\n"), "its headers are lines")
done()
