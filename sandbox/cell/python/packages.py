# SPDX-License-Identifier: MIT
"""OP_PIP: install packages into /site, the only thing that a pip cell mounts;
OP_PACKAGES and OP_UNINSTALL: what is installed, and one of it less.

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

from files import (CREATE, DIRECTORY, PACKAGES, READ, enter_any, look, remove_all,
                   split, walk)
from frames import (ERROR_FAILED, ERROR_NOT_FOUND, ERROR_REQUEST, TAG_MAX_BYTES,
                    TAG_NAME, TAG_TOTAL, Failure)
from names import Told

SITE = "/site"
WORK = ".il-pip"        # below SITE: its room, not the container's memory
CA_BUNDLE = "/run/ca.pem"
RECORD_MAX = 16 << 20
METADATA_MAX = 1 << 20
RECORD_LINES = 100000   # the rest of a longer one is left where it is

# How pip runs: whoever reads its log is not told by whose name and password the
# operator's index was asked (pip itself hides the password alone).  And a pip
# that would trust the image's certificates, too, trusts those alone that it is
# given: otherwise it cannot use an index that is named by an address.
PIP = """
import logging, re, runpy, sys
said = []
make = logging.getLogRecordFactory()
def hide(*args, **fields):
    record = make(*args, **fields)
    text = record.getMessage()
    hidden = re.sub(r"(?i)(https?://)[^/\\s@]*@", r"\\1", text)
    said.append(text)
    if hidden != text:
        record.msg, record.args = hidden, ()
    return record
logging.setLogRecordFactory(hide)
try:
    from pip._internal.cli.cmdoptions import use_deprecated_feature
    if "legacy-certs" in use_deprecated_feature.keywords["choices"]:
        sys.argv.insert(2, "--use-deprecated=legacy-certs")
except (ImportError, AttributeError, KeyError):
    pass
"""
# And where only wheels are installed: starting no program, since each would be
# the build of a source or would fetch one; what pip asks the C library of Alpine,
# to know which wheels fit, may be run.  And nothing from an address that a
# wheel's metadata names (--only-binary is about what an index offers): whoever
# made that wheel could have this cell ask any host that it reaches.
GUARD = """
from pip._internal.exceptions import InstallationError
from pip._internal.req.req_install import InstallRequirement
begin = InstallRequirement.__init__
def refuse(self, req, comes_from, *args, **fields):
    if getattr(req, "url", None):
        raise InstallationError("%s asks for %s from %s: only packages of the "
                                "index are installed" % (
            getattr(comes_from, "name", None) or "a package", req.name,
            req.url))
    begin(self, req, comes_from, *args, **fields)
InstallRequirement.__init__ = refuse
STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system",
          "os.fork", "os.forkpty"}
def guard(event, args):
    if event in STARTS and not (
            args and str(args[0]).startswith("/lib/ld-musl-")):
        raise OSError("only wheels are installed, nothing is built")
sys.addaudithook(guard)
"""
# pip says of a project that is not there, and of one that it may not take, the
# same words.  So the page that it has looked at is looked at once more, and a
# line tells the worker which it was (worker/render/render_files.c).
START = r"""
pages = {}
def explain():
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.version import InvalidVersion, Version
    missing = [text.partition(" found for ")[2] for text in said
               if text.startswith("No matching distribution found for ")]
    if not missing:
        return
    need = Requirement(missing[-1])
    name = re.sub("[-_.]+", "-", need.name).lower()
    session, url, headers, status = pages[name]
    if status == 404:
        print("Inline: no project " + need.name, flush=True)
    if status != 200:
        return
    found = set()
    for file, kind in re.findall(
            r"([^\s\"'<>/#?&=]+)([.]whl|[.]tar[.]gz|[.]zip)(?![.\w])",
            session.get(url, headers=headers).text):
        version = (file.split("-")[1:2] if kind == ".whl"
                   else file.rpartition("-")[2:])
        try:
            found.add(Version(*version))
        except (InvalidVersion, TypeError):
            pass
    if not found or any(need.specifier.contains(one, prereleases=True)
                        for one in found):
        print("Inline: no wheel " + str(need), flush=True)
        return
    fits = set()
    for text in said:
        some = re.search(r"\(from versions: ([^)]*)\)", text)
        for one in some[1].split(", ") if some else ():
            fits.update(each for each in found if str(each) == one)
    newest = map(str, sorted(fits or found, reverse=True)[:5])
    print("Inline: no version %s: %s" % (need, ", ".join(newest)), flush=True)
try:
    from pip._vendor.requests.sessions import Session
    send = Session.send
    def see(self, request, **options):
        answer = send(self, request, **options)
        if not options.get("stream"):
            name = request.url.rstrip("/").rpartition("/")[2].lower()
            pages[name] = (self, request.url, request.headers,
                           answer.status_code)
        return answer
    Session.send = see
except (ImportError, AttributeError):
    pass
try:
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
except SystemExit as end:
    if end.code:
        try:
            explain()
        except Exception:
            pass
    raise
"""

LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALNUM = LETTERS + b"0123456789"
NAME = ALNUM + b"._-"
EXTRAS = NAME + b", "
VERSION = ALNUM + b"._-+*!"
MARKERS = VERSION + b"<>=~, ()'\""
COMPARISONS = (b"===", b"==", b"~=", b"!=", b"<=", b">=", b"<", b">")


def check_requirement(word):
    """Failure unless word is a plain requirement of PEP 508:

        name [extras] comparisons ; markers

    The worker has checked it; this is the second lock.  No option, no path, no
    URL, no direct reference: each of them takes a character that is not
    allowed here, "-" at the start, or "/", ":", "@", or a space.
    """
    rest, _, markers = word.strip().partition(b";")
    name, rest = span(rest.strip(), NAME)
    if rest.startswith(b"["):
        extras, rest = span(rest[1:], EXTRAS)
        rest = rest[1:] if extras and rest.startswith(b"]") else b"["
    rest = rest.strip()
    if rest.startswith(b"(") and rest.endswith(b")"):
        rest = rest[1:-1]
    if not (0 < len(word) <= 500 and name
            and name[0] in ALNUM and name[-1] in ALNUM
            and (not rest or all(map(is_comparison, rest.split(b","))))
            and not span(markers, MARKERS)[1]):
        raise Failure(ERROR_REQUEST, "not a requirement: %r" % word)


def span(text, allowed):
    """What text begins with of the allowed bytes, and the rest of it."""
    end = 0
    while end < len(text) and text[end] in allowed:
        end += 1
    return text[:end], text[end:].lstrip()


def is_comparison(text):
    text = text.strip()
    for comparison in COMPARISONS:
        if text.startswith(comparison):
            version = text[len(comparison):].strip()
            return bool(version) and not span(version, VERSION)[1]
    return False


def command(requirements, sdist, ca):
    """pip's argument vector."""
    argv = [sys.executable, "-I", "-u", "-c",
            PIP + ("" if sdist else GUARD) + START, "install",
            "--target", "%s/%s/new" % (SITE, WORK),
            "--no-input", "--disable-pip-version-check", "--no-cache-dir",
            "--no-warn-script-location", "--progress-bar", "off", "--no-color"]
    if not sdist:
        argv += ["--only-binary", ":all:"]
    if ca:
        argv += ["--cert", CA_BUNDLE]
    return [*argv, "--", *(word.strip() for word in requirements)]


def environment(index_url):
    """pip's environment: what it needs, and the operator's proxy.  The index
    is in it, and no argument, since those are for all of the host to see."""
    names = ("PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
             "http_proxy", "https_proxy", "no_proxy")
    env = {name: os.environ[name] for name in names if name in os.environ}
    env.update(HOME="/tmp", TMPDIR="%s/%s" % (SITE, WORK),
               PIP_CONFIG_FILE=os.devnull, PYTHONUTF8="1")
    if index_url:
        env["PIP_INDEX_URL"] = os.fsdecode(index_url)
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
            remove_all(WORK, site)
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
                if is_requested(old):   # and comes now for another's sake
                    keep_mark(new, name)
                uninstall(old)
    merge(walk(SITE, [WORK, "new"]), os.open(SITE, DIRECTORY))


def keep_mark(new, dist_info):
    """A project that was asked for stays one that was."""
    folder = walk(new, [dist_info])
    try:
        if look("REQUESTED", folder) is None:
            os.close(os.open("REQUESTED", CREATE, 0o644, dir_fd=folder))
    finally:
        os.close(folder)


def project(dist_info):
    """The normalised name of the project of a name-version.dist-info."""
    name = dist_info[:-len(".dist-info")].rpartition("-")[0] or dist_info
    return normal(name)


def normal(name):
    return "-".join(part for part in
                    name.lower().replace("_", "-").replace(".", "-").split("-")
                    if part)


def installed(name):
    """The metadata folders of a project in /site: one, or none."""
    return [found for found in os.listdir(SITE)
            if found.endswith(".dist-info") and project(found) == name]


# ---- what is installed, and one of it less ----

def send_packages(root, lease, request):
    """OP_PACKAGES, in a cell of packages and in one of the user's."""
    told = Told(request)
    most = request.number(TAG_MAX_BYTES)
    told.add(b"v", b"%d.%d" % sys.version_info[:2])
    site = root if root == SITE else "%s/%s" % (root, PACKAGES)
    found = sorted(name for name in list_site(site)
                   if name.endswith(".dist-info"))
    for name in found:
        title, _, version = os.fsencode(
            name[:-len(".dist-info")]).rpartition(b"-")
        lease.check()
        if told.add_counted(b"p", title or version) and title:
            told.add(b"n", version)
            size = recorded_size(site, name, most)
            if size is not None:
                told.add(b"s", b"%d" % size)
    told.send(lease)
    return ((TAG_TOTAL, len(found)),)


def list_site(site):
    try:
        return os.listdir(site)
    except OSError:         # there are none, or it is locked
        return []


def recorded_size(site, dist_info, most):
    """The bytes of a project's files, as its RECORD has them; None where that
    is missing, or longer than `most`."""
    record = read_record(dist_info, site, most + 1) if most > 0 else b""
    if not 0 < len(record) <= most:
        return None
    total = 0
    for line in lines_of(record):
        size = line.rpartition(b",")[2].strip()
        if size.isdigit() and len(size) < 12:
            total += int(size)
    return total


def uninstall_project(root, lease, request):
    """OP_UNINSTALL: by the name of the project, in any way to write it.  What
    nothing needs any more is told, as OUTPUT with a 'p', its name and a NUL for
    each, within COUNT and OUTPUT_MAX.  Without a name: that is removed."""
    told = Told(request)
    name = request.data(TAG_NAME)
    if name is None:
        found = unneeded(lease)
    else:
        name = normal(os.fsdecode(name))
        found = installed(name) if name else []
        if not found:
            raise Failure(ERROR_NOT_FOUND, "not installed")
    marked = any(map(is_requested, list_site(SITE)))
    for dist_info in found:
        uninstall(dist_info, lease)
    # an older pip marks none: then it cannot be told
    rest = found if name is None else unneeded(lease) if marked else ()
    for dist_info in rest:
        told.add_counted(b"p", os.fsencode(
            dist_info[:-len(".dist-info")].rpartition("-")[0] or dist_info))
    told.send(lease)
    return ()


def is_requested(dist_info):
    """Was it asked for by its name?  pip marks those that were."""
    site = os.open(SITE, DIRECTORY)
    try:
        return look(dist_info + "/REQUESTED", site) is not None
    except OSError:
        return False
    finally:
        os.close(site)


def unneeded(lease):
    """Return the metadata folders of projects that nobody has asked for, and
    that none of those needs which somebody has."""
    found = {project(name): name for name in list_site(SITE)
             if name.endswith(".dist-info")}
    todo = [name for name in found if is_requested(found[name])]
    needed = set(todo)
    while todo:
        lease.check()
        for name in needs_of(found[todo.pop()]):
            if name in found and name not in needed:
                needed.add(name)
                todo.append(name)
    return sorted(found[name] for name in set(found) - needed)


def needs_of(dist_info):
    """Yield the projects that it may need, whatever its markers and extras say."""
    head = read_record(dist_info, most=METADATA_MAX, file="METADATA")
    for line in lines_of(head.partition(b"\n\n")[0].replace(b"\r", b"")):
        key, _, value = line.partition(b":")
        if key.lower() == b"requires-dist":
            yield normal(os.fsdecode(span(value.strip(), NAME)[0]))


def uninstall(dist_info, lease=None):
    """Remove the files of an installed project, and the folders they leave
    empty.  What its RECORD says is not to be trusted: nothing is followed, and
    nothing outside is touched."""
    folders = set()
    for line in lines_of(read_record(dist_info)):
        if lease is not None:
            lease.check()
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
            remove_all(dist_info, site)
    finally:
        os.close(site)


def read_record(dist_info, site=SITE, most=RECORD_MAX, file="RECORD"):
    try:
        folder = walk(site, [dist_info])
        try:
            fd = os.open(file, READ, dir_fd=folder)
        finally:
            os.close(folder)
    except (Failure, OSError):
        return b""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        return b""
    with open(fd, "rb") as record:
        return record.read(most)


def lines_of(record):
    return record.split(b"\n", RECORD_LINES)[:RECORD_LINES]


def remove_file(names):
    if not names:
        raise Failure(ERROR_REQUEST, "no file")
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
                remove_all(name, target)
                old = None
            if old is None:
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
            else:
                merge(os.open(name, DIRECTORY, dir_fd=source),
                      enter_any(name, target))
    finally:
        os.close(source)
        os.close(target)
