"""The contracts of delete_thread (5), delete_for_runs (7), copy_thread (8) and prune (8) of
LangGraph's conformance suite.

The suite (langgraph-checkpoint-conformance) cannot be installed where these tests must run.
Each test here is one of its documented contracts, under its name, written for this package.
"""

from support import SaverCase, config, id_of, metadata, some_id


class DeleteThread(SaverCase):
    async def test_delete_thread_removes_checkpoints(self):
        await self.chain(3)
        await self.get(config(self.thread))
        await self.saver.adelete_thread(self.thread)
        self.assertIsNone(await self.saver.aget_tuple(config(self.thread)))
        self.assertEqual(await self.found(config(self.thread)), [])

    async def test_delete_thread_removes_writes(self):
        stored = await self.put()
        await self.saver.aput_writes(stored, [("ch", "val")], "t")
        self.assertEqual(len((await self.get(stored)).pending_writes), 1)
        await self.saver.adelete_thread(self.thread)
        self.assertIsNone(await self.saver.aget_tuple(stored))

    async def test_delete_thread_removes_all_namespaces(self):
        namespaces = ("", "child:1")
        for namespace in namespaces:
            await self.put(namespace=namespace)
        await self.saver.adelete_thread(self.thread)
        for namespace in namespaces:
            self.assertIsNone(await self.saver.aget_tuple(config(self.thread, namespace)))

    async def test_delete_thread_preserves_other_threads(self):
        other = await self.put(some_id())
        await self.put()
        await self.saver.adelete_thread(self.thread)
        self.assertIsNone(await self.saver.aget_tuple(config(self.thread)))
        await self.get(other)

    async def test_delete_thread_nonexistent_noop(self):
        await self.saver.adelete_thread(self.thread)


class DeleteForRuns(SaverCase):
    async def runs(self, namespace=""):
        return {found.metadata["run_id"] for found in await self.found(config(self.thread, namespace))}

    async def by_run(self, *runs):
        stored = None
        for run in runs:
            stored = await self.put(parent=stored, meta=metadata(run_id=run))
        self.assertEqual(await self.runs(), set(runs))

    async def test_delete_for_runs_single(self):
        one, two = some_id(), some_id()
        await self.by_run(one, two)
        await self.saver.adelete_for_runs([one])
        self.assertEqual(await self.runs(), {two})

    async def test_delete_for_runs_multiple(self):
        one, two, three = some_id(), some_id(), some_id()
        await self.by_run(one, two, three)
        await self.saver.adelete_for_runs([one, two])
        self.assertEqual(await self.runs(), {three})

    async def test_delete_for_runs_preserves_other_runs(self):
        kept, removed = some_id(), some_id()
        await self.put(meta=metadata(run_id=kept))
        await self.put(meta=metadata(run_id=removed))
        await self.saver.adelete_for_runs([removed])
        self.assertEqual(await self.runs(), {kept})

    async def test_delete_for_runs_removes_writes(self):
        run = some_id()
        stored = await self.put(meta=metadata(run_id=run))
        await self.saver.aput_writes(stored, [("ch", "val")], "t")
        self.assertEqual(len((await self.get(stored)).pending_writes), 1)
        await self.saver.adelete_for_runs([run])
        self.assertIsNone(await self.saver.aget_tuple(stored))

    async def test_delete_for_runs_empty_list_noop(self):
        stored = await self.put()
        await self.saver.adelete_for_runs([])
        await self.get(stored)

    async def test_delete_for_runs_nonexistent_noop(self):
        stored = await self.put()
        await self.saver.adelete_for_runs([some_id()])
        await self.get(stored)

    async def test_delete_for_runs_across_namespaces(self):
        run, namespaces = some_id(), ("", "child:1")
        for namespace in namespaces:
            await self.put(namespace=namespace, meta=metadata(run_id=run))
            self.assertEqual(await self.runs(namespace), {run})
        await self.saver.adelete_for_runs([run])
        for namespace in namespaces:
            self.assertEqual(await self.runs(namespace), set())


class CopyThread(SaverCase):
    def setUp(self):
        super().setUp()
        self.target = some_id()

    async def copied(self, namespace=""):
        """Copies the thread and returns the checkpoints of both."""
        await self.saver.acopy_thread(self.thread, self.target)
        return await self.found(config(self.thread, namespace)), await self.found(config(self.target, namespace))

    async def test_copy_thread_basic(self):
        await self.chain(3)
        _, copy = await self.copied()
        self.assertEqual([c.config["configurable"]["thread_id"] for c in copy], [self.target] * 3)

    async def test_copy_thread_all_checkpoints(self):
        await self.chain(3)
        source, copy = await self.copied()
        self.assertEqual([c.checkpoint for c in copy], [s.checkpoint for s in source])

    async def test_copy_thread_preserves_metadata(self):
        await self.chain(2)
        source, copy = await self.copied()
        self.assertEqual([c.metadata for c in copy], [s.metadata for s in source])
        self.assertEqual([c.metadata["step"] for c in copy], [1, 0])

    async def test_copy_thread_preserves_namespaces(self):
        for namespace in ("", "child:1"):
            await self.chain(1, namespace=namespace)
        for namespace in ("", "child:1"):
            _, copy = await self.copied(namespace)
            self.assertEqual(len(copy), 1)

    async def test_copy_thread_preserves_writes(self):
        (stored,) = await self.chain(1)
        await self.saver.aput_writes(stored, [("ch", "write_val")], "t")
        _, (copy,) = await self.copied()
        self.assertEqual(copy.pending_writes, [("t", "ch", "write_val")])

    async def test_copy_thread_preserves_ordering(self):
        stored = await self.chain(4)
        _, copy = await self.copied()
        self.assertEqual([c.checkpoint["id"] for c in copy], [id_of(s) for s in stored[::-1]])

    async def test_copy_thread_source_unchanged(self):
        await self.chain(2)
        before = await self.found(config(self.thread))
        after, _ = await self.copied()
        self.assertEqual(after, before)

    async def test_copy_thread_nonexistent_source(self):
        self.assertEqual(await self.copied(), ([], []))


class Prune(SaverCase):
    async def left(self, thread=None, namespace=""):
        return [found.config for found in await self.found(config(thread or self.thread, namespace))]

    async def test_prune_keep_latest_single_thread(self):
        stored = await self.chain(4)
        await self.saver.aprune([self.thread], strategy="keep_latest")
        self.assertEqual(await self.left(), stored[-1:])

    async def test_prune_keep_latest_multiple_threads(self):
        threads = {some_id(): 3, some_id(): 2}
        latest = {thread: (await self.chain(count, thread))[-1:] for thread, count in threads.items()}
        await self.saver.aprune(list(threads), strategy="keep_latest")
        self.assertEqual({thread: await self.left(thread) for thread in threads}, latest)

    async def test_prune_keep_latest_across_namespaces(self):
        latest = {namespace: (await self.chain(3, namespace=namespace))[-1:] for namespace in ("", "child:1")}
        await self.saver.aprune([self.thread], strategy="keep_latest")
        self.assertEqual({namespace: await self.left(namespace=namespace) for namespace in latest}, latest)

    async def test_prune_keep_latest_preserves_writes(self):
        stored = await self.chain(3)
        await self.saver.aput_writes(stored[-1], [("ch", "val")], "t")
        await self.saver.aprune([self.thread], strategy="keep_latest")
        self.assertEqual((await self.get(config(self.thread))).pending_writes, [("t", "ch", "val")])

    async def test_prune_delete_all(self):
        await self.chain(3)
        await self.saver.aprune([self.thread], strategy="delete")
        self.assertEqual(await self.left(), [])

    async def test_prune_preserves_other_threads(self):
        other = some_id()
        await self.chain(2, other)
        await self.chain(3)
        before = await self.left(other)
        await self.saver.aprune([self.thread], strategy="keep_latest")
        self.assertEqual(await self.left(other), before)

    async def test_prune_empty_list_noop(self):
        stored = await self.chain(2)
        await self.saver.aprune([], strategy="keep_latest")
        self.assertEqual(await self.left(), stored[::-1])

    async def test_prune_nonexistent_noop(self):
        await self.saver.aprune([self.thread], strategy="keep_latest")
