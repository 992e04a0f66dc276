# SPDX-License-Identifier: Apache-2.0
"""Adapters of other people: whatever is installed under the entry point group `onnx_convert.adapters`.

Scanned only when a domain occurs that onnx does not define. An entry point names a module that registers its adapters
when it is imported, or a function that registers them when it is called.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from onnx_convert.rewrite import registry

GROUP: Final = "onnx_convert.adapters"


@lru_cache(maxsize=1)
def load() -> tuple[str, ...]:
    """Imports every plug-in once. A broken one is logged and passed over; what is wrong with those, a line each."""
    import logging  # both are seldom needed, and slow to import
    from importlib.metadata import entry_points

    broken = []
    for entry in entry_points(group=GROUP):
        try:
            with registry.of_plugins():
                found = entry.load()
                if callable(found):
                    found()
        except Exception as error:
            broken.append(
                f"the adapters {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
            )
            log = logging.getLogger(__name__)
            log.warning("%s", broken[-1], exc_info=log.isEnabledFor(logging.DEBUG))
    return tuple(broken)
