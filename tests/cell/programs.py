# SPDX-License-Identifier: MIT
"""Programs that can tell whether something is below them on the stack, beside
them in the interpreter, or between them and its end: same.t runs each as Python
alone does, and in cells.

Each is a function's worth of source: {name: source}.
"""

PROGRAMS = {}


def add(name, source):
    PROGRAMS[name] = source.lstrip("\n")


# ---- tracebacks ----

add("traceback", """
def f(n):
    return 1 / n
def g():
    f(0)
g()
""")
add("chained", """
def f():
    try:
        {}["key"]
    except KeyError as error:
        try:
            int("x")
        except ValueError:
            raise RuntimeError("third") from error
f()
""")
add("note and group", """
import sys
error = ValueError("one")
error.add_note("a note\\nof two lines")
try:
    raise error
except ValueError as e:
    raise ExceptionGroup("all", [e, TypeError("two")])
""")
add("no str", """
class E(Exception):
    def __str__(self):
        raise ValueError
raise E("x")
""")
add("recursion", """
def f(n):
    return f(n + 1)
f(0)
""")
add("depth", """
import sys
def f(n):
    global most
    most = n
    f(n + 1)
try:
    f(1)
except RecursionError:
    print(most, sys.getrecursionlimit())
""")
add("syntax", "x = 1\nfor i in range(3) print(i)\n")
add("indentation", "if 1:\n    x = 1\n  y = 2\n")
add("tab", "if 1:\n        x = 1\n\ty = 2\n")
add("syntax in exec", """
def f():
    exec("a = = 1")
f()
""")
add("syntax warning", "x = 5\nprint(x is 5)\nprint('\\d')\n")

# ---- the stack ----

add("print_stack", """
import traceback
def f():
    traceback.print_stack()
    print(traceback.format_stack())
f()
print(traceback.extract_stack())
""")
add("inspect", """
import inspect
def f():
    for one in inspect.stack():
        print(one.filename, one.lineno, one.function, one.code_context)
f()
print(len(inspect.stack()), inspect.currentframe().f_back)
print(inspect.getsource(f), inspect.getsourcefile(f))
""")
add("f_back", """
import sys
frame, n = sys._getframe(), 0
while frame:
    print(n, frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
    frame, n = frame.f_back, n + 1
try:
    sys._getframe(1)
except ValueError as error:
    print(error)
""")
add("other stacks", """
import logging, signal, sys, os, traceback
def handler(*args):
    traceback.print_stack()
signal.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
logging.warning("said", stack_info=True)
print(next(iter(sys._current_frames().values())).f_back)
print(list(traceback.walk_stack(sys._getframe())).__len__())
""")
add("pdb", """
import pdb
def f():
    pdb.set_trace()
    x = 1
f()
""")
add("settrace", """
import sys
def trace(frame, event, arg):
    print(event, frame.f_code.co_filename, frame.f_code.co_name)
def f():
    pass
sys.settrace(trace)
f()
sys.settrace(None)
sys.setprofile(lambda frame, event, arg: print(event, frame.f_code.co_name))
f()
sys.setprofile(None)
""")
add("faulthandler", """
import faulthandler, sys
def f():
    faulthandler.dump_traceback(sys.stderr, all_threads=False)
f()
""")
add("segmentation fault", """
import faulthandler, os, signal
faulthandler.enable()
def f():
    os.kill(os.getpid(), signal.SIGSEGV)
f()
""")

# ---- warnings ----

add("stacklevel", """
import warnings
warnings.simplefilter("always")
def f(level):
    warnings.warn("w%d" % level, stacklevel=level)
for level in 1, 2, 3, 5:
    f(level)
warnings.warn("here")
warnings.warn("above", stacklevel=2)
""")
add("deprecated", """
import warnings
warnings.warn("old", DeprecationWarning)
warnings.warn("old", DeprecationWarning, stacklevel=2)
warnings.warn("slow", PendingDeprecationWarning)
def f():
    warnings.warn("old", DeprecationWarning, stacklevel=2)
f()
print(warnings.filters)
""")
add("never awaited", """
async def f():
    pass
f()
c = f()
""")
add("never awaited, in a list", """
import sys
async def f():
    pass
sys.kept = [f()]
def g():
    return f()
all = [g() for i in range(2)]
""")
add("resource warning", """
import warnings
warnings.simplefilter("always")
def f():
    open("/dev/null")
f()
file = open("/dev/null")
""")

# ---- the end ----

add("exit 3", "import sys\nsys.exit(3)\n")
add("exit text", "import sys\nprint('out')\nsys.exit('text')\n")
add("exit list", "raise SystemExit([1, 'é'])\n")
add("exit in function", """
def f():
    try:
        exit(7)
    finally:
        print("finally")
f()
""")
add("exit minus one", "import sys\nsys.exit(-1)\n")
add("atexit", """
import atexit, sys, traceback
def last():
    print("last")
    traceback.print_stack()
def fails():
    1 / 0
def leaves():
    sys.exit(9)
atexit.register(last)
atexit.register(fails)
atexit.register(leaves)
print("code")
""")
add("atexit after an error", """
import atexit, sys
atexit.register(lambda: print(getattr(sys, "last_value", None)))
raise KeyError("lost")
""")
add("interrupt", """
import sys
def f():
    raise KeyboardInterrupt
try:
    f()
finally:
    print("finally", flush=True)
""")
add("thread", """
import threading
def f():
    raise ValueError("in a thread")
thread = threading.Thread(target=f, name="T")
thread.start()
thread.join()
def late():
    import time
    time.sleep(0.05)
    print("late", threading.main_thread().is_alive())
threading.Thread(target=late).start()
print("main")
""")
add("excepthook", """
import sys, traceback
def hook(kind, error, trace):
    print("hook", kind, error, len(traceback.extract_tb(trace)))
    traceback.print_stack()
sys.excepthook = hook
1 / 0
""")
add("failing excepthook", """
import sys
def hook(kind, error, trace):
    raise TypeError("hook")
sys.excepthook = hook
1 / 0
""")
add("unraisable", """
class A:
    def __del__(self):
        raise ValueError("in del")
def f():
    a = A()
f()
last = A()
""")
add("del at the end", """
import traceback, sys
class A:
    def __init__(self, name):
        self.name = name
    def __del__(self, print=print, stack=traceback.extract_stack):
        print(self.name, [(f.filename, f.name) for f in stack()])
a = A("global")
b = A("cycle")
b.b = b
sys.a = A("of sys")
""")
add("generator at the end", """
import sys
def f():
    try:
        yield 1
    finally:
        print("closed", sys._getframe().f_back)
g = f()
next(g)
""")
add("weakref.finalize", """
import weakref, sys
class A: pass
a = A()
weakref.finalize(a, lambda: print("finalized", sys._getframe().f_back))
""")
add("broken pipe at the last flush", """
import os, sys
r, w = os.pipe()
os.close(r)
os.dup2(w, 1)
sys.stdout = open(1, "w", closefd=False)
print("lost")
""")
add("closed stdout", """
import os, sys
print("printed")
sys.stdout.close()
""")
add("closed descriptor", """
import os, sys
sys.stdout = open(1, "w", closefd=False)
print("lost")
os.close(1)
""")
add("a stream of its own", """
import sys, traceback
class Out:
    def write(self, text):
        sys.__stdout__.write(text)
    def flush(self):
        sys.__stdout__.write("flush %d\\n" % len(traceback.extract_stack()))
sys.stdout = Out()
print("x")
""")
add("failing flush", """
import sys
class Out:
    def write(self, text):
        sys.__stdout__.write(text)
    def flush(self):
        raise OSError("no")
sys.stdout = Out()
print("x")
""")
add("no streams", "import sys\nsys.stdout = sys.stderr = None\nprint(1)\n1/0\n")
add("asyncio", """
import asyncio
async def f():
    await asyncio.sleep(0)
    1 / 0
async def main():
    task = asyncio.create_task(f(), name="t")
    await asyncio.sleep(0.01)
    print("done", task.done())
asyncio.run(main())
""")
add("abort", "import os\nprint('x', flush=True)\nos.abort()\n")
add("os._exit", "import os, sys\nsys.stdout.write('x')\nos._exit(4)\n")

# ---- the interpreter ----

add("main", """
import sys, __main__
for name in sorted(vars(__main__)):
    print(name, type(getattr(__main__, name)).__name__)
print(__name__, globals().get("__file__"), __spec__, __doc__, __package__)
print(list(globals())[:7], sys.argv, sys.orig_argv)
print(__builtins__, __loader__ if isinstance(__loader__, type) else
      (type(__loader__), __loader__.name, __loader__.path))
""")
add("sys", """
import sys
print(sys.flags, sys.path, sys.meta_path, sys.path_hooks)
print(sys.stdin, sys.stdout, sys.stderr, sys.stdout.line_buffering)
print(sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook)
print(sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(),
      sys.getswitchinterval(), sys.is_finalizing(), sys.executable)
print(hasattr(sys, "last_value"), hasattr(sys, "ps1"), sys.warnoptions)
print(sorted(sys.modules))
""")
add("input", "a = input('? ')\nprint(a)\nb = input()\n")
add("multiprocessing", """
import multiprocessing, sys
def f(x):
    if x > 1:
        raise ValueError(x)
    return x
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(f, [0, 1]))
        pool.map(f, [2])
""")
add("unittest", """
import unittest
class T(unittest.TestCase):
    def test_one(self):
        self.assertEqual(1, 2)
unittest.main(argv=["x"], verbosity=0)
""")

# ---- what is left, and ends seen or unseen ----

add("plain things are left", """
class A:
    kind = property(lambda self: 1)
class B(A, dict):
    __slots__ = ("x", "__weakref__")
a = A(); a.me = a
b = [B() for i in range(50)], {1: (a, {2})}, lambda: a
print(len(b))
""")
add("an end without a collector's notice", """
class A:
    __slots__ = ()
    def __del__(self): print("gone", type(self).__name__)
class B(A):
    __slots__ = ()
a, b = A(), [B()]
""")
add("an end that came later", """
class A: pass
class B(A): pass
b = [B()]; b.append(b)
A.__del__ = lambda self: print("gone")
""")
add("a reference that calls", """
from _weakref import ref
class A: pass
a = A(); a.me = a
b = [ref(a), ref(a, lambda one: print("called"))]
""")
add("a reference that is silent", """
from _weakref import ref
class A: pass
a = A(); a.me = ref(a)
print(a.me() is a)
""")
add("who asks the collector", """
import gc
gc.callbacks.append(lambda phase, about: print(phase, sorted(about)))
x = []; x.append(x)
""")
add("who hides from it", """
import gc
class A:
    def __del__(self): print("gone")
x = [A()]
gc.freeze()
""")
add("what equals all", """
class All:
    def __eq__(self, other): print("asked"); return True
    def __hash__(self): print("asked"); return 1
class Kind(type):
    def __eq__(self, other): print("asked"); return True
    def __hash__(self): print("asked"); return 1
class A(metaclass=Kind): pass
x = [All(), A()]
""")
add("what stands still", """
def f():
    try: yield 1
    finally: print("gone")
x = [f()]; next(x[0])
""")
