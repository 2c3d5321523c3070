# SPDX-License-Identifier: MIT
"""Rows of the contracts beside each other: the same run through each."""

import place as p
from table import ms

PLOT = ("import matplotlib; matplotlib.use('Agg')\n"
        "import matplotlib.pyplot as plt\n"
        "plt.plot([1, 3, 2]); plt.savefig('/dev/null', format='png')\n"
        "print(1)")
NUMPY = "import numpy; print(numpy.arange(3).sum() - 2)"


def targets(place, service, code="print(1)"):
    return (place.eval(service, code), place.mcp(service, code),
            place.piston(service, code))


def contracts(place, table):
    """One after another, ten of each in turns."""
    count = place.settings.count(300)
    with place.service() as service:
        specs = (*targets(place, service),
                 place.execute(service, last_line_interactive=False),
                 place.execute(service, last_line_interactive=True),
                 place.eval_file(service))
        place.load("alternate", place.settings.count(10), 1, 0, *specs)
        ours, *others = place.load("alternate", count, 10, 0, *specs)
    for what, most, other in zip((
            "POST /mcp, tools/call, p50", "POST /api/v2/execute, p50",
            "POST /v1/execute, p50", "POST /v1/execute, last line, p50",
            "POST /eval with main.py, p50"), (1.3, 1.3, 1.2, 1.2, 1.2), others):
        table.at_most(what, other["whole"]["p50"], ours["whole"]["p50"], most,
                      with_what="/eval")
    table.note("n=%d each, 10 of one, 10 of the next" % count)
    scientific(place, table)


def scientific(place, table):
    """What the first import of a large package takes through each."""
    image = p.scientific_image(table, "numpy, a plot")
    if image is None:
        return
    count = place.settings.count(30)
    with place.service(SANDBOX_IMAGE=image) as plain, \
            place.service(SANDBOX_IMAGE=image,
                          IL_PRELOAD="numpy,matplotlib.pyplot") as loaded:
        for what, code in (("import numpy", NUMPY), ("a plot", PLOT)):
            for how, service in (("", plain), (", IL_PRELOAD", loaded)):
                specs = targets(place, service, code)
                place.load("alternate", place.settings.count(3), 1, 0, *specs)
                ours, mcp, piston = place.load("alternate", count, 5, 0,
                                               *specs)
                for name, other in (("/mcp", mcp), ("/api/v2", piston)):
                    table.at_most("%s through %s%s, p50" % (what, name, how),
                                  other["whole"]["p50"],
                                  ours["whole"]["p50"], 1.3,
                                  with_what="/eval")
                table.note("n=%d each; p50 of /eval: %s" % (
                    count, ms(ours["whole"]["p50"])))
