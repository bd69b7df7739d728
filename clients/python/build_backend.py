"""Builds the wheel and the source archive with the standard library.

pip calls the functions by the names of PEP 517. Without pip:

    python3 build_backend.py dist

The same files give the same bytes.
"""

from __future__ import annotations

import ast
import base64
import gzip
import hashlib
import io
import os
import sys
import tarfile
import zipfile
from typing import Any, Dict, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))

#: The first moment that a zip archive can name.
_TIME = (1980, 1, 1, 0, 0, 0)


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    name, info = _wheel_name()
    files = [(path, _read(path)) for path in _package()] + _metadata(info)
    record = "".join(f"{path},sha256={_hash(data)},{len(data)}\n" for path, data in files)
    files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode()))
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files:
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def prepare_metadata_for_build_wheel(directory: str, config_settings: Any = None) -> str:
    _, info = _wheel_name()
    os.makedirs(os.path.join(directory, info, "licenses"), exist_ok=True)
    for path, data in _metadata(info):
        with open(os.path.join(directory, path), "wb") as file:
            file.write(data)
    return info


def build_sdist(directory: str, config_settings: Any = None) -> str:
    project = _project()
    base = f"{_plain(project['name'])}-{project['version']}"
    paths = _package() + ["pyproject.toml", "build_backend.py", "README.md", "LICENSE"]
    paths += _below("tests") + _below("examples")
    with open(os.path.join(directory, base + ".tar.gz"), "wb") as out:
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for path, data in [("PKG-INFO", _core(project))] + [(p, _read(p)) for p in paths]:
                    entry = tarfile.TarInfo(f"{base}/{path}")
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"


def _wheel_name() -> Tuple[str, str]:
    """Returns the names of the wheel and of the directory with its metadata."""
    project = _project()
    base = f"{_plain(project['name'])}-{project['version']}"
    return f"{base}-py3-none-any.whl", f"{base}.dist-info"


def _metadata(info: str) -> List[Tuple[str, bytes]]:
    wheel = b"Wheel-Version: 1.0\nGenerator: stet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return [
        (f"{info}/METADATA", _core(_project())),
        (f"{info}/WHEEL", wheel),
        (f"{info}/licenses/LICENSE", _read("LICENSE")),
    ]


def _core(project: Dict[str, Any]) -> bytes:
    """Returns the metadata in the form of PyPI."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in project["license-files"]),
        *(f"Classifier: {name}" for name in project["classifiers"]),
        *(f"Project-URL: {name}, {url}" for name, url in project["urls"].items()),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {need}" for need in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", ""]
    return "\n".join(lines).encode() + _read(project["readme"])


def _project() -> Dict[str, Any]:
    """Reads [project] of pyproject.toml.

    Python 3.10 has no reader of TOML. The file has texts and lists of texts only, which are
    written as in Python.
    """
    tables: Dict[str, Dict[str, Any]] = {}
    table: Dict[str, Any] = {}
    pending = ""
    for line in _read("pyproject.toml").decode().splitlines():
        pending += line
        if not pending or pending.startswith("#"):
            pending = ""
        elif pending.startswith("["):
            table = tables.setdefault(pending.strip("[]"), {})
            pending = ""
        elif pending.count("[") == pending.count("]"):
            name, _, value = pending.partition("=")
            table[name.strip()] = ast.literal_eval(value.strip())
            pending = ""
    project = tables["project"]
    project["optional-dependencies"] = tables["project.optional-dependencies"]
    project["urls"] = tables["project.urls"]
    return project


def _package() -> List[str]:
    return _below("stet")


def _below(directory: str) -> List[str]:
    """Returns the files below a directory, in order, without what Python leaves there."""
    found = []
    for parent, _, names in os.walk(os.path.join(HERE, directory)):
        if "__pycache__" not in parent:
            found += [os.path.relpath(os.path.join(parent, name), HERE).replace(os.sep, "/") for name in names]
    return sorted(found)


def _read(path: str) -> bytes:
    with open(os.path.join(HERE, path), "rb") as file:
        return file.read()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _plain(name: str) -> str:
    return name.replace("-", "_")


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else "dist"
    os.makedirs(target, exist_ok=True)
    for made in (build_wheel(target), build_sdist(target)):
        print(os.path.join(target, made))
