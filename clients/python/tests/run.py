"""Runs the tests against the server at STET_URL, with the token in STET_TOKEN.

    STET_URL=… STET_TOKEN=… python3 tests/run.py [REPORT]

REPORT gets the numbers as JSON. Contracts are the tests of test_contracts_*.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Counting(unittest.TextTestResult):
    """Counts contracts and the other tests by what became of them."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.counts = {kind: {"passed": 0, "failed": 0, "skipped": 0} for kind in ("contracts", "tests")}
        self.failed: list = []
        self.slow: list = []

    def startTest(self, test) -> None:
        super().startTest(test)
        self._started = time.monotonic()

    def stopTest(self, test) -> None:
        super().stopTest(test)
        took = time.monotonic() - self._started
        if took > 5:
            self.slow.append(f"{test.id()} took {took:.0f} s")

    def _count(self, test, what: str) -> None:
        kind = "contracts" if type(test).__module__.startswith("test_contracts_") else "tests"
        self.counts[kind][what] += 1

    def addSuccess(self, test) -> None:
        super().addSuccess(test)
        self._count(test, "passed")

    def addFailure(self, test, error) -> None:
        super().addFailure(test, error)
        self._count(test, "failed")
        self.failed.append(f"{test.id()}: {self._exc_info_to_string(error, test)}")

    addError = addFailure

    def addSkip(self, test, reason) -> None:
        super().addSkip(test, reason)
        self._count(test, "skipped")


def main() -> int:
    if "STET_URL" not in os.environ or "STET_TOKEN" not in os.environ:
        sys.exit("STET_URL and STET_TOKEN say where the server is")
    sys.path.insert(0, HERE)
    suite = unittest.defaultTestLoader.discover(HERE, top_level_dir=HERE)
    result = unittest.TextTestRunner(resultclass=Counting).run(suite)
    for kind, counts in result.counts.items():
        print(f"{kind}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as report:
            json.dump({**result.counts, "failures": result.failed, "slow": result.slow}, report)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
