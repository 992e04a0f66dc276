# SPDX-License-Identifier: Apache-2.0
"""The constants that rewrites add to a graph: equal ones are one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import numpy_helper

from onnx_convert.rewrite.values import elements_to_compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy
    from onnx import TensorProto

    from onnx_convert.model.names import Names

    Array = numpy.ndarray[Any, Any]
    Key = tuple[int, tuple[int, ...], bytes | tuple[Any, ...]]


def key_of(array: Array) -> Key:
    """Returns what tells a constant from others: its dtype, shape and elements."""
    return (array.dtype.num, array.shape, elements_to_compare(array))


class Constants:
    """New constants of a graph. With an `outer` it is a draft, which knows those of `outer` too and adds its own to
    them when it is committed."""

    def __init__(self, names: Names, outer: Constants | None = None) -> None:
        self._names = names
        self._outer = outer
        self._by_content: dict[Key, str] = {}
        self._tensors: dict[str, TensorProto] = {}
        self._placed: list[TensorProto] = []
        self._used: set[str] = set()

    def share(self, array: Array, hint: str) -> str:
        """Returns the name of a constant with these elements; makes one, named after the hint, if there is none."""
        key = key_of(array)
        name = self.find(key)
        if name is None:
            name = self._names.fresh(hint)
            self._by_content[key] = name
            self._tensors[name] = numpy_helper.from_array(array, name)
        return name

    def find(self, key: Key) -> str | None:
        """Returns the name of a shared constant by its `key_of`, None if there is none."""
        name = self._by_content.get(key)
        return self._outer.find(key) if name is None and self._outer is not None else name

    def place(self, tensor: TensorProto) -> None:
        """Adds a constant under the name that it has, whether it is used or not."""
        self._placed.append(tensor)

    def tensor(self, name: str) -> TensorProto | None:
        """Returns the shared constant of that name, None if there is none."""
        tensor = self._tensors.get(name)
        return self._outer.tensor(name) if tensor is None and self._outer is not None else tensor

    def use(self, names: Iterable[str]) -> None:
        """Takes note that nodes of the result use these values, among which may be shared constants."""
        self._used.update(names)

    def commit(self) -> None:
        """Adds the constants of a draft to those of the graph."""
        if self._outer is not None:
            self._outer.take(self._by_content, self._tensors, self._placed, self._used)

    def take(
        self,
        by_content: Mapping[Key, str],
        tensors: Mapping[str, TensorProto],
        placed: Iterable[TensorProto],
        used: Iterable[str],
    ) -> None:
        """Adds constants: names of shared ones by content, these by name, the placed ones, and the names in use."""
        self._by_content.update(by_content)
        self._tensors.update(tensors)
        self._placed.extend(placed)
        self._used.update(used)

    def tensors(self) -> list[TensorProto]:
        """Returns what the graph has to hold: the constants that were placed, and the shared ones that are used."""
        return [*self._placed, *(tensor for name, tensor in self._tensors.items() if name in self._used)]

    def all_tensors(self) -> list[TensorProto]:
        """Returns all shared constants."""
        return [*self._tensors.values()]
