# SPDX-License-Identifier: Apache-2.0
"""Names that are new to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class Names:
    """Value and node names of the whole model, so that a new one is unique in every scope. `taken` are those that it
    has, a set that is only looked at."""

    def __init__(self, taken: AbstractSet[str]) -> None:
        self._taken = taken
        self._new: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last one that was tried, by the name that was wanted

    def fresh(self, wanted: str) -> str:
        """Returns `wanted`, or `wanted_1`, `wanted_2` ... if it is taken."""
        name, number = wanted, self._numbers.get(wanted, 0)
        while name in self._taken or name in self._new:
            number += 1
            name = f"{wanted}_{number}"
        if number:
            self._numbers[wanted] = number
        self._new.add(name)
        return name

    def all_fresh(self, wanted: list[str]) -> list[str]:
        """Returns the same for several names at once."""
        if self._taken.isdisjoint(wanted) and self._new.isdisjoint(wanted) and len(set(wanted)) == len(wanted):
            self._new.update(wanted)
            return wanted
        return [self.fresh(name) for name in wanted]
