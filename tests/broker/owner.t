#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Images of before: files that belonged to the one user whom all sandboxes had
are given to the sandbox's own, once, whatever lies in there."""
import fcntl
import re

from brokerlib import *

COMMON = 65532
FILL = r"""
import os, socket
os.makedirs('d/e')
open('d/e/f', 'w').write('kept')
os.link('d/e/f', 'hard')
os.symlink('/etc/passwd', 'link')
os.symlink('link', 'd/circle')
os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')
open('shut', 'w').write('shut'); os.chmod('shut', 0)
os.mkdir('closed'); open('closed/x', 'w').close(); os.chmod('closed', 0)
open('set', 'w').close(); os.chmod('set', 0o6755)
os.setxattr('hard', 'user.note', b'x' * 3000)
for n in range(400):
    open('name %d \n' % n, 'w').close()
here = os.open('.', os.O_RDONLY)
for _ in range(300):            # a path of 75,000 characters
    os.mkdir('x' * 250)
    os.chdir('x' * 250)
open('bottom', 'w').close()
"""
LOOK = r"""
import os, sys
mine, count = {(os.getuid(), os.getgid())}, 0
def of(info):
    global count
    count += 1
    return {(info.st_uid, info.st_gid)}
seen = of(os.lstat('.'))
if os.path.isdir('closed'):
    os.chmod('closed', 0o700)
for folder, folders, files, fd in os.fwalk('.', follow_symlinks=False):
    if len(folder) > 9000:
        break
    for name in folders + files:
        seen |= of(os.stat(name, dir_fd=fd, follow_symlinks=False))
print(seen == mine, count > 400)
print(open('d/e/f').read(), os.getxattr('hard', 'user.note') == b'x' * 3000,
      os.stat('hard').st_nlink, oct(os.lstat('shut').st_mode),
      os.readlink('link'))
import m
print(m.value)
"""
FOUND = b"True True\nkept True 2 0o100000 /etc/passwd\n42\n"


def paths(b, n):
    return [os.path.join(b.base, sandbox_id(n), name + ".ext4")
            for name in ("workspace", "packages-3.11")]


def give(path, uid):
    """What the program does that the broker calls for it."""
    return subprocess.run([PROGRAM, "-u", str(uid), path],
                          stderr=subprocess.PIPE)


def check(path):
    return subprocess.run(["e2fsck", "-fn", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)


def root_uid(path):
    told = subprocess.run(["debugfs", "-R", "stat <2>", path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout
    return int(re.search(rb"User: *(\d+)", told).group(1))


def stop(b, n):
    """And wait until the engine has let go of the images."""
    b.stop()
    for path in paths(b, n):
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def plant(b, n, uid=COMMON):
    """A package; a cell with code of the user's may only read them."""
    module = os.path.join(b.folder, "m.py")
    with open(module, "w") as file:
        file.write("value = 6 * 7\n")
    subprocess.run(
        ["debugfs", "-w", "-f", "-", paths(b, n)[1]], check=True,
        input=b"write %s m.py\nset_inode_field m.py uid %d\n"
        b"set_inode_field m.py gid %d\nset_inode_field m.py mode 0100600\n"
        % (module.encode(), uid, uid), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def make_old(b, n, fill=FILL, files=2000):
    """A sandbox as they were: what fill makes, all of it COMMON's."""
    b.create(n, files=files)
    lease = b.lease(n)
    result = lease.run(fill)
    assert result[0]["STATUS"] == 0, result
    lease.close()
    stop(b, n)
    plant(b, n)
    for path in paths(b, n):
        done = give(path, COMMON)
        assert done.returncode == 0, done
        assert root_uid(path) == COMMON


def converted():
    with Broker() as b:
        make_old(b, 1)
        b.start()
        lease = b.lease(1)
        is_(lease.run(LOOK)[1], FOUND,
            "everything in an old image is its own user's now")
        name = lease.name()
        lease.close()
        b.wait_status(LEASED=0)
        again = b.lease(1)
        is_((again.fields["COLD"], again.name()), (0, name), "it stays warm")
        is_(b.logged().count("belongs to uid="), 2, "each image was given once")
        again.close()
        stop(b, 1)
        uids = [root_uid(path) for path in paths(b, 1)]
        ok(uids[0] == uids[1] >= 0x78000000, "both to the same one")
        is_([check(path).returncode for path in paths(b, 1)], [0, 0],
            "e2fsck finds nothing to mend")
        b.start()
        b.lease(1).close()
        is_(b.logged().count("belongs to uid="), 2, "and never again")


def packages_first():
    with Broker(IL_PIP_NETWORK=pip_network()) as b:
        make_old(b, 1)
        b.start()
        b.lease(1, cls="pip").close()
        is_(b.logged().count("packages-3.11.ext4 belongs to uid="), 1,
            "an installation comes first: the packages are given")
        is_(b.lease(1).run(LOOK)[1], FOUND, "then the files, to the same")


def cut_short():
    """A part was given when the power went: it begins with the inodes."""
    with Broker() as b:
        make_old(b, 1)
        workspace = paths(b, 1)[0]
        with open(workspace, "rb") as file:
            before = file.read(4 * MIB)
        assert give(workspace, 0x78000007).returncode == 0
        with open(workspace, "r+b") as file:
            after = file.read(4 * MIB)
            blocks = [at for at in range(0, 4 * MIB, 4096)
                      if before[at:at + 4096] != after[at:at + 4096]]
            for at in blocks[:1] + blocks[len(blocks) // 2:]:
                file.seek(at)
                file.write(before[at:at + 4096])
        ok(len(blocks) > 20, "many blocks hold inodes")
        is_(root_uid(workspace), COMMON, "the root is among those left")
        b.start()
        is_(b.lease(1).run(LOOK)[1], FOUND, "what was cut short is done anew")


def killed():
    with Broker() as b:
        make_old(b, 1)
        b.start()
        asked = b.ask_lease(1)
        b.wait_log("checked workspace.ext4")
        b.kill()
        asked.close()
        b.start()
        is_(b.lease(1).run(LOOK)[1], FOUND,
            "a broker killed meanwhile leaves nothing half")


def shared():
    """A sandbox restored beside one that has its number now."""
    with Broker(IL_CELLS="2") as b:
        b.create(1, files=2000)
        lease = b.lease(1)
        lease.run(FILL)
        lease.close()
        stop(b, 1)
        plant(b, 1, root_uid(paths(b, 1)[1]))
        copy = os.path.join(b.base, sandbox_id(2))
        shutil.copytree(os.path.dirname(paths(b, 1)[0]), copy)
        b.start()
        one, two = b.lease(1), b.lease(2)
        uids = [asked.run("import os; print(os.getuid())")[1]
                for asked in (one, two)]
        ok(uids[0] != uids[1], "no two cells have a user in common")
        is_([asked.run(LOOK)[1] for asked in (one, two)], [FOUND] * 2,
            "and each has its files")


def not_a_number_twice():
    with Broker() as b:
        uids = set()
        for n in range(1, 7):
            b.create(n)
            uids.add(root_uid(paths(b, n)[0]))
            if n % 2 == 0:
                b.kill()
                b.start()
            b.remove(n)
        is_(len(uids), 6, "a number is nobody's again, whatever is killed")


def refused():
    with Broker() as b:
        make_old(b, 1)
        workspace = paths(b, 1)[0]
        is_(give(workspace, 0).returncode, 64, "nothing is given to root")
        is_(give(workspace, 1000).returncode, 64, "nor to one of the host's")
        with open(workspace, "r+b") as file:
            clean = file.read(MIB)
            file.seek(1024 + 0x60)
            file.write(bytes([clean[1024 + 0x60] | 4]))
        done = give(workspace, 0x78000007)
        ok(done.returncode == 1 and b"journal" in done.stderr,
           "with a journal to replay nothing is changed")
        table = clean[4096 + 8] * 4096
        for at, what in ((table + 256 + 0x40, b"checksum"),
                         (4096 + 8, b"wrong")):
            with open(workspace, "r+b") as file:
                file.write(clean)
                file.seek(at)
                file.write(b"\xff\xff")
            done = give(workspace, 0x78000007)
            ok(done.returncode == 1 and what in done.stderr,
               "nor where a check fails: %s" % done.stderr.decode().strip())
        with open(workspace, "r+b") as file:
            file.write(os.urandom(MIB))
        is_(give(workspace, 0x78000007).returncode, 1, "garbage is no image")
        os.truncate(workspace, 0)
        is_(give(workspace, 0x78000007).returncode, 1, "nor is nothing")


main(converted, packages_first, cut_short, killed, shared, not_a_number_twice,
     refused)
