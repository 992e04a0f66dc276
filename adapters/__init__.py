# SPDX-License-Identifier: Apache-2.0
"""Carries each operator across each of its version boundaries: one file a family, up and down side by side.

Importing this package imports the tables that concern all operators. A family is imported when an operator is asked
about that its file names in quotes; a new file needs no entry anywhere. An adapter imports `onnx_convert.adapter`, the
one door to what it may ask and write, and what families share in `lib`; nothing else.
"""

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnx_convert.rewrite import registry

if TYPE_CHECKING:
    from importlib.abc import Traversable

TABLES: Final = tuple(f"{__name__}.tables.{name}" for name in ("compatible", "impossible", "promotable"))


@lru_cache(maxsize=1)
def _families() -> dict[str, bytes]:
    """Returns the text of every family, by the name of its module."""
    here: Traversable = Path(__file__).parent
    if not here.is_dir():  # unreached: in an archive, which another process imports
        here = import_module("importlib.resources").files(__name__)
    return {
        f"{package}.{file.name.removesuffix('.py')}": file.read_bytes()
        for package, folder in ((__name__, here), (f"{__name__}.decompose", here / "decompose"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".py") and not file.name.startswith("_")
    }


def _import(operator: str) -> None:
    """Imports the families that name an operator; or the tables, or everything."""
    if operator == registry.COMMON:
        modules = TABLES
    else:
        quoted = f'"{operator}"'.encode()
        modules = tuple(name for name, text in _families().items() if operator == registry.EVERY or quoted in text)
    for module in modules:
        import_module(module)


registry.filled_by(_import)
