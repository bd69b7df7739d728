"""What the tests share: the server, LangGraph or its stand-in, and checkpoints to store.

STET_URL and STET_TOKEN say where the server is.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
import unittest
import uuid
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)

if "STET_TEST_INSTALLED" not in os.environ:
    sys.path.insert(0, PACKAGE)

try:
    import langgraph.checkpoint.base  # noqa: F401
except ImportError:
    sys.path.insert(0, os.path.join(HERE, "standin"))

import stet  # noqa: E402
from stet.langgraph import StetSaver  # noqa: E402

URL, TOKEN = os.environ.get("STET_URL", ""), os.environ.get("STET_TOKEN", "")

_numbers = itertools.count()


def some_id() -> str:
    return str(uuid.uuid4())


def next_id() -> str:
    """Returns the id of a checkpoint; later ones are greater."""
    return str(uuid.UUID(int=(time.time_ns() << 48) + next(_numbers)))


def config(thread: str, namespace: str = "", id: Optional[str] = None) -> Dict[str, Any]:
    where = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": where if id is None else {**where, "checkpoint_id": id}}


def id_of(stored: Dict[str, Any]) -> str:
    return stored["configurable"]["checkpoint_id"]


def checkpoint(
    values: Optional[Dict[str, Any]] = None, versions: Optional[Dict[str, Any]] = None, **more: Any
) -> Dict[str, Any]:
    """Returns a checkpoint; each value has version 1 unless versions are given."""
    values = values or {}
    return {
        "v": 1, "id": next_id(), "ts": "2026-01-02T03:04:05+00:00", "channel_values": values,
        "channel_versions": {name: 1 for name in values} if versions is None else versions,
        "versions_seen": {}, "updated_channels": None, **more,
    }  # fmt: skip


def metadata(source: str = "loop", step: int = 0, **more: Any) -> Dict[str, Any]:
    return {"source": source, "step": step, "parents": {}, **more}


class SaverCase(unittest.IsolatedAsyncioTestCase):
    """A test of the saver with a thread of its own."""

    def setUp(self) -> None:
        self.saver = StetSaver.connect(URL, TOKEN)
        self.addCleanup(self.saver.close)
        self.thread = some_id()

    async def put(
        self,
        thread: Optional[str] = None,
        namespace: str = "",
        parent: Optional[Dict[str, Any]] = None,
        values: Optional[Dict[str, Any]] = None,
        versions: Optional[Dict[str, Any]] = None,
        new: Optional[Dict[str, Any]] = None,
        meta: Optional[Dict[str, Any]] = None,
        **more: Any,
    ) -> Dict[str, Any]:
        """Puts a checkpoint and returns its config. All versions are new unless some are given."""
        made = checkpoint(values, versions, **more)
        where = config(thread or self.thread, namespace, parent and id_of(parent))
        return await self.saver.aput(where, made, meta or metadata(), made["channel_versions"] if new is None else new)

    async def chain(self, count: int, thread: Optional[str] = None, namespace: str = "") -> List[Dict[str, Any]]:
        """Puts checkpoints that follow each other, with their number as step and value."""
        stored: List[Dict[str, Any]] = []
        for step in range(count):
            parent = stored[-1] if stored else None
            versions = {"step": step + 1}
            stored.append(await self.put(thread, namespace, parent, {"step": step}, versions, meta=metadata(step=step)))
        return stored

    async def found(self, where: Optional[Dict[str, Any]], **options: Any) -> List[Any]:
        return [item async for item in self.saver.alist(where, **options)]

    async def get(self, where: Dict[str, Any]) -> Any:
        """Returns a checkpoint that must be there."""
        found = await self.saver.aget_tuple(where)
        self.assertIsNotNone(found, f"{where} is missing")
        return found
