# SPDX-License-Identifier: Apache-2.0
"""The record of what was converted into a folder, so that it need not be done again.

One line of JSON a result, appended when the result is in its place: a process that is killed leaves whole lines, and at
worst one torn one, which counts for nothing. A source counts as the same if its size and its time are, or if its
content is (sources of up to 16 MiB: reading larger ones would cost what converting them costs). So does each of its
data files.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

NAME: Final = ".onnx-convert.jsonl"
HASHED: Final = 16 << 20  # bytes up to which a file's content counts


def mark(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what tells a file's content from another: its size in bytes, its time, and its hash unless it is large.

    OSError if it cannot be read.
    """
    status = os.stat(path)
    small = status.st_size <= HASHED
    return {"size": status.st_size, "time": status.st_mtime_ns, "sha256": _hash(path) if small else ""}


def is_same(path: str | os.PathLike[str], known: dict[str, Any]) -> bool:
    """Returns whether a file is still the one of which `mark` was made."""
    try:
        status = os.stat(path)
        if status.st_size != known["size"]:
            return False
        return bool(status.st_mtime_ns == known["time"] or (known["sha256"] and _hash(path) == known["sha256"]))
    except (OSError, KeyError, TypeError):
        return False


def _hash(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Journal:
    """The record of one folder of results. `recipe` is everything else that a result depends on: options, versions."""

    def __init__(self, folder: Path, recipe: dict[str, Any]) -> None:
        self._path = folder / NAME
        self._recipe = hashlib.sha256(json.dumps(recipe, sort_keys=True, default=str).encode()).hexdigest()
        self._entries: dict[str, dict[str, Any]] = {}
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                entry = json.loads(line)
                self._entries[entry["name"]] = entry
            except (ValueError, KeyError, TypeError):
                continue
        self._torn = bool(lines and lines[-1])

    def is_current(self, name: str, sources: list[str], destination: str) -> bool:
        """Returns whether an earlier run made the result of the model, and of its data files, as they are now."""
        entry = self._entries.get(name)
        if entry is None or entry.get("recipe") != self._recipe:
            return False
        results, known = entry.get("results"), entry.get("sources")
        if not isinstance(results, dict) or not isinstance(known, dict):
            return False
        if destination not in results or not all(path in known for path in sources):
            return False
        return all(is_same(path, seen) for files in (results, known) for path, seen in files.items())

    def add(self, name: str, sources: list[str], results: list[str]) -> None:
        """Records that the results were made of the sources. OSError if one is gone, or if it cannot be written."""
        entry = {
            "name": name,
            "recipe": self._recipe,
            "sources": {path: mark(path) for path in sources},
            "results": {path: mark(path) for path in results},
        }
        line = json.dumps(entry).encode() + b"\n"
        with open(self._path, "ab") as file:
            file.write(b"\n" + line if self._torn else line)
        self._torn = False
        self._entries[name] = entry
