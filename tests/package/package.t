#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The Debian packages, made of the programs that are built: what is in them,
what they do when they are installed, upgraded, removed and purged, the signed
repository, and inline-standin.
"""

import atexit
import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)
from service import BUILD, DOCKER, IMAGE, ROOT, Service  # noqa: E402
from tap import Skip, run, test  # noqa: E402
from debroot import ACTIVE, ENABLED, ENV, RESTARTED, Root  # noqa: E402

KEY = "ab" * 32
SOURCE = "/etc/apt/sources.list.d/inline.list"
INSTANCE = "0123456789abcdef"
seen = {}


def command(*words, **more):
    """The output of a command that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT,
                          stdin=subprocess.DEVNULL, check=False, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def made():
    """Make packages and repository, once; their folder."""
    if shutil.which("dpkg-buildpackage") is None:
        raise Skip("this is no Debian")
    if "out" not in seen:
        seen["out"] = tempfile.mkdtemp(prefix="inline-package-")
        home = os.path.join(seen["out"], "gnupg")
        os.mkdir(home, 0o700)
        atexit.register(shutil.rmtree, seen["out"], True)
        atexit.register(subprocess.run, ["gpgconf", "--homedir", home,
                                         "--kill", "all"], check=False)
        seen["said"] = command(
            "make", "-s", "deb-repo", "O=" + seen["out"],
            env={**os.environ, "INLINE_PREBUILT": BUILD, "GNUPGHOME": home,
                 "DEB_BUILD_OPTIONS": "noautodbgsym"})
    assert "said" in seen, "they were not made"
    return seen["out"]


def package(name):
    """The path of a package that was made."""
    found = glob.glob(os.path.join(made(), "deb", name + "_*.deb"))
    assert len(found) == 1, found
    return found[0]


def newer(number):
    """The package as a version `number` would be, with another program."""
    folder = os.path.join(made(), f"newer-{number}")
    command("dpkg-deb", "-R", package("inline"), folder)
    control = os.path.join(folder, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    with open(control, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?m)^Version: .*", f"Version: {number}", text))
    command("dpkg-deb", "-b", folder, folder + ".deb")
    return folder + ".deb"


def unpacked():
    """Both packages' files in a folder."""
    folder = os.path.join(made(), "unpacked")
    if not os.path.exists(folder):
        for name in "inline", "inline-standin":
            command("dpkg-deb", "-x", package(name), folder)
    return folder


def root():
    """The copy of this machine's root, once, with the repository in it."""
    if "root" not in seen:
        seen["root"] = Root()
        shutil.copytree(os.path.join(made(), "deb-repo"),
                        seen["root"].at("/tmp/repo"))
    return seen["root"]


def put(path):
    """A package's name in the copy."""
    shutil.copy(path, root().at("/tmp"))
    return "/tmp/" + os.path.basename(path)


def apt(words):
    """apt-get with our repository alone; (status, output)."""
    return root().run("apt-get -q -o Dir::Etc::sourcelist=" + SOURCE +
                      " -o Dir::Etc::sourceparts=- -o DPkg::Options::="
                      "--no-triggers -o APT::Sandbox::User=root " + words)


def add_repository():
    """As the documentation says."""
    root().sh("install -D -m 644 /tmp/repo/inline.asc "
              "/etc/apt/keyrings/inline.asc")
    root().write(SOURCE, "deb [signed-by=/etc/apt/keyrings/inline.asc] "
                 "file:/tmp/repo ./\n")


@test
def it_is_built_and_lintian_finds_no_error():
    made()
    assert "inline-standin_" in seen["said"], seen["said"]


@test
def programs_units_and_documentation_know_their_places():
    top = unpacked()
    for name in ("usr/sbin/il-fcgi", "usr/bin/ilctl",
                 "usr/lib/inline/nginx/api.conf", "etc/apparmor.d/inline-api",
                 "usr/lib/inline/sql/admin/job.sql",
                 "usr/share/man/man8/ilctl.8.gz",
                 "usr/share/man/man5/inline.conf.5.gz",
                 "usr/share/doc/inline/inline.conf",
                 "usr/lib/sysusers.d/inline.conf",
                 "usr/lib/tmpfiles.d/inline.conf"):
        assert os.path.exists(os.path.join(top, name)), name
    assert glob.glob(top + "/lib/modprobe.d/inline-loop.conf") + \
        glob.glob(top + "/usr/lib/modprobe.d/inline-loop.conf")
    units = glob.glob(top + "/lib/systemd/system/*") + \
        glob.glob(top + "/usr/lib/systemd/system/*")
    assert len(units) == len(glob.glob(ROOT + "/systemd/*.service")) + \
        len(glob.glob(ROOT + "/systemd/*.socket")) + \
        len(glob.glob(ROOT + "/systemd/*.timer")) + 1, units
    for path in units:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for program in re.findall(r"^Exec\w+=[-+]?(\S+)", text, re.M):
            if program.startswith("/usr/") and "il" in program:
                assert os.access(top + program, os.X_OK), (path, program)
        assert "/usr/local" not in text and "@PREFIX@" not in text, path
    # Each command of the documentation finds its files.
    for name in ("README.md", "nginx/README.md", "systemd/INSTALL.md",
                 "systemd/OPERATE.md"):
        with open(f"{top}/usr/share/doc/inline/{name}",
                  encoding="utf-8") as file:
            text = file.read()
        assert "/usr/local/" not in text, name
        for path in re.findall(r"/usr/share/doc/inline/[\w./-]*\w", text):
            assert os.path.exists(top + path), (name, path)


@test
def programs_find_their_library_beside_themselves():
    text = subprocess.run([unpacked() + "/usr/bin/ilctl", "doctor"],
                          capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"]}, cwd="/").stdout
    assert f"library: {unpacked()}/usr/lib/inline\n" in text, text


@test
def the_repository_is_taken_by_its_key_alone():
    add_repository()
    status, text = apt("update")
    assert status == 0 and "InRelease" in text, text
    root().sh("gpg --batch --homedir /tmp --passphrase '' --quick-gen-key x "
              "ed25519 2>/dev/null; gpg --homedir /tmp --armor --export x "
              ">/etc/apt/keyrings/inline.asc; gpgconf --homedir /tmp "
              "--kill all")
    status, text = apt("update -o APT::Update::Error-Mode=any")
    assert status != 0 and "NO_PUBKEY" in text, text
    add_repository()
    root().sh("cp -r /tmp/repo /tmp/other && "
              "sed -i s/Description/description/ /tmp/other/Packages && "
              "rm /tmp/other/Packages.gz")
    root().sh(f"sed -i s,/tmp/repo,/tmp/other, {SOURCE}")
    status, text = apt("update -o APT::Update::Error-Mode=any")
    assert status != 0 and "Hash Sum mismatch" in text, text
    add_repository()
    apt("update")


@test
def installing_asks_nothing_starts_nothing_and_tells_three_steps():
    # Of an earlier `make install`: dpkg would ask.
    root().write("/etc/apparmor.d/inline-api", "# of somebody's\n")
    status, text = apt("install -y --no-install-recommends inline")
    assert status == 0, text
    assert "Three steps are left" in text, text
    assert re.search(r"1\. .*2\. .*3\. ", text, re.S), text
    told = root().told()
    assert not [line for line in told if line != "daemon-reload"], told
    assert not root().there(ENABLED)
    assert oct(os.stat(root().at(ENV)).st_mode) == "0o100600"
    assert "DISCORD_PUBLIC_KEY=\n" in root().read(ENV)
    assert "# of somebody's" not in root().read("/etc/apparmor.d/inline-api")
    root().sh("id il-sandboxd && id -nG il-worker | grep -q inline-db && "
              "test -d /run/inline/broker && test -d /var/lib/inline")


@test
def an_upgrade_stops_nothing_restarts_the_target_and_keeps_what_was_written():
    root().sh(f"mkdir -p {os.path.dirname(ENABLED)}; ln -s x {ENABLED}")
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\n# mine\n", 0o600)
    root().write("/var/lib/inline/inline.db", "jobs")
    root().write(ACTIVE, "inline.target\nnginx.service\n")
    root().write("/usr/sbin/nginx", "#!/bin/sh\n", 0o755)
    root().told()
    text = root().dpkg("--install", put(newer("9.1")))
    told = root().told()
    assert not [line for line in told if "stop" in line], told
    assert told.index("daemon-reload") < told.index("try-restart inline.target") \
        < told.index("reload nginx.service"), told
    assert "Three steps" not in text, text
    assert root().read(ENV).endswith("# mine\n")
    assert root().read("/var/lib/inline/inline.db") == "jobs"


@test
def the_database_is_migrated_before_anybody_waits_for_it():
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\n# mine\nIL_DATABASE="
                 "/var/lib/inline/inline.db\n", 0o600)
    root().sh("rm /var/lib/inline/inline.db")
    root().dpkg("--install", put(newer("9.1.1")))
    number = len(glob.glob(ROOT + "/sql/migrations/*.sql"))
    link = sqlite3.connect(root().at(RESTARTED))
    assert link.execute("PRAGMA user_version").fetchone() == (number,)
    link.close()
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\n# mine\n", 0o600)
    root().write("/var/lib/inline/inline.db", "jobs")
    root().told()


@test
def one_that_is_stopped_and_disabled_stays_so():
    root().sh(f"rm -f {ENABLED} {ACTIVE}")
    root().dpkg("--install", put(newer("9.2")))
    told = root().told()
    assert "try-restart inline.target" in told, told    # if it is active
    assert "start inline.target" not in told, told
    assert not root().there(ENABLED)


@test
def with_settings_that_are_refused_what_runs_goes_on_and_is_told():
    root().sh(f"ln -s x {ENABLED}")
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\nIL_NO_SUCH=1\n", 0o600)
    root().write(ACTIVE, "inline.target\n")
    text = root().dpkg("--install", put(newer("9.2.1")))
    told = root().told()
    assert not [line for line in told if "start" in line], told
    assert "IL_NO_SUCH: unknown key" in text and ENV in text, text
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\n# mine\n", 0o600)


@test
def after_a_removal_that_came_to_nothing_it_is_started():
    root().sh("DPKG_MAINTSCRIPT_PACKAGE=inline "
              "/var/lib/dpkg/info/inline.postinst abort-remove")
    assert "start inline.target" in root().told()
    root().sh(f"rm -f {ENABLED} {ACTIVE}")


@test
def an_earlier_make_install_is_told():
    root().write("/usr/local/bin/ilctl", "")
    text = root().dpkg("--install", put(newer("9.3")))
    assert "/usr/local comes before" in text, text
    text = root().sh(f"/usr/bin/ilctl -e {ENV} doctor || :")
    root().sh("rm /usr/local/bin/ilctl")
    assert "FAIL  library: another Inline is in /usr/local" in text, text
    # The way that both name is there, and leaves nothing.
    manual = "/usr/share/doc/inline/systemd/debian/README.md"
    steps = root().read(manual).split("\n## From make install\n")[1]
    steps = re.findall(r"^    (.*)", steps.split("\n## ")[0], re.M)
    root().sh("cd /usr/local && find . >/tmp/before")
    root().sh("mkdir -p /etc/nginx/conf.d && "
              "touch /etc/nginx/conf.d/inline.conf")
    subprocess.run(["sandbox/setup/install.sh", BUILD, root().path,
                    "/usr/local"], cwd=ROOT, check=True, capture_output=True)
    root().sh("\n".join(steps))
    left = root().sh("cd /usr/local && find . -type f | "
                     "grep -vxFf /tmp/before || :")
    assert not left, left
    root().told()


@test
def removing_stops_the_target_and_leaves_the_data():
    root().sh("rm -f /etc/nginx/sites-enabled/*")
    root().write("/etc/nginx/conf.d/inline.conf",
                 "include /usr/lib/inline/nginx/http.conf;\n")
    text = root().dpkg("--remove", "inline")
    told = root().told()
    assert told[0] == "stop inline.target il-expire.service " \
        "il-backup.timer il-backup.service", told
    assert "Its data stay" in text and "purge" in text, text
    assert "will not start again before this is removed: " \
        "/etc/nginx/conf.d/inline.conf" in text, text
    assert root().read("/var/lib/inline/inline.db") == "jobs"
    assert root().read(ENV).endswith("# mine\n")
    assert not root().there("/usr/sbin/il-fcgi")
    assert not root().there("/usr/lib/inline")


@test
def where_a_key_is_there_before_it_is_enabled_and_started():
    root().dpkg("--purge", "inline")
    root().write(ENV, f"DISCORD_PUBLIC_KEY={KEY}\n# mine\n", 0o600)
    root().told()
    # deb-systemd-helper makes the real link.
    text = root().dpkg("--install", put(package("inline")))
    told = root().told()
    assert told == ["daemon-reload", "start inline.target"], (told, text)
    assert root().there(ENABLED)
    assert root().read(ENV).endswith("# mine\n"), root().read(ENV)
    assert "Three steps" not in text, text


@test
def purging_says_what_goes_and_takes_it():
    """With containers and volumes that a kill has left, in the real engine."""
    root().write("/run/inline/instance", INSTANCE)
    for name in "a/workspace.ext4", "b/workspace.ext4", "uids":
        root().write("/var/lib/inline/sandboxes/" + name, "")
    # What systemd makes for the units.
    root().sh("sed -n 's|^StateDirectory=|/var/lib/|p' "
              "$(dpkg -L inline | grep 'service$') | xargs mkdir -p; "
              "touch /run/docker.sock")
    subprocess.run(["mount", "--bind", "/run/docker.sock",
                    root().at("/run/docker.sock")], check=True)
    label = "inline.instance=" + INSTANCE
    volume = command(DOCKER, "volume", "create", "--label", label).strip()
    container = command(DOCKER, "create", "--label", label, IMAGE,
                        "true").strip()
    try:
        text = root().dpkg("--purge", "inline")
        left = command(DOCKER, "ps", "-aq", "--filter", "label=" + label) + \
            command(DOCKER, "volume", "ls", "-q", "--filter", "label=" + label)
    finally:
        for words in ("rm", "-f", container), ("volume", "rm", "-f", volume):
            subprocess.run([DOCKER, *words], capture_output=True, check=False)
    for words in ("Purging Inline", "2 sandboxes", "/var/lib/inline-api",
                  "/etc/inline", "containers, volumes"):
        assert words in text, (words, text)
    assert not left, left
    assert glob.glob(root().at("/var/lib/inline*")) == [
        root().at("/var/lib/inline-backup")]
    for path in ("/etc/inline", "/run/inline", ENABLED,
                 "/etc/apparmor.d/inline-api",
                 "/etc/apparmor.d/inline-api.dpkg-old"):
        assert not root().there(path), path


@test
def what_was_tried_with_inline_standin_is_purged_with_it():
    root().dpkg("--install", put(package("inline")),
                put(package("inline-standin")))
    root().sh("test -x /usr/bin/inline-standin")
    root().write("/var/lib/inline-standin/state/inline.db", "jobs")
    root().dpkg("--remove", "inline-standin")
    assert root().there("/var/lib/inline-standin/state/inline.db")
    text = root().dpkg("--purge", "inline-standin")
    assert "/var/lib/inline-standin" in text, text
    assert not root().there("/var/lib/inline-standin")


@test
def inline_standin_serves():
    service = Service(SANDBOX_IMAGES="3.11=" + IMAGE)
    service.command = [unpacked() + "/usr/bin/inline-standin"]
    with service:
        service.create("alice")
        text = service.run("print(6 * 7)")
        assert "42" in text, text


run()
