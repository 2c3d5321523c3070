# SPDX-License-Identifier: MIT
"""Rows of CPU time: a run by each form of request, and the least it can cost."""

import floor
from rows_eval import cpu_text
from table import ms

ROUNDS = 5
FLOOR = 1.2
FORMS = 1.2


def used_by(place, service, spec, count):
    """{program: seconds} of so many answers, and of all together in ms."""
    before = service.cpu()
    place.load("alternate", count, 1, 0, spec)
    after = service.cpu()
    return ({name: after[name] - before[name] for name in after},
            cpu_text(before, after, count)[1])


def middle(values):
    return sorted(values)[len(values) // 2]


def cpu(place, table):
    """In turns: the floor, then each of the forms."""
    count, rounds = place.settings.count(100), place.settings.count(ROUNDS)
    floors, totals, cells = [], ([], [], []), ([], [], [])
    with place.service(IL_API_RUNS="1000000") as service:
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
