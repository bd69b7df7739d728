"""What is packed installs without a network, and works."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from support import PACKAGE, TOKEN, URL, stet


class Packing(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.dir = made.name

    def run_python(self, *args: str, path: str = "") -> str:
        """Runs Python in an empty directory, with nothing installed but what path has."""
        empty = os.path.join(self.dir, "empty")
        os.makedirs(empty, exist_ok=True)
        env = {**os.environ, "STET_URL": URL, "STET_TOKEN": TOKEN, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        env.pop("PYTHONPATH", None)
        if path:
            env["PYTHONPATH"] = path
        done = subprocess.run([sys.executable, "-B", *args], cwd=empty, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def built(self, source: str = PACKAGE) -> dict:
        """Builds the wheel and the source archive, and returns their paths by their endings."""
        out = tempfile.mkdtemp(dir=self.dir)
        lines = self.run_python(os.path.join(source, "build_backend.py"), out).splitlines()
        return {".whl" if line.endswith(".whl") else ".tar.gz": line for line in lines}

    def quickstart(self, path: str) -> None:
        where = self.run_python("-c", "import stet; print(stet.__file__)", path=path)
        self.assertTrue(where.startswith(path), where)
        said = self.run_python(os.path.join(PACKAGE, "examples", "quickstart.py"), path=path)
        self.assertEqual(
            said.splitlines(),
            [
                "user: add retry to checkout",
                "assistant: Checkout tries three times now.",
                "user: write a test",
                "assistant: checkout_test.py has it.",
                "agent: one",
                "agent: two",
                "agent: three",
            ],
        )

    def test_an_unpacked_wheel_works(self):
        target = os.path.join(self.dir, "target")
        self.run_python("-m", "zipfile", "-e", self.built()[".whl"], target)
        self.assertTrue(os.path.exists(os.path.join(target, "stet", "py.typed")))
        self.quickstart(target)

    def test_the_record_of_the_wheel_is_true(self):
        with zipfile.ZipFile(self.built()[".whl"]) as wheel:
            (record,) = [name for name in wheel.namelist() if name.endswith("/RECORD")]
            rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(wheel.namelist()))
            for name, digest, size in rows:
                if name != record:
                    data = wheel.read(name)
                    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), ("sha256=" + want, len(data)), name)

    def test_the_source_archive_builds_the_same(self):
        first = self.built()
        with tarfile.open(first[".tar.gz"]) as archive:
            archive.extractall(self.dir, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (source,) = [name for name in os.listdir(self.dir) if name.startswith("stet_client-")]
        second = self.built(os.path.join(self.dir, source))
        for ending in (".whl", ".tar.gz"):
            with open(first[ending], "rb") as one, open(second[ending], "rb") as two:
                self.assertEqual(one.read(), two.read(), ending)

    @unittest.skipUnless(os.environ.get("STET_SUITES"), "make test-suites runs this")
    @unittest.skipUnless(importlib.util.find_spec("pip"), "pip is not installed")
    def test_pip_installs_it_without_a_network(self):
        for number, source in enumerate((PACKAGE, *self.built().values())):
            target = os.path.join(self.dir, f"pip{number}")
            self.run_python("-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--target", target, source)
            self.quickstart(target)

    def test_versions_are_in_step(self):
        with open(os.path.join(PACKAGE, "pyproject.toml")) as file:
            (version,) = re.findall(r'^version = "(.*)"$', file.read(), re.M)
        self.assertEqual(stet.__version__, version)
        other = os.path.join(PACKAGE, "..", "typescript", "package.json")
        if os.path.exists(other):  # it is not in a source archive
            with open(other) as file:
                self.assertEqual(json.load(file)["version"], version)
