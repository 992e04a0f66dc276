# SPDX-License-Identifier: Apache-2.0
"""Spares a process of our own the collector's looks through what is imported.

Modules stay to the end of the process, so that it finds nothing in them; yet it looks through them again and again
while they are imported, and once more at the end, which takes as long as to import a third of them. In the process of
somebody else the collector is left alone.
"""

from __future__ import annotations

import gc


def rest() -> None:
    """Stops the collector, while modules are imported."""
    gc.disable()


def resume() -> None:
    """Lets the collector work again, on what comes from now on."""
    gc.freeze()
    gc.enable()
