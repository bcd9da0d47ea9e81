"""A server that says what a test wants, in a thread.

    def answer(args):                     # a list of bytes
        return b"+OK\\r\\n"                 # None, or (bytes, None): the connection is closed
    with FakeServer(answer) as server:
        ... redis://127.0.0.1:{server.port} ...

server.seen has the commands of all connections. An answer of b"" says nothing. A list is said piece
by piece, with seconds to wait between them; a None in it closes the connection.
"""

import socket
import threading
import time

POLYNOMIAL = 0x95AC9329AC4BC9B5


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc64(data, crc=0):
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def dump(value, version=11):
    """The payload of a type byte and value."""
    data = value + version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


def bulk(data):
    return b"$-1\r\n" if data is None else b"$%d\r\n%s\r\n" % (len(data), data)


def array(items):
    return b"*%d\r\n" % len(items) + b"".join(items)


class FakeServer:
    def __init__(self, answer):
        self.answer = answer
        self.seen = []
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        self.listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as stream:
                while self._answer(connection, stream):
                    pass
        except OSError:
            pass

    def _answer(self, connection, stream):
        """False: the connection ends."""
        line = stream.readline()
        if line == b"\n":  # of a replica that loads
            return True
        if not line:
            return False
        args = []
        for _ in range(int(line[1:])):
            args.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
        self.seen.append(args)
        reply = self.answer(args)
        if isinstance(reply, tuple):
            reply = [reply[0], None]
        return self._say(connection, reply)

    @staticmethod
    def _say(connection, reply):
        """False: no more is said."""
        for piece in reply if isinstance(reply, list) else [reply]:
            if piece is None:
                return False
            if isinstance(piece, bytes):
                connection.sendall(piece)
            else:
                time.sleep(piece)
        return True
