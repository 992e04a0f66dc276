# SPDX-License-Identifier: Apache-2.0
"""How each operator crosses each of its version boundaries: one file a family, up and down side by side.

Importing this package imports the two tables that concern every operator. A family is imported when an operator is
asked about that its file names in quotes; a new file needs no entry anywhere. An adapter knows `registry` (to register
itself), `site` (what it may ask) and the emitter that it is handed (what it may write), and nothing else.
"""

from functools import lru_cache
from importlib import import_module
from pathlib import Path

from onnx_convert import registry
from onnx_convert.adapters import compatible, dtypes

__all__ = ["compatible", "dtypes"]


@lru_cache(maxsize=1)
def _families() -> dict[str, bytes]:
    """The text of every family, by the name of its module."""
    here = Path(__file__).parent
    return {
        f"{package}.{path.stem}": path.read_bytes()
        for package, folder in ((__name__, here), (f"{__name__}.decompose", here / "decompose"))
        for path in sorted(folder.glob("[!_]*.py"))
    }


def _import(operator: str) -> None:
    """Imports the families that name an operator, or every one."""
    quoted = f'"{operator}"'.encode()
    for module, text in _families().items():
        if operator == registry.EVERY or quoted in text:
            import_module(module)


registry.filled_by(_import)
