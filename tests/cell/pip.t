#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""OP_PIP, against an index of wheels that this test serves."""

import base64
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
import zipfile

from driver import DOCKER, IMAGE, USER, N, Cell
from tap import run, test


def wheel(name, version, files, requires=()):
    """The bytes of a wheel."""
    info = "%s-%s.dist-info/" % (name, version)
    files = dict(files)
    files[info + "METADATA"] = "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (
        name, version) + "".join("Requires-Dist: %s\n" % r for r in requires)
    files[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: test\n"
                             "Root-Is-Purelib: true\nTag: py3-none-any\n")
    record = "".join("%s,sha256=%s,%d\n" % (path, base64.urlsafe_b64encode(
        hashlib.sha256(text.encode()).digest()).decode().rstrip("="), len(text))
        for path, text in files.items())
    files[info + "RECORD"] = record + info + "RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return out.getvalue()


def sdist(name, version, setup):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in (("setup.py", setup), ("PKG-INFO",
                           "Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
                           % (name, version))):
            item = tarfile.TarInfo("%s-%s/%s" % (name, version, path))
            item.size = len(text)
            archive.addfile(item, io.BytesIO(text.encode()))
    return out.getvalue()


def backend(name):
    """A source tree whose build runs code and needs nothing else: {path: text}."""
    return {"pyproject.toml": "[build-system]\nrequires = []\n"
            "build-backend = 'backend'\nbackend-path = ['.']\n",
            "PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: 1\n" % name,
            "backend.py": "open('/site/ran', 'w').close()\n"}


def tree(name, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            item = tarfile.TarInfo("%s-1/%s" % (name, path))
            item.size = len(text)
            archive.addfile(item, io.BytesIO(text.encode()))
    return out.getvalue()


def script(name):
    return {"%s-1.dist-info/entry_points.txt" % name:
            "[console_scripts]\n%s = %s:main\n" % (name, name)}


FILES = {
    "one-1.0-py3-none-any.whl": wheel("one", "1.0", {
        "one/__init__.py": "version = 1", "one/old.py": "",
        "one_extra.py": ""}, ["two>=1"]),
    "one-2.0-py3-none-any.whl": wheel("one", "2.0", {
        "one/__init__.py": "version = 2"}, ["two>=1"]),
    "two-1.0-py3-none-any.whl": wheel("two", "1.0", {"two.py": "x = 2"}),
    "space_a-1.0-py3-none-any.whl": wheel("space_a", "1.0", {
        "space/a.py": "x = 'a'"}),
    "space_b-1.0-py3-none-any.whl": wheel("space_b", "1.0", {
        "space/b.py": "x = 'b'"}),
    "tool-1-py3-none-any.whl": wheel("tool", "1", dict(
        {"tool.py": "def main(): print('tool runs')"}, **script("tool"))),
    "gadget-1-py3-none-any.whl": wheel("gadget", "1", dict(
        {"gadget.py": "def main(): pass"}, **script("gadget"))),
    "source-1.0.tar.gz": sdist("source", "1.0", "print('setup.py runs')\n"
                               "from distutils.core import setup\n"
                               "setup(name='source', version='1.0')"),
    "evil-1-py3-none-any.whl": wheel("evil", "1", {
        "../../../../site/outside.py": "", "ok.py": ""}),
    "built-1.tar.gz": tree("built", backend("built")),
    "big-1-py3-none-any.whl": wheel("big", "1", {"big.py": "#" * (30 << 20)}),
}


asked = []


class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple":
            if parts[-1] == "slow":
                time.sleep(30)
            body = "".join(
                '<a href="/files/%s">%s</a><br>' % (name, name)
                for name in FILES
                if name.replace("_", "-").startswith(parts[-1] + "-")).encode()
        else:
            body = FILES.get(parts[-1], b"")
        try:
            self.answer(parts, body)
        except ConnectionError:     # the cell is gone: some tests want that
            pass

    def answer(self, parts, body):
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if parts[0] == "simple"
                         else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def pip(*words, index_url=None, sdist=0, **fields):
    fields = dict(dict(wall_ms=60000, output_max=200000, args=words), **fields)
    with Cell(site=site, network="host", memory="512m") as cell:
        with cell.lease(index_url=index_url or URL, sdist=sdist) as lease:
            lease.start("PIP", **fields)
            told = lease.finish()
        assert cell.idle()
    assert ".il-pip" not in os.listdir(site)
    return told


def installed(*words, **fields):
    told = pip(*words, **fields)
    assert told.reason == N.REASON_EXIT and told.status == 0, told
    return told


def fresh():
    for name in os.listdir(site):
        path = os.path.join(site, name)
        shutil.rmtree(path) if os.path.isdir(path) and not \
            os.path.islink(path) else os.unlink(path)


def plant(path, text):
    path = os.path.join(site, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    subprocess.check_call(["chown", "-R", "%d:%d" % (USER, USER), site])


def names():
    return sorted(n for n in os.listdir(site) if n != "__pycache__")


def use(source):
    with Cell(options=["-v", site + ":/workspace/.site-packages"]) as cell:
        with cell.lease() as lease:
            told = lease.run(source)
            assert told.status == 0, told
            return told.stdout.decode()


@test
def packages_and_what_they_need_are_installed():
    fresh()
    told = installed("one==1.0")
    assert b"Successfully installed one-1.0 two-1.0" in told.output, told
    assert names() == ["one", "one-1.0.dist-info", "one_extra.py", "two-1.0.dist-info",
                       "two.py"], names()
    assert use("import one, two; print(one.version, two.x)") == "1 2\n"
    assert told.used_bytes > 0 and told.cpu_us > 0


@test
def an_upgrade_leaves_nothing_of_the_old_version():
    told = installed("one")
    assert names() == ["one", "one-2.0.dist-info", "two-1.0.dist-info",
                       "two.py"], names()
    assert sorted(os.listdir(site + "/one")) in (
        ["__init__.py"], ["__init__.py", "__pycache__"]), told
    assert use("import one, two; print(one.version, two.x)") == "2 2\n"
    installed("one")
    assert use("import one; print(one.version)") == "2\n"


@test
def packages_that_share_a_folder_live_together():
    fresh()
    installed("space-a")
    installed("space_b")
    assert use("from space import a, b; print(a.x + b.x)") == "ab\n"


@test
def scripts_of_several_packages_live_together():
    fresh()
    installed("tool")
    installed("gadget")
    assert sorted(os.listdir(site + "/bin")) == ["gadget", "tool"]
    assert use("import subprocess as s; print(s.check_output('tool'))") == \
        "b'tool runs\\n'\n"


@test
def a_failure_changes_nothing():
    fresh()
    installed("two")
    before = names()
    told = pip("two", "nonexistent-package")
    assert told.reason == N.REASON_EXIT and told.status == 1, told
    assert b"No matching distribution" in told.output, told
    assert names() == before


@test
def the_log_does_not_tell_whose_index_it_is():
    fresh()
    secret = URL.replace("//", "//someone:pass%2Fword@")
    for sdist in 0, 1:
        for url in secret, URL.replace("//", "//onlyatoken@"):
            told = pip("missing", "one", index_url=url, sdist=sdist)
            log = told.output.decode()
            assert told.status == 1 and "Looking in indexes" in log, log
            for word in "someone", "pass", "word", "onlyatoken", "***":
                assert word not in log, log
    assert "one" in names() or installed("one", index_url=secret)


@test
def source_is_built_only_where_the_operator_allows_it():
    told = pip("source")
    assert told.status == 1 and b"No matching distribution" in told.output, told
    told = pip("source", sdist=1)
    assert b"source-1.0.tar.gz" in told.output, told


@test
def a_client_decides_nothing_of_it():
    """What it puts into the request is no word of the operator's."""
    fresh()
    with Cell(site=site, network="host", memory="512m") as cell:
        with cell.lease(index_url="http://127.0.0.1:1/simple") as lease:
            lease.start("PIP", args=["one"], index_url=URL, sdist=1, ca=1,
                        wall_ms=60000, output_max=100000)
            told = lease.finish()
    assert told.status == 1 and b"127.0.0.1:1/" in told.output, told
    assert names() == []
    told = pip("source", sdist=0, ca=1)
    assert told.status == 1 and b"No matching distribution" in told.output, told


@test
def a_wheel_cannot_ask_for_a_build():
    """--only-binary is about what an index offers, not about what a wheel
    names by its address: that would run with network, and could be a file of
    the user's own."""
    for name, address in (("archive", URL[:-7] + "/files/built-1.tar.gz"),
                          ("folder", "file:///site/planted"),
                          ("file", "file:///site/planted.tar.gz"),
                          ("checkout", "git+file:///site/planted")):
        fresh()
        for path, text in backend("built").items():
            plant("planted/" + path, text)
        with open(site + "/planted.tar.gz", "wb") as file:
            file.write(FILES["built-1.tar.gz"])
        FILES["by_%s-1-py3-none-any.whl" % name] = wheel(
            "by_" + name, "1", {}, ["built @ " + address])
        told = pip("by-" + name)
        assert "ran" not in names(), (name, told)
        assert told.reason == N.REASON_EXIT and told.status > 0, (name, told)
        # pip looks for a git to know whether it can
        assert name == "checkout" or (b"by-%s asks for built from "
                                      % name.encode() in told.output), told


@test
def a_wheel_sends_this_cell_to_no_address():
    """Nor to one that has a wheel."""
    fresh()
    FILES["two_more-1.0-py3-none-any.whl"] = wheel("two_more", "1.0", {})
    there = "/elsewhere/two_more-1.0-py3-none-any.whl"
    FILES["by_wheel-1-py3-none-any.whl"] = wheel(
        "by_wheel", "1", {}, ["two-more @ " + URL[:-7] + there])
    told = pip("by-wheel")
    assert told.status > 0 and names() == [], told
    assert b"only packages of the index are installed" in told.output, told
    assert there not in asked, asked


REFUSED = ["-r", "--index-url=http://x", "-e .", "/site", "./x", "../x", ".",
           "http://x/y.whl", "x @ http://y", "x@file:///etc", "git+ssh://x",
           "x y", "x;y:z", "x/y", "", " ", "x\ny", "x\0", "x==1 --hash=1",
           "-", "x[", "x[a", "x[a]]b", "x==1 2", "x==", "x>=1,", "x=1", "x<", "x(==1", "x 1", "$(id)", "`id`", "x&y", "x|y",
           "\u00e9", "x" * 501, "x\\y", "[x]", "==1", "_x", "x_", "file:x"]
TAKEN = ["two", "two==1.0", "two >= 1 , < 3", "two[extra,b]>=1",
         " two ", "TWO", "two~=1.0", "two==1.*", "two!=5; python_version>'3'",
         'two ; sys_platform == "linux" and (python_version >= "3.8")',
         "two (>=1)"]


@test
def only_plain_requirements_are_taken():
    fresh()
    with Cell(site=site, network="host") as cell, cell.lease() as lease:
        for word in REFUSED:
            lease.start("PIP", args=[word], wall_ms=5000, output_max=1000)
            told = lease.finish()
            assert told.code == N.ERROR_REQUEST, (word, told)
        lease.start("PIP", wall_ms=5000, output_max=1000)
        assert lease.finish().code == N.ERROR_REQUEST
    told = installed(*TAKEN)
    assert "two.py" in names(), told


@test
def nothing_of_the_user_runs_in_it():
    fresh()
    evil = "open('/site/ran', 'w').close()"
    for path in ("sitecustomize.py", "usercustomize.py", "pip/__init__.py",
                 "pip/__main__.py", "os.py", "ctypes/__init__.py", "serve.py",
                 "two-0.1.dist-info/x.py", "distutils-precedence.py",
                 "setuptools/__init__.py", "_distutils_hack/__init__.py"):
        plant(path, evil)
    plant("a.pth", "import os; " + evil)
    installed("two")
    assert "ran" not in names() and "two-0.1.dist-info" not in names()


@test
def planted_links_and_records_lead_nowhere():
    fresh()
    kept = os.path.join(outside, "kept")
    open(kept, "w").close()
    os.chmod(outside, 0o777)
    plant("one-0.1.dist-info/RECORD", "../../outside/kept,,\n/outside/kept,,\n"
          "link/kept,,\n../../bin/../../outside/kept,,\n,,\n\0,,\none.py,,\n" +
          "x" * 5000 + "\n")
    plant("one.py", "")
    os.symlink("/outside", site + "/link")
    os.symlink("/outside", site + "/one")
    os.symlink("/outside", site + "/.il-pip")
    os.symlink("/outside", site + "/two-0.2.dist-info")
    with Cell(site=site, network="host", memory="512m",
              options=["-v", outside + ":/outside"]) as cell:
        with cell.lease(index_url=URL) as lease:
            told = lease.ask("PIP", args=["one"], wall_ms=60000,
                             output_max=100000)
    assert os.path.exists(kept) and os.listdir(outside) == ["kept"], told
    assert "one.py" not in names()
    assert os.path.isdir(site + "/one") and not os.path.islink(site + "/one")


@test
def a_wheel_cannot_write_elsewhere():
    fresh()
    told = pip("evil")
    assert "outside.py" not in names(), (told, names())


@test
def it_ends_in_time_and_leaves_nothing():
    fresh()
    told = pip("slow", wall_ms=3000)
    assert told.reason == N.REASON_TIME, told
    assert names() == []


@test
def its_output_is_limited():
    told = pip("one", output_max=10)
    assert told.reason == N.REASON_OUTPUT and len(told.output) == 10, told


@test
def a_full_disk_is_told():
    own = "uid=%d,gid=%d,size=20m" % (USER, USER)
    with Cell(workspace=False, options=["--tmpfs", "/site:" + own],
              network="host", memory="512m") as cell:
        with cell.lease(index_url=URL) as lease:
            told = lease.ask("PIP", args=["big"], wall_ms=60000,
                             output_max=100000)
            assert told.reason == N.REASON_EXIT and told.status == 1, told
            assert b"No space left" in told.output, told


@test
def it_ends_with_its_client():
    with Cell(site=site, network="host") as cell:
        with cell.lease(index_url=URL) as lease:
            lease.start("PIP", args=["slow"], wall_ms=60000, output_max=9999)
            assert lease.frame()[0] == "STARTED"
            during = set(cell.processes())
        assert cell.idle()
        assert during & set(cell.processes()) == {cell.root_pid()}
    assert names() == []


@test
def an_image_without_pip_is_told():
    path = subprocess.check_output(
        [DOCKER, "run", "--rm", "--network", "none", "--entrypoint", "python3",
         IMAGE, "-c", "import pip; print(pip.__path__[0])"]).decode().strip()
    with Cell(site=site, options=["--tmpfs", path]) as cell:
        with cell.lease(index_url=URL) as lease:
            told = lease.ask("PIP", args=["one"], wall_ms=9000,
                             output_max=1000)
            assert told.code == N.ERROR_FAILED, told
            assert "no pip" in told.text


@test
def user_code_does_not_run_where_there_is_network():
    with Cell(site=site, network="host") as cell, cell.lease() as lease:
        for op in ("RUN", "READ", "LIST", "STAT", "REMOVE", "WRITE"):
            lease.start(op, path="x", wall_ms=1000, output_max=9)
            assert lease.finish().code == N.ERROR_REQUEST, op


@test
def nor_by_the_request_that_is_read_in_c_elsewhere():
    for options in (), ("--tmpfs", "/workspace:mode=1777"):
        with Cell(site=site, network="host", options=options) as cell, \
                cell.lease() as lease:
            for folder in "/workspace", "/home":
                lease.send("REQUEST", ("OP", N.OP_RUN), ("PLAIN", 1),
                           ("FOLDER", folder), ("ENV", "A=1"),
                           ("WALL_MS", 1000), ("OUTPUT_MAX", 9))
                lease.send_part("ARGS", b"-c\0print(1)\0")
                lease.send("GO")
                assert lease.finish().code == N.ERROR_REQUEST, folder


@test
def what_cannot_be_put_in_its_place_is_told():
    fresh()
    os.mkdir(site + "/one")     # and it is root's
    told = pip("one")
    assert (told.reason, told.code) == (N.REASON_ERROR,
                                        N.ERROR_PERMISSION), told
    os.rmdir(site + "/one")
    installed("one")


site = tempfile.mkdtemp(prefix="cell-site-")
outside = tempfile.mkdtemp(prefix="cell-outside-")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = "http://127.0.0.1:%d/simple" % server.server_port
try:
    os.chown(site, USER, USER)
    run()
finally:
    server.shutdown()
    shutil.rmtree(site)
    shutil.rmtree(outside)
