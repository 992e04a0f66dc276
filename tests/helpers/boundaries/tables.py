# SPDX-License-Identifier: Apache-2.0
"""The test files of the families, and all rows of theirs together."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

from boundaries.rows import Row

FOLDER: Final = Path(__file__).parents[2] / "adapters"


def files() -> dict[str, Path]:
    """Returns the test files of the families, decompositions and tables by name, as `decompose/unique`."""
    found = (path.relative_to(FOLDER) for path in FOLDER.rglob("*.py"))
    return {path.with_suffix("").as_posix(): FOLDER / path for path in sorted(found) if not _is_about_all(path)}


def _is_about_all(path: Path) -> bool:
    return path.name.startswith(("test_", "conftest")) or path.parts[0] == "lib"


@lru_cache(maxsize=None)
def module(name: str) -> ModuleType:
    """Imports the test file of that name."""
    full = f"rows_of.{name.replace('/', '.')}"
    spec = importlib.util.spec_from_file_location(full, files()[name])
    assert spec is not None and spec.loader is not None
    made = sys.modules[full] = importlib.util.module_from_spec(spec)  # dataclasses look themselves up
    spec.loader.exec_module(made)
    return made


def rows() -> list[Row]:
    """Returns the rows of all families."""
    listed = (getattr(module(name), "ROWS", ()) for name in files())
    return [row for table in listed for row in table if isinstance(row, Row)]
