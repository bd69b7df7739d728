"""Agents that run elsewhere: their state, their status and a log of their events."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from .errors import (
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    StetError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from .transport import Message, unbase64

if TYPE_CHECKING:
    from .client import Client

_FOLLOW = "aiserver.v1.BackgroundComposerService/StreamConversation"

_STATUS = "CLOUD_AGENT_WORKFLOW_STATUS_"

#: Errors that a later attempt does not fix.
_PERMANENT = (
    DataLoss, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unauthenticated, Unimplemented,
)  # fmt: skip

#: How many connections in a row may skip the same event.
_MAX_GAPS = 3


@dataclass(frozen=True)
class Event:
    """An event of an agent. ``offset`` is the place after it, to resume from.

    ``kind`` is one of: ``initial``, the follower starts over with a state and a status that
    include everything before the offset; ``update``; ``state``; ``status``; ``other``, which
    this release does not interpret. A state that is too large for the stream is None: the blob
    of ``state_id`` has its encoded form.
    """

    kind: str
    offset: str
    #: An InteractionUpdate, for ``update``; the whole response, for ``other``.
    update: Message = field(default_factory=dict)
    #: In lower case, such as ``running``; for ``initial`` and ``status``.
    status: str = ""
    state: Optional[Message] = None
    state_id: bytes = b""
    #: Blobs that came with a state, by their ids.
    blobs: Mapping[bytes, bytes] = field(default_factory=dict)


class Agents:
    """Agents and their logs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, *, id: str = "", name: str = "", conversation: str = "") -> Message:
        """Creates an agent; without an id the server chooses one."""
        message = {"id": id, "name": name, "conversation": conversation}
        return self._client.call("CloudAgentService/Create", message)["agent"]

    def get(self, id: str) -> Message:
        return self._client.call("CloudAgentService/Get", {"id": id})["agent"]

    def list(self) -> Iterator[Message]:
        return self._client.pages("CloudAgentService/List", {}, "agents")

    def append(self, id: str, updates: Sequence[Mapping[str, Any]], *, key: str = "") -> str:
        """Adds updates to the log, all or none, and returns the offset of the last.

        With a key, an append whose answer was lost is repeated: it is added once.
        """
        message = {"id": id, "updates": list(updates), "idempotencyKey": key}
        return self._client.call("CloudAgentService/AppendUpdate", message, repeatable=key != "")["offsetKey"]

    def save_state(self, id: str, state: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> Tuple[bytes, str]:
        """Stores a state with its blobs and its event; returns its id and its offset."""
        message = {"id": id, "state": state, "blobs": [{"id": sha256(b).digest(), "value": b} for b in blobs]}
        saved = self._client.call("CloudAgentService/SaveState", message)
        return unbase64(saved["blobId"]), saved["offsetKey"]

    def set_status(self, id: str, status: str) -> str:
        """Sets the status: running, idle, error, archived, expired, not_yet_started, …"""
        message = {"id": id, "status": _STATUS + status.upper()}
        return self._client.call("CloudAgentService/SetStatus", message)["offsetKey"]

    def archive(self, id: str) -> None:
        """Ends an agent: its followers end after the last event."""
        self._client.call("CloudAgentService/Archive", {"id": id})

    def follow(
        self,
        id: str,
        *,
        after: str = "",
        light: bool = False,
        silence: float = 60.0,
        min_backoff: float = 0.1,
        max_backoff: float = 10.0,
    ) -> Iterator[Event]:
        """Yields the events of an agent, each once and in order, until the agent has ended.

        It uses as many connections as it needs; the end of a connection is never taken for
        the end of the log. To continue after a restart, store the offset of the last event
        and pass it as ``after``; without one the initial state comes first. It raises errors
        that a new connection does not fix. ``silence`` is how many seconds a connection may be
        silent before it counts as lost. ``light`` omits large contents.
        """
        place = _Place(after)
        wait = min_backoff
        while True:
            ended = progress = False
            place.begin()
            message: Message = {"bcId": id, "filterHeavyStepData": light}
            if place.after:
                message["offsetKey"] = place.after
            try:
                for response in self._client.stream(_FOLLOW, message, timeout=silence):
                    for event in place.take(response):
                        progress = True
                        yield event
                    if place.ended:
                        return
                ended = True
            except _PERMANENT:
                raise
            except StetError:
                pass  # anything else is a connection error
            if ended and place.terminal and progress:
                # Either the agent has ended or the server is stopping. Only the answer to a
                # new connection says which.
                continue
            if progress:
                wait = min_backoff
            # Half of the wait is random, so that followers of a restarted server do not all
            # reconnect at once.
            time.sleep(wait / 2 + random.random() * wait / 2)
            wait = min(2 * wait, max(max_backoff, min_backoff))


class _Place:
    """The position of a follower: decides which responses are events, and yields each once."""

    def __init__(self, after: str) -> None:
        self.after = after
        #: The last status was final.
        self.terminal = False
        #: The server reported that nothing follows the offset.
        self.ended = False
        self._resumed = False
        self._pending: Optional[Event] = None
        self._prefetched: List[Message] = []
        self._gaps = 0

    def begin(self) -> None:
        """Drops the unfinished state of a lost connection."""
        self._pending = None
        self._prefetched = []
        self._resumed = self.after != ""

    def take(self, response: Message) -> Iterator[Event]:
        first, self._resumed = self._resumed, False
        kind, value = next(iter(response.items()), ("", {}))
        if kind == "initialState":
            # Held back until its offset is known: a connection lost in between must not make
            # the caller start over twice.
            self._pending = Event(
                "initial", "", status=_status(value), state=value.get("cloudAgentState"),
                state_id=unbase64(value.get("blobId", "")),
                blobs=_blobs(self._prefetched + value.get("preFetchedBlobs", [])),
            )  # fmt: skip
        elif kind == "prefetchedBlobs":
            self._prefetched += value.get("preFetchedBlobs", [])
        elif kind == "workflowStatusWithOffset":
            offset, status = value.get("offsetKey", ""), _status(value)
            if self._pending is not None and self._pending.status == status:
                yield from self._give_pending(offset)
            elif first and offset == self.after:
                # Sent only by a server whose log ends at this offset.
                self.terminal = self.ended = _terminal(status)
            else:
                yield from self._give(Event("status", offset, status=status))
        elif kind == "interactionUpdateWithOffset":
            if "interactionUpdate" in value:
                yield from self._give(Event("update", value.get("offsetKey", ""), update=value["interactionUpdate"]))
        elif kind == "cloudAgentStateWithIdAndOffset":
            yield from self._give(
                Event(
                    "state", value.get("offsetKey", ""), state=value.get("cloudAgentState"),
                    state_id=unbase64(value.get("blobId", "")), blobs=_blobs(value.get("preFetchedBlobs", [])),
                )  # fmt: skip
            )
        elif kind not in ("", "streamSignal"):
            offset = value.get("offsetKey", "") if isinstance(value, dict) else ""
            yield from self._give(Event("other", offset, update=response))

    def _give_pending(self, offset: str) -> Iterator[Event]:
        """Yields the initial state that was held back."""
        initial, self._pending = self._pending, None
        if initial is not None:
            self.after = offset
            self.terminal = _terminal(initial.status)
            yield replace(initial, offset=offset)

    def _give(self, event: Event) -> Iterator[Event]:
        """Yields an event if it is the next one."""
        yield from self._give_pending("")
        if event.offset and self.after:
            if event.offset == self.after:
                return  # a heartbeat, or said twice
            last, at = _sequence(self.after), _sequence(event.offset)
            if last is not None and at is not None:
                if at <= last:
                    return
                if at > last + 1:
                    self._gaps += 1
                    text = f"the stream goes from event {last} to {at}"
                    raise DataLoss(text) if self._gaps >= _MAX_GAPS else Unavailable(text)
        self._gaps = 0
        if event.offset:
            self.after = event.offset
        if event.kind == "status":
            self.terminal = _terminal(event.status)
        yield event


def _status(value: Message) -> str:
    return value.get("workflowStatus", _STATUS + "UNSPECIFIED").removeprefix(_STATUS).lower()


def _terminal(status: str) -> bool:
    return status in ("archived", "expired")


def _blobs(sent: List[Message]) -> Mapping[bytes, bytes]:
    return {unbase64(b.get("id", "")): unbase64(b.get("value", "")) for b in sent}


def _sequence(offset: str) -> Optional[int]:
    """Returns the event number of an offset; other servers format offsets differently."""
    parts = re.fullmatch(r"([0-9a-f]{16})-[0-9a-f]{1,16}", offset)
    return int(parts[1], 16) if parts else None
