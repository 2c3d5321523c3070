# SPDX-License-Identifier: MIT
"""A run while two others loop."""

import place as p
from table import ms


def loop_code(lasts_ms):
    """A loop that outlasts what is measured, and then ends well."""
    return ("import time\nend = time.monotonic() + %.2f\n"
            "while time.monotonic() < end:\n    pass\nprint(1)" % (
                lasts_ms / 1000))


PAUSE_MS = 50


def tell(table, what, lasts_ms, alone, beside, *others):
    table.at_most(what, beside["whole"]["p95"], alone["whole"]["p95"], 2,
                  with_what="alone")
    ends = [other["whole"]["max"] - lasts_ms for other in others]
    if min(ends) < 0:
        raise p.Failed("a loop of %d ms took %s less" % (lasts_ms,
                                                         ms(-min(ends))))
    late = max(ends)
    table.note("p50 %s beside %s alone; n=%d beside %d, in turns; the loops"
               " ran after %s at the latest" % (
                   ms(beside["whole"]["p50"]), ms(alone["whole"]["p50"]),
                   beside["whole"]["n"], alone["whole"]["n"], ms(late)))


def loops(place, table):
    """With a pause between them, as somebody makes who reads the answer; and
    without one: then those that are measured want a processor as well."""
    rounds = 1 if place.settings.quick else 3
    phase, delay = place.settings.ms(3000), place.settings.ms(300)
    lasts = phase + delay + 200
    code = loop_code(lasts)
    with place.service(users=3) as service:
        warm = [place.command(service),
                *(place.command(service, p.USER + i, code) for i in (1, 2))]
        place.load("burst", 3, warm[0])
        api, other = place.eval(service), place.eval(service, code)
        place.load("sustain", 3, 1, place.settings.ms(2000), api)
        for what, targets in (("/il py", warm), ("POST /eval",
                                                 [api, other, other])):
            for pause, how in ((PAUSE_MS, "two loops beside it, p95"),
                               (0, "the same, without a pause, p95")):
                tell(table, "%s, %s" % (what, how), lasts, *place.load(
                    "beside", rounds, phase, "%d,%d" % (delay, pause),
                    targets[0], *targets, nice=p.GENERATOR_NICE))


def ended(place, table):
    """What somebody waits at most while two clients send loops again and again,
    each of which is ended at its limit."""
    settings = place.settings
    lasts = settings.ms(int(1000 * settings.seconds))
    with place.service(IL_TUNE_API_WARM="2", IL_API_CELLS="4") as service:
        service.wait_cells(2)
        loop = place.eval(service, "while True: pass", "", 137,
                          timeout_ms=1000)
        short = place.eval(service)
        place.load("sustain", 3, 1, settings.ms(2000), short)
        with place.start_load("sustain", 2, 1, lasts, loop,
                              nice=p.GENERATOR_NICE) as loops:
            one, = place.load("alternate", lasts // (PAUSE_MS + 6), 1,
                              PAUSE_MS, short, nice=p.GENERATOR_NICE)
            others, = place.end_load(loops)
    what = one["whole"]
    table.add("POST /eval, loops ended beside it, longest", ms(what["max"]),
              "", None, "<= 20 ms", what["max"] <= 20)
    table.note("n=%d, p50 %s p95 %s p99 %s; %d loops were ended" % (
        what["n"], ms(what["p50"]), ms(what["p95"]), ms(what["p99"]),
        others["whole"]["n"]))
