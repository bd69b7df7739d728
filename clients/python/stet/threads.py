"""The states of graphs, frame by frame, for agent frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence

from .transport import Message, encode

if TYPE_CHECKING:
    from .client import Client


class Threads:
    """Frames by thread, namespace and id. Values are FrameValue messages: a type and bytes.

    All changes here can be repeated: a second one finds what the first did.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(
        self,
        thread: str,
        id: str,
        *,
        namespace: str = "",
        parent: str = "",
        metadata: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        versions: Optional[Mapping[str, str]] = None,
        values: Optional[Mapping[str, Mapping[str, Any]]] = None,
    ) -> None:
        """Stores a frame with the values that are new; the others are its parent's."""
        message: Message = {
            "key": _key(thread, namespace, id), "parent": parent, "metadata": encode(metadata or {}),
            "versions": dict(versions or {}), "values": dict(values or {}),
        }  # fmt: skip
        if body is not None:
            message["body"] = body
        self._client.call("ThreadService/Put", message, repeatable=True)

    def put_writes(
        self,
        thread: str,
        id: str,
        task: str,
        writes: Sequence[Mapping[str, Any]],
        *,
        namespace: str = "",
        path: str = "",
    ) -> None:
        """Stores what a task wrote on top of a frame: FrameWrite messages."""
        message = {"key": _key(thread, namespace, id), "task": task, "path": path, "writes": list(writes)}
        self._client.call("ThreadService/PutWrites", message, repeatable=True)

    def get(self, thread: str, id: str = "", *, namespace: str = "") -> Message:
        """Returns a frame; without an id the one with the greatest id."""
        return self._client.call("ThreadService/Get", {"key": _key(thread, namespace, id)})["frame"]

    def list(
        self,
        thread: str = "",
        *,
        namespace: Optional[str] = None,
        before: str = "",
        filter: Optional[Mapping[str, Any]] = None,
        cursor: str = "",
        limit: int = 0,
    ) -> Message:
        """Returns a page of frames, those with the greatest ids first, and ``nextCursor``."""
        message: Message = {
            "thread": thread, "before": before, "filter": encode(filter or {}),
            "page": {"cursor": cursor, "limit": limit},
        }  # fmt: skip
        if namespace is not None:
            message["namespace"] = namespace
        return self._client.call("ThreadService/List", message)

    def threads(self) -> Iterable[str]:
        """Yields the ids of threads in order."""
        return self._client.pages("ThreadService/Threads", {}, "threads")  # type: ignore[return-value]

    def delete(self, thread: str) -> None:
        self._client.call("ThreadService/Delete", {"thread": thread}, repeatable=True)

    def copy(self, source: str, target: str) -> None:
        self._client.call("ThreadService/Copy", {"from": source, "to": target}, repeatable=True)

    def prune(self, threads: Sequence[str]) -> None:
        """Removes all frames of threads but the latest of each namespace."""
        self._client.call("ThreadService/Prune", {"threads": list(threads)}, repeatable=True)

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Removes the frames whose metadata names one of the runs as run_id."""
        self._client.call("ThreadService/DeleteRuns", {"runs": list(runs)}, repeatable=True)


def _key(thread: str, namespace: str, id: str) -> Message:
    return {"thread": thread, "namespace": namespace, "id": id}
