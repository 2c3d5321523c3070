"""When PID 1, and what it starts, come to their turns on a processor.

PID 1, and the process of the next run while it waits, ask for the shortest time
slices: they then need not wait, when they wake, for the end of the slice of
somebody's endless loop.  A run has slices as all have.  Nobody's share changes
by it.  Linux has this from 6.12 on (its Documentation/scheduler/sched-eevdf.rst)
and ignores it before.
"""

import ctypes
import os

NICE = 5                # PID 1 must come to its turn among many that spin
SLICE_NS = 100000       # the least that the kernel gives
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)

_syscall = ctypes.CDLL(None).syscall


class Attributes(ctypes.Structure):
    """struct sched_attr, as it was first; policy 0 is SCHED_OTHER."""

    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32),
                ("flags", ctypes.c_uint64), ("nice", ctypes.c_int32),
                ("priority", ctypes.c_uint32), ("runtime", ctypes.c_uint64),
                ("deadline", ctypes.c_uint64), ("period", ctypes.c_uint64)]


_attributes = Attributes(ctypes.sizeof(Attributes))
_where = ctypes.byref(_attributes)


def take_slices(nanoseconds, nice):
    """0: as they are by default.  Without it things are slower, no more."""
    if SCHED_SETATTR is not None:
        _attributes.nice = nice
        _attributes.runtime = nanoseconds
        _syscall(SCHED_SETATTR, 0, _where, 0)


def take_short_slices():
    """For PID 1."""
    take_slices(SLICE_NS, os.getpriority(os.PRIO_PROCESS, 0))


def be_ordinary():
    """For a run, before the first of its code."""
    take_slices(0, os.nice(NICE))
