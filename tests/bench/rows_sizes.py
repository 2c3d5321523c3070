# SPDX-License-Identifier: MIT
"""Rows of many bytes: what a run prints, files in and out.  Beside each is `cat`
behind the same nginx: a FastCGI program that reads the same request to its end
and answers the same bytes (bench_constant.c), and does nothing else."""

import base64
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import urllib.request

import place as p
from rows_eval import cpu_text
from table import ms

# As much of 1 MB as the contract of /eval lets through.
LINE = 'this line of output has "quotes", and 49 more of its kind come next\n'
LINES = 990000 // len(LINE)
PRINT = "print(%r * %d, end='')" % (LINE, LINES)
COPY = ("with open('in.bin', 'rb') as there, open('out.bin', 'wb') as here:\n"
        "    here.write(there.read())")
MOST = 3

LOCATION = """
		location = /cat {
			client_max_body_size 128m;
			send_timeout 60s;
			fastcgi_pass inline_cat;
		}
"""


class Cat:
    """One more location of a service's nginx, and who answers there."""

    def __init__(self, service):
        self.service = service
        self.socket = os.path.join(service.settings["IL_STATE_DIR"], "cat.sock")
        conf = os.path.join(service.settings["IL_STATE_DIR"], "nginx.conf")
        with open(conf, encoding="utf-8") as file:
            text = file.read()
        there = re.search(r'include "[^"]*/api\.conf";', text)[0]
        text = text.replace(there, there + LOCATION).replace(
            "upstream inline_api", 'upstream inline_cat {\n\t\tserver "unix:'
            '%s";\n\t}\n\tupstream inline_api' % self.socket)
        with open(conf, "w", encoding="utf-8") as file:
            file.write(text)
        path = os.path.join(os.path.dirname(conf), "nginx", "nginx.pid")
        with open(path, encoding="ascii") as file:
            nginx = int(file.read())
        old = p.children([nginx])
        os.kill(nginx, signal.SIGHUP)
        # the old worker would take connections until it is told to end
        p.wait_for(lambda: p.children([nginx]) and
                   not set(old) & set(p.children([nginx])))

    @contextlib.contextmanager
    def serving(self, answer):
        """answer: the path of a file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.socket)
            os.chmod(self.socket, 0o666)
            listener.listen(64)
            process = subprocess.Popen(
                [os.path.join(p.BUILD, "tests", "bench_constant"), answer],
                stdin=listener)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def same_to_cat(place, request):
    """The path of a file with the same request, but to `cat`."""
    with open(request, encoding="utf-8", newline="") as file:
        return place.file(re.sub(r" \S+", " /cat", file.read(), count=1))


def compare(place, table, cat, what, spec, answer, count):
    """One row.  answer: what ours answers, and `cat` has to."""
    service, answer = cat.service, place.file(answer)
    request = same_to_cat(place, spec.split(":")[2])
    with cat.serving(answer):
        specs = spec, "eval:%d:%s:%s" % (service.port, request, answer)
        place.load("alternate", place.settings.count(4), 1, 0, *specs)
        ours, theirs = place.load("alternate", count, 2, 0, *specs)
        before, few = service.cpu(), place.settings.count(count // 2)
        place.load("alternate", few, 1, 0, spec)
        used, _ = cpu_text(before, service.cpu(), few)
        before = service.cpu()
        place.load("alternate", few, 1, 0, specs[1])
        nginx = cpu_text(before, service.cpu(), few)[1]
    table.at_most(what + ", p50", ours["whole"]["p50"],
                  theirs["whole"]["p50"], MOST, with_what="cat")
    table.note("%d and %d bytes; n=%d each, in turns; p95 %s beside %s; %s; of"
               " nginx for cat %.2f ms" % (
                   os.path.getsize(request), os.path.getsize(answer), count,
                   ms(ours["whole"]["p95"]), ms(theirs["whole"]["p95"]), used,
                   nginx))


def printed(place, table, cat):
    count, text = place.settings.count(60), LINE * LINES
    compare(place, table, cat, "POST /eval, 1 MB printed",
            place.eval(cat.service, PRINT, text), json.dumps(
                {"stdout": text, "returncode": 0, "files": []}), count)
    compare(place, table, cat, "POST /v1/execute, 1 MB printed",
            place.execute(cat.service, PRINT, text), json.dumps(
                {"stdout": text, "stderr": "", "exit_code": 0,
                 "timed_out": False, "duration_ms": 10, "files": []}), count)


def content(size):
    """So many bytes, always the same."""
    return random.Random(1).randbytes(size)


def files(place, table, cat):
    """In with the request, out with the answer, both in base64."""
    for megabytes, count in ((1, 60), (10, 20)):
        size = megabytes * 1000000
        data = base64.b64encode(content(size)).decode()
        answer = json.dumps({"stdout": "", "returncode": 0, "files": [
            {"path": "out.bin", "size": size, "content": data}]})
        spec = "eval:%d:%s:%s" % (
            cat.service.port,
            place.request("/eval", {"input": COPY, "files": [
                {"path": "in.bin", "content": data}]}), place.file(answer))
        compare(place, table, cat, "POST /eval, %d MB in and out" % megabytes,
                spec, answer, place.settings.count(count))


BOUNDARY = "=bench="


def stored(place, table, cat):
    """By the store: up with one request, down with another."""
    text = base64.b64encode(content(7500000)).decode()
    body = ('--%s\r\nContent-Disposition: form-data; name="file"; '
            'filename="in.bin"\r\n\r\n%s\r\n--%s--\r\n' % (BOUNDARY, text,
                                                         BOUNDARY))
    head = {"Content-Type": "multipart/form-data; boundary=" + BOUNDARY}
    url, count = "http://127.0.0.1:%d/v1/files" % cat.service.port, 20
    with urllib.request.urlopen(urllib.request.Request(
            url, body.encode(), head)) as answer:
        stored_as = answer.read().decode()
    up = place.file(
        "POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\n"
        "Content-Length: %d\r\n\r\n%s" % (*head.values(), len(body), body))
    down = place.file("GET /v1/files/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" %
                      json.loads(stored_as)["file_id"])
    for what, spec, answer in (
            ("POST /v1/files, 10 MB", "post:%d:%s:%s" % (
                cat.service.port, up, place.file('"size_bytes":%d' %
                                                 len(text))), stored_as),
            ("GET /v1/files/ID, 10 MB", "eval:%d:%s:%s" % (
                cat.service.port, down, place.file(text)), text)):
        compare(place, table, cat, what, spec, answer,
                place.settings.count(count))


def many_bytes(place, table):
    with place.service(IL_TUNE_API_RUNS="1000000") as service:
        cat = Cat(service)
        printed(place, table, cat)
        files(place, table, cat)
        stored(place, table, cat)
