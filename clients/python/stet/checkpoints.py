"""Checkpoints and rewinds of directories on the server's machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from .transport import Message

if TYPE_CHECKING:
    from .client import Client


class Checkpoints:
    """A rewind has two steps: a plan, and its execution while nothing else changed."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, workspace: str, *, conversation: str = "", label: str = "", author: str = "") -> Message:
        """Takes a checkpoint of a directory."""
        message = {"workspace": workspace, "conversation": conversation, "label": label, "author": author}
        return self._client.call("CheckpointService/Create", message)["checkpoint"]

    def list(self, *, workspace: str = "", conversation: str = "") -> Iterator[Message]:
        """Yields checkpoints, newest first."""
        message = {"workspace": workspace, "conversation": conversation}
        return self._client.pages("CheckpointService/List", message, "checkpoints")

    def get(self, ref: str, *, workspace: str = "", conversation: str = "") -> Message:
        """Returns the checkpoint that a reference names: c4, turn:2, a pin or an id."""
        message = {"ref": ref, "workspace": workspace, "conversation": conversation}
        return self._client.call("CheckpointService/Get", message)["checkpoint"]

    def diff(
        self, from_: str, to: str = "", *, workspace: str = "", paths: Sequence[str] = (), stat_only: bool = False
    ) -> Message:
        """Compares two checkpoints, or one with the directory as it is now."""
        message = {
            "from": from_, "to": to, "workspace": workspace, "paths": list(paths), "statOnly": stat_only, "plain": True,
        }  # fmt: skip
        return self._client.call("CheckpointService/Diff", message)

    def plan_rewind(self, ref: str, *, workspace: str, conversation: str = "", **options: Any) -> Message:
        """Returns what a rewind would do. Options are fields of PlanRewindRequest.

        Files are rewound, and the conversation if there is one. The answer goes to ``rewind``
        with the same request, which it has under ``request``.
        """
        request = {
            "ref": ref, "workspace": workspace, "conversation": conversation,
            "files": True, "withConversation": conversation != "", **options,
        }  # fmt: skip
        return {**self._client.call("CheckpointService/PlanRewind", request, repeatable=True), "request": request}

    def rewind(self, plan: Mapping[str, Any], *, even_if_running: bool = False) -> Message:
        """Executes a plan. Raises FailedPrecondition if something changed since."""
        message = {"plan": plan["request"], "planToken": plan["planToken"], "evenIfRunning": even_if_running}
        return self._client.call("CheckpointService/Rewind", message)

    def undo(self, workspace: str, *, even_if_running: bool = False) -> Message:
        return self._client.call("CheckpointService/Undo", {"workspace": workspace, "evenIfRunning": even_if_running})

    def redo(self, workspace: str, *, even_if_running: bool = False) -> Message:
        return self._client.call("CheckpointService/Redo", {"workspace": workspace, "evenIfRunning": even_if_running})
