#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What GET /openapi.json says is what is served: each example is sent, and each
answer of the document is provoked and compared with its example."""

import html
import http.client
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile

from interpreter import UNKNOWN, Interpreter
from served import JSON, Served, wait_for
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory()
TOKENS = os.path.join(folder.name, "tokens")
open(TOKENS, "w").close()
served = Served(IL_API_CELLS="1", IL_API_FILES_QUOTA="1m").__enter__()
client = Interpreter(served)
doc = served.get("/openapi.json").json
OPERATIONS = [(path, method, op) for path, item in doc["paths"].items()
              for method, op in item.items()
              if method in ("get", "post", "delete") and
              # those have credentials of their own: served_librechat.t
              not path.startswith("/librechat")]
BODY = {"code": "1", "files": [{"path": "a.txt", "file_id": UNKNOWN}]}


def resolve(node):
    while "$ref" in node:
        target = doc
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        node = target
    return node


def example(op, status):
    """(content type, example) of an answer, or None."""
    response = resolve(op["responses"].get(status, {}))
    for kind, media in response.get("content", {}).items():
        return kind, media.get("example")
    return None


def address(path):
    """The path of an operation, with the ids of the examples."""
    return path.replace("{file_id}", UNKNOWN).replace(
        "{session_id}", "code-session-0")


def ask(service, path, method, op, body=None, headers=None):
    """Send what the operation takes, or another body."""
    media = op.get("requestBody", {}).get("content", {})
    send = dict(headers or {})
    if body is None and "multipart/form-data" in media:
        send["Content-Type"] = "multipart/form-data; boundary=b"
        body = (b'--b\r\nContent-Disposition: form-data; name="file"; '
                b'filename="a.txt"\r\n\r\nabc\r\n--b--\r\n')
    elif media:
        send.setdefault("Content-Type", "application/json")
        if body is None:
            body = json.dumps(media["application/json"]["example"]).encode()
        elif not isinstance(body, bytes):
            body = json.dumps(body).encode()
    return service.request(method.upper(), address(path), body, send)


def steady(value):
    """A text of JSON without what differs from run to run."""
    text = value if isinstance(value, str) else json.dumps(value)
    for pattern, mask in ((r'"duration_ms": ?\d+', "D"),
                          (r'"expires_at": ?[0-9.]+', "E"),
                          (r'"(memory|cpu_time|wall_time)": ?\d+', "M"),
                          (r'version": ?"\d+\.\d+\.\d+"', "V"),
                          (r"python3\.\d+", "A"),
                          (r"code-session-[0-9a-f]{32}", "S"),
                          (r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
                           "F")):
        text = re.sub(pattern, mask, text)
    return text


def compare(op, status, answer):
    """The answer is the one that the document has for the status."""
    where = "%s %s" % (op["operationId"], status)
    assert answer.status == int(status), (where, answer)
    kind, want = example(op, status)
    got = answer.headers["Content-Type"]
    assert got.partition(";")[0] == kind, (where, got)
    if isinstance(want, str):
        assert steady(answer.text) == steady(want), (where, answer, want)
    elif want is not None:
        assert steady(answer.json) == steady(want), (where, answer, want)
    for name in resolve(op["responses"][status]).get("headers", {}):
        assert name in ("Inline-Left-Out", "Inline-Interpreter") or \
            answer.headers[name], (where, name)


def each(status, but=()):
    return [(path, method, op) for path, method, op in OPERATIONS
            if status in op["responses"] and path not in but]


def token(name, *limits):
    done = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token",
                           "-f", TOKENS, *limits, "add", name],
                          capture_output=True, text=True, check=True)
    return {"Authorization": "Bearer " + next(
        word for word in done.stdout.split() if word.startswith("il_"))}


RUN = "/v1/execute", {"code": "import time; time.sleep(50)",
                      "timeout_ms": 60000}


def fill(service, path, body):
    """Requests that go on, as many as there is room for; their connections."""
    links = []
    while True:
        link = service.connect()
        link.request("POST", path, json.dumps(body), JSON)
        if select.select([link.sock], [], [], 0.5)[0]:
            link.close()
            return links
        links.append(link)


@test
def every_success_is_as_its_example():
    session = served.post("/v1/sessions", {}).json["session_id"]
    for path, method, op in OPERATIONS:
        (status,) = [s for s in op["responses"] if s[0] == "2"]
        if method == "delete" or path in (
                "/v1/files/{file_id}", "/v1/sessions/{session_id}/bash"):
            continue  # those need one that is there: below
        answer = ask(served, path, method, op)
        if path in ("/v1/execute/stream", "/v1/files", "/health") and \
                status == "200":
            assert answer.status == 200, answer  # more of them below
        else:
            compare(op, status, answer)
        if "file_id" in answer.text and method == "post":
            client.delete(answer.json["file_id"])
        if "session_id" in answer.text and path == "/v1/sessions":
            served.request("DELETE", "/v1/sessions/" +
                           answer.json["session_id"])
    bash = doc["paths"]["/v1/sessions/{session_id}/bash"]["post"]
    compare(bash, "200", served.post(
        "/v1/sessions/%s/bash" % session,
        bash["requestBody"]["content"]["application/json"]["example"]))
    answer = served.request("DELETE", "/v1/sessions/" + session)
    assert answer.status == 204 and answer.body == b"", answer


@test
def a_stream_is_as_its_example():
    op = doc["paths"]["/v1/execute/stream"]["post"]
    answer = ask(served, "/v1/execute/stream", "post", op)
    frames = re.findall(r'"stream":"stdout","data":("[^}]*")', answer.text)
    want = re.findall(r'"stream":"stdout","data":("[^}]*")',
                      example(op, "200")[1])
    assert "".join(map(json.loads, frames)) == \
        "".join(map(json.loads, want)), answer
    assert steady(answer.text).rpartition("event: ")[2] == \
        steady(example(op, "200")[1]).rpartition("event: ")[2], answer


@test
def lists_downloads_and_health_are_as_their_examples():
    for file_id in client.listed():
        client.delete(file_id)
    compare(doc["paths"]["/v1/files"]["get"], "200", served.get("/v1/files"))
    file_id = client.put("a.txt", b"abc")
    compare(doc["paths"]["/v1/files/{file_id}"]["get"], "200",
            client.download(file_id))
    assert client.delete(file_id).status == 204
    health = served.get("/health").json
    for name, value in example(doc["paths"]["/health"]["get"],
                               "200")[1].items():
        assert health[name] == value, health


@test
def every_bad_request_is_as_its_example():
    for path, method, op in each("400", ("/eval", "/v1/files")):
        compare(op, "400", ask(served, path, method, op, b"\xff"))
    files = doc["paths"]["/v1/files"]["post"]
    compare(files, "400", served.request(
        "POST", "/v1/files", b"x", {"Content-Type": "multipart/form-data"}))
    code = doc["paths"]["/eval"]["post"]
    compare(code, "400", ask(served, "/eval", "post", code, {"input": 400}))
    compare(code, "415", served.request(
        "POST", "/eval", b"<a/>", {"Content-Type": "application/xml"}))


@test
def every_refusal_of_a_model_is_as_its_example():
    for path, method, op in each("422"):
        body = {"ttl_seconds": 90000} if path == "/v1/sessions" else {}
        if path == "/v1/files":
            answer = served.request("POST", path, b"--b--\r\n", {
                "Content-Type": "multipart/form-data; boundary=b"})
        else:
            answer = ask(served, path, method, op, body)
        compare(op, "422", answer)


@test
def everything_that_is_not_there_is_as_its_example():
    for path, method, op in each("404"):
        answer = ask(served, path, method, op, None if "{" in path else BODY)
        compare(op, "404", answer)


@test
def every_body_that_is_too_long_is_as_its_example():
    for path, method, op in each("413"):
        link = served.connect()
        link.connect()
        link.sock.sendall(
            ("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
             "multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" %
             (address(path), 200 << 20)).encode())
        response = http.client.HTTPResponse(link.sock)
        response.begin()
        got = response.status, json.loads(response.read())
        link.close()
        assert got == (413, example(op, "413")[1]), (path, got)


@test
def a_full_store_is_as_its_example():
    op = doc["paths"]["/v1/files"]["post"]
    compare(op, "507", client.upload("a", bytes(2 << 20)))


@test
def strangers_are_refused_as_in_the_example():
    for path, method, op in each("403"):
        compare(op, "403", ask(served, path, method, op, None,
                               {"Host": "inline.example.org"}))


@test
def tokens_are_asked_for_and_limited_as_in_the_examples():
    guarded = [op["operationId"] for _, _, op in OPERATIONS
               if op.get("security", doc["security"]) != []]
    for status in ("401", "429"):
        assert [op["operationId"] for _, _, op in each(status)] == guarded
    with Served(IL_API_CELLS="1", IL_API_TOKENS_FILE=TOKENS) as other:
        for path, method, op in each("401"):
            compare(op, "401", ask(other, path, method, op))
        for path, method, op in OPERATIONS:
            if op["operationId"] not in guarded:
                assert ask(other, path, method, op).status == 200, path
        few = token("few", "-r", "1")
        wait_for(lambda: other.get("/versions", **few).status == 429)
        for path, method, op in each("429"):
            compare(op, "429", ask(other, path, method, op, None, few))


@test
def a_full_queue_is_as_in_the_examples():
    """That of the runs, and that of the sessions."""
    with Served(IL_API_CELLS="1", IL_API_SESSIONS="1",
                IL_TUNE_API_QUEUE="1") as small:
        session = small.post("/v1/sessions", {}).json["session_id"]
        links = fill(small, *RUN)
        wait_for(lambda: "inline_api_running 1\n" in small.get(
            "/metrics").text)
        links += fill(small, *RUN)
        command = f"/v1/sessions/{session}/bash", {"cmd": "sleep 50"}
        links += fill(small, *command)
        wait_for(lambda: "inline_api_running 2\n" in small.get(
            "/metrics").text)
        links += fill(small, *command)
        for path, method, op in each("503"):
            if not path.endswith("/bash"):
                compare(op, "503", ask(small, path, method, op))
        for link in links:
            link.close()


def examples():
    """{title: text} of the page's quick start, for this service's port."""
    page = served.get("/docs").text
    return {title: html.unescape(text).replace(
        "localhost:8080", "localhost:%d" % served.port)
        for title, text in re.findall(r"<h4>(.*?)</h4>\n<pre>(.*?)</pre>",
                                      page.split("<h2>Limits")[0], re.S)}


def shown(*command):
    return subprocess.run(command, cwd=folder.name, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


@test
def the_page_begins_with_what_can_be_pasted():
    found = examples()
    command, answer = found["curl"].split("\n")
    said = shown("sh", "-ec", command)
    assert said.startswith(answer.split("…")[0]), (said, answer)
    assert shown(sys.executable, "-c", found["Python"]) == "42\n\n"
    if node := shutil.which("node"):
        assert shown(node, "--input-type=module", "-e",
                     found["JavaScript"]) == "42\n\n"
    said = shown("sh", "-ec", next(
        text for title, text in found.items() if "stream" in title))
    # A line's end may come as an event of its own.
    parts = re.findall(r'"stdout","data":"((?:\d|\\n)+)"', said)
    assert "".join(parts) == r"0\n1\n2\n" and len(parts) >= 3, said
    assert "event: result" in said, said
    with open(os.path.join(folder.name, "data.csv"), "w") as file:
        file.write("a,b\n")
    upload, use, download = re.findall(
        r"(?m)^curl(?:.|\\\n|\n +)*", next(
            text for title, text in found.items() if "upload" in title))
    made = json.loads(shown("sh", "-ec", upload))["file_id"]
    made = json.loads(shown("sh", "-ec", use.replace('"ID"', f'"{made}"')))
    shown("sh", "-ec", download.replace("OUT_ID", made["files"][0]["file_id"]))
    with open(os.path.join(folder.name, "out.txt")) as file:
        assert file.read() == "A,B\n"
    begin, command, end = next(
        text for title, text in found.items() if "session" in title
    ).split("\n")
    made = json.loads(shown("sh", "-ec", begin))["session_id"]
    said = shown("sh", "-ec", command.replace("/ID/", f"/{made}/"))
    assert json.loads(said)["stdout"] == "42\n", said
    shown("sh", "-ec", end.replace("/ID", "/" + made))


@test
def the_page_has_the_limits_that_are_set():
    page = served.get("/docs").text
    assert "@@" not in page
    for text in ("has 256 MiB of memory", "At most 1 of them", "1 MiB in all",
                 "3600 s after", "<td>3 s; 64 KiB", "; 64 more wait",
                 "Sessions: at most 8"):
        assert text in page, text


try:
    run()
finally:
    served.close()
    folder.cleanup()
