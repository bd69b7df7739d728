"""Connections that fail on purpose, on this machine."""

from __future__ import annotations

import socket
import threading
from typing import Callable, List, Optional
from urllib.parse import urlsplit


class Listener:
    """Accepts connections and hands each, with its number from 0, to a function."""

    def __init__(self, serve: Callable[[socket.socket, int], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        self.accepted = 0
        self._threads: List[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            number, self.accepted = self.accepted, self.accepted + 1
            thread = threading.Thread(target=self._run, args=(connection, number))
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with connection:
            try:
                self._serve(connection, number)
            except OSError:
                pass

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()


def read_request(connection: socket.socket) -> Optional[bytes]:
    """Reads a request with its body, or None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    size = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    while len(body) < size:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(connection: socket.socket, body: bytes, status: str = "200 OK") -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def cutting(target: str, after: int) -> Listener:
    """Passes connections on to a server and cuts each once it has sent so many bytes back."""
    parts = urlsplit(target)

    def serve(connection: socket.socket, number: int) -> None:
        with socket.create_connection((parts.hostname, parts.port)) as server:

            def requests() -> None:
                try:
                    while data := connection.recv(65536):
                        server.sendall(data)
                except OSError:
                    pass  # the client may close before it has read everything
                _end(server)

            sending = threading.Thread(target=requests)
            sending.start()
            left = after
            try:
                while left > 0 and (data := server.recv(min(left, 65536))):
                    connection.sendall(data)
                    left -= len(data)
            finally:
                _end(connection)  # which ends the other direction, too
                sending.join()

    return Listener(serve)


def _end(connection: socket.socket) -> None:
    """Ends a connection, also for a thread that waits for it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended
