# SPDX-License-Identifier: MIT
"""Rows of POST /eval."""

from table import ms, rate

# So few that no cell is replaced meanwhile: its CPU time would be lost.
ACCOUNTED = 150


def cpu_text(before, after, answers):
    """Who used how much CPU for one answer; and the sum in ms."""
    used = {name: (after[name] - before.get(name, 0)) * 1000 / answers
            for name in after}
    parts = ["%s %.2f" % (name, value) for name, value
             in sorted(used.items(), key=lambda item: -item[1])
             if value >= 0.005]
    total = sum(used.values())
    return "CPU of one answer: %.2f ms (%s)" % (total, ", ".join(parts)), total


def eval_one(place, table):
    """One after another."""
    count = place.settings.count(400)
    few = place.settings.count(ACCOUNTED)
    with place.service() as service:
        spec = place.eval(service)
        before, cells = service.cpu(), set(service.cell_ids())
        alone = place.load("alternate", few, 1, 0, spec)[0]
        used, answer_ms = cpu_text(before, service.cpu(), few)
        same = cells & set(service.cell_ids())
        ours, bare = place.load("alternate", count, 10, 0, spec, place.bare(),
                                root=True)
        host = place.load("alternate", place.settings.count(60), 1, 0,
                          place.spawn("/usr/bin/python3", "-c", "print(1)"))[0]
    with_what = "python3 -c 'print(1)'"
    table.at_most("POST /eval, p50", ours["whole"]["p50"],
                  bare["whole"]["p50"], 0.4, with_what=with_what)
    table.at_most("POST /eval, p95", ours["whole"]["p95"],
                  bare["whole"]["p95"], 0.8, with_what=with_what)
    table.note("n=%d each, 10 of one, 10 of the other; the host's own"
               " /usr/bin/python3: p50 %s; ours with nothing beside it: p50 %s"
               " (n=%d)" % (count, ms(host["whole"]["p50"]),
                            ms(alone["whole"]["p50"]), few))
    bare_ms = bare["cpu_s"] * 1000 / count
    table.note("%s; of a bare start: %.2f ms, which is %.2f answers" % (
        used, bare_ms, bare_ms / max(answer_ms, 0.001)))
    table.note("isolation: " + (
        "fresh namespaces for each run, in warm cells" if same else
        "a cell for each run"))


def rate_of(target):
    return target["counted"] / target["seconds"]


def describe(target):
    whole = target["whole"]
    return "p50 %s p95 %s p99 %s" % (ms(whole["p50"]), ms(whole["p95"]),
                                     ms(whole["p99"]))


def eval_sustained(place, table):
    """Several at a time, for long."""
    long_ms = place.settings.ms(int(place.settings.seconds * 1000))
    short = place.settings.ms(4000)
    with place.service() as service:
        spec, bare = place.eval(service), place.bare()
        place.load("sustain", 4, 1, place.settings.ms(3000), spec)
        for lanes in (1, 4, 32) if place.settings.quick else (1, 2, 4, 8, 32):
            if lanes < 32:
                ours, theirs = place.load(
                    "sustain", lanes, 2, "%d,%d" % (short, short), spec, bare,
                    root=True)
            else:
                third, ours, fourth = place.load(
                    "sustain", lanes, 1, "%d,%d,%d" % (
                        2 * short, long_ms, 2 * short),
                    bare, spec, bare, root=True)
                theirs = {"counted": third["counted"] + fourth["counted"],
                          "seconds": third["seconds"] + fourth["seconds"]}
            table.at_least("POST /eval, %d in flight" % lanes, rate_of(ours),
                           rate_of(theirs), 2, with_what="bare starts")
            table.note("%.0f s, n=%d, no error, %s" % (
                ours["seconds"], ours["counted"], describe(ours)))
        four, clients = in_turns(place, spec, short)
    table.at_least("32 in flight, beside 4", clients, four, 1, show=rate,
                   with_what="answers at 4, in turns")


def in_turns(place, spec, slice_ms):
    """Answers per second at 4 and at 32 in flight, of two slices each."""
    counted = {4: 0, 32: 0}
    for _ in range(2):
        for lanes in counted:
            counted[lanes] += rate_of(place.load(
                "sustain", lanes, 1, slice_ms, spec)[0]) / 2
    return counted[4], counted[32]
