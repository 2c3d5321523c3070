# SPDX-License-Identifier: MIT
"""Rows of CPU time: a run by each form of request, and the least it can cost."""

import json
import os
import shutil
import tempfile

import floor
from rows_eval import cpu_text
from table import ms

ROUNDS = 5
FLOOR = 1.2
FORMS = 1.2
PROC = 1.05


def used_by(place, service, spec, count):
    """{program: seconds} of so many answers, and of all together in ms."""
    before = service.cpu()
    place.load("alternate", count, 1, 0, spec)
    after = service.cpu()
    return ({name: after[name] - before.get(name, 0) for name in after},
            cpu_text(before, after, count)[1])


def middle(values):
    return sorted(values)[len(values) // 2]


def cpu(place, table):
    """In turns: the floor, then each of the forms."""
    count, rounds = place.settings.count(100), place.settings.count(ROUNDS)
    floors, totals, cells = [], ([], [], []), ([], [], [])
    with place.service(IL_TUNE_API_RUNS="1000000") as service:
        specs = (place.eval(service),
                 place.execute(service, last_line_interactive=False),
                 place.execute(service, last_line_interactive=True))
        place.load("alternate", place.settings.count(50), 1, 0, *specs)
        for _ in range(rounds):
            floors.append(floor.measure()[1][0])
            for spec, total, cell in zip(specs, totals, cells):
                used, whole = used_by(place, service, spec, count)
                total.append(whole)
                cell.append(used["cells"] * 1000 / count)
    ours = [middle(total) for total in totals]
    runs = [middle(cell) for cell in cells]
    table.at_most("POST /eval, CPU of one answer", ours[0], middle(floors),
                  FLOOR, with_what="a fork with namespaces")
    table.note("medians of %d rounds of %d, in turns; of it the cells %s, %.2f"
               " of the floor; floors: %s" % (
                   rounds, count, ms(runs[0]), runs[0] / middle(floors),
                   " ".join("%.2f" % one for one in floors)))
    for what, answer, run in zip(("POST /v1/execute, CPU", "POST /v1/execute,"
                                  " last line, CPU"), ours[1:], runs[1:]):
        table.at_most(what, answer, ours[0], FORMS, with_what="/eval")
        table.note("of it the cells %s beside %s" % (ms(run), ms(runs[0])))
    proc(place, table)


def without_proc(folder):
    """A library whose profile lets nobody mount a /proc: runs go on without."""
    lib = os.path.join(folder, "lib")
    shutil.copytree(os.path.join(os.environ["BUILD"], "lib"), lib,
                    symlinks=True)
    path = os.path.join(lib, "seccomp-api.json")
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    profile["syscalls"] = [rule for rule in profile["syscalls"]
                           if "fsopen" not in rule["names"]]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file)
    return lib


def proc(place, table):
    """A run of /v1 with its /proc, and one without, in short turns: of what
    both used, the quarter that others have disturbed least."""
    count, rounds = place.settings.count(50), place.settings.count(6 * ROUNDS)
    folder = tempfile.mkdtemp(prefix="bench-lib-")
    os.chmod(folder, 0o755)
    try:
        with place.service(IL_TUNE_API_RUNS="1000000") as shown, place.service(
                IL_TUNE_API_RUNS="1000000",
                IL_TUNE_LIB_DIR=without_proc(folder)) as hidden:
            runs, evals = (in_turns(place, (shown, hidden), make, count, rounds)
                           for make in (place.execute, place.eval))
    finally:
        shutil.rmtree(folder)
    table.at_most("POST /v1/execute, CPU with its /proc", *runs, PROC,
                  with_what="without")
    table.note("first quartiles of %d rounds of %d, in turns; of /eval, which "
               "has none in either: %s and %s" % (rounds, count,
                                                  *map(ms, evals)))


def in_turns(place, services, make, count, rounds):
    """CPU of an answer of each."""
    totals = [[] for _ in services]
    for at in range(rounds + 1):
        for service, total in zip(services, totals):
            used = used_by(place, service, make(service), count)[1]
            if at > 0:      # the first one warms up
                total.append(used)
    return [sorted(total)[rounds // 4] for total in totals]
