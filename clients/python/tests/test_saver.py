"""What the saver does beyond the contracts of LangGraph's suite."""

from __future__ import annotations

import asyncio
import os
import uuid

from support import URL, TOKEN, SaverCase, StetSaver, checkpoint, config, id_of, metadata, some_id, stet

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME


class Sync(SaverCase):
    """The methods that do not wait are the same ones."""

    def test_all_calls(self):
        made = checkpoint({"a": 1})
        stored = self.saver.put(config(self.thread), made, metadata(run_id="r-" + self.thread), {"a": 1})
        self.saver.put_writes(stored, [("a", 2)], "t")
        self.assertEqual(self.saver.get(stored), made)
        (found,) = self.saver.list(config(self.thread))
        self.assertEqual((found.checkpoint, found.pending_writes), (made, [("t", "a", 2)]))
        copy, other = some_id(), some_id()
        self.saver.copy_thread(self.thread, copy)
        self.saver.copy_thread(self.thread, other)
        self.saver.prune([copy])
        self.assertIsNotNone(self.saver.get_tuple(config(copy)))
        self.saver.prune([copy], strategy="delete")
        self.saver.delete_thread(other)
        self.saver.delete_for_runs(["r-" + self.thread])
        for thread in (self.thread, copy, other):
            self.assertIsNone(self.saver.get_tuple(config(thread)))

    def test_versions_grow_and_differ(self):
        version, seen = None, []
        for _ in range(20):
            version = self.saver.get_next_version(version, None)
            seen.append(version)
        self.assertEqual(seen, sorted(set(seen)))
        self.assertNotEqual(self.saver.get_next_version(version), self.saver.get_next_version(version))
        self.assertEqual(int(self.saver.get_next_version(7).split(".")[0]), 8)


class Values(SaverCase):
    async def test_a_copy_of_a_checkpoint_has_all_values(self):
        # LangGraph copies a checkpoint with no new versions and the parent of its source.
        first = await self.put(values={"a": 1, "b": 1})
        second = await self.put(parent=first, values={"a": 2, "b": 1}, versions={"a": 2, "b": 1}, new={"a": 2})
        source = await self.get(second)
        for parent in (first, None):
            copy = {**source.checkpoint, "id": checkpoint()["id"]}
            where = config(self.thread, "", parent and id_of(parent))
            stored = await self.saver.aput(where, copy, metadata("fork", 2), {})
            self.assertEqual((await self.get(stored)).checkpoint["channel_values"], {"a": 2, "b": 1})

    async def test_large_values_come_back(self):
        values = {"large": os.urandom(3 << 20), "half": bytes(3 << 19), "other half": bytes(3 << 19), "small": 1}
        stored = await self.put(values=values)
        await self.saver.aput_writes(stored, [("w", bytes(3 << 20))], "t")
        versions = {**dict.fromkeys(values, 1), "small": 2}
        next_one = await self.put(parent=stored, values={**values, "small": 2}, versions=versions, new={"small": 2})
        self.assertEqual((await self.get(stored)).checkpoint["channel_values"], values)
        self.assertEqual((await self.get(next_one)).checkpoint["channel_values"], {**values, "small": 2})
        self.assertEqual(len((await self.found(config(self.thread)))[1].pending_writes[0][2]), 3 << 20)

    async def test_numbers_and_texts_are_different_versions(self):
        first = await self.put(values={"a": "one"}, versions={"a": 1})
        second = await self.put(parent=first, values={}, versions={"a": "1"}, new={})
        self.assertEqual((await self.get(second)).checkpoint["channel_values"], {})

    async def test_versions_come_back_as_they_were(self):
        parent = None
        for values, versions, new in (
            ({"number": 1, "text": 1}, {"number": 1, "text": "1", "empty": 3}, {"number": 1, "text": "1", "empty": 3}),
            ({"number": 2, "text": 1}, {"number": 2, "text": "1", "empty": 3}, {"number": 2}),
            ({}, {}, {}),
            # The frame has another version than the checkpoint, and one that the checkpoint lacks.
            ({"number": 3, "text": 2}, {"number": 3}, {"number": 4, "text": "2"}),
        ):
            parent = await self.put(parent=parent, values=values, versions=versions, new=new)
            found = (await self.get(parent)).checkpoint
            self.assertEqual((found["id"], found["channel_versions"]), (id_of(parent), versions))
            self.assertEqual(found["channel_values"], values)

    async def test_a_long_thread_is_listed_whole(self):
        stored = await self.chain(110)
        found = await self.found(config(self.thread))
        self.assertEqual([f.config for f in found], stored[::-1])
        self.assertEqual([f.checkpoint["channel_values"]["step"] for f in found], list(range(110))[::-1])
        self.assertEqual(len(await self.found(config(self.thread), limit=105)), 105)

    async def test_checkpoints_put_beside_each_other_are_all_there(self):
        stored = await asyncio.gather(*(self.put(values={"n": n}) for n in range(16)))
        self.assertEqual({id_of(f.config) for f in await self.found(config(self.thread))}, {id_of(s) for s in stored})


class Writes(SaverCase):
    async def writes(self, stored):
        return (await self.get(stored)).pending_writes

    async def test_special_writes_replace_and_others_stay(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", 1), (ERROR, "a"), (INTERRUPT, "b"), (RESUME, "c")], "t")
        await self.saver.aput_writes(stored, [("ch", 2), (ERROR, "d"), (RESUME, "e")], "t")
        want = [("t", ERROR, "d"), ("t", INTERRUPT, "b"), ("t", RESUME, "e"), ("t", "ch", 1)]
        self.assertCountEqual(await self.writes(stored), want)

    async def test_writes_may_come_before_their_checkpoint(self):
        made = checkpoint()
        await self.saver.aput_writes(config(self.thread, "", made["id"]), [("ch", 1)], "t")
        self.assertIsNone(await self.saver.aget_tuple(config(self.thread)))
        stored = await self.saver.aput(config(self.thread), made, metadata(), {})
        self.assertEqual(await self.writes(stored), [("t", "ch", 1)])

    async def test_writes_need_a_checkpoint(self):
        with self.assertRaisesRegex(ValueError, "checkpoint_id"):
            await self.saver.aput_writes(config(self.thread), [("ch", 1)], "t")


class Configs(SaverCase):
    async def test_a_thread_is_needed(self):
        for where in ({"configurable": {}}, {"configurable": {"thread_id": ""}}):
            with self.assertRaisesRegex(ValueError, "thread_id"):
                await self.saver.aget_tuple(where)

    async def test_ids_of_threads_need_not_be_text(self):
        thread = uuid.uuid4()
        stored = await self.saver.aput({"configurable": {"thread_id": thread}}, checkpoint(), metadata(), {})
        self.assertEqual(stored["configurable"]["thread_id"], str(thread))
        self.assertEqual(len(await self.found({"configurable": {"thread_id": thread}})), 1)
        await self.saver.adelete_thread(thread)
        self.assertIsNone(await self.saver.aget_tuple(stored))

    async def test_metadata_has_plain_values_of_the_config(self):
        inner = {"thread_id": self.thread, "__x": 1, "plan": 3, "o": {}}
        where = {"metadata": {"run_id": "r", "user": "u"}, "configurable": inner}
        stored = await self.saver.aput(where, checkpoint(), {**metadata(), "writes": object()}, {})
        self.assertEqual((await self.get(stored)).metadata, {**metadata(), "run_id": "r", "user": "u", "plan": 3})

    async def test_a_config_with_an_id_lists_that_checkpoint(self):
        stored = await self.chain(3)
        self.assertEqual([f.config for f in await self.found(stored[1])], [stored[1]])

    async def test_all_threads_are_listed_without_a_config(self):
        mark, other = some_id(), some_id()
        one = await self.put(meta=metadata(mark=mark))
        two = await self.put(other, "child", meta=metadata(mark=mark))
        self.assertEqual([f.config for f in await self.found(None, filter={"mark": mark})], [two, one])

    async def test_a_thread_without_a_namespace_lists_all(self):
        await self.put()
        await self.put(namespace="child:1")
        self.assertEqual(len(await self.found({"configurable": {"thread_id": self.thread}})), 2)


class Removal(SaverCase):
    async def test_a_thread_with_deltas_is_not_pruned(self):
        stored = await self.chain(2)
        head = await self.put(parent=stored[-1], meta=metadata(counters_since_delta_snapshot={"messages": [2, 2]}))
        with self.assertRaises(stet.FailedPrecondition):
            await self.saver.aprune([self.thread])
        self.assertEqual(len(await self.found(config(self.thread))), 3)
        await self.put(parent=head)
        await self.saver.aprune([self.thread])
        self.assertEqual(len(await self.found(config(self.thread))), 1)

    async def test_an_unknown_strategy_removes_nothing(self):
        await self.chain(2)
        with self.assertRaisesRegex(ValueError, "strategy"):
            await self.saver.aprune([self.thread], strategy="all")
        self.assertEqual(len(await self.found(config(self.thread))), 2)


class Life(SaverCase):
    async def test_a_saver_is_a_context(self):
        async with StetSaver.connect(URL, TOKEN) as saver:
            await saver.aput(config(self.thread), checkpoint(), metadata(), {})
        with self.assertRaises(ValueError):
            await saver.aget_tuple(config(self.thread))
        with StetSaver.connect(URL, TOKEN) as saver:
            self.assertIsNotNone(saver.get_tuple(config(self.thread)))
