# SPDX-License-Identifier: Apache-2.0
"""Begins worker processes: anew, since a fork of a process that has threads may hang; or, in the program itself, as a
fork of a server that has no threads and has imported what is heavy. Sees to it that none outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import connection, forkserver
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import BaseContext

HEAVY: Final = ("onnx_convert.api", "onnx_convert.batch.pool")
"""Modules that the conversion of every model needs."""
_AT_ONCE: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # which Windows does not let anybody handle


@lru_cache(maxsize=1)
def warm_up() -> BaseContext | None:
    """Starts the server, which imports while its parent does the same; None where the system cannot fork, or
    where, as on macOS, its own libraries may not survive it.

    For the command line alone: the server is one for the whole process, and what it has imported is everybody's.
    """
    if sys.platform == "darwin" or "forkserver" not in multiprocessing.get_all_start_methods():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*HEAVY])
    with deaf():
        forkserver.ensure_running()
    return context


def context() -> Any:
    """Returns the context for worker processes: the server's if there is one."""
    warm = warm_up() if warm_up.cache_info().currsize else None
    return warm or multiprocessing.get_context("spawn")


def end_with_parent() -> None:
    """Has this worker ended at once when its parent is killed, which then cannot do it: it may be in native code for as
    long as that likes, and would put a result into its place when nobody expects it any more.

    On Linux by the system, as native code may keep the interpreter from all threads: whoever reads from a pipe, as all
    workers do from their parent's, can have a signal when its other end is closed. What is half written is removed by
    whoever writes into the folder next.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        import fcntl

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
    else:
        threading.Thread(target=_end_after, args=(parent.sentinel,), name="onnx-convert", daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os.kill(os.getpid(), _AT_ONCE)


@contextmanager
def deaf() -> Iterator[None]:
    """Makes processes that begin here deaf to Ctrl-C, until they say otherwise: it is their parent that ends them, and
    an interrupt in the middle of their imports would print where they are. It waits here as well, since a process that
    is half begun would say so."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which lets interrupts through again when it begins
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    ours = handler is not None and threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    if ours:
        signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        if ours:  # another thread, as libraries have, may have taken the signal
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came:
            signal.raise_signal(signal.SIGINT)
