# SPDX-License-Identifier: MIT
"""The two sockets of a cell: control, to the broker; lease, to a client.

Both are SOCK_SEQPACKET: one packet, one frame.  The control socket lives as
long as the cell: when it ends, the broker is gone and so is the cell, at once,
and with PID 1 the kernel ends every process of the container.
"""

import os
import select
import sys
import _socket

from frames import (FRAME_MAX, FRAME_READY, TAG_ACCESS, TAG_IMPORTS,
                    TAG_ISOLATION, TAG_PYTHON, TAG_TEXT, TAG_TROUBLE, Frame,
                    ProtocolError, frame)

ONE_DESCRIPTOR = 20     # bytes: CMSG_LEN() of it, so that no second one fits
ENDED = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Gone(Exception):
    """The client closed its lease."""


def receive(sock, room=0):
    """One packet, and a descriptor that came along, or None; room: for that.
    b"" when the peer is gone.
    """
    try:
        packet, extra, flags, _ = sock.recvmsg(FRAME_MAX, room,
                                               _socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return b"", None
    passed = [int.from_bytes(data, sys.byteorder) for _, _, data in extra]
    if flags & _socket.MSG_TRUNC:
        raise ProtocolError("a packet over %d bytes" % FRAME_MAX)
    if room and flags & _socket.MSG_CTRUNC:
        raise ProtocolError("more than one descriptor")
    return packet, passed[0] if passed else None


def connect(path):
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    sock.connect(path)
    return sock


class Control:
    """The connection to the broker; made once, at start."""

    def __init__(self, sock):
        self.sock = sock
        self.fd = sock.fileno()
        self.ooms = None        # the file that counts the memory limit's kills

    def let_go(self):
        """From here on only the descriptor: no object of a clone's is to
        close, at the clone's end, what has its number by then."""
        self.sock.detach()

    def send_ready(self, version, isolation=None, why=None, imported=None,
                   trouble=None):
        packet = frame(FRAME_READY, (TAG_PYTHON, version.encode()),
                       (TAG_ISOLATION, isolation),
                       (TAG_TEXT, why and why.encode()),
                       (TAG_IMPORTS, imported),
                       (TAG_TROUBLE, trouble and trouble.encode()))
        counter = [] if self.ooms is None else [
            (_socket.SOL_SOCKET, _socket.SCM_RIGHTS,
             self.ooms.to_bytes(4, sys.byteorder))]
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0,
                              self.fd)
        try:
            sock.sendmsg([packet], counter)
        finally:
            sock.detach()


class Lease:
    """The connection to the client of the moment.

    Nothing here blocks without an eye on the control socket.
    """

    def __init__(self, fd, control, early=(), terms=None):
        """control: we end when its peer does, or None; early: packets that have
        been received already; terms: the frame by which the broker gave it."""
        self.sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET,
                                   0, fd)
        self.sock.setblocking(False)
        self.fd = fd
        self.control = control
        self.early = list(early)
        self.terms = terms
        self.access = terms.number(TAG_ACCESS) if terms else 0
        self.room = 0           # for a descriptor that may come along
        self.passed = None      # the last one that has

    def close(self):
        self.sock.close()

    def receive(self):
        """The next frame.  Gone when the client has closed."""
        if self.early:
            return Frame(self.early.pop(0))
        while True:
            try:
                packet, self.passed = receive(self.sock, self.room)
                break
            except BlockingIOError:
                self.wait(select.POLLIN)
        if not packet:
            raise Gone
        return Frame(packet)

    def try_send(self, packet):
        """Send if there is room: True when it went.  Gone as above.  The
        packet may be in pieces, a tuple."""
        try:
            if isinstance(packet, tuple):
                self.sock.sendmsg(packet)
            else:
                self.sock.send(packet)
        except BlockingIOError:
            return False
        except OSError:
            raise Gone
        return True

    def send(self, packet):
        """Send, however slow the client is.  Gone when it has closed."""
        while not self.try_send(packet):
            self.wait(select.POLLOUT)

    def wait(self, events, timeout=None):
        """Wait until the lease is ready for events, or has ended: True then.
        Packets on control are not read."""
        poller = select.poll()
        poller.register(self.fd, events)
        if self.control is not None:
            poller.register(self.control, 0)
        ready = poller.poll(timeout)
        if any(fd == self.control for fd, _ in ready):
            leave()
        return bool(ready)

    def check(self):
        """Gone when the client has closed: asked in the course of long work."""
        if self.wait(0, 0):
            raise Gone


def leave():
    """End the cell, and with it everything that runs in the container."""
    os._exit(0)
