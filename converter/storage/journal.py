# SPDX-License-Identifier: Apache-2.0
"""The record of what was converted into a folder, so that it need not be done again.

One line of JSON a result, appended when the result is in its place: a process that is killed leaves whole lines, and at
worst one torn one, which counts for nothing. A file counts as the same if nobody has touched it since, or if its
content is the same (files of up to 16 MiB: reading larger ones would cost what converting them costs). Its size and the
time of its last change tell nothing alone: weights trained anew have the size of the old ones, and archives, caches and
builds that can be repeated set times as they like. The time of its last change of status is the system's own.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

NAME: Final = ".onnx-convert.jsonl"
HASHED: Final = 16 << 20  # bytes up to which a file's content counts
_SLACK: Final = 1000  # lines that may be of no use any more


Mark = dict[str, Any]


def mark(path: str | os.PathLike[str]) -> Mark:
    """Returns what tells a file's content from another: its size in bytes, what the system says of it, and its hash
    unless it is large; all of one file, although another may take its place meanwhile.

    OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        digest = _hash([file.read()]) if status.st_size <= HASHED else ""
    return {"size": status.st_size, "touched": _touched(status), "sha256": digest}


def is_of(known: Mark, inodes: Collection[int]) -> bool:
    """Returns whether a mark was made of one of these files."""
    return known["touched"][0] in inodes


def is_same(path: str | os.PathLike[str], known: Mark) -> bool:
    """Returns whether a file is still the one of which `mark` was made."""
    try:
        status = os.stat(path)
        if status.st_size != known["size"]:
            return False
        same = _touched(status) == known["touched"]
        return bool(same or (known["sha256"] and hash_of(path) == known["sha256"]))
    except (OSError, KeyError, TypeError):
        return False


def hash_of(*paths: str | os.PathLike[str]) -> str:
    """Returns a hash of the content of files, one after the other."""
    return _hash(Path(path).read_bytes() for path in paths)


def _hash(contents: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()


def _touched(status: os.stat_result) -> list[int]:
    """Returns what changes whenever somebody writes into a file, or puts another one in its place."""
    return [status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


class Journal:
    """The record of one folder of results. `recipe` returns everything else that a result depends on: options,
    versions. It is asked once, when that is needed."""

    def __init__(self, folder: Path, recipe: Callable[[], dict[str, Any]]) -> None:
        self._path = folder / NAME
        self._make_recipe = recipe
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
        if len(lines) > 2 * len(self._entries) + _SLACK:
            with suppress(OSError):
                self._tidy()

    @cached_property
    def _recipe(self) -> str:
        return hashlib.sha256(json.dumps(self._make_recipe(), sort_keys=True, default=str).encode()).hexdigest()

    def _tidy(self) -> None:
        """Writes the record anew without what later lines have replaced. A line that somebody else adds meanwhile may
        get lost: that costs work, and nothing else."""
        aside = self._path.with_name(f"{NAME}.{os.getpid()}")
        try:
            aside.write_bytes(b"".join(json.dumps(entry).encode() + b"\n" for entry in self._entries.values()))
            os.replace(aside, self._path)
        finally:
            aside.unlink(missing_ok=True)
        self._torn = False

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

    def add(self, name: str, sources: dict[str, Mark], results: dict[str, Mark]) -> None:
        """Records that the results were made of the sources. OSError if it cannot be written."""
        entry = {"name": name, "recipe": self._recipe, "sources": sources, "results": results}
        line = json.dumps(entry).encode() + b"\n"
        begun = b"\n" if self._torn else b""
        self._torn = True  # unless it is written whole
        with open(self._path, "ab") as file:
            file.write(begun + line)
        self._torn = False
        self._entries[name] = entry
