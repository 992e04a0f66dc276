# SPDX-License-Identifier: Apache-2.0
"""Models that compute a shape out of the dimensions of an input, by a few nodes in a row, and have it made.

What inference propagates are elements, not types: whether they are right is seen where a shape is made of them.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from hunt.typing import Typed

OPERATORS = (
    "Add Sub Mul Div Mod Neg Abs Min Max Cast Concat Gather Slice Squeeze Unsqueeze Shape Size Identity Reshape Range"
    " ReduceProd ReduceSum Where Equal Split Tile Transpose Floor Sign Clip"
).split()
OPSETS = (9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 21, 23, 25)


class _Writer:
    def __init__(self, opset: int, chance: random.Random) -> None:
        self.opset = opset
        self.chance = chance
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.values: list[tuple[str, bool]] = []  # names, and whether they are scalars

    def constant(self, *numbers: int, scalar: bool = False) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(numbers[0] if scalar else numbers, np.int64)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def axes(self, operator: str, value: str, axes: list[int], since: int, **more: Any) -> str:
        """An operator whose axes are an input from some opset on."""
        if self.opset >= since:
            return self.node(operator, value, self.constant(*axes), **more)
        return self.node(operator, value, axes=axes, **more)

    def any(self, *, scalar: bool | None = None) -> tuple[str, bool]:
        fitting = [one for one in self.values if scalar is None or one[1] == scalar]
        return self.chance.choice(fitting or self.values)


def model(chance: random.Random) -> tuple[Typed, dict[str, np.ndarray]]:
    """A model, what its symbols stand for, and its inputs."""
    opset = chance.choice(OPSETS)
    rank = chance.randint(1, 4)
    sizes = [chance.choice((0, 1, 1, 2, 3, 4, 5)) for _ in range(rank)]
    writer = _Writer(opset, chance)
    writer.values.append((writer.node("Shape", "x"), False))
    if chance.random() < 0.5:
        writer.values.append((writer.constant(*(chance.randint(-3, 4) for _ in range(rank))), False))
    for _ in range(chance.randint(1, 4)):
        writer.values.append(_step(writer))
    name, scalar = writer.values[-1]
    if scalar:
        name = writer.axes("Unsqueeze", name, [0], 13)
    writer.nodes.append(helper.make_node("ConstantOfShape", [name], ["y"]))
    typed = Typed(ModelProto(ir_version=8))
    typed.model.opset_import.add(domain="", version=opset)
    graph = typed.model.graph
    graph.name = "g"
    kind = graph.input.add(name="x").type.tensor_type
    kind.elem_type = 1
    kind.shape.SetInParent()
    for axis, size in enumerate(sizes):
        way = chance.randrange(3)
        if way == 0:
            kind.shape.dim.add(dim_value=size)
        else:
            symbol = f"N{axis}" if way == 1 or axis == 0 else f"N{size}{size}"
            if typed.sizes.setdefault(symbol, size) != size:
                symbol = f"M{axis}"
                typed.sizes[symbol] = size
            kind.shape.dim.add(dim_param=symbol)
    graph.node.extend(writer.nodes)
    graph.initializer.extend(writer.constants)
    graph.output.add(name="y")
    return typed, {"x": np.zeros(sizes, np.float32)}


def _step(w: _Writer) -> tuple[str, bool]:
    operator = w.chance.choice(OPERATORS)
    value, scalar = w.any()
    number = w.chance.randint(-3, 5)
    if operator in ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"):
        if w.chance.random() < 0.6:
            other, alone = w.constant(number, scalar=scalar or w.chance.random() < 0.3), True
        else:
            other, alone = w.any()
        pair = (value, other) if w.chance.random() < 0.7 else (other, value)
        return w.node(operator, *pair), scalar and alone
    if operator in ("Neg", "Abs", "Identity", "Sign"):
        return w.node(operator, value), scalar
    if operator == "Floor":
        half = w.node("Cast", value, to=1)
        return w.node("Cast", w.node("Floor", half), to=7), scalar
    if operator == "Cast":
        return w.node("Cast", w.node("Cast", value, to=w.chance.choice((1, 6, 7, 9))), to=7), scalar
    if operator == "Concat":
        parts = [w.any(scalar=False)[0] for _ in range(w.chance.randint(1, 3))]
        return w.node("Concat", *parts, axis=w.chance.choice((0, 0, -1) if w.opset >= 11 else (0,))), False
    if operator == "Gather":
        one = w.chance.random() < 0.5
        index = w.constant(w.chance.randint(-2, 2), *(() if one else (w.chance.randint(-1, 1),)), scalar=one)
        return w.node("Gather", w.any(scalar=False)[0], index, axis=0), one
    if operator == "Slice" and w.opset >= 10:
        bounds = [w.constant(w.chance.choice((-5, -3, -2, -1, 0, 1, 2, 3, 2**62))) for _ in range(2)]
        more = [w.constant(0), w.constant(w.chance.choice((1, -1, 2, -2)))] if w.chance.random() < 0.7 else []
        return w.node("Slice", w.any(scalar=False)[0], *bounds, *more), False
    if operator == "Unsqueeze":
        return (w.axes("Unsqueeze", value, [0], 13), False) if scalar else (value, False)
    if operator == "Squeeze":
        return (value, True) if scalar else (w.axes("Squeeze", value, [0], 13), True)
    if operator == "Shape" and w.opset >= 15:
        bounds = {name: w.chance.randint(-3, 4) for name in ("start", "end") if w.chance.random() < 0.7}
        return w.node("Shape", "x", **bounds), False
    if operator == "Size":
        return w.node("Size", w.chance.choice(("x", value))), True
    if operator == "Reshape":
        return w.node("Reshape", value, w.constant(-1)), False
    if operator == "Range" and w.opset >= 11:
        ends = [w.constant(w.chance.randint(-2, 4), scalar=True) for _ in range(2)]
        return w.node("Range", *ends, w.constant(w.chance.choice((1, 2, -1)), scalar=True)), False
    if operator in ("ReduceProd", "ReduceSum"):
        return w.node(operator, value, keepdims=0), True
    if operator == "Where":
        same = w.node("Equal", value, value) if w.opset >= 7 else value
        return w.node("Where", same, value, w.constant(number)), False
    if operator == "Tile":
        return (w.node("Tile", value, w.constant(2)), False) if not scalar else (value, True)
    if operator == "Transpose":
        return w.node("Transpose", value), scalar
    if operator == "Clip" and w.opset >= 12:
        return w.node("Clip", value, w.constant(0, scalar=True)), scalar
    return value, scalar
