# SPDX-License-Identifier: MIT
"""cell.py SOCKET [CLASS]: PID 1 of a cell, the container that runs code.

It connects to the broker at SOCKET (control), says READY, and serves leases:
on each, a client sends requests (sandbox/protocol/frame.h) and gets events and one
result for each.  In between nothing of a lease is left: no process, no file in
memory.  A container that mounts /site installs packages, or lists them, and
does nothing else; every other one has a /workspace and does everything else.

    cell.py       this: start, and the last lines of a run
    serve.py      roles, requests, what the operations do
    supervisor.py the half in C, which makes and ends all other processes
    api.py        what differs in the cells of the HTTP APIs
    jail.py, filter.py   the namespaces and the filter of their runs
    bottom.py     what is below a program on the stack
    end.py        the end of an interpreter
    run.py        a clone becomes a Python process like any other
    kept.py       a run whose interpreter is the next one's, too
    plain.py      what a plain run needs
    display.py, pictures.py, libraries.py, magics.py    a person's runs are
                  those of a notebook: pictures, await, %time
    files.py      the workspace, for the client
    harvest.py    which files did a run make or change?
    packages.py   pip
    link.py       sockets
    frames.py     the protocol

A run is a clone of this process, taken while the interpreter is warm: the first
of a lease before it is asked for, others when they are.  The child leaves all
of the functions above and comes back here, so that user code is called from
the bottom of the stack, by the main program of a real interpreter: when it
ends, the interpreter's own end does the rest, as ever (threads are joined,
atexit, flushing, the exit status, SystemExit, ...).
"""

native = dict(globals())        # the names that this Python gives a script

import sys

bare = set(sys.modules)         # the modules of an interpreter before a script

import ctypes

import bottom
import serve

kind = serve.Cell
if len(sys.argv) > 2:
    import api
    kind = api.CELLS[sys.argv[2]]

del sys.path[0]                 # our own folder
below = bottom.memory(bottom.record.value + bottom.offset, "N")
left, own = bottom.memory(ctypes.addressof(bottom.left), "i"), bottom.OWN
run = kind(sys.argv[1], native, bare).serve()

# Only the child of a fork comes here.
try:
    going = True
    while going:
        try:
            for code in run.prepare():
                below[0], left[0] = 0, sys.getrecursionlimit() + own
                coroutine = eval(code, run.names)
                if coroutine is not None:   # of an await at top level
                    run.wait(coroutine)
        except BaseException as error:
            if not run.again(error):
                raise
        else:
            going = run.again()
    run.leave()
except SystemExit as end:
    run.exits(end)
    raise
except BaseException as error:
    run.fails(error)
    raise
finally:
    del run                     # it holds what the end of Python finalises
