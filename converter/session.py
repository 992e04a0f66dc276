# SPDX-License-Identifier: Apache-2.0
"""What all graphs of one conversion share: the names that are taken, how tensors are read, what is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from onnx import TensorProto

FREE: Final = 1 << 22  # elements of a new constant that need no explanation: a transform of 1000 points has 2 million


class Names:
    """Value and node names of the whole model, so that a new one is unique in every scope. `taken` are those that it
    has, a set that is only looked at."""

    def __init__(self, taken: AbstractSet[str]) -> None:
        self._taken = taken
        self._new: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2` ... if it is taken."""
        name, number = wanted, 0
        while name in self._taken or name in self._new:
            number += 1
            name = f"{wanted}_{number}"
        self._new.add(name)
        return name

    def all_fresh(self, wanted: list[str]) -> list[str]:
        """The same for several names at once."""
        if self._taken.isdisjoint(wanted) and self._new.isdisjoint(wanted) and len(set(wanted)) == len(wanted):
            self._new.update(wanted)
            return wanted
        return [self.fresh(name) for name in wanted]


class Session:
    """What all scopes of one conversion share."""

    def __init__(
        self,
        ir_before: int,
        ir_after: int,
        names: Names,
        read: Callable[[TensorProto], TensorProto],
        find_read: Callable[[], set[str]],
        count_elements: Callable[[], int] = lambda: 0,
    ) -> None:
        self.ir_before = ir_before
        self.ir_after = ir_after
        self.names = names
        self.read = read
        self.took_ir3_initializer = False
        self.used: set[str] = set()  # by nodes that adapters wrote: new constants, and perhaps other values
        self._find_read = find_read
        self._count_elements = count_elements
        self._most: int | None = None
        self._read_names: set[str] | None = None

    @property
    def read_names(self) -> set[str]:
        """Every name that a node or a graph output of the source uses."""
        if self._read_names is None:
            self._read_names = self._find_read()
        return self._read_names

    def takes(self, elements: int) -> bool:
        """Whether a new constant of so many elements is in proportion to the model: at most 4 Mi, or 16 times all
        tensors that it has."""
        if elements <= FREE:
            return True
        if self._most is None:
            self._most = 16 * self._count_elements()
        return elements <= self._most
