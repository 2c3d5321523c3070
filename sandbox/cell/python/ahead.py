"""The process of the next run, forked while nobody waits for it.

PID 1 forks it when all that the lease before has started is dead, so no code
of a user's runs beside it.  It does what does not depend on a request, and,
once for nothing, what does: the first write to each page after a fork is most
of what a short run costs.  Then it waits for its orders at a pipe, to which
PID 1 alone can write.  Until they are there it is not dumpable: as far out of
reach as PID 1.
"""

import gc
import marshal
import os
import select

from children import Pipes, make_pipes
from run import Run, flush_files, flush_streams, prefer_as_oom_victim

HEAD = 8                # bytes that tell the length of what follows
PIECE = 1 << 16
# A run of the usual kind.  It shows nothing, imports nothing.
REHEARSAL = b"def f(x): return [x, 1.5, 'a' 'b']\nprint(end='')\nNone\n"


class Spare:
    """A process ahead.  There is none while user code runs."""

    def __init__(self):
        """Before the fork."""
        self.pipes = Pipes(None, False)
        try:
            (self.theirs, self.ours), = make_pipes(1)
        except OSError:
            self.pipes.close_theirs()
            self.pipes.close_ours()
            raise

    # ---- in PID 1 ----

    def close_theirs(self):
        """After the fork, or instead of it."""
        self.pipes.close_theirs()
        os.close(self.theirs)

    def close_ours(self):
        os.close(self.ours)
        self.pipes.close_ours()

    def give(self, run, stdin, merge):
        """Make it the run.  False when it cannot be: nothing has run then, and
        it must end.

        This blocks, but not on anybody outside: it reads, or it is dead.
        """
        data = marshal.dumps((run.path, run.is_file, run.echo, run.args,
                              run.folder, bool(merge), len(run.source)))
        self.pipes.supply(stdin, merge)
        try:
            write_all(self.ours, len(data).to_bytes(HEAD, "little") + data,
                      run.source)
        except OSError:         # it may have had a part of them
            return False
        return True

    # ---- in the process ----

    def become(self, run):
        """Wait for the orders; the run is isolated and furnished then."""
        run.cut_off(self.pipes, self.theirs)
        # Who is not dumpable does not own this file of its own.
        run.set_dumpable(1)
        prefer_as_oom_victim()
        run.set_dumpable(0)
        run.furnish()
        orders = select.poll()
        orders.register(self.theirs, select.POLLIN)
        for _ in rehearse(run):
            if orders.poll(0):      # they do not wait for that
                break
        self.obey(run)

    def obey(self, run):
        size = int.from_bytes(self.read(HEAD), "little")
        (run.path, run.is_file, run.echo, run.args, folder, merge,
         size) = marshal.loads(self.read(size))
        run.source = self.read(size)
        os.close(self.theirs)
        if merge:
            os.dup2(1, 2)
        # PID 1 has just walked there, and nobody can have moved it since.
        os.chdir(folder)
        run.set_dumpable(1)

    def read(self, size):
        """Exactly size bytes.  PID 1 may let go of us instead."""
        pieces = []
        while size > 0:
            piece = os.read(self.theirs, min(size, PIECE))
            if not piece:
                os._exit(0)
            size -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)


def write_all(fd, *pieces):
    """In one go as a rule: what is woken in between only waits again."""
    left = [memoryview(piece) for piece in pieces if piece]
    while left:
        sent = os.writev(fd, left)
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if sent:
            left[0] = left[0][sent:]


def rehearse(run):
    """Go the way of a run, step by step.  Nothing may come of it that a run
    could see, and nothing in the workspace is looked at: it will be another
    by then."""
    dry = Run(run.native, run.bare, run.set_dumpable, run.nofile)
    dry.path = os.devnull
    dry.echo = True
    dry.source = REHEARSAL
    dry.make_main()
    dry.set_arguments()
    yield
    dry.write_source()
    yield
    codes = dry.compile()
    yield
    for code in codes:
        exec(code, dry.names)
    flush_streams()
    flush_files()
    yield
    del dry, codes
    gc.collect()
