"""The contracts of put (17) and put_writes (10) of LangGraph's conformance suite.

The suite (langgraph-checkpoint-conformance) cannot be installed where these tests must run.
Each test here is one of its documented contracts, under its name, written for this package.
"""

from support import SaverCase, checkpoint, config, id_of, metadata, some_id

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT


class Put(SaverCase):
    async def test_put_returns_config(self):
        made = checkpoint({"k": "v"})
        stored = await self.saver.aput(config(self.thread), made, metadata(), {"k": 1})
        self.assertEqual(stored, config(self.thread, "", made["id"]))

    async def test_put_roundtrip(self):
        made = checkpoint({"msg": "hello"})
        stored = await self.saver.aput(config(self.thread), made, metadata("input", -1), {"msg": 1})
        self.assertEqual((await self.get(stored)).checkpoint, made)

    async def test_put_preserves_channel_values(self):
        values = {"str": "hello", "int": 42, "list": [1, 2, 3], "dict": {"nested": True}, "bytes": b"\0\xff", "none": None}
        stored = await self.put(values=values)
        self.assertEqual((await self.get(stored)).checkpoint["channel_values"], values)

    async def test_put_preserves_channel_versions(self):
        versions = {"a": 1, "b": 2, "c": "3.5", "d": 4.5}
        stored = await self.put(values=dict.fromkeys(versions, "x"), versions=versions)
        self.assertEqual((await self.get(stored)).checkpoint["channel_versions"], versions)

    async def test_put_preserves_versions_seen(self):
        stored = await self.put(versions_seen={"node1": {"ch": 1}, "node2": {"ch": 2}})
        self.assertEqual(set((await self.get(stored)).checkpoint["versions_seen"]), {"node1", "node2"})

    async def test_put_preserves_metadata(self):
        meta = metadata("loop", 3, custom_key="custom_value", parents={"": "p"})
        stored = await self.put(meta=meta)
        self.assertEqual((await self.get(stored)).metadata, meta)

    async def test_put_root_namespace(self):
        stored = await self.put(namespace="")
        self.assertEqual((await self.get(stored)).config["configurable"]["checkpoint_ns"], "")

    async def test_put_child_namespace(self):
        stored = await self.put(namespace="child:abc")
        self.assertEqual((await self.get(stored)).config["configurable"]["checkpoint_ns"], "child:abc")

    async def test_put_default_namespace(self):
        made = checkpoint()
        stored = await self.saver.aput({"configurable": {"thread_id": self.thread}}, made, metadata(), {})
        self.assertEqual(stored, config(self.thread, "", made["id"]))
        await self.get(stored)

    async def test_put_multiple_checkpoints_same_thread(self):
        for stored in await self.chain(3):
            self.assertEqual((await self.get(stored)).checkpoint["id"], id_of(stored))

    async def test_put_multiple_threads_isolated(self):
        threads = [some_id(), some_id()]
        for thread in threads:
            await self.put(thread, values={"x": thread})
        for thread in threads:
            self.assertEqual((await self.get(config(thread))).checkpoint["channel_values"], {"x": thread})

    async def test_put_parent_config(self):
        first, second = await self.chain(2)
        self.assertEqual((await self.get(second)).parent_config, first)

    async def test_put_incremental_channel_update(self):
        first = await self.put(values={"a": "v1", "b": "v2"})
        second = await self.put(parent=first, values={"a": "v3", "b": "v2"}, versions={"a": 2, "b": 1}, new={"a": 2})
        self.assertEqual((await self.get(second)).checkpoint["channel_values"], {"a": "v3", "b": "v2"})
        self.assertEqual((await self.get(first)).checkpoint["channel_values"], {"a": "v1", "b": "v2"})

    async def test_put_new_channel_added(self):
        first = await self.put(values={"a": "v1"})
        second = await self.put(parent=first, values={"a": "v1", "b": "new"}, new={"b": 1})
        self.assertEqual((await self.get(second)).checkpoint["channel_values"], {"a": "v1", "b": "new"})

    async def test_put_channel_removed(self):
        first = await self.put(values={"a": "v1", "b": "v2"})
        second = await self.put(parent=first, values={"a": "v3"}, versions={"a": 2}, new={"a": 2})
        self.assertEqual((await self.get(second)).checkpoint["channel_values"], {"a": "v3"})

    async def test_put_preserves_run_id(self):
        run = some_id()
        stored = await self.put(meta=metadata(run_id=run))
        self.assertEqual((await self.get(stored)).metadata["run_id"], run)

    async def test_put_preserves_versions_seen_values(self):
        seen = {"node1": {"ch_a": 1, "ch_b": 2}, "node2": {"ch_a": 3}}
        stored = await self.put(versions_seen=seen)
        self.assertEqual((await self.get(stored)).checkpoint["versions_seen"], seen)


class PutWrites(SaverCase):
    async def writes(self, stored):
        return sorted((await self.get(stored)).pending_writes)

    async def test_put_writes_basic(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("channel1", "value1")], "t")
        self.assertEqual(await self.writes(stored), [("t", "channel1", "value1")])

    async def test_put_writes_multiple_writes_same_task(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch1", "v1"), ("ch2", "v2"), ("ch3", "v3")], "t")
        self.assertEqual(await self.writes(stored), [("t", "ch1", "v1"), ("t", "ch2", "v2"), ("t", "ch3", "v3")])

    async def test_put_writes_multiple_tasks(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", "from t1")], "t1")
        await self.saver.aput_writes(stored, [("ch", "from t2")], "t2")
        self.assertEqual(await self.writes(stored), [("t1", "ch", "from t1"), ("t2", "ch", "from t2")])

    async def test_put_writes_preserves_task_id(self):
        stored, task = await self.put(), some_id()
        await self.saver.aput_writes(stored, [("ch", "val")], task)
        self.assertEqual([w[0] for w in await self.writes(stored)], [task])

    async def test_put_writes_preserves_channel_and_value(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("my_channel", {"data": 123})], "t")
        self.assertEqual(await self.writes(stored), [("t", "my_channel", {"data": 123})])

    async def test_put_writes_task_path(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", "v")], "t", task_path="a:b:c")
        self.assertEqual(await self.writes(stored), [("t", "ch", "v")])

    async def test_put_writes_idempotent(self):
        stored = await self.put()
        for _ in range(2):
            await self.saver.aput_writes(stored, [("ch", "val")], "t")
        self.assertEqual(await self.writes(stored), [("t", "ch", "val")])

    async def test_put_writes_special_channels(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [(ERROR, "went wrong"), (INTERRUPT, {"reason": "human"})], "t")
        self.assertEqual(await self.writes(stored), [("t", ERROR, "went wrong"), ("t", INTERRUPT, {"reason": "human"})])

    async def test_put_writes_across_namespaces(self):
        root, child = await self.put(), await self.put(namespace="child:1")
        await self.saver.aput_writes(root, [("ch", "root_val")], "t")
        await self.saver.aput_writes(child, [("ch", "child_val")], "t")
        self.assertEqual(await self.writes(root), [("t", "ch", "root_val")])
        self.assertEqual(await self.writes(child), [("t", "ch", "child_val")])

    async def test_put_writes_cleared_on_next_checkpoint(self):
        first = await self.put()
        await self.saver.aput_writes(first, [("ch", "old")], "t")
        self.assertEqual(await self.writes(await self.put(parent=first)), [])
