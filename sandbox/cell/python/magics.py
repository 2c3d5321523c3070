# SPDX-License-Identifier: MIT
"""The syntax of notebooks that is no Python: await at top level, %time,
%timeit, %pip, !command.

All that compiles as it stands is run as it stands.  Other source is compiled
again: with await allowed, and where Python stops at a line that begins with %
or !, with a statement in place of that line.  Lines keep their numbers.
"""

import _ast
import builtins
import sys
import time

resource = None         # the module: display.py sets it
advice = ""             # how packages are installed: likewise

PARSE = 0x400           # ast.PyCF_ONLY_AST
AWAIT = 0x2000          # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
MOST = 100              # such lines in one source: each costs a parse
BLANK = b" \t\f"
MARK = b"\xef\xbb\xbf"    # "I am UTF-8"
# Magics without effect here.
NOTHING = ("matplotlib", "config", "load_ext", "reload_ext", "autoreload")
# Words before "install", and options of pip with a value.
INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv", "python", "python3", "-m",
              "{sys.executable}", "sudo", "-q", "-y", "--quiet", "--yes")
WITH_VALUE = ("-r", "-c", "-i", "-f", "-e", "-t", "--requirement",
              "--constraint", "--index-url", "--extra-index-url", "--target")
UNITS = (1, "sec"), (1e-3, "msec"), (1e-6, "usec"), (1e-9, "nsec")
# Our functions among the builtins: no name of a program's can be one of these.
SHOW, TIME, TIMEIT, PIP, SHELL = "%show", "%time", "%timeit", "%pip", "!"


def compile_again(source, name, echo):
    """The code of source that is no Python; echo: its last expression is shown.
    None: there is nothing to be done about it; SyntaxError: something else is
    wrong with it."""
    magics = Magics(source, name, echo)
    tree = magics.parse()
    if tree is None:
        return None
    magics.put(tree)
    vars(builtins).update({SHOW: lambda value: sys.displayhook(value),
                           TIME: Time, TIMEIT: magics.timeit, PIP: pip,
                           SHELL: shell})
    try:
        return compile(tree, name, "exec", AWAIT, True)
    except SyntaxError as error:
        if not magics.found:
            return None         # as it was at first
        raise error from None


# ---- trees ----

def place(node, at):
    """Give a node the place of another."""
    for name in "lineno", "col_offset", "end_lineno", "end_col_offset":
        setattr(node, name, getattr(at, name))
    return node


def call(at, name, *args):
    """A statement that calls one of our functions; args: nodes or constants."""
    args = [arg if isinstance(arg, _ast.AST) else
            place(_ast.Constant(arg, None), at) for arg in args]
    name = place(_ast.Name(name, _ast.Load()), at)
    return place(_ast.Expr(place(_ast.Call(name, args, []), at)), at)


def command(at, text):
    names = packages_of(text.split())
    if names is None:
        return call(at, SHELL, text)
    return call(at, PIP, names)


def show_last(body):
    """Have the last statement shown, if it is an expression."""
    if body and isinstance(body[-1], _ast.Expr):
        body[-1] = call(body[-1], SHOW, body[-1].value)


def timed(at, body):
    clock = _ast.withitem(call(at, TIME).value, None)
    return place(_ast.With([clock], body, None), at)


def move(node, lines):
    """Let a tree begin so many lines later."""
    if hasattr(node, "lineno"):
        node.lineno += lines
        node.end_lineno += lines
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, _ast.AST):
                move(child, lines)


class Magics:
    """Source, of which some lines are magics."""

    def __init__(self, source, name, echo):
        if source.startswith(MARK):
            source = source[len(MARK):]     # UTF-8 is the default
        self.lines = source.splitlines(True)
        self.name = name
        self.echo = echo
        self.found = {}         # number of a line: (it, column of its mark)
        self.cell = 0           # which of them is %%time or %%timeit
        self.measured = []      # of each %timeit: see put_timeit()

    # ---- finding them ----

    def parse(self):
        """The tree, with `pass` for each magic.  None: there is none."""
        self.take_cell()
        while True:
            try:
                return compile(b"".join(self.lines), self.name, "exec", PARSE,
                               True)
            except SyntaxError as error:
                number = error.lineno
                if number in self.found:    # it is no statement there,
                    if len(self.found) == 1:
                        return None         # as Python said at first
                    raise self.error(number, error.msg, type(error)) from None
                if not self.take(number):
                    if self.found:
                        raise
                    return None
                if len(self.found) > MOST:
                    raise self.error(number, "more than %d lines begin with %%"
                                     " or !" % MOST) from None

    def take_cell(self):
        """%% in the first line that is not empty."""
        for number, line in enumerate(self.lines, 1):
            if line.startswith(b"%%"):
                self.cell = number
                self.found[number] = line.rstrip(), 1
                self.lines[number - 1] = b"\n"
                if self.split(number)[0] not in ("time", "timeit"):
                    raise self.error(number, "of the magics for whole cells,"
                                     " only %%time and %%timeit are here")
            if line.strip():
                break

    def take(self, number):
        """Is this line a magic?  `pass` stands there then."""
        if not number or not 0 < number <= len(self.lines):
            return False
        line = self.lines[number - 1].rstrip()
        text = line.lstrip(BLANK)
        column = len(line) - len(text)
        if not (text[:1] == b"%" and text[1:2].isalpha() or
                text[:1] == b"!" and text[1:2] not in (b"", b"=")):
            return False
        self.lines[number - 1] = line[:column] + b"pass\n"
        at = number
        while line.endswith(b"\\") and at < len(self.lines):
            line = line[:-1] + self.lines[at].rstrip()
            self.lines[at] = b"\n"
            at += 1
        self.found[number] = line, column
        return True

    def split(self, number):
        """The word behind the mark, what follows that, its column."""
        line, column = self.found[number]
        word, rest = (line[column + 1:].split(None, 1) + [b"", b""])[:2]
        return decode(word), rest, len(line) - len(rest)

    def error(self, number, what, kind=SyntaxError):
        line, column = self.found[number]
        return kind(what, (self.name, number, column + 1, decode(line)))

    # ---- putting statements in their places ----

    def put(self, tree):
        body = tree.body
        word, rest, column = self.split(self.cell) if self.cell else ("",) * 3
        if self.cell and not body:
            raise self.error(self.cell, "nothing follows this line")
        if word == "timeit":
            for number in set(self.found) - {self.cell}:
                raise self.error(number, "%%timeit takes Python alone")
            text = decode(b"".join(self.lines[self.cell:]))
            body[:] = [self.put_timeit(body[0], self.cell, rest, column,
                                       body[:], text)]
            return
        if self.echo:
            show_last(body)
        self.put_into(body, self.echo)
        if word == "time":
            body[:] = [timed(body[0], body[:])]

    def put_into(self, body, echo=False):
        """Replace the magics of a list of statements, and those below."""
        for at, node in enumerate(body):
            if isinstance(node, _ast.Pass) and node.lineno in self.found:
                body[at] = self.statement(node, echo and node is body[-1])
                continue
            for name in "body", "orelse", "finalbody", "handlers", "cases":
                below = getattr(node, name, None)
                if isinstance(below, list):
                    self.put_into(below)

    def statement(self, node, echo):
        """The statements of a magic; echo: an expression is shown."""
        number = node.lineno
        line, column = self.found[number]
        if line[column:column + 1] == b"!":
            return command(node, decode(line[column + 1:]).strip())
        word, rest, column = self.split(number)
        if word == "time":
            body = self.inline(number, rest, column)
            if echo:
                show_last(body)
            return timed(node, body)
        if word == "timeit":
            return self.put_timeit(node, number, rest, column)
        if word == "pip":
            return command(node, "pip " + decode(rest))
        if word in NOTHING:
            return node
        raise self.error(number, "of the magics, only %time, %timeit, %pip and"
                         " !command are here")

    def inline(self, number, text, column):
        """The statements behind a magic, in their true place."""
        block = b"if 1:\n" + b" " * column + text
        try:
            if not text:
                raise self.error(number, "a statement is missing")
            tree = compile(block, self.name, "exec", PARSE, True)
        except SyntaxError as error:
            wrong = self.error(number, error.msg)
            wrong.offset = error.offset
            raise wrong from None
        move(tree, number - 2)
        return tree.body[0].body

    def put_timeit(self, node, number, rest, column, body=None, text=None):
        """%timeit STATEMENT, or of a cell: %%timeit SETUP, and body."""
        options = {b"-n": 0, b"-r": 0}
        while rest[:2] in options:
            option, rest = rest[:2], rest[2:].lstrip(BLANK)
            digits = len(rest) - len(rest.lstrip(b"0123456789"))
            if not digits:
                raise self.error(number, "-n and -r are followed by a number")
            options[option] = int(rest[:digits])
            rest = rest[digits:].lstrip(BLANK)
        column = len(self.found[number][0]) - len(rest)
        setup = "pass"
        if body is None:
            body, text = self.inline(number, rest, column), decode(rest)
        elif rest:
            body = self.inline(number, rest, column) + body
            setup = decode(rest)
        code = compile(_ast.Module(body, []), self.name, "exec", 0, True)
        self.measured.append((code, text, setup, options[b"-n"],
                              options[b"-r"]))
        return call(node, TIMEIT, len(self.measured) - 1)

    # ---- when they run ----

    def timeit(self, which):
        """As `python -m timeit` does it, and says it.  Once before that it runs
        as it stands in the source, so that what fails is shown there."""
        import timeit
        code, text, setup, number, times = self.measured[which]
        frame = sys._getframe(1)
        names = dict(frame.f_globals, **frame.f_locals)
        exec(code, names)
        timer = timeit.Timer(text, setup, globals=names)
        if number:
            took = timer.timeit(number)
        else:
            number, took = timer.autorange()
        # A slow statement is not run six times more.
        times = times or max(1, min(5, int(10 / took) if took else 5))
        best = min(timer.repeat(times, number)) / number
        print("%d loop%s, best of %d: %s per loop" % (
            number, "" if number == 1 else "s", times, duration(best)))


def decode(data):
    return data.decode("utf-8", "replace")


def duration(seconds):
    for scale, unit in UNITS:
        if seconds >= scale:
            break
    return "%.3g %s" % (seconds / scale, unit)


class Time:
    """with Time(): prints how long the block took."""

    def __enter__(self):
        self.used = resource.getrusage(resource.RUSAGE_SELF)
        self.began = time.perf_counter()

    def __exit__(self, *_):
        wall = time.perf_counter() - self.began
        used = resource.getrusage(resource.RUSAGE_SELF)
        user = used.ru_utime - self.used.ru_utime
        system = used.ru_stime - self.used.ru_stime
        print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % tuple(
            map(duration, (user, system, user + system, wall))))


def packages_of(words):
    """The packages that a command would install, with spaces between; None: it
    is none that installs."""
    if "install" not in words or not {"pip", "pip3", "conda", "mamba"} & set(
            words[:words.index("install")]):
        return None
    at = words.index("install")
    if any(word not in INSTALLERS for word in words[:at]):
        return None
    names = []
    takes = False
    for word in words[at + 1:]:
        if word[0] in "#;&|":
            break
        if not takes and word[0] != "-":
            names.append(word.strip("'\""))
        takes = not takes and word in WITH_VALUE
    return " ".join(names)


def pip(names):
    """Packages come from another cell than this one, which has no network."""
    try:
        from importlib.metadata import version
        there = ["%s %s" % (name, version(name)) for name in names.split()]
    except Exception:       # not that, or more than a name
        there = []
    if there:
        print("Installed already: " + ", ".join(there))
    else:
        print(advice + (names or "NAME"))


def shell(text):
    """!command."""
    import subprocess
    try:
        subprocess.call(["sh", "-c", text])
    except OSError as error:
        print("There is no shell here (%s)." % error.strerror)
