#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Spare cells: one that was up before anybody came becomes a sandbox's, with
its files, its limits and nobody else's anything; and what fails on the way.
What mounts needs each right that it has, and has no other."""
import errno
import io
import json
import tarfile

from brokerlib import *

SEES = """
import json, os
def of(path):
    at, fs = os.stat(path), os.statvfs(path)
    return [os.minor(at.st_dev), at.st_uid == os.getuid(), fs.f_flag & 1]
print(json.dumps({"files": sorted(os.listdir('.')), "uid": os.getuid(),
                  "workspace": of('/workspace'),
                  "packages": of('/workspace/.site-packages')}))
"""


def inspect(name):
    return json.loads(subprocess.run(
        [DOCKER, "inspect", name], stdout=subprocess.PIPE,
        check=True).stdout)[0]


def spares(b):
    """Containers that are nobody's: with no sandbox on their label."""
    ids = b.containers()
    found = json.loads(subprocess.run(
        [DOCKER, "inspect", *ids], stdout=subprocess.PIPE).stdout or b"[]")
    return {one["Name"][1:] for one in found
            if one["Config"]["Labels"].get("inline.sandbox") == ""}


def wait_spare(b, ready):
    """Until so many cells have come up in this life of the broker's."""
    b.wait_log("ready after ", ready)


def mounter(b):
    """The container that mounts in the spare cell."""
    return subprocess.run(
        [DOCKER, "ps", "-q", "--filter", "label=inline.class=mounter",
         "--filter", "label=inline.instance=" + b.instance()],
        stdout=subprocess.PIPE, check=True).stdout.decode().split()


def sees(asked):
    return json.loads(asked.run(SEES)[1])


def adopted():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        before = spares(b)
        asked = b.lease(1)
        note("after %.0f ms" % asked.ms)
        ok(asked.name() in before, "who comes gets the cell that was there")
        is_(asked.fields["COLD"], 0, "and has not waited for a start")
        seen = sees(asked)
        is_(seen["files"], [".site-packages"], "with the files of the sandbox")
        is_(seen["workspace"][1:], [True, 0], "which are its own, to write")
        is_(seen["packages"][1:], [True, 1], "and packages, to read")
        limits = inspect(asked.name())["HostConfig"]
        for kind in ("ReadBps", "WriteBps", "ReadIOps", "WriteIOps"):
            is_({one["Path"] for one in limits["BlkioDevice" + kind]},
                {"/dev/loop%d" % seen[which][0]
                 for which in ("workspace", "packages")},
                "its own devices are limited: " + kind)
        full = ("n = 0\ntry:\n with open('f', 'wb') as f:\n"
                "  while True: n += f.write(bytes(65536))\n"
                "except OSError as e: print(e.errno, n >> 20)")
        is_(asked.run(full)[1], b"%d 16\n" % errno.ENOSPC, "the quota holds")
        fields, _ = asked.run("import os; os.remove('f')")
        is_(fields["USED_FILES"], 0, "what is used is told")


# Code of the image that runs in each of its interpreters, before all other.
IN_IMAGE = ("import os; int([line for line in open('/proc/self/status') if "
            "line.startswith('CapEff')][0].split()[1], 16) and os._exit(3)\n")
RIGHTS = {"DAC_READ_SEARCH": 2, "SETGID": 6, "SETUID": 7, "SYS_CHROOT": 18,
          "SYS_PTRACE": 19, "SYS_ADMIN": 21}


def hostile_image():
    """What has rights runs no byte of an image."""
    name = "inline-test-spare-%d" % os.getpid()
    try:
        subprocess.run([DOCKER, "run", "--name", name, "--network", "none",
                        "--entrypoint", "python3", IMAGE, "-I", "-c",
                        "import os, site\nat = site.getsitepackages()[0]\n"
                        "os.makedirs(at, exist_ok=True)\n"
                        "with open(at + '/all.pth', 'w') as file:\n"
                        "    file.write(%r)" % IN_IMAGE], check=True)
        subprocess.run([DOCKER, "commit", name, name], check=True,
                       stdout=subprocess.DEVNULL)
        with Broker(IL_TUNE_SPARE_CELLS="1", SANDBOX_IMAGE=name,
                    IL_CHAT_IMAGES="") as b:
            b.create(1)
            wait_spare(b, 1)
            asked = b.lease(1)
            is_(asked.fields["COLD"], 0, "an image whose code ends whoever "
                "has rights: what mounts does not run it")
            is_(sees(asked)["files"], [".site-packages"], "all is mounted")
    finally:
        subprocess.run([DOCKER, "rm", "-f", name], stdout=subprocess.DEVNULL)
        subprocess.run([DOCKER, "rmi", "-f", name], stdout=subprocess.DEVNULL)


def confined():
    """What it may do, as the kernel has it."""
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        spare, = spares(b)
        one, = mounter(b)
        found = inspect(one)
        host = found["HostConfig"]
        is_(sorted(host["DeviceCgroupRules"]),
            sorted("b 7:%s rw" % limit["Path"].removeprefix("/dev/loop")
                   for limit in inspect(spare)["HostConfig"]
                   ["BlkioDeviceReadBps"]),
            "what mounts may open the devices of its cell and no other")
        is_((host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]),
            ("none", True, False), "no network, nothing to write to")
        with open("/proc/%d/status" % found["State"]["Pid"]) as file:
            status = dict(line.split(":\t", 1) for line in file)
        is_((status["Seccomp"], status["NoNewPrivs"]), ("2\n", "1\n"),
            "its system calls are a list")
        is_(int(status["CapBnd"], 16), sum(1 << n for n in RIGHTS.values()),
            "its rights are six")
        exported = subprocess.run([DOCKER, "export", one], check=True,
                                  stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(exported)) as tar:
            is_([entry.name for entry in tar
                 if entry.isreg() and entry.size][:9],
                ["mounter"], "its image has one file")
        asked = b.lease(1)
        is_(asked.fields["COLD"], 0, "it mounts")
        subprocess.run([DOCKER, "wait", one], timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ok(one not in mounter(b), "once")


# Without one of its rights: what is refused, and whether it sees that before
# anybody waits for it.
REFUSED = {"SYS_ADMIN": ("mount: Operation not permitted", True),
           "SETUID": ("give: Operation not permitted", True),
           "SETGID": ("give: Operation not permitted", True),
           "SYS_CHROOT": ("enter: Operation not permitted", False),
           "SYS_PTRACE": ("enter: Operation not permitted", False),
           "DAC_READ_SEARCH": ("put: Permission denied", False)}


def without(change, why, ahead):
    """The mounter's docker run is told otherwise: no volume is mounted."""
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, """
for word; do
  shift
  case "$word" in %s esac
  set -- "$@" "$word"
done""" % change.replace("FOLDER", folder))
    profile = os.path.join(ROOT, "sandbox/mounter/seccomp-mounter.json")
    with open(profile) as file, \
            open(os.path.join(folder, "list.json"), "w") as to:
        to.write(file.read().replace('"mount_setattr", ', ""))
    with Broker(IL_TUNE_SPARE_CELLS="1", IL_TUNE_WARM_CELLS="0",
                DOCKER_BINARY=script) as b:
        b.create(1)
        for turn in () if ahead else (1, 2):
            wait_spare(b, turn)
            with b.lease(1) as asked:
                asked.run("import os; os.chmod('.', 0)")
            b.wait_status(LEASED=0)
        b.wait_log("no volume is mounted in a cell that is up: " + why)
        ok(True, "%s: %s" % (change, why))
    shutil.rmtree(folder)


def needs_all():
    """Each of its rights, its devices and a call that came late to Linux."""
    is_(set(REFUSED), set(RIGHTS), "each right is tried")
    for right, (why, ahead) in REFUSED.items():
        without("--cap-add=%s) word=--cap-add=AUDIT_WRITE;;" % right, why,
                ahead)
    without("--device-cgroup-rule=*) word='--device-cgroup-rule=b 7:4095 rw';;",
            "mount: Operation not permitted", False)
    without("--security-opt=seccomp=*/seccomp-mounter.json) "
            "word=--security-opt=seccomp=FOLDER/list.json;;",
            "give: Function not implemented", True)


def last_word():
    """It has said what is wrong, and ended, before the broker looks."""
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, """
case "$*" in *inline.class=mounter*)
  for word; do
    shift
    [ "$word" = --cap-add=SYS_ADMIN ] && word=--cap-add=AUDIT_WRITE
    set -- "$@" "$word"
  done
  kill -STOP $PPID
  id=$(%s "$@")
  %s wait "$id" >/dev/null 2>&1
  kill -CONT $PPID
  exit 0
esac""" % (DOCKER, DOCKER))
    with Broker(IL_TUNE_SPARE_CELLS="1", DOCKER_BINARY=script) as b:
        b.create(1)
        b.wait_log("no volume is mounted in a cell that is up: ")
        ok("up: mount: Operation not permitted;" in b.logged(), "it is heard")
    shutil.rmtree(folder)


def apart():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        for n in (1, 2):
            b.create(n)
        wait_spare(b, 1)
        one = b.lease(1)
        one.run("open('secret', 'w').write('1'); "
                "open('/tmp/secret', 'w').write('1')")
        name, uid = one.name(), sees(one)["uid"]
        one.close()
        b.wait_status(LEASED=0)
        wait_spare(b, 2)
        two = b.lease(2)
        ok(two.name() != name, "a cell that was adopted is nobody else's")
        seen = sees(two)
        is_(seen["files"], [".site-packages"], "the next has its own files")
        ok(seen["uid"] != uid, "and a user of its own")
        is_(two.run("import os; print(os.path.exists('/tmp/secret'))")[1],
            b"False\n", "and its own /tmp")
        again = b.lease(1)
        is_((again.name(), sees(again)["files"]),
            (name, [".site-packages", "secret"]),
            "who comes again has the same cell, and the file")
        is_(b.refusal(1), "BUSY", "of which there is one for a sandbox")


def next_cell():
    """Another cell, another number, the same owner; also of a folder that its
    user has locked."""
    with Broker(IL_TUNE_SPARE_CELLS="1", IL_TUNE_WARM_CELLS="0") as b:
        b.create(1)
        for turn in range(3):
            wait_spare(b, 1 + turn)
            asked = b.lease(1)
            is_(asked.fields["COLD"], 0, "turn %d: not cold" % turn)
            fields, output = asked.run(
                "import os\nos.chmod('.', 0o755)\n"
                "print(len(os.listdir('.')), {os.stat(n).st_uid == os.getuid()"
                " for n in os.listdir('.')})\n"
                "open('f%d', 'w').close(); os.chmod('.', 0)" % turn)
            is_(output, b"%d {True}\n" % (turn + 1), "all of it is its own")
            asked.close()
            b.wait_status(LEASED=0)


def removed():
    """A sandbox that is made again has nothing of the one before."""
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        asked = b.lease(1)
        asked.run("open('old', 'w').close()")
        asked.close()
        is_(b.remove(1), "GRANTED", "it is removed")
        b.create(1)
        wait_spare(b, 2)
        asked = b.lease(1)
        is_(sees(asked)["files"], [".site-packages"], "and made anew: empty")


def many():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        for n in range(1, 4):
            b.create(n)
        wait_spare(b, 1)
        asked = [b.ask_lease(n) for n in range(1, 4)]
        kinds = [one.answer()[0] for one in asked]
        is_(kinds, ["GRANTED"] * 3, "three come at once, one cell is spare")
        is_(len({one.name() for one in asked}), 3, "each has a cell")
        is_(sorted(one.fields["COLD"] for one in asked), [0, 1, 1],
            "of which two were started")


def kept():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        asked = b.ask_lease(1, keep=1)
        is_(asked.answer()[0], "GRANTED", "a lease that may keep")
        asked.run("x = 7", keep=1)
        asked.close()
        b.wait_status(LEASED=0)
        asked = b.ask_lease(1, keep=1)
        asked.answer()
        is_(asked.run("print(x)", keep=1)[1], b"7\n", "an interpreter is kept")


def only_read():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        asked = b.lease(1, access="TIDY")
        fields, _ = asked.op("LIST", ("PATH", b""))
        is_((asked.fields["COLD"], fields["STATUS"]), (0, 0),
            "who tidies gets it, too")


def damaged():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        volume = os.path.join(b.base, sandbox_id(1), "workspace.ext4")
        subprocess.run(["debugfs", "-w", "-R", "ssv state 2", volume],
                       check=True, stderr=subprocess.DEVNULL)
        wait_spare(b, 1)
        asked = b.lease(1)
        is_(asked.fields["COLD"], 1, "a volume with errors: a start as ever")
        b.wait_log("checked ")
        ok(".site-packages" in sees(asked)["files"], "after it was checked")
        b.create(2)
        is_(b.lease(2).fields["ACCESS"], N["ACCESS_WRITE"],
            "the next one is served")


def docker_that(folder, script):
    """A docker that does this first."""
    path = os.path.join(folder, "docker")
    with open(path, "w") as file:
        file.write('#!/bin/sh\n%s\nexec %s "$@"\n' % (script, DOCKER))
    os.chmod(path, 0o755)
    return path


def fails_and_recovers():
    """Who mounts is there, but may not enter a cell, and then it may."""
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, """
[ -e ${0%/*}/mended ] || for word; do
  shift
  [ "$word" = --cap-add=SYS_CHROOT ] && word=--cap-add=AUDIT_WRITE
  set -- "$@" "$word"
done""")
    with Broker(IL_TUNE_SPARE_CELLS="1", IL_TUNE_WARM_CELLS="0",
                DOCKER_BINARY=script) as b:
        for n in range(1, 4):
            b.create(n)
            wait_spare(b, 2 * n - 1)
            if n == 3:
                open(os.path.join(folder, "mended"), "w").close()
            asked = b.lease(n)
            is_((asked.fields["COLD"], sees(asked)["files"]),
                (1, [".site-packages"]), "%d in vain: a start as ever" % n)
            asked.close()
            b.wait_status(LEASED=0)
            ok("enter: Operation not permitted; next try in %d s"
               % (1 << n - 1) in b.logged(), "which says when it is tried")
        wait_spare(b, 7)
        asked = b.lease(1)
        is_(asked.fields["COLD"], 0, "when it works nobody waits for a start")
        is_(sees(asked)["files"], [".site-packages"], "and all is mounted")
    shutil.rmtree(folder)


def engine_restarts():
    """All mounters end by one event."""
    with Broker(IL_TUNE_SPARE_CELLS="3") as b:
        b.create(1)
        wait_spare(b, 3)
        for pid in [inspect(one)["State"]["Pid"] for one in mounter(b)]:
            os.kill(pid, signal.SIGKILL)
        b.wait_log("no volume is mounted", 3)
        wait_spare(b, 4)
        is_(b.logged().count("next try in 1 s"), 3, "it is one failure")
        is_(b.lease(1).fields["COLD"], 0, "and a cell is spare again")


def late_start():
    """The broker ends while the engine makes the container that mounts, which
    has found its folder already."""
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, """
case "$*" in *inline.class=mounter*)
  shift 2
  for word; do
    shift
    case "$word" in --mount=*) word=--mount=type=bind,src=FOLDER,dst=/x;; esac
    set -- "$@" "$word"
  done
  echo >FOLDER/called
  setsid sh -c 'sleep 5; "$0" create "$@"; echo >FOLDER/made' %s "$@" &
  wait $!
  exit
esac""".replace("FOLDER", folder) % DOCKER)
    with Broker(IL_TUNE_SPARE_CELLS="1", DOCKER_BINARY=script) as b:
        wait_file(os.path.join(folder, "called"))
        is_(b.stop(), 0, "it ends")
        wait_file(os.path.join(folder, "made"))
        is_(b.containers(), [], "and has left none")
    shutil.rmtree(folder)


def slow_import():
    """The image of what mounts is made anew, in more than a second."""
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, """
made=${0%/*}/made
case "$*" in
*inline.class=mounter*)
  [ -e $made ] || { echo "Error: No such image: x" >&2; exit 125; } ;;
import*) sleep 3; echo >$made; exit ;;
esac""")
    with Broker(IL_TUNE_SPARE_CELLS="1", DOCKER_BINARY=script) as b:
        b.create(1)
        wait_spare(b, 1)
        is_(b.lease(1).fields["COLD"], 0, "an image is made: nothing failed")
    shutil.rmtree(folder)


def wait_file(path):
    end = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise RuntimeError("no " + path)
        time.sleep(0.01)


def nobody_mounts():
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        before = spares(b)
        subprocess.run([DOCKER, "kill", *mounter(b)], check=True,
                       stdout=subprocess.DEVNULL)
        b.wait_log("no volume is mounted")
        asked = b.lease(1)
        ok(asked.fields["COLD"] == 1 and asked.name() not in before,
           "who mounts was killed: a start as ever")
        is_(sees(asked)["files"], [".site-packages"], "with its files")
    folder = tempfile.mkdtemp(prefix="broker-test-docker-")
    script = docker_that(folder, 'case "$*" in *inline.class=mounter*) '
                                 'exit 125;; esac')
    with Broker(IL_TUNE_SPARE_CELLS="1", DOCKER_BINARY=script) as b:
        b.create(1)
        b.wait_log("no volume is mounted")
        is_(b.lease(1).fields["COLD"], 1, "the engine refuses it: likewise")
        is_(spares(b), set(), "and no cell is spare")
    script = docker_that(folder, 'case "$*" in *inline.class=mounter*) echo '
                                 'Cannot connect to the Docker daemon >&2; '
                                 'exit 1;; esac')
    with Broker(IL_TUNE_SPARE_CELLS="1", DOCKER_BINARY=script) as b:
        b.wait_log("the Docker engine does not answer: exited with 1: ")
        ok(True, "the engine went away: the next start is not tried in vain")
    shutil.rmtree(folder)


def killed():
    """At any moment between the question and the lease."""
    with Broker(IL_TUNE_SPARE_CELLS="1") as b:
        b.create(1)
        wait_spare(b, 1)
        for delay in (0, 0.005, 0.01, 0.02, 0.03):
            asked = b.ask_lease(1)
            select.select([], [], [], delay)
            b.kill()  # what is left the next life sweeps before it starts one
            asked.close()
            ready = b.logged().count("ready after ")
            b.start()
            wait_spare(b, ready + 1)
        asked = b.lease(1)
        is_((asked.fields["COLD"], sees(asked)["files"]),
            (0, [".site-packages"]), "after each it goes on")
        asked.close()
        is_(b.stop(), 0, "and ends")
        b.wait_no_container()
        left = subprocess.run(["losetup", "-a"], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        ok(b.folder not in left, "no device is left")
        note(left)


main(adopted, hostile_image, confined, needs_all, last_word, apart, next_cell,
     removed, many, kept, only_read, damaged,
     fails_and_recovers, engine_restarts, late_start, slow_import,
     nobody_mounts, killed)
