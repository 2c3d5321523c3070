# SPDX-License-Identifier: MIT
"""The tools of /librechat/exec/programmatic, inside a run.

    libre_helper.py PROGRAM             run a Python program that may await them
    libre_helper.py --functions PID     for bash: a function for each of them
    libre_helper.py --call PID NAME INPUT       what such a function does

A program begins anew in each round.  A call whose result is known returns it,
and where a program cannot go on without the others, they are written down and
the program ends.  Results belong to calls by name and input, not by order:
tasks may go on in another order once their results are there.
"""

import fcntl
import json
import keyword
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS_MAX = 256         # of one round: LIBRE_CALLS_MAX
BASH_RESERVED = set("""if then else elif fi case esac for while until do done in
function select time coproc declare typeset local readonly export unset
""".split())


class ToolError(RuntimeError):
    """What a tool says of a call that failed."""


ToolError.__module__ = "builtins"       # its name in tracebacks


def call_key(name, value):
    return json.dumps([name, value], sort_keys=True, allow_nan=False)


def identifier(name, blank, reserved):
    """A tool's name as the client tells it to the model."""
    name = re.sub("[^a-zA-Z0-9_]", "", re.sub(blank, "_", name))
    if name[:1].isdigit():
        name = "_" + name
    return name + "_tool" if name in reserved else name


class Calls:
    """What is known of calls, and which ones have no result yet."""

    def __init__(self):
        with open(HERE + "/state.json", encoding="utf-8") as file:
            state = json.load(file)
        self.tools = state["tools"]
        self.waiting = []
        self.results = {}
        for one in state["history"]:
            self.results.setdefault(call_key(one["name"], one["input"]),
                                    []).append(one)

    def write(self):
        with open(HERE + "/calls.json", "w", encoding="ascii") as file:
            json.dump(self.waiting[:CALLS_MAX], file)


def result_of(one):
    if one["is_error"]:
        raise ToolError(one["error_message"] or "the tool failed")
    return one["result"]


# ---- Python ----

def leave(calls):
    """The program can do nothing but wait for what it has called."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    calls.write()
    os._exit(1)         # should the file not come through


def watch_loops(calls):
    """Whichever loop runs: before it would wait, the program is left."""
    import selectors

    class Selector(selectors.DefaultSelector):
        def select(self, timeout=None):
            if calls.waiting and (timeout is None or timeout > 0):
                events = super().select(0)
                if not events:
                    leave(calls)
                return events
            return super().select(timeout)

    selectors.DefaultSelector = Selector


def function_of(calls, tool):
    import asyncio

    async def call(*args, **given):
        if len(args) == 1 and isinstance(args[0], dict) and not given:
            args, given = (), args[0]
        if len(args) > len(tool["params"]):
            raise TypeError("%s() takes keyword arguments" % call.__name__)
        given.update(zip(tool["params"], args))
        key = call_key(tool["name"], given)
        known = calls.results.get(key)
        if known:
            one = known.pop(0)
            await asyncio.sleep(0)
            return result_of(one)
        one = {"name": tool["name"], "input": json.loads(key)[1]}
        calls.waiting.append(one)
        try:
            await asyncio.get_running_loop().create_future()
        finally:                        # it was cancelled
            calls.waiting.remove(one)

    call.__name__ = call.__qualname__ = identifier(tool["name"], r"[-\s]",
                                                   keyword.kwlist)
    call.__doc__ = tool.get("description")
    return call


def hide_ours(error, path, seen):
    """Tracebacks from the program's first line on, without our frames."""
    import types
    if error is None or error in seen:
        return
    seen.append(error)
    kept, trace = [], error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if (kept or file == path) and file != __file__:
            kept.append(trace)
        trace = trace.tb_next
    whole = None
    for one in reversed(kept):
        whole = types.TracebackType(whole, one.tb_frame, one.tb_lasti,
                                    one.tb_lineno)
    error.__traceback__ = whole
    for other in (error.__cause__, error.__context__,
                  *getattr(error, "exceptions", ())):
        hide_ours(other, path, seen)


def code_of(path):
    """A module whose lines may await.  Clients call it the body of a function:
    what only such a one may hold (return) makes it one."""
    import ast
    with open(path, "rb") as file:
        source = file.read()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        return compile(source, path, "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        whole = ast.parse("async def main(): pass")
        try:
            whole.body[0].name = "<module>"
            whole.body[0].body = ast.parse(source, path).body
            whole = compile(whole, path, "exec", dont_inherit=True)
        except SyntaxError:
            raise error from None
    return next(one for one in whole.co_consts if hasattr(one, "co_code"))


def run_python(calls, path):
    import asyncio
    import inspect
    path = os.path.abspath(path)
    sys.path[0] = os.path.dirname(path)
    sys.argv[:] = [path]
    main = type(sys)("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__,
                         asyncio=asyncio, json=json)
    for tool in calls.tools:
        function = function_of(calls, tool)
        setattr(main, function.__name__, function)
    ours, sys.modules["__main__"] = sys.modules["__main__"], main
    watch_loops(calls)
    try:
        code = code_of(path)
        waits = eval(code, main.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(waits)
    except SystemExit:
        raise
    except BaseException as error:
        hide_ours(error, path, [])
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)
    finally:
        del ours


# ---- bash ----

def shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def write_functions(calls, shell):
    """shell: the one that all else is below."""
    for tool in calls.tools:
        name = identifier(tool["name"], r"[-\s.]", BASH_RESERVED)
        print('%s() { %s %s --call %d %s "${1-}"; }' % (
            name, shell_quoted(sys.executable),
            shell_quoted(os.path.abspath(__file__)), shell,
            shell_quoted(tool["name"])))


def as_text(result):
    """One compact JSON value where that can be, else the text."""
    if isinstance(result, str):
        if result.strip()[:1] not in ("{", "["):
            return result
        try:
            result = json.loads(result)
        except ValueError:
            return result
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def call_from_bash(calls, shell, name, text):
    try:
        value = json.loads(text.strip() or "{}")
        key = call_key(name, value)
    except ValueError as error:
        sys.exit("%s: its argument must be JSON: %s" % (name, error))
    with open(HERE + "/taken", "a+", encoding="ascii") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        taken.seek(0)
        before = taken.read().split("\n").count(key)
        known = calls.results.get(key, [])[before:]
        if not known:
            calls.waiting.append({"name": name, "input": value})
            calls.write()
            # The lock is kept: who calls beside us writes nothing more.
            os.kill(shell, signal.SIGKILL)
            signal.pause()
        taken.write(key + "\n")
    sys.stdout.reconfigure(errors="replace")    # half a character
    try:
        print(as_text(result_of(known[0])))
    except ToolError as error:
        sys.exit("%s: %s" % (name, error))


def main(args):
    calls = Calls()
    if args[0] == "--functions":
        write_functions(calls, int(args[1]))
    elif args[0] == "--call":
        call_from_bash(calls, int(args[1]), args[2], args[3])
    else:
        run_python(calls, args[0])


main(sys.argv[1:])
