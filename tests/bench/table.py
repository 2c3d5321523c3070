# SPDX-License-Identifier: MIT
"""Rows of the table, printed when they are known."""

HEAD = ("what", "here", "beside it", "ratio", "target", "reached")
WIDTHS = (46, 17, 35, 7, 12, 7)


def ms(value):
    return "%.2f ms" % value if value < 100 else "%.0f ms" % value


def divided(here, beside):
    """Where next to nothing is measured, that may be nothing at all."""
    return here / beside if beside else float("inf")


def rate(value):
    return "%.0f/s" % value


class Table:
    """What was measured."""

    def __init__(self):
        self.rows = []

    def start(self):
        self._print(HEAD)
        self._print(["-" * width for width in WIDTHS])

    @staticmethod
    def _print(cells):
        print("  ".join(str(cell).ljust(width) for cell, width
                        in zip(cells, WIDTHS)).rstrip(), flush=True)

    def add(self, what, here, beside="", ratio=None, target="", reached=None):
        """A row; reached None: it has no target of its own."""
        row = (what, here, beside, "" if ratio is None else "%.2f" % ratio,
               target, {True: "yes", False: "NO", None: ""}[reached])
        self.rows.append([str(cell) for cell in row])
        self._print(row)

    def at_most(self, what, here, beside, most, show=ms, with_what=""):
        """A ratio that must not be larger."""
        ratio = divided(here, beside)
        self.add(what, show(here), "%s %s" % (show(beside), with_what), ratio,
                 "<= %gx" % most, ratio <= most)

    def at_least(self, what, here, beside, least, show=rate, with_what=""):
        ratio = divided(here, beside)
        self.add(what, show(here), "%s %s" % (show(beside), with_what), ratio,
                 ">= %gx" % least, ratio >= least)

    @staticmethod
    def note(text):
        print("    " + text, flush=True)

    def markdown(self):
        """The table."""
        lines = ["| %s |" % " | ".join(HEAD), "|---" * len(HEAD) + "|"]
        lines += ["| %s |" % " | ".join(row) for row in self.rows]
        return "\n".join(lines) + "\n"
