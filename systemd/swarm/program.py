#!/usr/bin/python3 -I
# SPDX-License-Identifier: MIT
"""How a service of stack.yaml begins: program.py PROGRAM [ARGUMENT...]

It becomes that program with the user, the groups and the sockets that its unit
gives it on a host.  The names are the host's, whose /etc/passwd and /etc/group
are mounted here: the numbers differ from host to host.
"""

import contextlib
import grp
import os
import pwd
import socket
import sys

HOME = "/opt/inline"
STATE = os.environ.get("IL_STATE_DIR", "/run/inline")
API = ("api", "run", "files", "session", "connect", "mcp")
# user, group, more groups, sockets (in the order of the unit), command
PROGRAMS = {
    "il-fcgi": ("il-fcgi", "inline-db", "", ("fcgi",),
                HOME + "/bin/il-fcgi"),
    "il-api": ("il-api", "il-api", "inline-broker-api", API,
               HOME + "/bin/il-api"),
    "il-worker": ("il-worker", "inline-db", "inline-broker-worker", (),
                  HOME + "/bin/il-worker"),
    "nginx": ("www-data", "www-data", "inline-web", (),
              HOME + "/systemd/container/nginx.sh"),
}
FIRST_FD = 3
BACKLOG = 4096


def listen(name, number):
    """A socket for nginx, as the descriptor with that number.  Who connects
    while the program starts, waits in it.
    """
    path = os.path.join(STATE, name + ".sock")
    made = socket.socket(socket.AF_UNIX)
    made.bind(path + ".new")
    os.chown(path + ".new", 0, grp.getgrnam("inline-web").gr_gid)
    os.chmod(path + ".new", 0o660)
    made.listen(BACKLOG)
    os.rename(path + ".new", path)
    fd = made.detach()
    if fd != number:
        os.dup2(fd, number)
        os.close(fd)
    os.set_inheritable(number, True)


def prepare_nginx(user):
    """il-api asks nginx for files of other hosts in a folder that is nginx's to
    write.  One that was killed leaves its socket, and none starts over it.
    """
    folder = os.path.join(STATE, "nodes")
    os.chown(folder, pwd.getpwnam(user).pw_uid, grp.getgrnam("il-api").gr_gid)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, "nginx.sock"))


def main():
    """Sockets and rights, then the program."""
    user, group, groups, sockets, command = PROGRAMS[sys.argv[1]]
    nginx = sys.argv[1] == "nginx"
    # What it keeps: nothing; nginx, that of opening ports below 1024.
    kept = ",+net_bind_service" if nginx else ""
    drop = ["setpriv", "--reuid", user, "--regid", group,
            *(["--groups", groups] if groups else ["--clear-groups"]),
            "--inh-caps=-all" + kept, "--bounding-set=-all" + kept,
            *(["--ambient-caps=-all" + kept] if nginx else []),
            "--no-new-privs", "--"]
    os.umask(0o007)
    os.environ["HOME"] = "/nonexistent"
    # As a host's own name: small letters, as far as the first dot.
    os.environ["IL_NODE"] = os.environ["IL_NODE"].partition(".")[0].lower()
    os.nice(-10)    # before what people's code computes, as the units have it
    if nginx:
        prepare_nginx(user)
    for fd in (1, 2):   # nginx opens them by their names
        os.fchown(fd, pwd.getpwnam(user).pw_uid, -1)
    for i, name in enumerate(sockets):
        listen(name, FIRST_FD + i)
    if sockets:
        os.environ["LISTEN_PID"] = str(os.getpid())
        os.environ["LISTEN_FDS"] = str(len(sockets))
    os.execvp(drop[0], [*drop, command, *sys.argv[2:]])


main()
