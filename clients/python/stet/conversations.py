"""Conversations: states, history, transcripts."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence

from .transport import Message, unbase64

if TYPE_CHECKING:
    from .client import Client


def turn(prompt: str, *answers: str, message_id: Optional[str] = None) -> Message:
    """Returns a turn: what the user said, and what the agent answered."""
    return {
        "agentConversationTurn": {
            "userMessage": {"text": prompt, "messageId": message_id or str(uuid.uuid4())},
            "steps": [{"assistantMessage": {"text": text}} for text in answers],
        }
    }


class Conversations:
    """A save stores a whole state as the new head; equal parts are stored once."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self,
        *,
        id: str = "",
        title: str = "",
        workspace: str = "",
        agent: str = "",
        labels: Optional[Mapping[str, str]] = None,
    ) -> Message:
        """Creates a conversation; without an id the server chooses one."""
        message = {"id": id, "title": title, "workspace": workspace, "agent": agent, "labels": dict(labels or {})}
        # With an id, a second attempt would fail because of the first.
        return self._client.call("ConversationService/Create", message)["conversation"]

    def save(
        self,
        id: str,
        *,
        turns: Optional[Sequence[Mapping[str, Any]]] = None,
        state: Optional[Mapping[str, Any]] = None,
        root: Optional[bytes] = None,
        epoch: int = 0,
        message_id: str = "",
        author: str = "",
    ) -> Message:
        """Stores a state: all turns, or a whole ConversationState, or the id of a stored one.

        Returns the save and the epoch. Passing that epoch to the next save makes it fail
        with Aborted if another writer took over; 0 takes over.
        """
        given = [x for x in (turns, state, root) if x is not None]
        if len(given) != 1:
            raise TypeError("save needs one of turns, state and root")
        message: Message = {"id": id, "epoch": str(epoch), "messageId": message_id, "author": author}
        if root is not None:
            message["root"] = root
        else:
            message["inline"] = {"turns": list(turns)} if turns is not None else state
        return self._client.call("ConversationService/Save", message)

    def get(self, id: str, *, with_state: bool = False) -> Message:
        """Returns the conversation and, if asked for, its state with the ids of its parts."""
        return self._client.call("ConversationService/Get", {"id": id, "withState": with_state})

    def list(self, *, workspace: str = "", agent: str = "") -> Iterator[Message]:
        """Yields conversations, last changed first."""
        return self._client.pages("ConversationService/List", {"workspace": workspace, "agent": agent}, "conversations")

    def history(self, id: str) -> Iterator[Message]:
        """Yields the saves of a conversation, newest first."""
        return self._client.pages("ConversationService/History", {"id": id}, "saves")

    def transcript(self, id: str, *, from_turn: int = 0, turns: int = 0, light: bool = False) -> Message:
        """Returns messages for reading: a range of turns, or as many as fit."""
        message = {"id": id, "fromTurn": from_turn, "turns": turns, "light": light}
        return self._client.call("ConversationService/Transcript", message)

    def fork(self, id: str, *, seq: int, title: str = "") -> Message:
        """Creates a conversation that continues an earlier save of another."""
        message = {"id": id, "seq": str(seq), "title": title}
        return self._client.call("ConversationService/Fork", message)["conversation"]

    def set_title(self, id: str, title: str) -> None:
        self._client.call("ConversationService/SetTitle", {"id": id, "title": title}, repeatable=True)

    def delete(self, id: str) -> None:
        self._client.call("ConversationService/Delete", {"id": id})

    def search(self, query: str, *, conversation: str = "") -> Iterator[Message]:
        """Yields messages that have the words of a query."""
        return self._client.pages("ConversationService/Search", {"query": query, "conversation": conversation}, "hits")

    def export(self, id: str, format: str = "md") -> Iterator[bytes]:
        """Yields the whole conversation as md, json, jsonl or html, in parts."""
        for message in self._client.stream("ConversationService/Export", {"id": id, "format": format}):
            yield unbase64(message.get("chunk", ""))
