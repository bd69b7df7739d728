"""Puts checkpoints until it is told to stop, over servers that are killed.

It prints "ack" after each checkpoint with its writes, and "lost" for each worker that lost the
server. A line "on ADDRESS" names the next server: everything that was acknowledged must be
there, once, before the workers repeat what they were doing and go on. It then prints "there" and
how much that is. "stop" ends it, after the same check.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from typing import Any, Dict, Iterator, List

from support import StetSaver, checkpoint, config, id_of, metadata, stet

WORKERS = 4


class Worker(threading.Thread):
    """Puts a chain of checkpoints with a growing value."""

    def __init__(self, number: int, load: Load) -> None:
        super().__init__()
        self.name = f"load-{number}"
        self.load = load
        #: The configs of what was acknowledged, by step.
        self.acked: List[Dict[str, Any]] = []
        self.trying = ""
        self.may_go_on = threading.Event()

    def run(self) -> None:
        with _all_or_nothing():
            self.work()

    def work(self) -> None:
        while not self.load.stopping.is_set():
            step = len(self.acked)
            made = checkpoint(_values(step), {"n": step + 1, "log": step + 1})
            self.trying = made["id"]
            stored = self.repeated(lambda: self.put(made, step))
            self.acked.append(stored)
            self.load.say("ack")

    def put(self, made: Dict[str, Any], step: int) -> Dict[str, Any]:
        saver = self.load.saver
        parent = id_of(self.acked[-1]) if self.acked else None
        stored = saver.put(config(self.name, "", parent), made, metadata(step=step), made["channel_versions"])
        saver.put_writes(stored, [("w", step)], "task")
        return stored

    def repeated(self, call: Any) -> Any:
        """Makes a call until a server acknowledges it. What was lost may have been stored."""
        while True:
            try:
                return call()
            except stet.Unavailable:
                self.load.say("lost")
                self.may_go_on.wait()
                self.may_go_on.clear()

    def check(self) -> int:
        """Compares the thread with what was acknowledged."""
        found = list(self.load.saver.list(config(self.name)))[::-1]
        extra = [id_of(f.config) for f in found[len(self.acked) :]]
        if [f.config for f in found[: len(self.acked)]] != self.acked or extra not in ([], [self.trying]):
            raise AssertionError(f"{self.name} has {len(found)} checkpoints, {len(self.acked)} were acknowledged")
        for step, one in enumerate(found):
            if one.checkpoint["channel_values"] != _values(step) or one.metadata["step"] != step:
                raise AssertionError(f"{self.name} has something else at step {step}: {one}")
            writes = [("task", "w", step)]
            if one.pending_writes != writes and (step < len(self.acked) or one.pending_writes != []):
                raise AssertionError(f"{self.name} has other writes at step {step}: {one.pending_writes}")
        return len(self.acked)


class Load:
    def __init__(self) -> None:
        self.saver = StetSaver.connect(os.environ["STET_URL"], retries=0)
        self.stopping = threading.Event()
        self._lock = threading.Lock()  # guards standard output

    def say(self, line: str) -> None:
        with self._lock:
            print(line, flush=True)

    def run(self) -> None:
        workers = [Worker(number, self) for number in range(WORKERS)]
        for worker in workers:
            worker.start()
        for line in sys.stdin:
            word, _, address = line.strip().partition(" ")
            if word == "stop":
                break
            self.saver.close()
            self.saver = StetSaver.connect(address, retries=0)
            self.say(f"there {sum(worker.check() for worker in workers)}")
            for worker in workers:
                worker.may_go_on.set()
        self.stopping.set()
        for worker in workers:
            worker.join()
        self.say(f"there {sum(worker.check() for worker in workers)}")
        self.saver.close()


@contextlib.contextmanager
def _all_or_nothing() -> Iterator[None]:
    """Ends the program, with all its workers, when something fails."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _values(step: int) -> Dict[str, Any]:
    return {"n": step, "log": list(range(step + 1))}


if __name__ == "__main__":
    with _all_or_nothing():
        Load().run()
