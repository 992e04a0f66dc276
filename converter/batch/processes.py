# SPDX-License-Identifier: Apache-2.0
"""How worker processes begin: anew, since a fork of a process that has threads may hang; or, in the program itself,
as a fork of a server that has no threads and has imported what is heavy."""

from __future__ import annotations

import multiprocessing
from functools import lru_cache
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

HEAVY: Final = ("onnx_convert.api",)
"""Modules that the conversion of every model needs."""


@lru_cache(maxsize=1)
def warm_up() -> BaseContext | None:
    """Starts the server, which imports while its parent does the same; None where the system cannot fork.

    For the command line alone: the server is one for the whole process, and what it has imported is everybody's.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*HEAVY])
    forkserver.ensure_running()
    return context


def context() -> BaseContext:
    """Returns the context for worker processes: the server's if there is one."""
    warm = warm_up() if warm_up.cache_info().currsize else None
    return warm or multiprocessing.get_context("spawn")
