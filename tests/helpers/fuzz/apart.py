# SPDX-License-Identifier: Apache-2.0
"""Calls a function in another process. Evaluators may take theirs with them: an integer divided by 0 is enough."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Result = TypeVar("Result")

SECONDS = 60.0  # a call that takes longer hangs


class Broke(Exception):
    """The call raised, died or hung; the text says what."""


def call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Returns what a function of a module returns; raises Broke. All that goes over has to be picklable."""
    pipe, process = _worker()
    pipe.send((function, arguments))
    try:
        answered = pipe.poll(SECONDS)
        done, answer = pipe.recv() if answered else (False, f"it took more than {SECONDS:g} s")
    except (EOFError, ConnectionError):
        answered, done, answer = False, False, "the process died of it"
    if not answered:
        process.kill()
        process.join()
        pipe.close()
        _worker.cache_clear()
    if not done:
        raise Broke(answer)
    result: Result = answer
    return result


@cache
def _worker() -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")  # forking after onnxruntime has started its threads can hang
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _serve(pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = (True, function(*arguments))
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes over as text)
            answer = (False, f"{type(error).__name__}: {error}")
        pipe.send(answer)
