# SPDX-License-Identifier: Apache-2.0
"""Tells the makers of results apart: this package, onnx, and the adapters of other people. A result is up to date only
as long as they are the same.

Versions tell little, since a checkout keeps its own through many changes: what counts is the content of the files.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, util
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx

from onnx_convert.errors import UsageError
from onnx_convert.rewrite import plugins, registry
from onnx_convert.storage.journal import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx_convert.rewrite.registry import Key

_OWN: Final = ("onnx_convert", "onnx_convert.adapters")
_LIBRARIES: Final = ("onnxscript", "onnx_ir")  # of which adapters of other people are made


def makers() -> dict[str, str]:
    """Returns what tells apart whoever has a hand in results: versions, and hashes of the files of adapters."""
    found = {"onnx": onnx.__version__, "numpy": np.__version__}
    found |= {name: _version(name) for name in _LIBRARIES} | {name: _hash_of_module(name) for name in _OWN}
    for entry in entry_points(group=plugins.GROUP):
        who = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        found[f"{entry.name} = {entry.value}"] = f"{who} {_hash_of_module(_top(entry.value))}"
    for key, module in registry.guests().items():
        domain, operator, boundary, direction = key
        decision = registry.decision(operator, boundary, direction, domain)
        what = f"{module}.{decision.name}" if isinstance(decision, registry.Adapter) else repr(decision)
        found[f"{domain}.{operator}@{boundary} {direction}"] = f"{what} {_hash_of_module(_top(module))}"
    return found


def guests() -> tuple[tuple[Key, str], ...]:
    """Returns the crossings about which this process was told by somebody else, and by which module."""
    return tuple(registry.guests().items())


def welcome(expected: tuple[tuple[Key, str], ...]) -> None:
    """Sees to it that the adapters that another process has are here as well, by importing their modules.

    UsageError if one is not to be had: a model would come out otherwise than there.
    """
    for key, module in expected:
        if key not in registry.guests() and module != "__main__":
            try:
                import_module(module)
            except ImportError as error:
                raise UsageError(f"the adapters of {module} cannot be imported by a worker: {error}") from error
        if key not in registry.guests():
            raise UsageError(
                f"a worker does not have the adapter of {key[1]}@{key[2]} from {module}: register it where {module} is "
                "imported, outside of any function"
            )


def _top(name: str) -> str:
    return name.partition(":")[0].partition(".")[0].strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _hash_of_module(name: str) -> str:
    """Returns a hash of all files of a module or package, found without importing it; of what has no files, as what is
    typed into a notebook, one that never comes again."""
    files = sorted(_files(name))
    return hash_of(*files) if files else os.urandom(16).hex()


def _files(name: str) -> Iterator[Path]:
    if name == "__main__":
        file = getattr(sys.modules[name], "__file__", None)
        yield from [Path(file)] if file and Path(file).is_file() else []
        return
    try:
        spec = util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.submodule_search_locations is not None:
        for folder in spec.submodule_search_locations:
            yield from (path for path in Path(folder).rglob("*") if path.suffix != ".pyc" and path.is_file())
    elif spec is not None and spec.origin and Path(spec.origin).is_file():
        yield Path(spec.origin)
