"""Blobs, conversations, checkpoints, agents, streams and threads of a stet server.

    import stet

    with stet.connect("http://127.0.0.1:7717", token) as client:
        talk = client.conversations.create(title="add retry")
        client.conversations.save(talk["id"], turns=[stet.turn("add retry to checkout", "Done.")])
        for message in client.conversations.transcript(talk["id"])["messages"]:
            print(message["role"], message["text"])

It uses the standard library only. A client may be used by many threads. Messages are dicts, as
the server's JSON has them: names in camelCase, 64-bit numbers and bytes as text. Requests
may hold bytes, and names as in the .proto files. What has no method here can be called by
name: ``client.call("StoreService/Info")``.

``stet.langgraph`` keeps the checkpoints of LangGraph.
"""

from .agents import Agents, Event
from .blobs import Blobs
from .checkpoints import Checkpoints
from .client import Client, connect
from .conversations import Conversations, turn
from .errors import (
    Aborted,
    AlreadyExists,
    BlobMismatch,
    Canceled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    StetError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    Unknown,
)
from .streams import Part, Streams
from .threads import Threads
from .transport import unbase64

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "Agents",
    "AlreadyExists",
    "BlobMismatch",
    "Blobs",
    "Canceled",
    "Checkpoints",
    "Client",
    "Conversations",
    "DataLoss",
    "DeadlineExceeded",
    "Event",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OutOfRange",
    "Part",
    "PermissionDenied",
    "ResourceExhausted",
    "StetError",
    "Streams",
    "Threads",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Unknown",
    "connect",
    "turn",
    "unbase64",
]
