"""The client against a server."""

from __future__ import annotations

import hashlib
import os
import select
import tempfile
import threading
import unittest

from support import PACKAGE, TOKEN, URL, some_id, stet
from wires import Listener, answer, cutting, read_request


class ClientCase(unittest.TestCase):
    def setUp(self) -> None:
        self.client = self.connected(URL)

    def connected(self, url: str, **options) -> stet.Client:
        client = stet.connect(url, TOKEN, **options)
        self.addCleanup(client.close)
        return client

    def listening(self, serve) -> Listener:
        listener = Listener(serve)
        self.addCleanup(listener.close)
        return listener


class BlobsTest(ClientCase):
    def test_blobs_of_any_size_come_back(self):
        for size in (0, 1, 3 << 20, (5 << 20) + 5):
            data = os.urandom(size)
            id = self.client.blobs.put(data)
            self.assertEqual(id, hashlib.sha256(data).digest())
            self.assertEqual(self.client.blobs.get(id), data)
        self.client.blobs.flush()

    def test_a_file_is_stored_in_parts(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom((3 << 20) + 1))
            file.flush()
            id = self.client.blobs.put_file(file.name)
            with open(file.name, "rb") as content:
                self.assertEqual(b"".join(self.client.blobs.open(id)), content.read())

    def test_has_answers_for_each(self):
        stored, missing = self.client.blobs.put(os.urandom(10)), os.urandom(32)
        self.assertEqual(self.client.blobs.has(stored, missing, stored), [True, False, True])

    def test_a_missing_blob_is_not_found(self):
        with self.assertRaises(stet.NotFound) as failed:
            self.client.blobs.get(os.urandom(32))
        self.assertEqual((failed.exception.code, failed.exception.error_class), ("not_found", "not-found"))
        self.assertIn("blob-not-found", failed.exception.reasons)

    def test_wrong_bytes_are_refused(self):
        data = os.urandom(100)
        listener = self.listening(lambda connection, number: _stream(connection, b'{"chunk":"AAAA"}'))
        with self.assertRaises(stet.BlobMismatch):
            self.connected(listener.url).blobs.get(hashlib.sha256(data).digest())


def _stream(connection, message: bytes) -> None:
    """Answers a request for a stream with one message."""
    connection.recv(65536)
    envelopes = b"".join(bytes([flags]) + len(m).to_bytes(4, "big") + m for flags, m in ((0, message), (2, b"{}")))
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(envelopes) + envelopes)


class ConversationsTest(ClientCase):
    def test_a_conversation_is_saved_and_read(self):
        talk = self.client.conversations.create(title="add retry", labels={"team": "shop"})
        turns = [stet.turn("add retry to checkout", "Done.", message_id="m1")]
        saved = self.client.conversations.save(talk["id"], turns=turns, message_id="m1")
        turns.append(stet.turn("and a test", "Added."))
        self.client.conversations.save(talk["id"], turns=turns, epoch=int(saved["epoch"]))

        messages = self.client.conversations.transcript(talk["id"])["messages"]
        said = [(m["role"], m["text"]) for m in messages]
        want = [("user", "add retry to checkout"), ("assistant", "Done."), ("user", "and a test"), ("assistant", "Added.")]
        self.assertEqual(said, want)
        self.assertEqual([s["turns"] for s in self.client.conversations.history(talk["id"])], [2, 1])
        self.assertEqual(self.client.conversations.get(talk["id"])["conversation"]["title"], "add retry")
        self.assertIn(b"and a test", b"".join(self.client.conversations.export(talk["id"])))

        fork = self.client.conversations.fork(talk["id"], seq=1, title="other way")
        self.assertEqual(fork["turns"], 1)
        self.client.conversations.set_title(fork["id"], "another way")
        titles = {c["id"]: c.get("title") for c in self.client.conversations.list()}
        self.assertEqual((titles[talk["id"]], titles[fork["id"]]), ("add retry", "another way"))
        self.client.conversations.delete(fork["id"])
        with self.assertRaises(stet.NotFound):
            self.client.conversations.get(fork["id"])

    def test_a_stale_writer_is_aborted(self):
        talk = self.client.conversations.create()
        first = self.client.conversations.save(talk["id"], turns=[stet.turn("one")])
        self.client.conversations.save(talk["id"], turns=[stet.turn("two")])  # takes over
        with self.assertRaises(stet.Aborted) as failed:
            self.client.conversations.save(talk["id"], turns=[stet.turn("three")], epoch=int(first["epoch"]))
        self.assertIn("stale-writer", failed.exception.reasons)

    def test_words_are_found(self):
        word = "w" + some_id().replace("-", "")
        talk = self.client.conversations.create()
        self.client.conversations.save(talk["id"], turns=[stet.turn(f"look for {word}")])
        self.assertEqual({hit["conversation"] for hit in self.client.conversations.search(word)}, {talk["id"]})

    def test_one_state_is_needed(self):
        for given in ({}, {"turns": [], "root": b"x"}):
            with self.assertRaises(TypeError):
                self.client.conversations.save("x", **given)


@unittest.skipUnless(os.environ.get("STET_TEST_WORKSPACE"), "STET_TEST_WORKSPACE names no directory of the server")
class CheckpointsTest(ClientCase):
    def test_a_directory_is_rewound_and_that_is_undone(self):
        with tempfile.TemporaryDirectory(dir=os.environ["STET_TEST_WORKSPACE"]) as workspace:
            path = os.path.join(workspace, "a.txt")

            def write(text: str) -> None:
                with open(path, "w") as file:
                    file.write(text)

            def read() -> str:
                with open(path) as file:
                    return file.read()

            write("one\n")
            first = self.client.checkpoints.create(workspace, label="first")
            write("two\n")
            second = self.client.checkpoints.create(workspace, label="second", conversation="")
            diff = self.client.checkpoints.diff(first["id"], second["id"], workspace=workspace, stat_only=True)
            self.assertEqual([f["path"] for f in diff["files"]], ["a.txt"])
            self.assertEqual({c["label"] for c in self.client.checkpoints.list(workspace=workspace)}, {"first", "second"})
            plan = self.client.checkpoints.plan_rewind(first["id"], workspace=workspace, exact=True)
            self.assertEqual([f["path"] for f in plan["files"]], ["a.txt"])
            self.client.checkpoints.rewind(plan)
            self.assertEqual(read(), "one\n")
            self.client.checkpoints.undo(workspace)
            self.assertEqual(read(), "two\n")
            write("three\n")
            with self.assertRaises(stet.FailedPrecondition) as failed:
                self.client.checkpoints.rewind(plan)
            self.assertEqual((failed.exception.reasons, read()), (["stale-plan"], "three\n"))


class AgentsTest(ClientCase):
    def agent(self, count: int) -> str:
        """Creates an agent that says numbers and ends."""
        id = self.client.agents.create(name="count")["id"]
        self.client.agents.set_status(id, "running")
        for number in range(count):
            self.client.agents.append(id, [{"textDelta": {"text": str(number)}}], key=f"step {number}")
        return id

    def test_an_append_with_a_key_is_added_once(self):
        id = self.agent(2)
        again = self.client.agents.append(id, [{"textDelta": {"text": "1"}}], key="step 1")
        self.assertEqual(again, self.client.agents.get(id)["offsetKey"])
        self.client.agents.archive(id)
        self.assertEqual(_texts(self.client.agents.follow(id)), ["0", "1"])

    def test_a_follower_gets_each_event_once_over_cut_connections(self):
        id = self.agent(60)
        self.client.agents.archive(id)
        whole = list(self.client.agents.follow(id))
        listener = cutting(URL, after=3000)
        self.addCleanup(listener.close)
        pieces = list(self.connected(listener.url).agents.follow(id, min_backoff=0.001))
        self.assertEqual(pieces, whole)
        self.assertEqual(_texts(pieces), [str(n) for n in range(60)])
        self.assertGreater(listener.accepted, 2)

    def test_a_follower_resumes_after_an_offset(self):
        id = self.agent(5)
        self.client.agents.archive(id)
        events = list(self.client.agents.follow(id))
        at = next(i for i, event in enumerate(events) if event.update.get("textDelta", {}).get("text") == "2")
        self.assertEqual(list(self.client.agents.follow(id, after=events[at].offset)), events[at + 1 :])

    def test_a_follower_gets_events_as_they_come(self):
        id = self.client.agents.create()["id"]
        events = self.client.agents.follow(id)
        self.assertEqual(next(events).kind, "initial")
        for text in ("a", "b"):
            self.client.agents.append(id, [{"textDelta": {"text": text}}])
            self.assertEqual(next(events).update, {"textDelta": {"text": text}})
        events.close()

    def test_following_nothing_is_not_found(self):
        with self.assertRaises(stet.NotFound):
            next(self.client.agents.follow(some_id()))


def _texts(events) -> list:
    return [event.update["textDelta"]["text"] for event in events if event.kind == "update"]


class StreamsTest(ClientCase):
    def test_a_stream_is_appended_to_read_and_closed(self):
        name = "python/" + some_id()
        self.client.streams.create(name)
        offset = self.client.streams.append(name, [{"n": 1}, {"n": 2}])
        for _ in range(2):  # the second is the same one
            self.client.streams.append(name, {"n": 3}, producer=("model", 0, 0))
        self.assertEqual(self.client.streams.read(name).json(), [{"n": 1}, {"n": 2}, {"n": 3}])
        self.assertEqual(self.client.streams.read(name, offset).json(), [{"n": 3}])
        following = self.client.streams.follow(name, offset)
        self.assertEqual(next(following).json(), [{"n": 3}])
        self.client.streams.append(name, {"n": 4})
        self.assertEqual(next(following).json(), [{"n": 4}])
        self.client.streams.close(name)
        self.assertEqual(list(following), [])
        with self.assertRaises(stet.FailedPrecondition):
            self.client.streams.append(name, {"n": 5})
        self.client.streams.delete(name)
        with self.assertRaises(stet.NotFound):
            self.client.streams.read(name)


class ConnectionsTest(ClientCase):
    def test_many_threads_use_one_client(self):
        failures: list = []

        def work() -> None:
            try:
                for _ in range(10):
                    data = os.urandom(1000)
                    if self.client.blobs.get(self.client.blobs.put(data)) != data:
                        raise AssertionError("other bytes came back")
            except Exception as failure:  # noqa: BLE001
                failures.append(failure)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_connection_is_used_again(self):
        listener = self.listening(_answering)
        client = self.connected(listener.url)
        for _ in range(3):
            self.assertEqual(client.call("StoreService/Info"), {"version": "x"})
        self.assertEqual(listener.accepted, 1)

    def test_a_connection_that_the_server_closed_at_rest_is_not_used(self):
        def serve(connection, number):
            read_request(connection)
            answer(connection, b"{}")

        client = self.connected(self.listening(serve).url, retries=0)
        for _ in range(3):
            # Not repeatable: it would fail if it went to a closed connection.
            client.call("StoreService/Collect")
            (resting,) = client._transport._idle
            select.select([resting.sock], [], [])  # until the end of the connection is here

    def test_only_what_is_repeatable_is_tried_again(self):
        def serve(connection, number):
            read_request(connection)
            if number % 2 == 1:
                answer(connection, b'{"version":"x"}')

        listener = self.listening(serve)
        client = self.connected(listener.url)
        self.assertEqual(client.call("StoreService/Info"), {"version": "x"})
        client = self.connected(listener.url)
        with self.assertRaises(stet.Unavailable) as failed:
            client.call("StoreService/Collect")
        self.assertEqual(failed.exception.error_class, "unreachable")
        self.assertEqual(listener.accepted, 3)

    def test_a_silent_server_is_a_deadline(self):
        done = threading.Event()
        client = self.connected(self.listening(lambda connection, number: done.wait()).url, timeout=0.05)
        self.addCleanup(done.set)
        with self.assertRaises(stet.DeadlineExceeded):
            client.call("StoreService/Info")

    def test_errors_of_a_proxy_have_codes(self):
        def serve(connection, number):
            read_request(connection)
            answer(connection, b"<html>bad gateway</html>", "502 Bad Gateway")

        with self.assertRaises(stet.Unavailable) as failed:
            self.connected(self.listening(serve).url, retries=0).call("StoreService/Info")
        self.assertIn("bad gateway", str(failed.exception))

    def test_a_wrong_token_is_unauthenticated(self):
        with self.assertRaises(stet.Unauthenticated):
            stet.connect(URL, "wrong").call("StoreService/Info")

    def test_a_closed_client_fails(self):
        self.client.call("StoreService/Info")
        self.client.close()
        with self.assertRaises(ValueError):
            self.client.call("StoreService/Info")

    def test_addresses_have_no_secrets(self):
        for url in ("http://me:secret@host", "http://host/?token=x", "ftp://host", "host:7717"):
            with self.assertRaises(ValueError):
                stet.connect(url)

    def test_names_of_procedures_are_checked(self):
        for name in ("Info", "StoreService/", "/Info"):
            with self.assertRaises(ValueError):
                self.client.call(name)


def _answering(connection, number):
    while read_request(connection) is not None:
        answer(connection, b'{"version":"x"}')


class DescriptionTest(unittest.TestCase):
    """What is written down twice is the same."""

    def test_reads_are_those_of_the_proto_files(self):
        import re

        from stet.client import READS

        proto = os.path.join(PACKAGE, "..", "..", "proto", "stet", "v1")
        if not os.path.isdir(proto):
            self.skipTest("the .proto files are not here")
        marked = set()
        for name in os.listdir(proto):
            with open(os.path.join(proto, name)) as file:
                text = file.read()
            for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.M | re.S):
                for method in re.findall(r"rpc (\w+)\([^;{]*\{\s*option idempotency_level = NO_SIDE_EFFECTS;", body):
                    marked.add(f"stet.v1.{service}/{method}")
        self.assertEqual(READS, marked)


if __name__ == "__main__":
    unittest.main()
