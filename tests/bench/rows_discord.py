"""Rows of commands: the interaction posted, the edit with its result there."""

from rows_eval import cpu_note
from table import ms


def command_warm(place, table):
    """/il py of somebody whose cell is warm."""
    count = place.settings.count(300)
    with place.service(users=1) as service:
        spec = place.command(service)
        place.load("alternate", place.settings.count(10), 1, 0, spec)
        before = service.cpu()
        ours, bare = place.load("alternate", count, 1, 0, spec, place.bare(),
                                root=True)
        cpu_note(table, before, service.cpu(), count)
    with_what = "python3 -c 'print(1)'"
    table.at_most("/il py, warm, p50", ours["whole"]["p50"],
                  bare["whole"]["p50"], 1, with_what=with_what)
    table.at_most("/il py, warm, p95", ours["whole"]["p95"],
                  bare["whole"]["p95"], 2, with_what=with_what)
    table.note("n=%d each, in turns; acknowledged after p50 %s p95 %s" % (
        count, ms(ours["first"]["p50"]), ms(ours["first"]["p95"])))
