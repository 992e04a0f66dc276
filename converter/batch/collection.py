# SPDX-License-Identifier: Apache-2.0
"""Finds the models that are meant by files, folders and patterns."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onnx_convert.errors import UsageError
from onnx_convert.storage.source import holds_a_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIX = ".onnx"


class Found(NamedTuple):
    """A model's path, and its name: the part of the path below the folder that all models of the call share."""

    path: Path
    name: str


def find(given: Iterable[str | os.PathLike[str]], *, leave_out: Path | None = None) -> list[Found]:
    """Returns the models that are meant, in the order given, those of a folder sorted; each once.

    A file is taken as it is. Of a folder, all of its tree is looked through, but for links to other folders: whatever
    is called `.onnx`, even if it turns out to be none, and other files whose content is a model; hidden files and
    folders are passed over, and so is what lies in `leave_out`, where results go. A pattern (`zoo/**/*.onnx`) that is
    no file's name is matched here, for shells that do not.
    UsageError for a folder without a model, or a pattern that matches nothing.
    """
    excluded = os.path.realpath(leave_out) if leave_out is not None else None
    paths: dict[str, Path] = {}
    roots = []
    for item in given:
        for path in _matching(Path(item), excluded):
            if path.is_dir():
                roots.append(path)
                inside = [*_models(path, excluded)]
                if not inside:
                    raise UsageError(f"{path}: there is no ONNX model in this folder")
                for found in inside:
                    paths.setdefault(_place(found), found)
            else:
                roots.append(path.parent)
                paths.setdefault(_place(path), path)
    if not paths:
        raise UsageError("no model was named")
    shared = os.path.join(os.path.commonpath([os.path.abspath(root) for root in roots]), "")
    # from the root, with each `..` resolved as it is written: links keep their own names
    return [Found(path, os.path.abspath(path)[len(shared) :].replace(os.sep, "/") or ".") for path in paths.values()]


def _place(path: Path) -> str:
    """Returns where a file lies, however it was named: links to folders followed, a link to a file being one itself."""
    return os.path.join(os.path.realpath(path.parent), path.name)


def _matching(path: Path, excluded: str | None) -> list[Path]:
    """Returns the path, or what it matches if there is no such file and it is a pattern: not what is in `excluded`."""
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        return [path]
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    if excluded is not None:
        matches = [match for match in matches if not Path(_place(match)).is_relative_to(excluded)]
    if not matches:
        raise UsageError(f"{path}: no file has such a name")
    return matches


def _models(root: Path, excluded: str | None) -> Iterator[Path]:
    unreadable: list[Path] = []
    for folder, folders, files in os.walk(root, onerror=lambda error: unreadable.append(Path(error.filename))):
        here = Path(folder)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and os.path.realpath(here / name) != excluded
        )
        for name in sorted(files):
            path = here / name
            if not name.startswith(".") and (path.suffix.lower() == SUFFIX or holds_a_model(path)):
                yield path  # also what cannot be read: whoever asks for a folder wants to know
    yield from unreadable  # as models that fail
