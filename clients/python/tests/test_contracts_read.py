"""The contracts of get_tuple (10) and list (16) of LangGraph's conformance suite.

The suite (langgraph-checkpoint-conformance) cannot be installed where these tests must run.
Each test here is one of its documented contracts, under its name, written for this package.
"""

from support import SaverCase, checkpoint, config, id_of, metadata, some_id


class GetTuple(SaverCase):
    async def test_get_tuple_nonexistent_returns_none(self):
        self.assertIsNone(await self.saver.aget_tuple(config(self.thread)))

    async def test_get_tuple_latest_when_no_checkpoint_id(self):
        stored = await self.chain(3)
        latest = await self.get(config(self.thread))
        self.assertEqual((latest.config, latest.metadata["step"]), (stored[-1], 2))

    async def test_get_tuple_specific_checkpoint_id(self):
        first, _ = await self.chain(2)
        self.assertEqual((await self.get(first)).checkpoint["id"], id_of(first))

    async def test_get_tuple_config_structure(self):
        stored = await self.put()
        self.assertEqual((await self.get(stored)).config, config(self.thread, "", id_of(stored)))

    async def test_get_tuple_checkpoint_fields(self):
        made = checkpoint({"k": "v"})
        stored = await self.saver.aput(config(self.thread), made, metadata(), {"k": 1})
        got = (await self.get(stored)).checkpoint
        for field in ("v", "id", "ts", "channel_values", "channel_versions", "versions_seen"):
            self.assertEqual(got[field], made[field], field)

    async def test_get_tuple_metadata(self):
        stored = await self.put(meta=metadata("input", -1))
        self.assertEqual((await self.get(stored)).metadata, metadata("input", -1))

    async def test_get_tuple_parent_config(self):
        first, second = await self.chain(2)
        self.assertIsNone((await self.get(first)).parent_config)
        self.assertEqual((await self.get(second)).parent_config, first)

    async def test_get_tuple_pending_writes(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", "val")], "t")
        self.assertEqual((await self.get(stored)).pending_writes, [("t", "ch", "val")])

    async def test_get_tuple_respects_namespace(self):
        root, child = await self.put(), await self.put(namespace="child:1")
        for where, want in ((config(self.thread), root), (config(self.thread, "child:1"), child)):
            self.assertEqual((await self.get(where)).config, want)

    async def test_get_tuple_nonexistent_checkpoint_id(self):
        await self.put()
        self.assertIsNone(await self.saver.aget_tuple(config(self.thread, "", some_id())))


class List(SaverCase):
    async def four(self):
        """Puts four checkpoints, from input and loop in turn, and returns their ids."""
        stored = []
        for step in range(4):
            meta = metadata("loop" if step % 2 else "input", step)
            stored.append(await self.put(parent=stored[-1] if stored else None, meta=meta))
        return [id_of(s) for s in stored]

    async def ids(self, where, **options):
        return [found.checkpoint["id"] for found in await self.found(where, **options)]

    async def test_list_all(self):
        self.assertEqual(set(await self.four()), set(await self.ids(config(self.thread))))

    async def test_list_by_thread(self):
        await self.four()
        self.assertEqual(await self.ids(config(some_id())), [])
        self.assertEqual(len(await self.ids(config(self.thread))), 4)

    async def test_list_by_namespace(self):
        root, child = await self.put(), await self.put(namespace="child:1")
        self.assertEqual(await self.ids(config(self.thread)), [id_of(root)])
        self.assertEqual(await self.ids(config(self.thread, "child:1")), [id_of(child)])

    async def test_list_ordering(self):
        self.assertEqual(await self.four(), (await self.ids(config(self.thread)))[::-1])

    async def test_list_metadata_filter_single_key(self):
        ids = await self.four()
        self.assertEqual(await self.ids(config(self.thread), filter={"source": "input"}), [ids[2], ids[0]])

    async def test_list_metadata_filter_step(self):
        ids = await self.four()
        self.assertEqual(await self.ids(config(self.thread), filter={"step": 1}), [ids[1]])

    async def test_list_metadata_filter_multiple_keys(self):
        stored = [await self.put(meta=metadata(s, n)) for s, n in (("input", 1), ("loop", 1), ("input", 2))]
        found = await self.ids(config(self.thread), filter={"source": "input", "step": 2})
        self.assertEqual(found, [id_of(stored[2])])

    async def test_list_metadata_filter_no_match(self):
        await self.four()
        self.assertEqual(await self.ids(config(self.thread), filter={"source": "update", "step": 99}), [])

    async def test_list_metadata_custom_keys(self):
        first = await self.put(meta=metadata(score=42, run_id="run-abc"))
        await self.put(meta=metadata(score=99, run_id="run-xyz"))
        (found,) = await self.found(config(self.thread), filter={"score": 42})
        self.assertEqual((found.config, found.metadata["run_id"]), (first, "run-abc"))

    async def test_list_before(self):
        ids = await self.four()
        before = config(self.thread, "", ids[2])
        self.assertEqual(await self.ids(config(self.thread), before=before), [ids[1], ids[0]])

    async def test_list_limit(self):
        ids = await self.four()
        for limit in (0, 1, 2, 9):
            self.assertEqual(await self.ids(config(self.thread), limit=limit), ids[::-1][:limit])

    async def test_list_limit_plus_before(self):
        ids = await self.four()
        before = config(self.thread, "", ids[3])
        self.assertEqual(await self.ids(config(self.thread), before=before, limit=1), [ids[2]])

    async def test_list_combined_thread_and_filter(self):
        ids = await self.four()
        await self.put(some_id(), meta=metadata("loop", 1))
        self.assertEqual(await self.ids(config(self.thread), filter={"source": "loop"}), [ids[3], ids[1]])

    async def test_list_empty_result(self):
        self.assertEqual(await self.ids(config(self.thread), filter={"source": "nonexistent"}), [])

    async def test_list_includes_pending_writes(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", "val")], "t")
        (found,) = await self.found(config(self.thread))
        self.assertEqual(found.pending_writes, [("t", "ch", "val")])

    async def test_list_multiple_namespaces(self):
        stored = [await self.put(namespace=ns) for ns in ("", "child:1", "child:2")]
        self.assertEqual(await self.ids(config(self.thread)), [id_of(stored[0])])
