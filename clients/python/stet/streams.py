"""Ordered, durable logs of bytes or JSON: the Durable Streams protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from .errors import DeadlineExceeded, from_answer
from .transport import Answer, Transport, encode

#: What the statuses of the protocol mean.
_CODES = {400: "invalid_argument", 404: "not_found", 409: "failed_precondition", 410: "not_found"}


@dataclass(frozen=True)
class Part:
    """A part of a stream. ``offset`` is the place after it, to resume from."""

    data: bytes
    offset: str
    content_type: str
    #: Nothing follows now.
    up_to_date: bool
    #: Nothing will ever follow.
    closed: bool

    def json(self) -> Any:
        """Returns the values of a stream of JSON, as a list."""
        return json.loads(self.data or b"[]")


class Streams:
    """Streams by their names, such as ``answers/1``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, name: str, content_type: str = "application/json", *, ttl: Optional[int] = None) -> None:
        """Creates a stream. One that is there already with the same settings stays as it is."""
        headers = {"Content-Type": content_type}
        if ttl is not None:
            headers["Stream-TTL"] = str(ttl)
        self._transport.retrying(lambda: self._request("PUT", name, headers=headers))

    def append(
        self,
        name: str,
        data: Any,
        *,
        content_type: str = "application/json",
        producer: Optional[Tuple[str, int, int]] = None,
    ) -> str:
        """Appends bytes, or values as JSON, and returns the offset after them.

        Of a list each entry becomes a value of the stream, as the protocol says.

        A producer (its id, its epoch, the number of this append, from 0) makes the append
        repeatable: it is then tried again after a lost connection, and added once.
        """
        headers = {"Content-Type": content_type}
        body = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else _json(data)

        def once() -> str:
            return self._request("POST", name, body, headers).headers.get("stream-next-offset", "")

        if producer is None:
            return once()
        id, epoch, seq = producer
        headers.update({"Producer-Id": id, "Producer-Epoch": str(epoch), "Producer-Seq": str(seq)})
        return self._transport.retrying(once)

    def read(self, name: str, offset: str = "-1") -> Part:
        """Returns what follows an offset, or a part of it; -1 is the beginning."""
        return self._transport.retrying(lambda: self._part(name, {"offset": offset}, offset, None))

    def follow(self, name: str, offset: str = "-1", *, silence: float = 60.0) -> Iterator[Part]:
        """Yields what follows an offset, as it comes, until the stream is closed."""
        live = False
        while True:
            query = {"offset": offset, **({"live": "long-poll"} if live else {})}
            at = offset

            def once() -> Part:
                return self._part(name, query, at, silence)

            try:
                part = self._transport.retrying(once)
            except DeadlineExceeded:
                continue
            offset = part.offset
            if part.data and part.data != b"[]":
                yield part
            if part.closed and part.up_to_date:
                return
            live = part.up_to_date

    def close(self, name: str) -> None:
        """Closes a stream: it can be read, and nothing can be appended."""
        self._transport.retrying(lambda: self._request("POST", name, headers={"Stream-Closed": "true"}))

    def delete(self, name: str) -> None:
        self._request("DELETE", name)

    def _part(self, name: str, query: dict, offset: str, timeout: Optional[float]) -> Part:
        answer = self._request("GET", name, query=query, timeout=timeout)
        return Part(
            data=answer.body,
            offset=answer.headers.get("stream-next-offset", offset),
            content_type=answer.headers.get("content-type", ""),
            up_to_date=answer.headers.get("stream-up-to-date") == "true",
            closed=answer.headers.get("stream-closed") == "true",
        )

    def _request(
        self,
        method: str,
        name: str,
        body: bytes = b"",
        headers: Optional[dict] = None,
        query: Optional[dict] = None,
        timeout: Optional[float] = None,
    ) -> Answer:
        path = "/v1/stream/" + quote(name) + ("?" + urlencode(query) if query else "")
        answer = self._transport.request(method, path, body, headers, timeout=timeout)
        if answer.status >= 300:
            raise from_answer(answer.status, _message(answer), answer.headers)
        return answer


def _json(value: Union[dict, list, str, int, float, bool, None]) -> bytes:
    return encode(value)  # type: ignore[arg-type]


def _message(answer: Answer) -> dict:
    """Errors of the protocol are a text; those of the server an object with a code."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        value = None
    if isinstance(value, dict) and "code" in value:
        return value
    return {"code": _CODES.get(answer.status), "message": answer.body.decode(errors="replace").strip()}
