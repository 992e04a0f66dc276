# SPDX-License-Identifier: Apache-2.0
"""One case in the making: a node of an operator at an opset, with inputs and attributes as its schema has them.

Inputs are filled in order. What a domain does not say comes from the schema: dtypes by type variable, attributes from
`attributes.VALUES`, or present and absent with the values that their type and default suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from exhaust import values
from exhaust.attributes import TAME, VALUES
from exhaust.choices import Choices, Outside

Shape = tuple[int, ...]
RANKS = (2, 1, 3, 0)
SIZES = (2, 3, 1, 0)


PERMISSIONS: Sequence[Mapping[str, Any]] = ({}, {"types": "cast", "allow": ["conditional"], "expand": "all"})


@dataclass
class Made:
    """A case: nodes of which one is under trial, values of the inputs, which of them are initializers."""

    opset: int
    domain: str
    nodes: list[NodeProto]
    feeds: dict[str, Any]
    constants: set[str]
    outputs: list[str]
    disguise: str = "plain"
    loose: bool = False  # whether only dtypes and shapes are compared
    returns: bool = False  # whether it is carried back, too
    options: Mapping[str, Any] = field(default_factory=dict)  # of `convert`
    conditional: bool = False  # whether a conversion stated a condition, which may not hold: no elements are compared

    def model(self, types: dict[str, onnx.TypeProto]) -> ModelProto:
        """Returns the model at the IR version of its opset, with these types of its outputs."""
        imports = [helper.make_opsetid("", self.opset if not self.domain else onnx.defs.onnx_opset_version())]
        ir_version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, self.opset))
        graph = GraphProto(name="g")
        graph.node.extend(self.nodes)
        for name, array in self.feeds.items():
            if name in self.constants:
                graph.initializer.append(numpy_helper.from_array(array, name))
            if name not in self.constants or ir_version < 4:
                elem = (
                    onnx.TensorProto.STRING
                    if array.dtype.kind in "OU"
                    else helper.np_dtype_to_tensor_dtype(array.dtype)
                )
                graph.input.append(helper.make_tensor_value_info(name, elem, array.shape))
        for name in self.outputs:
            graph.output.append(ValueInfoProto(name=name, type=types.get(name)))
        return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)

    @property
    def free(self) -> dict[str, Any]:
        """The values that a caller gives."""
        return {name: value for name, value in self.feeds.items() if name not in self.constants}


class Making:
    """What a domain writes on."""

    def __init__(self, operator: str, domain: str, opset: int, choices: Choices) -> None:
        self.operator = operator
        self.domain = domain
        self.opset = opset
        self.choices = choices
        self.pick = choices.pick
        self.schema = onnx.defs.get_schema(operator, opset, domain)
        self.outputs = self.schema.min_output
        self.rank = 0  # of the first input
        self.first: Shape = ()
        self.loose = False
        self.tame = operator in TAME
        self.feeds: dict[str, Any] = {}
        self.constants: set[str] = set()
        self.bound: dict[str, str] = {}
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []
        self.last: list[str] = []
        self.untouched: set[str] = set()  # attributes that stay absent
        self._inputs: list[str] = []
        self._attributes: dict[str, Any] = {}
        self._kind = ""

    # ---- picks

    def flag(self, name: str, *, rare: bool = False) -> bool:
        """Returns whether something is so; simpler is that it is not."""
        return self.pick(name, [False, True], rare=rare)

    def shape(self, least: int = 0, most: int = 3, sizes: Sequence[int] = SIZES, name: str = "size") -> Shape:
        """Returns sizes for one of the ranks."""
        rank = self.pick("rank", [r for r in (*RANKS, *range(4, most + 1)) if least <= r <= most])
        return tuple(self.pick(name, sizes) for _ in range(rank))

    def sizes(self, count: int, sizes: Sequence[int] = SIZES) -> Shape:
        """Returns so many sizes."""
        return tuple(self.pick("size", sizes) for _ in range(count))

    def stretching(self, shape: Shape, *, larger: bool = True) -> Shape:
        """Returns a shape that broadcasts with this one: the same, a part of it, ones, or one that is larger."""
        way = self.pick("stretches", ["not", "ones", "drop", "drop ones", *(["larger"] if larger else [])])
        kept = shape[self.pick("dropped", range(1, len(shape) + 1)) :] if "drop" in way and shape else shape
        if "ones" in way:
            kept = tuple(self.pick("stretched", [1, size]) for size in kept)
        return (self.pick("size", SIZES), *(size if size != 1 else 3 for size in kept)) if way == "larger" else kept

    def has(self, name: str) -> bool:
        """Tells whether the operator has an attribute of this name at this opset."""
        return name in self.schema.attributes

    def takes(self, name: str) -> bool:
        """Tells whether the operator has an input of this name at this opset."""
        return any(formal.name == name for formal in self.schema.inputs)

    # ---- inputs

    def dtypes(self, position: int) -> list[str]:
        """Returns the dtypes that an input takes, the simpler ones first; the one that its variable is bound to."""
        formal = self._formal(position)
        if formal.type_str in self.bound:
            return [self.bound[formal.type_str]]
        constraints = {one.type_param_str: one.allowed_type_strs for one in self.schema.type_constraints}
        allowed = [t for t in constraints.get(formal.type_str, [formal.type_str]) if t.startswith("tensor(")]
        names = sorted(name.removeprefix("tensor(").removesuffix(")") for name in allowed)
        return [n for n in values.FIRSTS if n in names] + [n for n in names if n not in values.FIRSTS]

    def _formal(self, position: int) -> onnx.defs.OpSchema.FormalParameter:
        formals = self.schema.inputs
        if not formals or (position >= len(formals) and not _is_variadic(formals[-1])):
            raise Outside
        return formals[min(position, len(formals) - 1)]

    def tensor(
        self, shape: Shape | None = None, *, dtype: str | Sequence[str] = "", elements: Any = None, constant: Any = None
    ) -> np.ndarray:
        """Fills the next input, with elements of the kind of this case or with these, and returns them.

        `constant`: True, False, or None if a choice says whether it is an initializer.
        """
        position = len(self._inputs)
        allowed = self.dtypes(position)
        if dtype:
            wanted = [dtype] if isinstance(dtype, str) else dtype
            allowed = [one for one in wanted if one in allowed]
        chosen = self.pick(f"dtype {self._formal(position).type_str}", allowed, rare=True)
        self._bind(position, chosen)
        if elements is not None:
            with np.errstate(all="ignore"):
                array = np.asarray(elements).astype(values.numpy_dtype(chosen))
        else:
            if not self._kind:
                self._kind = self.pick("elements", values.KINDS, rare=True)
            kind = self._kind
            if self.tame and kind in (values.EXTREME, values.LONG) and "float" in numpy_name(chosen):
                kind = values.PLAIN
            array = values.array(chosen, shape or (), kind, f"x{position}")
            same = [n for n, other in self.feeds.items() if other.dtype == array.dtype and other.shape == array.shape]
            if same and n_free(same, self.constants) and self.flag("the same value twice", rare=True):
                self._inputs.append(n_free(same, self.constants))
                return self.feeds[self._inputs[-1]]
            constant = self.flag("constant", rare=True) if constant is None else constant
        name = f"x{position}"
        self.feeds[name] = array
        if constant or (
            elements is not None and constant is None and self.pick("given", ["constant", "computed"]) == "constant"
        ):
            self.constants.add(name)
        if not position:
            self.rank, self.first = array.ndim, array.shape
        self._inputs.append(name)
        return array

    def _bind(self, position: int, dtype: str) -> None:
        formal = self._formal(position)
        variables = {one.type_param_str for one in self.schema.type_constraints}
        if formal.type_str in variables and formal.is_homogeneous:
            self.bound[formal.type_str] = dtype

    def value(self, name: str) -> None:
        """Fills the next input with a value that a node before makes, or that is a feed already."""
        self._inputs.append(name)

    def omit(self) -> None:
        """Leaves the next input out."""
        self._inputs.append("")

    def present(self, name: str) -> bool:
        """Returns whether the next input, optional, is there; if not, it is left out."""
        if len(self._inputs) >= self.schema.max_input:
            return False
        there = self.flag(name)
        if not there:
            self.omit()
        return there

    # ---- attributes

    def set(self, name: str, value: Any) -> None:
        """Gives an attribute a value, if the operator has it."""
        if self.has(name):
            self._attributes[name] = value

    @property
    def given(self) -> Mapping[str, Any]:
        """The attributes that have a value."""
        return self._attributes

    def leave(self, *names: str) -> None:
        """Lets attributes be absent."""
        self.untouched |= set(names)

    def setting(self, name: str, elements: Any, dtype: str | Sequence[str] = "") -> None:
        """An attribute, or the input that took its place: the next one that is to be filled."""
        if self.has(name):
            self.set(name, elements)
        elif self.takes(name):
            position = [formal.name for formal in self.schema.inputs].index(name)
            while len(self._inputs) < position:
                self.omit()
            self.tensor(elements=elements, dtype=dtype)

    def axes_of(self, rank: int, name: str = "axis") -> list[int]:
        """Returns all axes of a rank, also counted from the end where this opset promises that."""
        return [*range(rank), *(range(-1, -rank - 1, -1) if self._counts_backwards(name) else ())]

    def axis(self, rank: int | None = None, name: str = "axis") -> int:
        """Returns one of the axes."""
        return self.pick(name, self.axes_of(self.rank if rank is None else rank, name))

    def some_axes(self, rank: int, name: str = "axes", *, least: int = 0) -> list[int]:
        """Returns distinct axes, in order or not, perhaps counted from the end."""
        chosen = [axis for axis in range(rank) if self.flag(f"{name} has one")]
        if len(chosen) < least:
            raise Outside
        if len(chosen) > 1 and self.flag("out of order"):
            chosen.reverse()
        back = self._counts_backwards(name) and chosen and self.flag(f"{name} from the end")
        return [axis - rank for axis in chosen] if back else chosen

    def _counts_backwards(self, name: str) -> bool:
        if self.operator == "LpNormalization":
            return False
        text = self.schema.attributes[name].description if self.has(name) else ""
        return self.opset >= 11 or "egative" in text or "[-" in text or not text

    def _rest(self) -> None:
        """Decides about the attributes that the domain does not speak of."""
        for name, attribute in self.schema.attributes.items():
            if name == "consumed_inputs":  # a hint about memory
                if attribute.required:
                    self._attributes[name] = [0] * len(self._inputs)
                continue
            if name in self._attributes or name in self.untouched:
                continue
            options = self._options(name, attribute)
            absent: list[Any] = [] if attribute.required else [None]
            value = self.pick(name, [*absent, *options])
            if value is not None:
                self._attributes[name] = value

    def _options(self, name: str, attribute: onnx.defs.OpSchema.Attribute) -> Sequence[Any]:
        for key in (f"{self.operator}.{name}", name):
            if key in VALUES:
                return [one for one in VALUES[key] if self._is_made(name, one)]
        if name == "axis":
            return self.axes_of(self.rank)
        default = attribute.default_value
        if default.type == AttributeProto.INT and default.i in (0, 1):
            return (0, 1)
        raise LookupError(f"nothing says which values {self.operator}.{name} may have")

    def _is_made(self, name: str, value: Any) -> bool:
        """Tells whether an attribute that names a dtype names one that the operator makes."""
        if name not in ("dtype", "to", "output_dtype", "output_datatype") or not value:
            return True
        spelled = f"tensor({onnx.TensorProto.DataType.Name(value).lower()})"
        return any(spelled in formal.types for formal in self.schema.outputs)

    # ---- the end

    def finish(self, disguises: Sequence[str]) -> Made:
        """Returns the case."""
        self._rest()
        inputs = list(self._inputs)
        counted = self.operator == "SplitToSequence"  # onnx's inference takes an empty name for an input that is there
        if inputs and not inputs[-1] and (counted or not self.flag("empty names at the end", rare=True)):
            while inputs and not inputs[-1]:
                inputs.pop()
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, inputs, outputs, "node", domain=self.domain)
        for key, value in self._attributes.items():
            kind = int(self.schema.attributes[key].type.value)
            given = float(value) if kind == AttributeProto.FLOAT else value
            node.attribute.append(helper.make_attribute(key, given, attr_type=kind))
        disguise = self.pick("disguise", disguises, rare=True)
        returns = self.flag("and back", rare=True)
        options = self.pick("options", PERMISSIONS, rare=True)
        nodes = [*self.before, node, *self.after]
        seen = self.last or outputs
        return Made(
            self.opset, self.domain, nodes, self.feeds, self.constants, seen, disguise, self.loose, returns, options
        )


def numpy_name(dtype: str) -> str:
    """Returns a dtype as numpy spells it."""
    return values.numpy_dtype(dtype).name


def n_free(names: Iterable[str], constants: set[str]) -> str:
    """Returns the first of these that is no initializer."""
    return next((name for name in names if name not in constants), "")


def _is_variadic(formal: onnx.defs.OpSchema.FormalParameter) -> bool:
    return formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic


Domain = Callable[[Making], None]
