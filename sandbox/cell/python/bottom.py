# SPDX-License-Identifier: MIT
"""The bottom of the stack.

A thread's state has a word that says which frame runs, and what C calls next
has that frame below it.  With nothing in the word, what is called next is at
the bottom, as a program's main module is: no stack, no warning and no debugger
finds the cell's frames there.  The interpreter writes the word again when the
frame that it is in calls a function of Python's, so it is emptied by statements
that call none, each time:

    bottom.word(bottom.record.value + bottom.offset).value = None

Another word, left, counts down from the limit of recursion.
"""

import ctypes
import sys

OWN = int(sys.version_info < (3, 12))   # of eval() itself
DEEP = 50               # frames: we are not so deep
WORDS = 32              # of a thread's state: it is among the first
STATE_FRAME = 24        # in a frame object: what of it is on the stack
# 3.11 and 3.12 have another struct between: (its address, the word in it).
BETWEEN = {(3, 11): (56, 8), (3, 12): (56, 0)}

word = ctypes.c_void_p.from_address


def memory(address, kind):
    """A number in memory, as the first of a memoryview's: to write there costs
    a clone fewer pages than by ctypes."""
    size = ctypes.sizeof(ctypes.c_int if kind == "i" else ctypes.c_void_p)
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast(
        "B").cast(kind)


def find():
    """(a c_void_p, an offset from its value) of the word; where this Python is
    none that is known here, those of a word that nobody reads."""
    try:
        own = word(id(sys._getframe()) + STATE_FRAME).value
        state = ctypes.pythonapi.PyThreadState_Get
        state.restype = ctypes.c_void_p
        state = state()
        if sys.version_info[:2] in BETWEEN:
            at, offset = BETWEEN[sys.version_info[:2]]
            if word(word(state + at).value + offset).value == own:
                return word(state + at), offset
        elif sys.version_info >= (3, 13):
            for at in range(0, 8 * WORDS, 8):
                if word(state + at).value == own:
                    return ctypes.c_void_p(state + at), 0
    except (AttributeError, TypeError):
        pass
    return ctypes.c_void_p(ctypes.addressof(nobodys)), 0


def find_left():
    most = sys.getrecursionlimit()
    if record.value != ctypes.addressof(nobodys):
        state = ctypes.pythonapi.PyThreadState_Get()
        for at in range(state, state + 8 * WORDS, 4):
            one = ctypes.c_int.from_address(at)
            if (ctypes.c_int.from_address(at + 4).value == most and
                    0 < most - one.value < DEEP):
                return one
    return ctypes.c_int()


nobodys = ctypes.c_void_p()
record, offset = find()
left = find_left()
