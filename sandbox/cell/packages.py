"""OP_PIP: install packages into /site, the only thing that a pip cell mounts.

This cell has network, so no code of the user's may run in it.  Hence python -I
(nothing below /site is on its path, not even a .pth file of it is read), and
pip never installs into /site itself: it fills an empty folder beside, and what
it made is moved over here.  That is also what makes upgrades right: pip's own
--target deletes whole folders that packages share, and leaves the metadata of
the versions it replaces.
"""

import os
import stat
import sys

from files import (DIRECTORY, READ, empty, enter_any, look, refuse_kind,
                   remove_directory, split, walk)
from frames import ERROR_FAILED, ERROR_REQUEST, Failure

SITE = "/site"
WORK = ".il-pip"        # below SITE: its room, not the container's memory
CA_BUNDLE = "/run/ca.pem"
RECORD_MAX = 16 << 20

LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALNUM = LETTERS + b"0123456789"
NAME = ALNUM + b"._-"
SPECIFIERS = ALNUM + b"._-+*!<>=~, ()"
MARKERS = SPECIFIERS + b"'\""


def check_requirement(word):
    """Failure unless word is a plain requirement of PEP 508:

        name [extras] version specifiers ; markers

    The worker has checked it; this is the second lock.  No option, no path, no
    URL, no direct reference: none of them can be written without one of the
    characters that are missing here ("-" at the start, "/", ":", "@").
    """
    name, _, markers = word.strip().partition(b";")
    name = name.strip()
    end = 0
    while end < len(name) and name[end] in NAME:
        end += 1
    extras = b""
    rest = name[end:].lstrip()
    if rest.startswith(b"["):
        extras, closed, rest = rest[1:].partition(b"]")
        if not closed:
            rest = b"["
    if (not 0 < len(word) <= 500 or end == 0
            or name[0] not in ALNUM or name[end - 1] not in ALNUM
            or any(c not in NAME + b", " for c in extras)
            or any(c not in SPECIFIERS for c in rest)
            or (rest and rest[0] not in b"<>=!~(")
            or any(c not in MARKERS for c in markers)):
        raise Failure(ERROR_REQUEST, "not a requirement: %r" % word)


def command(requirements, index_url, sdist, ca):
    """pip's argument vector."""
    argv = [sys.executable, "-I", "-u", "-m", "pip", "install",
            "--target", "%s/%s/new" % (SITE, WORK),
            "--no-input", "--disable-pip-version-check", "--no-cache-dir",
            "--no-warn-script-location", "--progress-bar", "off", "--no-color"]
    if not sdist:
        argv += ["--only-binary", ":all:"]
    if index_url:
        argv += ["--index-url", index_url]
    if ca:
        argv += ["--cert", CA_BUNDLE]
    return argv + ["--"] + [word.strip() for word in requirements]


def environment():
    """pip's environment: nothing but what it needs, and the operator's proxy."""
    names = ("PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
             "http_proxy", "https_proxy", "no_proxy")
    env = {name: os.environ[name] for name in names if name in os.environ}
    env.update(HOME="/tmp", TMPDIR="%s/%s" % (SITE, WORK),
               PIP_CONFIG_FILE=os.devnull, PYTHONUTF8="1")
    return env


def refuse_without_pip():
    """Failure when the image has no pip."""
    if not any(os.path.exists(path + "/pip/__main__.py") for path in sys.path):
        raise Failure(ERROR_FAILED, "the image has no pip")


def prepare():
    """An empty folder for pip to work in."""
    discard()
    os.mkdir("%s/%s" % (SITE, WORK))


def discard():
    """Remove what pip has left, if anything."""
    site = os.open(SITE, DIRECTORY)
    try:
        if look(WORK, site) is not None:
            empty(enter_any(WORK, site))
            os.rmdir(WORK, dir_fd=site)
    finally:
        os.close(site)


def execute(argv, env):
    """In the child: become pip.  Does not return."""
    os.chdir("%s/%s" % (SITE, WORK))
    os.execve(argv[0], argv, env)


# ---- moving what pip has made into /site ----

def adopt():
    """Put the new packages in the place of older ones."""
    new = SITE + "/" + WORK + "/new"
    for name in os.listdir(new):
        if name.endswith(".dist-info"):
            for old in installed(project(name)):
                uninstall(old)
    merge(walk(SITE, [WORK, "new"]), os.open(SITE, DIRECTORY))


def project(dist_info):
    """The normalised name of the project of a name-version.dist-info."""
    name = dist_info[:-len(".dist-info")].rpartition("-")[0] or dist_info
    return "-".join(part for part in
                    name.lower().replace("_", "-").replace(".", "-").split("-")
                    if part)


def installed(name):
    """The metadata folders of a project in /site: one, or none."""
    return [found for found in os.listdir(SITE)
            if found.endswith(".dist-info") and project(found) == name]


def uninstall(dist_info):
    """Remove the files of an installed project, and the folders they leave
    empty.  What its RECORD says is not to be trusted: nothing is followed, and
    nothing outside is touched."""
    folders = set()
    for line in read_record(dist_info):
        path = line.rsplit(b",", 2)[0].strip(b'"')
        try:
            if path.startswith(b"../../bin/"):  # where --target puts scripts
                path = path[6:]
            names = split(path)
            remove_file(names)
        except (Failure, OSError):
            continue
        folders.update(tuple(names[:depth]) for depth in range(1, len(names)))
        remove_byte_code(names)
    for names in sorted(folders, key=len, reverse=True):
        remove_folder_if_empty(names)
    site = os.open(SITE, DIRECTORY)
    try:
        if look(dist_info, site) is not None:
            empty(enter_any(dist_info, site))
            os.rmdir(dist_info, dir_fd=site)
    finally:
        os.close(site)


def read_record(dist_info):
    try:
        folder = walk(SITE, [dist_info])
        try:
            fd = os.open("RECORD", READ, dir_fd=folder)
        finally:
            os.close(folder)
    except (Failure, OSError):
        return []
    with open(fd, "rb") as record:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        return record.read(RECORD_MAX).splitlines()


def remove_file(names):
    folder = walk(SITE, names[:-1])
    try:
        os.unlink(names[-1], dir_fd=folder)
    finally:
        os.close(folder)


def remove_byte_code(names):
    """Byte code that is not in RECORD would keep its folder from going."""
    if not names[-1].endswith(".py"):
        return
    try:
        folder = walk(SITE, names[:-1] + ["__pycache__"])
    except (Failure, OSError):
        return
    try:
        for name in os.listdir(folder):
            if name.startswith(names[-1][:-2]) and name.endswith(".pyc"):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)
    remove_folder_if_empty(names[:-1] + ["__pycache__"])


def remove_folder_if_empty(names):
    try:
        folder = walk(SITE, names[:-1])
        try:
            os.rmdir(names[-1], dir_fd=folder)
        finally:
            os.close(folder)
    except (Failure, OSError):
        pass


def merge(source, target):
    """Move all that is in one folder into another, folder into folder; both
    descriptors are closed.  Folders that packages share are merged."""
    try:
        for name in os.listdir(source):
            new = look(name, source)
            old = look(name, target)
            if old is not None and not (stat.S_ISDIR(new.st_mode)
                                        and stat.S_ISDIR(old.st_mode)):
                if stat.S_ISDIR(old.st_mode):
                    empty(enter_any(name, target))
                    remove_directory(name, target)
                else:
                    os.unlink(name, dir_fd=target)
                old = None
            if old is None:
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
            else:
                merge(os.open(name, DIRECTORY, dir_fd=source),
                      enter_any(name, target))
    finally:
        os.close(source)
        os.close(target)
