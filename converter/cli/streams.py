# SPDX-License-Identifier: Apache-2.0
"""Sees to standard streams that are closed, and to their other names."""

from __future__ import annotations

import os
import sys
from typing import Final

STDOUT_NAMES: Final = frozenset(("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"))
"""Other names of stdout: as a file, one of them would be replaced, in `/dev` at that."""


def open_those_that_are_closed() -> None:
    """Opens the null device for each standard stream that is closed: a model file must not get its number, and be
    written into by whoever prints."""
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) != number:  # the lowest number that is free is taken
                continue
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115
