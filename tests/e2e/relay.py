# SPDX-License-Identifier: MIT
"""A relay before a unix socket of PostgreSQL, which cuts the wire on order:
right after a word has gone to the server, before its answer comes back; or
holds every answer back for a while."""

import os
import selectors
import socket
import threading


class Relay:
    """Listens in a folder as the server does in its own."""

    def __init__(self, folder, server_folder, port="5432"):
        name = f".s.PGSQL.{port}"
        self.target = os.path.join(server_folder, name)
        self.word = None
        self.cuts = 0
        self.seconds = 0        # how long an answer is held back
        self.quick = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(folder, name))
        os.chmod(os.path.join(folder, name), 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def cut_after(self, word):
        """Once, in whichever connection says the word first."""
        self.word = word

    def slow(self, seconds):
        """Each answer takes so long from now on; 0: none does."""
        self.seconds = seconds
        if seconds:
            self.quick.clear()
        else:
            self.quick.set()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.carry, args=(client, server),
                             daemon=True).start()

    def carry(self, client, server):
        with selectors.DefaultSelector() as both, client, server:
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in both.select():
                    try:
                        data = key.fileobj.recv(65536)
                        if not data:
                            return
                        cut = (key.fileobj is client and self.word is not None
                               and self.word in data)
                        if key.fileobj is server and self.seconds:
                            self.quick.wait(self.seconds)
                        key.data.sendall(data)
                    except OSError:
                        return
                    if cut:
                        self.word = None
                        # the server does it, nobody hears of it
                        server.recv(65536)
                        self.cuts += 1
                        return

    def close(self):
        self.listener.close()
