# SPDX-License-Identifier: Apache-2.0
"""A graph that grows node by node. Each node is checked and run by itself at once, so every value is known as an array:
the next node can be made to fit, and any node can later be cut out and given its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from fuzz import apart
from oracle import evaluate, random_array, validate

OpSchema = onnx.defs.OpSchema
Shape = tuple[int, ...]

# How often a dtype is drawn, compared with others that the schema allows. What is not listed is never drawn.
WEIGHTS = {
    "float": 40,
    "int64": 10,
    "float16": 6,
    "double": 5,
    "int32": 5,
    "bool": 4,
    "uint8": 3,
    "int8": 3,
    "bfloat16": 20,
    "uint32": 1,
    "uint64": 1,
    "int16": 1,
    "uint16": 1,
    "string": 1,
}
TAME = 1e4  # a value beyond this, or one that is not finite, is an output but never an input


Message = TypeVar("Message", ModelProto, GraphProto, NodeProto, ValueInfoProto)


class Unfit(Exception):
    """No node could be made of this operator here; says nothing about the converter."""


def elem_type(dtype: str) -> int:
    """The number of a dtype as a schema spells it, without `tensor()`."""
    return int(TensorProto.DataType.Value(dtype.upper()))


def dtype_of(array: np.ndarray) -> str:
    """The dtype of an array as a schema spells it, without `tensor()`."""
    number = TensorProto.STRING if array.dtype.kind in "OUT" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return str(TensorProto.DataType.Name(number).lower())


def value_info(name: str, array: np.ndarray) -> ValueInfoProto:
    """Returns the type of a value, all sizes known."""
    return helper.make_tensor_value_info(name, elem_type(dtype_of(array)), array.shape)


def copied(message: Message) -> Message:
    """Returns the same message again, free of whatever holds it."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


@dataclass
class Growth:
    """The nodes so far, and the array of every value. What no node makes is an input, or an initializer."""

    opset: int
    random: Random
    exotic: bool = False  # whether bfloat16 is drawn: onnxruntime runs no such model
    nodes: list[NodeProto] = field(default_factory=list)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)

    def draw_array(self, dtype: str, shape: Shape) -> np.ndarray:
        """Returns tame random values."""
        generator = np.random.default_rng(self.random.getrandbits(32))
        return random_array(generator, helper.tensor_dtype_to_np_dtype(elem_type(dtype)), shape)

    def draw_shape(self, rank: int | None = None) -> Shape:
        """Returns small sizes, now and then 1 or 0."""
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5]) if rank is None else rank
        return tuple(self.random.choices([0, 1, 2, 3, 4, 5], [1, 6, 12, 12, 8, 4], k=rank))

    def add(self, array: np.ndarray, *, constant: bool) -> str:
        """A new input or initializer."""
        name = f"{'c' if constant else 'x'}{len(self.values)}"
        self.values[name] = array
        if constant:
            self.constants.add(name)
        return name

    def try_node(self, operator: str, recipe: Callable[[Step], None]) -> None:
        """Adds a node; raises Unfit, or whatever the checker and the evaluators raise, and then nothing is added."""
        schema = onnx.defs.get_schema(operator, self.opset, "")
        kept, constants = dict(self.values), set(self.constants)
        try:
            step = Step(self, schema)
            recipe(step)
            node = step.node(f"{operator}_{len(self.nodes)}")
            results = run_alone(node, self.values, self.constants, self.opset)
            if any("float" in array.dtype.name and np.any(np.isnan(array)) for array in results.values()):
                raise Unfit  # outside of what the operator is defined for
        except BaseException:
            self.values, self.constants = kept, constants
            raise
        self.values |= results
        self.nodes.append(node)

    def model(self) -> tuple[ModelProto, dict[str, np.ndarray]]:
        """The model, and a value for every input. Its outputs are all values that nobody reads, and some others."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output if name]
        outputs = [name for name in made if name not in read or self.random.random() < 0.1]
        return assemble(self.nodes, self.values, self.constants, outputs, self.opset)


def run_alone(
    node: NodeProto, values: Mapping[str, np.ndarray], constants: Iterable[str], opset: int
) -> dict[str, np.ndarray]:
    """Returns what one node makes of known values; raises if it is not legal, or if no evaluator runs it."""
    outputs = [name for name in node.output if name]
    empty = {name: np.zeros((), np.float32) for name in outputs}
    model, feeds = assemble([node], {**values, **empty}, set(constants), outputs, opset)
    for output in model.graph.output:
        output.Clear()
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    known = {v.name: v.type for v in inferred.graph.output if v.HasField("type")}
    for output, name in zip(model.graph.output, outputs, strict=True):
        output.name = name
        if name in known:
            output.type.CopyFrom(known[name])
    results = apart.call(evaluate, model, feeds).values
    arrays = {name: np.asarray(value) for name, value in zip(outputs, results, strict=True)}
    whole, _ = assemble([node], {**values, **arrays}, set(constants), outputs, opset)
    validate(whole)
    return arrays


def assemble(
    nodes: Iterable[NodeProto],
    values: Mapping[str, np.ndarray],
    constants: Iterable[str],
    outputs: Iterable[str],
    opset: int,
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Returns a model of nodes in order, at the IR version of the opset, and a value for every input that it needs."""
    nodes = list(nodes)
    made = {name for node in nodes for name in node.output}
    needed = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
    free = [name for name in needed if name not in constants]
    fixed = [name for name in needed if name in constants]
    imports = [helper.make_opsetid("", opset)]
    ir_version = helper.find_min_ir_version_for(imports)
    graph = helper.make_graph(
        nodes,
        "fuzz",
        [value_info(name, values[name]) for name in (*free, *(fixed if ir_version < 4 else ()))],
        [value_info(name, values[name]) for name in outputs],
        [numpy_helper.from_array(values[name], name) for name in fixed],
    )
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version), {n: values[n] for n in free}


# ---- one node in the making


class Step:
    """What a recipe writes on. Inputs and attributes go by the names of the schema; one that this opset does not have
    is passed over, one that moved from the attributes to the inputs goes where it belongs."""

    def __init__(self, growth: Growth, schema: OpSchema) -> None:
        self.growth = growth
        self.schema = schema
        self.random = growth.random
        self.opset = growth.opset
        self.outputs = schema.min_output
        self._inputs: list[str] = []
        self._attributes: dict[str, Any] = {}
        self._bound: dict[str, str] = {}

    def node(self, name: str) -> NodeProto:
        """Returns the node that was written."""
        inputs = list(self._inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        outputs = [f"v{len(self.growth.values)}_{i}" for i in range(self.outputs)]
        node = helper.make_node(self.schema.name, inputs, outputs, name)
        for key, value in self._attributes.items():
            kind = int(self.schema.attributes[key].type.value)
            node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        return node

    def chance(self, probability: float = 0.5) -> bool:
        """True now and then."""
        return self.random.random() < probability

    def has(self, name: str) -> bool:
        """Tells whether the operator has an attribute of this name at this opset."""
        return name in self.schema.attributes

    def takes(self, name: str) -> bool:
        """Tells whether the operator has an input of this name at this opset."""
        return any(formal.name == name for formal in self.schema.inputs)

    # ---- inputs

    def input(
        self,
        shape: Shape | None = None,
        *,
        rank: int | None = None,
        least: int = 0,
        dtype: str | None = None,
        fits: Callable[[np.ndarray], bool] = lambda _: True,
        fresh: Callable[[np.ndarray], np.ndarray] = lambda array: array,
    ) -> np.ndarray:
        """Fills the next input with a value that exists and fits, or with a new one; returns its array.

        A new array is of the given shape, or of the given rank, or of at least rank `least`; `fresh` makes it fit.
        """
        position = len(self._inputs)
        allowed = [dtype] if dtype else self._dtypes(position)

        def suits(array: np.ndarray) -> bool:
            return (
                dtype_of(array) in allowed
                and (shape is None or array.shape == shape)
                and array.ndim >= least
                and rank in (None, array.ndim)
                and is_tame(array)
                and fits(array)
            )

        known = [name for name, array in self.growth.values.items() if suits(array)]
        if known and self.chance(0.75):
            name = self.random.choice(known[-6:])
        else:
            chosen = self.random.choices(allowed, [WEIGHTS[d] for d in allowed])[0]
            if shape is None:
                shape = self.growth.draw_shape(rank)
                shape += self.growth.draw_shape(max(0, least - len(shape)))
            array = fresh(self.growth.draw_array(chosen, shape))
            if not fits(array):
                raise Unfit
            name = self.growth.add(array, constant=self.chance(0.3))
        return self._put(position, name)

    def give(self, array: Any, dtype: str | None = None) -> None:
        """Fills the next input with a value that is more often a constant than not."""
        position = len(self._inputs)
        allowed = [dtype] if dtype else self._dtypes(position)
        chosen = "int64" if "int64" in allowed and self.chance(0.8) else self.random.choice(allowed)
        given = np.asarray(array).astype(helper.tensor_dtype_to_np_dtype(elem_type(chosen)))
        self._put(position, self.growth.add(given, constant=self.chance(0.7)))

    def omit(self) -> None:
        """Leaves the next input out."""
        self._inputs.append("")

    def again(self) -> None:
        """Fills the next input with the value of the one before."""
        self._put(len(self._inputs), self._inputs[-1])

    def _put(self, position: int, name: str) -> np.ndarray:
        array = self.growth.values[name]
        formal = self._formal(position)
        variables = {constraint.type_param_str for constraint in self.schema.type_constraints}
        if formal.type_str in variables and formal.is_homogeneous:
            self._bound[formal.type_str] = dtype_of(array)
        self._inputs.append(name)
        return array

    def _formal(self, position: int) -> OpSchema.FormalParameter:
        formals = self.schema.inputs
        if position >= len(formals) and (not formals or not _is_variadic(formals[-1])):
            raise Unfit
        return formals[min(position, len(formals) - 1)]

    def _dtypes(self, position: int) -> list[str]:
        formal = self._formal(position)
        if bound := self._bound.get(formal.type_str):
            return [bound]
        drawn = [d for d in WEIGHTS if d != "bfloat16" or self.growth.exotic]
        allowed = sorted(d for d in drawn if f"tensor({d})" in formal.types)
        if not allowed:
            raise Unfit
        return allowed

    # ---- attributes

    def set(self, name: str, value: Any) -> None:
        """Gives an attribute a value, if the operator has it."""
        if self.has(name):
            self._attributes[name] = value

    def maybe(self, name: str, values: Iterable[Any]) -> None:
        """One of some values, or none at all."""
        if self.has(name) and (self.chance() or self.schema.attributes[name].required):
            self.set(name, self.random.choice(list(values)))

    def setting(self, name: str, value: Any, dtype: str | None = None) -> None:
        """An attribute, or the input that took its place: the next one that is to be filled."""
        if self.has(name):
            self.set(name, value)
        elif self.takes(name):
            position = [formal.name for formal in self.schema.inputs].index(name)
            while len(self._inputs) < position:
                self.omit()
            self.give(value, dtype)

    # ---- axes

    def axis(self, rank: int, name: str = "axis", *, least: int = 0) -> int:
        """Returns an axis, perhaps counted from the end where this opset promises that."""
        if rank <= least:
            raise Unfit
        axis = self.random.randrange(least, rank)
        return axis - rank if self._counts_backwards(name) and self.chance(0.4) else axis

    def axes(self, rank: int, count: int | None = None) -> list[int]:
        """Returns distinct axes in some order."""
        count = self.random.randint(0, rank) if count is None else count
        chosen = self.random.sample(range(rank), min(count, rank))
        chosen = sorted(chosen) if self.chance(0.7) else chosen
        return [a - rank if self._counts_backwards("axes") and self.chance(0.3) else a for a in chosen]

    def _counts_backwards(self, name: str) -> bool:
        if self.schema.name == "LpNormalization":
            return False  # it knows -1 alone, whatever the opset
        return self.opset >= 11 or (self.has(name) and "egative" in self.schema.attributes[name].description)


def is_tame(array: np.ndarray) -> bool:
    """Tells whether a value may go into further nodes: numbers without edges, where evaluators agree."""
    if "float" not in array.dtype.name:
        return array.size < 2000
    wide = array.astype(np.float64)
    return array.size < 2000 and bool(np.all(np.isfinite(wide)) and np.all(np.abs(wide) < TAME))


def _is_variadic(formal: OpSchema.FormalParameter) -> bool:
    return formal.option == OpSchema.FormalParameterOption.Variadic
