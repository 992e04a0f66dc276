# SPDX-License-Identifier: Apache-2.0
"""Finds dtypes that follow from schemas alone: all values of one type variable of an operator have one dtype.

onnx infers forwards only, so behind an operator that it does not know nothing has a type, though what uses the value
often tells: a LayerNormalization has X of the dtype of its Scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from onnx import GraphProto, NodeProto, TypeProto


def dtypes(graph: GraphProto, imports: dict[str, int], type_of: Callable[[str], TypeProto | None]) -> dict[str, str]:
    """Returns the types ("tensor(float)") of values of a graph whose types are not known, as far as they follow."""
    unknown = {name for node in graph.node for name in node.output if name and not _type_str(type_of(name))}
    if not unknown:
        return {}
    groups = _Groups()
    for node in graph.node:
        if unknown.isdisjoint(node.input) and unknown.isdisjoint(node.output):
            continue
        for names, kind in _bound(node, imports):
            groups.join(names)
            for name in names:
                groups.learn(name, kind or _type_str(type_of(name)))
    return {name: kind for name in unknown if (kind := groups.kind_of(name))}


def _type_str(kind: TypeProto | None) -> str:
    return type_str(kind) if kind is not None else ""


def _bound(node: NodeProto, imports: dict[str, int]) -> Iterator[tuple[list[str], str]]:
    """Yields the values of a node that have one type, group by group, and the type where the schema names a single
    one."""
    domain = opsets.canonical_domain(node.domain)
    signature = signatures.signature_of(node.op_type, imports.get(domain, 0), domain)
    if signature is None:
        return
    groups: dict[str, list[str]] = {}
    only: dict[str, str] = {}
    sides: tuple[tuple[Iterable[str], Callable[[int], signatures.Formal], int], ...] = (
        (node.input, signature.formal_input, len(signature.inputs)),
        (node.output, signature.formal_output, len(signature.outputs)),
    )
    for names, formal_of, count in sides:
        for index, name in enumerate(names):
            if not name or not count:
                continue
            formal = formal_of(index)
            single = next(iter(formal.types)) if len(formal.types) == 1 else ""
            key = formal.variable if formal.bound else f"{formal.variable} of {name}"
            groups.setdefault(key, []).append(name)
            only[key] = single
    for key, members in groups.items():
        yield members, only[key]


class _Groups:
    """Values that have one type, and the type where it is known; "?" where two are named, as in an invalid model."""

    def __init__(self) -> None:
        self._leader: dict[str, str] = {}
        self._kinds: dict[str, str] = {}

    def _find(self, name: str) -> str:
        path = []
        while (leader := self._leader.setdefault(name, name)) != name:
            path.append(name)
            name = leader
        self._leader.update(dict.fromkeys(path, name))
        return name

    def join(self, names: list[str]) -> None:
        """Puts values into one group."""
        first = self._find(names[0])
        for name in names[1:]:
            other = self._find(name)
            if other != first:
                self._leader[other] = first
                if kind := self._kinds.pop(other, ""):
                    self.learn(first, kind)

    def learn(self, name: str, kind: str) -> None:
        """Takes note of the type of a value, if one is given."""
        leader = self._find(name)
        if kind:
            before = self._kinds.setdefault(leader, kind)
            if before != kind:
                self._kinds[leader] = "?"

    def kind_of(self, name: str) -> str:
        """Returns the type of a value, "" if it does not follow."""
        kind = self._kinds.get(self._find(name), "")
        return "" if kind == "?" else kind
