# SPDX-License-Identifier: Apache-2.0
"""Adapters of other people: whatever is installed under the entry point group `onnx_convert.adapters`.

Scanned only when a domain occurs that onnx does not define. An entry point names a module that registers its adapters
when it is imported, or a function that registers them when it is called.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

GROUP: Final = "onnx_convert.adapters"


@lru_cache(maxsize=1)
def load() -> tuple[str, ...]:
    """Imports every plug-in once; the names of those that could be loaded. A broken one is logged and passed over."""
    import logging  # both are seldom needed, and slow to import
    from importlib.metadata import entry_points

    loaded = []
    for entry in entry_points(group=GROUP):
        try:
            found = entry.load()
            if callable(found):
                found()
        except Exception:
            log = logging.getLogger(__name__)
            log.warning("the adapters of %r (%s) cannot be loaded", entry.name, entry.value, exc_info=True)
        else:
            loaded.append(entry.name)
    return tuple(loaded)
