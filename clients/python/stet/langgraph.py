"""Keeps the checkpoints of LangGraph in a stet server.

    from stet.langgraph import StetSaver

    with StetSaver.connect("http://127.0.0.1:7717", token) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": ["hello"]}, {"configurable": {"thread_id": "trip"}})

The server keeps each value of a channel as the difference from an earlier one, not as a copy.
A checkpoint is durable when ``put`` returns, with all its values or not at all. It needs the
package langgraph-checkpoint, which comes with langgraph.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from types import TracebackType
from typing import Any, AsyncIterator, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from . import client as _client
from .blobs import MESSAGE_BYTES
from .errors import DataLoss, FailedPrecondition, NotFound
from .transport import Message, unbase64

__all__ = ["StetSaver"]

#: A LangGraph config: ``{"configurable": {"thread_id": …}}``.
Config = Any

#: Set in metadata while channels of a graph are kept as writes since their last snapshot.
_DELTAS = "counters_since_delta_snapshot"

_PAGE = 100


class StetSaver(BaseCheckpointSaver):
    """Keeps checkpoints in the threads of a server. It may be used by many threads."""

    def __init__(self, client: _client.Client, *, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self.client = client

    @classmethod
    def connect(
        cls,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        context: Optional[ssl.SSLContext] = None,
        serde: Any = None,
    ) -> StetSaver:
        """Uses the server at an address, as ``stet.connect`` does."""
        return cls(_client.connect(url, token, timeout=timeout, retries=retries, context=context), serde=serde)

    def close(self) -> None:
        """Closes the connections of the client."""
        self.client.close()

    def __enter__(self) -> StetSaver:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    async def __aenter__(self) -> StetSaver:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def get_tuple(self, config: Config) -> Optional[CheckpointTuple]:
        """Returns the checkpoint that a config names, the latest without an id, or None."""
        thread, namespace = _where(config)
        try:
            frame = self.client.threads.get(thread, get_checkpoint_id(config) or "", namespace=namespace)
        except NotFound:
            return None
        return self._tuple(frame)

    def list(
        self,
        config: Optional[Config],
        *,
        filter: Optional[Dict[str, Any]] = None,
        before: Optional[Config] = None,
        limit: Optional[int] = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, the newest first; without a config those of all threads."""
        wanted: Mapping[str, Any] = (config or {}).get("configurable") or {}
        thread, only = wanted.get("thread_id"), wanted.get("checkpoint_id")
        left = float("inf") if limit is None else limit
        cursor = ""
        while left > 0:
            page = self.client.threads.list(
                "" if thread is None else str(thread),
                namespace=wanted.get("checkpoint_ns"),
                before=(before and get_checkpoint_id(before)) or "",
                filter=filter,
                cursor=cursor,
                limit=_PAGE if only else int(min(left, _PAGE)),
            )
            for damaged in page.get("damaged", []):
                raise DataLoss(f"checkpoint {damaged.get('id')} is damaged: {damaged.get('detail')}")
            for frame in page.get("frames", []):
                if not only or frame["key"]["id"] == only:
                    left -= 1
                    yield self._tuple(frame)
            cursor = page.get("nextCursor", "")
            if not cursor:
                return

    def put(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> Config:
        """Stores a checkpoint with the values that are new, and returns its config."""
        thread, namespace = _where(config)
        parent = get_checkpoint_id(config) or ""
        body: Dict[str, Any] = dict(checkpoint)
        values: Dict[str, Any] = body.pop("channel_values")
        kept = dict(get_checkpoint_metadata(config, metadata))
        kept.pop("writes", None)  # of releases before 0.5; it need not be JSON
        versions = {**checkpoint["channel_versions"], **new_versions}
        # A copy of a checkpoint has no new versions, and its parent is that of its source: the
        # values that the source changed are in neither.
        whole = parent == "" or kept.get("source") == "fork"
        names = [name for name in values if name in new_versions or whole and name in versions]
        room = _Room()
        # The frame itself has the id, and the versions of channels whose values come with it.
        if all(versions[name] == body["channel_versions"].get(name) for name in names):
            del body["id"]
            left = {name: version for name, version in body.pop("channel_versions").items() if name not in names}
            if left:
                body["channel_versions"] = left
        self.client.threads.put(
            thread,
            checkpoint["id"],
            namespace=namespace,
            parent=parent,
            metadata=kept,
            body=self._value(body, room),
            versions={name: json.dumps(version) for name, version in versions.items()},
            values={name: self._value(values[name], room) for name in names},
        )
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(
        self, config: Config, writes: Sequence[Tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores what a task wrote on top of a checkpoint."""
        thread, namespace = _where(config)
        id = get_checkpoint_id(config)
        if not id:
            raise ValueError('cannot put writes: "checkpoint_id" is missing in "configurable"')
        room = _Room()
        self.client.threads.put_writes(
            thread,
            id,
            task_id,
            [
                {"index": WRITES_IDX_MAP.get(channel, index), "channel": channel, "value": self._value(value, room)}
                for index, (channel, value) in enumerate(writes)
            ],
            namespace=namespace,
            path=task_path,
        )

    def delete_thread(self, thread_id: str) -> None:
        """Removes all checkpoints and writes of a thread."""
        self.client.threads.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints that runs made, by the ``run_id`` of their metadata."""
        if run_ids:
            self.client.threads.delete_runs([str(id) for id in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes of a thread to another one."""
        self.client.threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes all checkpoints of threads but the latest of each namespace, or all of them.

        A thread whose latest checkpoint needs earlier ones (delta channels) is refused with
        FailedPrecondition, and nothing is removed.
        """
        threads = [str(id) for id in thread_ids]
        if strategy == "delete":
            for thread in threads:
                self.delete_thread(thread)
        elif strategy != "keep_latest":
            raise ValueError(f"there is no strategy {strategy!r}: it is keep_latest or delete")
        elif threads:
            for thread in threads:
                self._check_prune(thread)
            self.client.threads.prune(threads)

    def get_next_version(self, current: Any, channel: Any = None) -> str:
        """Returns a version after another. Those of two forks of a thread are different."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    async def aget_tuple(self, config: Config) -> Optional[CheckpointTuple]:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: Optional[Config],
        *,
        filter: Optional[Dict[str, Any]] = None,
        before: Optional[Config] = None,
        limit: Optional[int] = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item

    async def aput(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> Config:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Config, writes: Sequence[Tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def get_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Dict[str, Dict[str, Any]]:
        """Returns what channels were written on the way to a checkpoint.

        For each channel: ``writes``, the oldest first, and ``seed``, the value of the nearest
        earlier checkpoint that has one, if there is one. Values of other channels are not read.
        """
        writes: Dict[str, List[Tuple[str, str, Any]]] = {name: [] for name in channels}
        seeds: Dict[str, Any] = {}
        thread, namespace = _where(config)
        frame = self._frame(thread, namespace, get_checkpoint_id(config) or "") if channels else None
        while frame is not None and frame.get("parent") and len(seeds) < len(writes):
            frame = self._frame(thread, namespace, frame["parent"])
            if frame is None:
                break
            for write in reversed(frame.get("writes", [])):
                name = write.get("channel", "")
                if name in writes and name not in seeds:
                    writes[name].append((write["task"], name, self._load(write["value"])))
            for name, channel in frame.get("channels", {}).items():
                if name in writes and name not in seeds:
                    seeds[name] = self._load(channel["value"])
        return {
            name: {"writes": found[::-1], **({"seed": seeds[name]} if name in seeds else {})}
            for name, found in writes.items()
        }

    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Dict[str, Dict[str, Any]]:
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

    def _frame(self, thread: str, namespace: str, id: str) -> Optional[Message]:
        try:
            return self.client.threads.get(thread, id, namespace=namespace)
        except NotFound:
            return None

    def _check_prune(self, thread: str) -> None:
        frame = self._frame(thread, "", "")
        if frame is not None and _metadata(frame).get(_DELTAS):
            raise FailedPrecondition(
                f"thread {thread} has channels that are kept as writes since their last snapshot: without its earlier"
                " checkpoints they would be empty"
            )

    def _tuple(self, frame: Message) -> CheckpointTuple:
        key = frame["key"]
        thread, namespace, parent = key["thread"], key.get("namespace", ""), frame.get("parent", "")
        body = self._load(frame["body"])
        if "id" not in body:
            known = {name: json.loads(channel["version"]) for name, channel in frame.get("channels", {}).items()}
            body = {**body, "id": key["id"], "channel_versions": {**known, **body.get("channel_versions", {})}}
        values = {name: self._load(channel["value"]) for name, channel in frame.get("channels", {}).items()}
        return CheckpointTuple(
            config=_config(thread, namespace, key["id"]),
            checkpoint={**body, "channel_values": values},
            metadata=_metadata(frame),
            parent_config=_config(thread, namespace, parent) if parent else None,
            pending_writes=[(w["task"], w.get("channel", ""), self._load(w["value"])) for w in frame.get("writes", [])],
        )

    def _value(self, value: Any, room: _Room) -> Message:
        """Serialises a value. What does not fit into the message is put as a blob."""
        kind, data = self.serde.dumps_typed(value)
        if room.take(len(data)):
            return {"type": kind, "data": data}
        return {"type": kind, "blob": self.client.blobs.put(data)}

    def _load(self, value: Message) -> Any:
        data = self.client.blobs.get(unbase64(value["blob"])) if "blob" in value else unbase64(value.get("data", ""))
        return self.serde.loads_typed((value.get("type", ""), data))


class _Room:
    """What the values of one call may take inside its message.

    The others are put as blobs, which are durable with the checkpoint. Those are kept whole: only
    in the call the server knows which earlier value they are like.
    """

    def __init__(self) -> None:
        self.left = MESSAGE_BYTES

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def _where(config: Config) -> Tuple[str, str]:
    """Returns thread and namespace of a config, or says what is missing."""
    wanted = config.get("configurable") or {}
    thread = wanted.get("thread_id")
    if thread is None or thread == "":
        raise ValueError('"thread_id" is missing: pass {"configurable": {"thread_id": …}}')
    return str(thread), wanted.get("checkpoint_ns") or ""


def _config(thread: str, namespace: str, id: str) -> Config:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def _metadata(frame: Message) -> Any:
    return json.loads(unbase64(frame.get("metadata", "")) or b"{}")
