#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""OP_PACKAGES and OP_UNINSTALL, among packages whose metadata lie."""

import os
import shutil
import subprocess
import tempfile

from driver import USER, N, Cell
from tap import run, test

LIMITS = {"count": 1000, "max_bytes": 1 << 20, "output_max": 200000,
          "wall_ms": 9000}


def plant(path, text=""):
    path = os.path.join(site, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def package(name, version, *files, record=()):
    """A package of those files; record: more lines of its RECORD."""
    info = "%s-%s.dist-info/" % (name, version)
    for path in files:
        plant(path, "x" * 100)
    plant(info + "METADATA", "Name: " + name)
    plant(info + "RECORD", "".join(
        "%s,sha256=x,100\n" % path for path in files) +
        "".join(line + "\n" for line in record) + info + "RECORD,,\n")


def fresh():
    for name in os.listdir(site):
        path = os.path.join(site, name)
        shutil.rmtree(path) if os.path.isdir(path) and not \
            os.path.islink(path) else os.unlink(path)


def own():
    subprocess.check_call(["chown", "-R", "-h", "%d:%d" % (USER, USER), site])


def parts(answer):
    assert answer.reason == N.REASON_EXIT and answer.status == 0, answer
    return answer.output.decode().split("\0")[:-1]


def listed(**limits):
    """Without the version of Python."""
    own()
    with cell.lease(access=N.ACCESS_TIDY) as lease:
        told = lease.ask("PACKAGES", **dict(LIMITS, **limits))
    assert cell.idle()
    found = parts(told)
    assert found[0][0] == "v" and found[0][1:].count(".") == 1, found
    return found[1:]


def remove(name):
    own()
    with cell.lease(access=N.ACCESS_TIDY) as lease:
        told = lease.ask("UNINSTALL", name=name, wall_ms=9000)
    assert cell.idle()
    return told


def removed(name):
    told = remove(name)
    assert told.reason == N.REASON_EXIT and told.status == 0, told


def there():
    return sorted(
        os.path.relpath(os.path.join(folder, name), site)
        for folder, _, names in os.walk(site) for name in names)


def removes(*name):
    """What is told of OP_UNINSTALL."""
    own()
    with cell.lease(access=N.ACCESS_TIDY) as lease:
        told = lease.ask("UNINSTALL", wall_ms=9000, count=99,
                         output_max=9999, **{"name": one for one in name})
    assert cell.idle()
    assert told.reason == N.REASON_EXIT and told.status == 0, told
    return parts(told)


def needs(name, *others, asked=False):
    """A project that needs others, and was asked for or not."""
    package(name, "1.0", name + ".py")
    plant(name + "-1.0.dist-info/METADATA", "Name: %s\n%s\n\n%s\n" % (
        name, "\n".join("Requires-Dist: " + other for other in others),
        "Requires-Dist: body"))
    if asked:
        plant(name + "-1.0.dist-info/REQUESTED")


@test
def what_nothing_needs_any_more_is_told_and_removed():
    fresh()
    needs("app", "Lib_A>=1; python_version > '3'", "both (>=1)", asked=True)
    needs("lib_a", "deep", "round")
    needs("deep")
    needs("round", "lib-a")
    needs("both", "body")
    needs("body")
    needs("other", "BOTH[x] ; extra == 'y'", asked=True)
    assert removes("app") == ["pdeep", "plib_a", "pround"]
    assert "deep.py" in there() and "both.py" in there()
    assert removes() == ["pdeep", "plib_a", "pround"]
    assert [name for name in there() if "/" not in name] == [
        "body.py", "both.py", "other.py"], there()
    assert removes() == []


@test
def where_nothing_is_marked_nothing_is_told():
    fresh()
    needs("app", "lib")
    needs("lib")
    assert removes("app") == []
    assert "lib.py" in there()


@test
def what_is_installed_is_listed():
    fresh()
    assert listed() == []
    package("one", "1.0", "one/__init__.py", "one/b.py")
    package("two_more", "2.0b1", "two.py")
    plant("loose.py")
    plant("odd.dist-info/METADATA")
    assert listed() == ["podd", "pone", "n1.0", "s200", "ptwo_more", "n2.0b1",
                        "s100"]
    assert listed(max_bytes=0) == ["podd", "pone", "n1.0", "ptwo_more",
                                   "n2.0b1"]
    assert listed(count=2) == ["podd", "pone", "n1.0", "s200"]
    with Cell(options=["-v", site + ":/workspace/.site-packages:ro"]) as user, \
            user.lease(access=N.ACCESS_TIDY) as lease:
        assert len(parts(lease.ask("PACKAGES", **LIMITS))) == 8
        assert lease.ask("UNINSTALL", name="one").code == N.ERROR_REQUEST
    with Cell() as user, user.lease() as lease:
        assert len(parts(lease.ask("PACKAGES", **LIMITS))) == 1


@test
def one_is_removed_and_the_others_stay():
    fresh()
    package("one", "1.0", "one/__init__.py", "shared/a.py", "bin/one")
    package("Two.More", "2.0", "two.py", "shared/b.py")
    plant("one/__pycache__/__init__.cpython-311.pyc")
    plant("shared/__pycache__/a.cpython-311.pyc")
    plant("shared/__pycache__/b.cpython-311.pyc")
    plant("loose.py")
    removed("ONE")
    assert there() == [
        "Two.More-2.0.dist-info/METADATA", "Two.More-2.0.dist-info/RECORD",
        "loose.py", "shared/__pycache__/b.cpython-311.pyc", "shared/b.py",
        "two.py"], there()
    assert remove("one").code == N.ERROR_NOT_FOUND
    removed("two_more")
    assert there() == ["loose.py"], there()
    assert os.listdir(site) == ["loose.py"]


@test
def what_is_no_name_is_not_found():
    fresh()
    package("one", "1.0", "one.py")
    before = there()
    for name in ("", ".", "..", "../one", "one-1.0", "one/", "*", "/", "-",
                 "\udcff", "x" * 5000):
        told = remove(os.fsencode(name))
        assert told.code == N.ERROR_NOT_FOUND, (name, told)
    assert there() == before


@test
def a_record_that_lies_reaches_nothing_else():
    fresh()
    outside = os.path.join(parent, "outside")
    os.makedirs(outside)
    for name in "a", "b", "c":
        with open(os.path.join(outside, name), "w") as file:
            file.write("stays")
    subprocess.check_call(["chmod", "-R", "a+rwX", parent])
    os.symlink("/outside", os.path.join(site, "link"))
    os.symlink("/outside/c", os.path.join(site, "file"))
    package("evil", "1", "evil.py", record=(
        "/outside/a,,", "../outside/a,,", "../../outside/a,,",
        "x/../../outside/a,,", "link/b,,", "link/../outside/b,,", "file,,",
        "\"evil,,", "evil.py", "", ",", "a" * 5000 + ",,", "\0,,", ".,,",
        "evil-1.dist-info,,", "../../bin/../../outside/a,,", "..,,",
        "//outside/a,,"))
    own()
    with Cell(site=site, options=["-v", outside + ":/outside"]) as near, \
            near.lease(access=N.ACCESS_TIDY) as lease:
        told = lease.ask("UNINSTALL", name="evil", wall_ms=9000)
        assert told.status == 0, told
        assert parts(lease.ask("PACKAGES", **LIMITS))[1:] == []
    for name in "a", "b", "c":
        assert os.path.exists(os.path.join(outside, name)), name
    assert os.listdir(site) == ["link"], os.listdir(site)


@test
def metadata_that_is_no_file_is_removed_as_it_is():
    fresh()
    os.makedirs(os.path.join(site, "pipe-1.dist-info"))
    os.mkfifo(os.path.join(site, "pipe-1.dist-info", "RECORD"))
    os.symlink("/etc", os.path.join(site, "link-1.dist-info"))
    os.makedirs(os.path.join(site, "folder-1.dist-info", "RECORD", "deep"))
    plant("plain-1.dist-info")
    plant("large-1.dist-info/RECORD", "x,,1\n" * (17 << 18))
    assert listed() == ["pfolder", "n1", "plarge", "n1", "plink", "n1",
                        "ppipe", "n1", "pplain", "n1"]
    for name in "pipe", "link", "folder", "plain", "large":
        removed(name)
    assert os.listdir(site) == [] and os.path.exists("/etc/passwd")


@test
def nothing_else_is_done_there():
    for access, wrong in ((N.ACCESS_TIDY, ("RUN", "LIST", "NAMES", "PIP")),
                          (N.ACCESS_WRITE, ("REMOVE", "UNINSTALL", "NAMES"))):
        with cell.lease(access=access) as lease:
            for op in wrong:
                told = lease.ask(op, path="x", name="x", wall_ms=1000,
                                 output_max=9)
                assert told.code == N.ERROR_REQUEST, (op, told)
        assert cell.idle()


parent = tempfile.mkdtemp(prefix="cell-packages-")
site = os.path.join(parent, "site")
os.makedirs(site)
os.chmod(parent, 0o755)
try:
    own()
    with Cell(site=site) as cell:
        run()
finally:
    shutil.rmtree(parent)
