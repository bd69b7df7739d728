"""The contracts of get_delta_channel_history (8) of LangGraph's conformance suite.

The suite (langgraph-checkpoint-conformance) cannot be installed where these tests must run.
Each test here is one of its documented contracts, under its name, written for this package.
"""

from support import SaverCase, some_id

from langgraph.checkpoint.serde.types import _DeltaSnapshot


class DeltaChannelHistory(SaverCase):
    async def steps(self, count, values=None, writes=None):
        """Puts a chain of checkpoints with values and writes by step, and returns the last."""
        stored = None
        for step in range(count):
            has = (values or {}).get(step, {})
            stored = await self.put(parent=stored, values=has, versions=dict.fromkeys(has, step + 1))
            if (writes or {}).get(step):
                await self.saver.aput_writes(stored, writes[step], some_id())
        return stored

    async def history(self, head, *channels):
        return await self.saver.aget_delta_channel_history(config=head, channels=list(channels))

    async def delta(self, count, *snapshots):
        """A chain with snapshots at some steps and a write at each other."""
        values = {step: {"ch": _DeltaSnapshot(step)} for step in snapshots}
        writes = {step: [("ch", step)] for step in range(count) if step not in snapshots}
        return await self.steps(count, values, writes)

    def values(self, history, channel="ch"):
        return [write[2] for write in history[channel]["writes"]]

    async def test_history_returns_writes_oldest_first(self):
        history = await self.history(await self.delta(5, 0), "ch")
        self.assertEqual(self.values(history), [1, 2, 3])

    async def test_history_seed_is_nearest_snapshot(self):
        history = await self.history(await self.delta(6, 0, 3), "ch")
        self.assertEqual(history["ch"]["seed"], _DeltaSnapshot(3))
        self.assertEqual(self.values(history), [4])

    async def test_history_excludes_target_pending_writes(self):
        head = await self.delta(3, 0)
        await self.saver.aput_writes(head, [("ch", "extra")], some_id())
        self.assertEqual(self.values(await self.history(head, "ch")), [1])

    async def test_history_multi_channel(self):
        values = {1: {"a": _DeltaSnapshot("snap_a")}, 3: {"b": _DeltaSnapshot("snap_b")}}
        head = await self.steps(5, values, {step: [("a", step), ("b", step)] for step in range(5)})
        history = await self.history(head, "a", "b")
        self.assertEqual((self.values(history, "a"), self.values(history, "b")), ([1, 2, 3], [3]))
        self.assertEqual((history["a"]["seed"].value, history["b"]["seed"].value), ("snap_a", "snap_b"))

    async def test_history_empty_channels_returns_empty(self):
        self.assertEqual(await self.history(await self.delta(3, 0)), {})

    async def test_history_walk_to_root_no_seed(self):
        history = await self.history(await self.delta(4), "ch")
        self.assertNotIn("seed", history["ch"])
        self.assertEqual(self.values(history), [0, 1, 2])

    async def test_history_migration_plain_value_as_seed(self):
        values, writes = {1: {"ch": [10, 20, 30]}}, {step: [("ch", step)] for step in (0, 2, 3)}
        history = await self.history(await self.steps(4, values, writes), "ch")
        self.assertEqual((history["ch"]["seed"], self.values(history)), ([10, 20, 30], [2]))

    async def test_history_seed_ancestor_own_writes_are_replayed(self):
        values = {0: {"ch": [10]}, 1: {"ch": [10, 20]}}
        roles = ("older than the seed", "at the seed", "after the seed", "pending at the head")
        head = await self.steps(4, values, {step: [("ch", role)] for step, role in enumerate(roles)})
        history = await self.history(head, "ch")
        self.assertEqual((history["ch"]["seed"], self.values(history)), ([10, 20], list(roles[1:3])))
