# SPDX-License-Identifier: Apache-2.0
"""The permissions that a user gives a conversion."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """The permissions of the user. `types` is "refuse", "cast" or "cast-rounding"."""

    types: str = "refuse"
    exact: bool = False
    conditional: bool = False
    strict: bool = False
    expand_all: bool = False
    keep_functions: bool = False
    keep_initializer_inputs: bool = False
