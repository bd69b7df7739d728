"""Calls of a server with JSON, by the Connect protocol, over kept connections."""

from __future__ import annotations

import base64
import http.client
import json
import random
import select
import socket
import ssl
import struct
import threading
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .errors import DeadlineExceeded, StetError, Unavailable, from_answer

Message = Dict[str, Any]

#: How many connections wait for the next call.
_IDLE = 16

#: Marks the last envelope of a stream.
_END = 2

#: The largest envelope that is accepted; the server sends at most 4 MiB.
_MAX_ENVELOPE = 64 << 20


def encode(message: Mapping[str, Any]) -> bytes:
    """Returns a message as JSON. Bytes become base64."""
    return json.dumps(message, default=_bytes, separators=(",", ":"), allow_nan=False).encode()


def _bytes(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"a message cannot hold a value of type {type(value).__name__}")


def unbase64(text: str) -> bytes:
    """Returns the bytes of a field of an answer."""
    return base64.b64decode(text)


class Answer:
    """An answer to a request that is not a call, read whole."""

    def __init__(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        self.status = status
        #: Names are in lower case.
        self.headers = headers
        self.body = body


class Transport:
    """One server. It may be used by many threads; each call has a connection of its own."""

    def __init__(self, url: str, token: str, timeout: float, retries: int, context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the address of a server: http://HOST:PORT or https://HOST")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("the address must not contain a user, a query or a fragment; do not put tokens there")
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._retries = retries
        self._context = context or (ssl.create_default_context() if self._secure else None)
        self._lock = threading.Lock()  # guards _idle and _closed
        self._idle: List[http.client.HTTPConnection] = []
        self._closed = False

    def close(self) -> None:
        """Closes the connections that wait. Later calls fail."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def call(self, procedure: str, message: Mapping[str, Any], *, repeatable: bool) -> Message:
        """Calls a procedure. One that is repeatable is tried again after a lost connection."""
        body = encode(message)

        def once() -> Message:
            headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
            answer = self._request("POST", "/" + procedure, body, headers)
            content = _object(answer.body)
            if answer.status != 200:
                raise from_answer(answer.status, content, answer.headers)
            return content

        return self.retrying(once) if repeatable else once()

    def retrying(self, once: Any) -> Any:
        """Runs a function again, after a while, if the server could not be reached."""
        for attempt in range(self._retries):
            try:
                return once()
            except Unavailable:
                # Half of the wait is random, so that callers of a restarted server do not
                # all come back at once.
                wait = 0.1 * 2**attempt
                time.sleep(wait / 2 + random.random() * wait / 2)
        return once()

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Optional[Mapping[str, str]] = None,
        *,
        timeout: Optional[float] = None,
    ) -> Answer:
        """Sends any request. An answer with an error is returned, not raised."""
        return self._request(method, path, body, headers or {}, timeout)

    def send(self, procedure: str, messages: Iterable[Mapping[str, Any]]) -> Message:
        """Calls a procedure that takes a stream of messages."""
        connection, response = self._open(procedure, (_envelope(m) for m in messages))
        try:
            answers = list(_messages(response))
        finally:
            connection.close()
        return answers[-1] if answers else {}

    def stream(
        self, procedure: str, message: Mapping[str, Any], *, timeout: Optional[float] = None
    ) -> Iterator[Message]:
        """Calls a procedure that returns a stream. A silence of timeout seconds ends it."""
        connection, response = self._open(procedure, [_envelope(message)], timeout)
        try:
            yield from _messages(response)
        finally:
            connection.close()

    def _open(
        self, procedure: str, envelopes: Iterable[bytes], timeout: Optional[float] = None
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Starts a call with streams on a connection of its own."""
        connection = self._connect(timeout)
        headers = {
            **self._headers, "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1", "Transfer-Encoding": "chunked",
        }  # fmt: skip
        try:
            with _translated():
                try:
                    connection.request("POST", f"{self._prefix}/{procedure}", envelopes, headers, encode_chunked=True)
                    response = connection.getresponse()
                except (BrokenPipeError, ConnectionResetError):
                    # The server may have refused before it read everything, and said why.
                    response = http.client.HTTPResponse(connection.sock, method="POST")
                    response.begin()
                if response.status != 200:
                    raise from_answer(response.status, _object(response.read()), _lower(response))
        except BaseException:
            connection.close()
            raise
        return connection, response

    def _request(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], timeout: Optional[float] = None
    ) -> Answer:
        connection = self._take() or self._connect(None)
        if connection.sock is not None:
            connection.sock.settimeout(timeout or self._timeout)
        try:
            with _translated():
                connection.request(method, self._prefix + path, body, {**self._headers, **headers})
                response = connection.getresponse()
                content = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._put_back(connection)
        return Answer(response.status, _lower(response), content)

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
        timeout = timeout or self._timeout
        connection: http.client.HTTPConnection
        if self._secure:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        with _translated():
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _take(self) -> Optional[http.client.HTTPConnection]:
        """Returns a connection that waits and was not closed by the server meanwhile."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not _readable(connection.sock):
                return connection
            connection.close()

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


class _translated:
    """Makes errors of connections errors of this package."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        if error is None or isinstance(error, StetError):
            return
        if isinstance(error, TimeoutError):  # socket.timeout is the same
            raise DeadlineExceeded("the server did not answer in time", error_class="canceled") from error
        if isinstance(error, (OSError, http.client.HTTPException)):
            text = f"the server cannot be reached: {error or type(error).__name__}"
            raise Unavailable(text, error_class="unreachable") from error


def _readable(sock: Any) -> bool:
    """Reports whether something came, which for a connection at rest is its end."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _lower(response: http.client.HTTPResponse) -> Dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _object(body: bytes) -> Message:
    """Returns the JSON object of an answer; what is not JSON is a message for people."""
    try:
        content = json.loads(body)
    except ValueError:
        return {"message": body[:1000].decode(errors="replace").strip()}
    return content if isinstance(content, dict) else {}


def _envelope(message: Mapping[str, Any]) -> bytes:
    body = encode(message)
    return struct.pack(">BI", 0, len(body)) + body


def _messages(response: http.client.HTTPResponse) -> Iterator[Message]:
    """Yields the messages of a stream. One without its end is a lost connection."""
    while True:
        with _translated():
            flags, size = struct.unpack(">BI", _exactly(response, 5))
            if size > _MAX_ENVELOPE:
                raise Unavailable(f"the server sent an envelope of {size} bytes")
            message = _object(_exactly(response, size))
        if flags & _END:
            error = message.get("error")
            if error:
                metadata = message.get("metadata") or {}
                raise from_answer(200, error, {k.lower(): ", ".join(v) for k, v in metadata.items()})
            return
        yield message


def _exactly(response: http.client.HTTPResponse, size: int) -> bytes:
    data = response.read(size)
    while len(data) < size:
        more = response.read(size - len(data))
        if not more:
            raise Unavailable("the stream ended early", error_class="unreachable")
        data += more
    return data
