"""Immutable bytes by their SHA-256."""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO, Callable, Iterable, Iterator, List, Union

from .errors import BlobMismatch
from .transport import Message, Transport, unbase64

#: Bytes that fit into one message: the server accepts 4 MiB, and base64 adds a third.
MESSAGE_BYTES = 5 << 19

#: Bytes of one message of a stream.
_CHUNK = 1 << 20

#: The number of ids in one request.
_HAS_IDS = 4096

Bytes = Union[bytes, bytearray, memoryview]


class Blobs:
    """Bytes are checked on the way in and out."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def put(self, data: Bytes) -> bytes:
        """Stores bytes of any size and returns their id: their SHA-256.

        They can be read when this returns, and are durable after ``flush`` or after saving a
        state that names them.
        """
        id = hashlib.sha256(data).digest()
        view = memoryview(data).cast("B")
        if len(view) <= MESSAGE_BYTES:
            self._transport.call("stet.v1.BlobService/Put", {"blobs": [{"id": id, "data": view}]}, repeatable=True)
            return id
        return self._send(id, len(view), lambda: (view[at : at + _CHUNK] for at in range(0, len(view), _CHUNK)))

    def put_file(self, path: Union[str, "os.PathLike[str]"]) -> bytes:
        """Stores the content of a file and returns its id. It is never in memory as a whole."""
        with open(path, "rb") as file:
            hasher, size = hashlib.sha256(), 0
            for chunk in _chunks(file):
                hasher.update(chunk)
                size += len(chunk)

            def again() -> Iterator[bytes]:
                file.seek(0)
                return _chunks(file)

            return self._send(hasher.digest(), size, again)

    def get(self, id: bytes) -> bytes:
        """Returns the bytes of an id; raises NotFound if they are missing."""
        return self._transport.retrying(lambda: b"".join(self.open(id)))

    def open(self, id: bytes) -> Iterator[bytes]:
        """Yields the bytes of an id in parts. Bytes that are wrong are an error at the end."""
        hasher = hashlib.sha256()
        for message in self._transport.stream("stet.v1.BlobService/Open", {"id": id}):
            chunk = unbase64(message.get("chunk", ""))
            hasher.update(chunk)
            yield chunk
        if hasher.digest() != id:
            raise BlobMismatch(f"the server returned wrong bytes for {id.hex()}")

    def has(self, *ids: bytes) -> List[bool]:
        """Reports for each id whether it is stored."""
        has: List[bool] = []
        for at in range(0, len(ids), _HAS_IDS):
            batch = list(ids[at : at + _HAS_IDS])
            answer = self._transport.call("stet.v1.BlobService/Has", {"ids": batch}, repeatable=True).get("has", [])
            if len(answer) != len(batch):
                raise BlobMismatch(f"asked for {len(batch)} blobs, got {len(answer)} answers")
            has += answer
        return has

    def flush(self) -> None:
        """Returns once everything put before is durable."""
        self._transport.call("stet.v1.BlobService/Flush", {}, repeatable=True)

    def _send(self, id: bytes, size: int, chunks: Callable[[], Iterable[Bytes]]) -> bytes:
        """Stores a blob in parts, from the beginning again if the connection is lost."""

        def messages() -> Iterator[Message]:
            yield {"id": id, "size": str(size)}
            for chunk in chunks():
                yield {"chunk": chunk}

        self._transport.retrying(lambda: self._transport.send("stet.v1.BlobService/PutStream", messages()))
        return id


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
