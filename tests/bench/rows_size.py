# SPDX-License-Identifier: MIT
"""Rows of memory."""

import ctypes
import os
import subprocess

import place as p

MIB = 1 << 20
LIBC = ctypes.CDLL(None)
KCMP, KCMP_VM = {"x86_64": 312, "aarch64": 272}[os.uname().machine], 1


def shares_memory(pid, others):
    """Is its memory that of one of these?  The init of a jail has that of who
    made it (CLONE_VM); the kernel counts such pages for each of them."""
    return any(LIBC.syscall(KCMP, pid, other, KCMP_VM, 0, 0) == 0
               for other in others)


def memory(pids):
    """(PSS, private) of processes together, in bytes."""
    pss = private = 0
    pids = list(pids)
    for i, pid in enumerate(pids):
        if shares_memory(pid, pids[:i]):
            continue
        try:
            with open("/proc/%d/smaps_rollup" % pid) as file:
                for line in file:
                    name, _, rest = line.partition(":")
                    if name == "Pss":
                        pss += int(rest.split()[0]) * 1024
                    elif name in ("Private_Clean", "Private_Dirty"):
                        private += int(rest.split()[0]) * 1024
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
    return pss, private


def mib(value):
    return "%.1f MiB" % (value / MIB)


def idle(place, table):
    """All programs, no cells."""
    with place.service(IL_TUNE_API_WARM="0") as service:
        place.load("alternate", 20, 1, 0, "ping:%d" % service.port)
        found = service.processes()
        pss, private = memory(found)
        table.add("idle system, no cells", mib(pss), "", None, "<= 40 MB",
                  pss <= 40e6)
        by_name = {}
        for pid, name in found.items():
            by_name.setdefault(name, []).append(memory([pid])[0])
        table.note("PSS of %d processes; private %s; %s" % (
            len(found), mib(private), ", ".join(
                "%d %s %s" % (len(sizes), name, mib(sum(sizes)))
                for name, sizes in sorted(by_name.items()))))


def pids_of(container):
    return list(p.family(p.pid_of(container)))


def bare_container(place, image=p.IMAGE):
    """An interpreter of the same image that waits for its input."""
    name = p.docker("run", "-d", "-i", "--rm", "--network", "none", image,
                    "python3", "-c", "import sys; sys.stdin.read()").strip()
    place.stack.callback(subprocess.run, [p.DOCKER, "kill", name],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return name


def cells(place, table):
    """What a warm cell has beyond a bare interpreter."""
    with place.service(users=1, IL_TUNE_API_WARM="1") as service:
        place.load("alternate", 5, 1, 0, place.command(service))
        place.load("alternate", 5, 1, 0, place.eval(service))
        service.wait_cells(2)
        bare = memory(pids_of(bare_container(place)))
        kinds = {p.docker("inspect", "--format",
                          '{{index .Config.Labels "inline.class"}}',
                          one).strip(): memory(pids_of(one))
                 for one in service.cell_ids()}
        for kind, (pss, private) in sorted(kinds.items(), reverse=True):
            more = pss - bare[0]
            table.add("warm cell (%s), beyond the interpreter" % kind,
                      mib(more), "%s bare" % mib(bare[0]), None, "<= 15 MB",
                      more <= 15e6)
            table.note("PSS %s; private %s beside %s" % (
                mib(pss), mib(private), mib(bare[1])))


def at_rest(place, table):
    """All programs and two cells that are kept ready for the APIs."""
    with place.service(IL_TUNE_API_WARM="2", IL_API_CELLS="2") as service:
        place.load("alternate", 20, 1, 0, place.eval(service))
        service.wait_cells(2)
        cells_of = [pid for one in service.cell_ids() for pid in pids_of(one)]
        ours, _ = memory(service.processes())
        theirs, private = memory(cells_of)
        whole = ours + theirs
        table.add("at rest with two warm cells (api)", mib(whole), "", None,
                  "<= 60 MiB", whole <= 60 * MIB)
        table.note("PSS: cells %s (private %s), programs %s; without the "
                   "engine, which has a process for each container" % (
                       mib(theirs), mib(private), mib(ours)))
    with place.service(IL_TUNE_API_WARM="2", IL_TUNE_SPARE_CELLS="1") as service:
        place.load("alternate", 20, 1, 0, place.eval(service))
        service.wait_cells(4)
        spare = memory([pid for one in service.cell_ids()
                        for pid in pids_of(one)])[0] - theirs
        table.add("the same, a spare cell and who mounts in it", mib(spare))


def sizes(place, table):
    if os.geteuid() != 0:
        for what in ("idle system, no cells",
                     "warm cell (user), beyond the interpreter"):
            table.add(what, "only root sees it")
        return
    idle(place, table)
    cells(place, table)
    at_rest(place, table)
