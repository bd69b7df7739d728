"""A server and its services."""

from __future__ import annotations

import os
import ssl
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional, Type

from .agents import Agents
from .blobs import Blobs
from .checkpoints import Checkpoints
from .conversations import Conversations
from .streams import Streams
from .threads import Threads
from .transport import Message, Transport

#: Procedures that change nothing, as the .proto files mark them: they may be tried again.
READS = frozenset(
    f"stet.v1.{service}/{method}"
    for service, methods in {
        "BlobService": "Get Has List",
        "CheckpointService": "Get List Files File Diff Blame Operations ListPins",
        "CloudAgentService": "Get List",
        "ConversationService": "Get List History Transcript Search Inspect",
        "DocumentService": "Get List Collections",
        "PageService": "Overview Timeline Graph Storage Attempts",
        "RowService": "Get Scan",
        "StoreService": "Info Stats",
        "ThreadService": "Get List Threads",
    }.items()
    for method in methods.split()
)


class Client:
    """A server. It does not connect before the first call, and may be used by many threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        #: Immutable bytes by their SHA-256.
        self.blobs = Blobs(transport)
        #: Conversations: states, history, transcripts.
        self.conversations = Conversations(self)
        #: Checkpoints and rewinds of directories on the server's machine.
        self.checkpoints = Checkpoints(self)
        #: Agents that run elsewhere, and their events.
        self.agents = Agents(self)
        #: Ordered, durable logs: the Durable Streams protocol.
        self.streams = Streams(transport)
        #: The states of graphs, for agent frameworks.
        self.threads = Threads(self)

    def call(
        self, procedure: str, message: Optional[Mapping[str, Any]] = None, *, repeatable: Optional[bool] = None
    ) -> Message:
        """Calls any procedure: ``call("ThreadService/Get", {"key": {"thread": "trip"}})``.

        Calls that only read are tried again if the server cannot be reached. Others are
        where ``repeatable`` says that a second call does no harm.
        """
        name = qualified(procedure)
        if repeatable is None:
            repeatable = name in READS
        return self._transport.call(name, message or {}, repeatable=repeatable)

    def stream(
        self, procedure: str, message: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Iterator[Message]:
        """Calls any procedure that returns a stream, and yields its messages."""
        return self._transport.stream(qualified(procedure), message or {}, timeout=timeout)

    def pages(self, procedure: str, message: Mapping[str, Any], field: str) -> Iterator[Message]:
        """Yields the entries of a list, a page at a time."""
        cursor = ""
        while True:
            page = self.call(procedure, {**message, "page": {"cursor": cursor}})
            yield from page.get(field, [])
            cursor = page.get("nextCursor", "")
            if not cursor:
                return

    def close(self) -> None:
        """Closes the connections. Later calls fail."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def connect(
    url: Optional[str] = None,
    token: Optional[str] = None,
    *,
    timeout: float = 60.0,
    retries: int = 3,
    context: Optional[ssl.SSLContext] = None,
) -> Client:
    """Uses the server at an address.

    Without an address it is the one in STET_URL, or the local one; without a token it is the
    one in STET_TOKEN. The token goes into a header, never into the address. An answer that
    takes longer than ``timeout`` seconds is an error. ``retries`` is how often a call that may be
    repeated is tried again while the server cannot be reached.
    """
    if url is None:
        url = os.environ.get("STET_URL") or "http://127.0.0.1:7717"
    if token is None:
        token = os.environ.get("STET_TOKEN", "")
    return Client(Transport(url, token, timeout, retries, context))


def qualified(procedure: str) -> str:
    """Returns the whole name of a procedure: services are those of stet.v1 by default."""
    service, slash, method = procedure.partition("/")
    if not service or not slash or not method:
        raise ValueError(f"{procedure!r} is not a procedure, such as ThreadService/Get")
    return procedure if "." in service else "stet.v1." + procedure
