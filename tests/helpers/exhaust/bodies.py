# SPDX-License-Identifier: Apache-2.0
"""Domains of operators with graphs as attributes, of sequences and optionals, of constants, and of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import helper

from exhaust import values
from exhaust.choices import Outside
from exhaust.making import Domain, Making

TYPED = "float int64 double int32 float16 bool".split()


def graph(text: str) -> onnx.GraphProto:
    """Returns a body from ONNX's text form."""
    return onnx.parser.parse_graph(text)


def if_(m: Making) -> None:
    m.tensor(m.pick("condition", [(), (1,)]))
    m.set("then_branch", graph("t () => (float[2] a) { a = Constant<value = float[2] {1, 2}>() }"))
    longer = m.pick("other branch", ["2", "3", "1, 2"])
    made = "4, 5, 6" if longer == "3" else "4, 5"
    m.set("else_branch", graph(f"e () => (float[{longer}] b) {{ b = Constant<value = float[{longer}] {{{made}}}>() }}"))


def loop(m: Making) -> None:
    """A number of times, or a condition, or both: without any it would never end."""
    counted = m.pick("M", [True, False])
    if counted:
        times = m.pick("times", [2, 0, 3, 1])
        m.tensor(elements=[times] if m.flag("vector") else np.array(times), dtype="int64")
    else:
        m.omit()
    if not counted or m.flag("cond"):
        m.tensor(elements=np.array(counted and m.pick("cond is", [True, False])), dtype="bool")
    else:
        m.omit()
    m._inputs.append("v")
    shape = m.shape(0, 2)
    m.feeds["v"] = values.array("float", shape, "plain", "v")
    scan = m.flag("scan output")
    dims = ", ".join(map(str, shape))
    more, node = (f", float[{dims}] s", " s = Neg(w)") if scan else ("", "")
    kind = f"float[{dims}]" if shape else "float"
    more = more.replace("float[]", "float")
    m.set(
        "body",
        graph(f"b (int64 i, bool c, {kind} u) => (bool d, {kind} w{more}) {{ d = Identity(c) w = Add(u, u){node} }}"),
    )
    m.outputs = 1 + scan


def scan(m: Making) -> None:
    length, width = m.pick("length", (3, 1, 2)), m.pick("width", (2, 1))
    batch = (m.pick("batch", (1, 2)),) if m.opset < 9 else ()
    if m.opset < 9 and m.present("sequence_lens"):
        m._inputs.append("lens")
        m.feeds["lens"] = np.array([m.pick("length of", range(length, 0, -1)) for _ in range(batch[0])], np.int64)
    state = m.flag("state")
    m.leave("directions", "scan_input_axes", "scan_output_axes", "scan_output_directions", "scan_input_directions")
    m.set("num_scan_inputs", 1)
    across = m.opset >= 9 and m.flag("axis 1")
    if across:
        m.set("scan_input_axes", [m.pick("axis", [1, *([-1] if m.opset >= 11 else [])])])
    if m.opset >= 9 and m.flag("output axis"):
        m.set("scan_output_axes", [m.pick("output axis is", [1, 0, *([-1] if m.opset >= 11 else [])])])
    for name in ("directions", "scan_input_directions", "scan_output_directions"):
        if m.has(name) and m.flag(name):
            m.set(name, [m.pick(f"{name} is", [1, 0])])
    if state:
        m._inputs.append("h")
        m.feeds["h"] = values.array("float", (*batch, width), "plain", "h")
    m._inputs.append("v")
    m.feeds["v"] = values.array("float", (*batch, *((width, length) if across else (length, width))), "plain", "v")
    if state:
        kind = f"float[{width}]"
        body = f"b ({kind} s, {kind} u) => ({kind} t, {kind} w) {{ t = Add(s, u) w = Neg(t) }}"
    else:
        body = f"b (float[{width}] u) => (float[{width}] w) {{ w = Neg(u) }}"
    m.set("body", graph(body))
    m.outputs = 1 + state


def sequence_map(m: Making) -> None:
    _sequence(m, m.pick("count", [2, 1, 3]), (2,), "float")
    m.set("body", graph("b (float[2] u) => (float[2] w) { w = Neg(u) }"))
    m.after.append(helper.make_node("ConcatFromSequence", ["y0"], ["z"], axis=0))
    m.last = ["z"]


def _sequence(m: Making, count: int, shape: tuple[int, ...], dtype: str) -> str:
    """Fills the next input with a sequence of tensors."""
    names = [f"e{i}" for i in range(count)]
    for name in names:
        m.feeds[name] = values.array(dtype, shape, "plain", name)
    if count:
        m.before.append(helper.make_node("SequenceConstruct", names, ["s"]))
    else:
        m.before.append(helper.make_node("SequenceEmpty", [], ["s"], dtype=values.elem_type(dtype)))
    m._inputs.append("s")
    return "s"


def _position(m: Making, count: int, *, end: bool = False) -> None:
    if not count + end:
        raise Outside
    kind = m.pick("position dtype", ["int64", "int32"])
    last = count - 1 + end
    m.tensor(elements=np.array(m.pick("position", sorted({0, last, -count, -1 if count else 0}))), dtype=kind)


def sequence(m: Making) -> None:
    """A sequence of tensors of one shape, what the operator makes of it, and what can be seen of that."""
    dtype, shape, count = m.pick("dtype", TYPED), m.shape(0, 2), m.pick("count", [2, 1, 3, 0])
    if m.operator == "SequenceConstruct":
        m.before.clear()
        for i in range(max(count, 1)):
            m.feeds[f"e{i}"] = values.array(dtype, shape, "plain", f"e{i}")
            m._inputs.append(f"e{i}")
        count = max(count, 1)
    elif m.operator == "SequenceEmpty":
        m.leave("dtype")
        if m.flag("dtype stated"):
            m.set("dtype", values.elem_type(dtype))
        m.after.append(helper.make_node("SequenceLength", ["y0"], ["z"]))
        m.last = ["z"]
        return
    else:
        _sequence(m, count, shape, dtype)
    if m.operator == "SequenceAt":
        _position(m, count)
        return
    if m.operator == "SequenceLength":
        return
    if m.operator == "ConcatFromSequence":
        new = m.pick("new_axis", [0, 1])
        m.set("new_axis", new)
        rank = len(shape) + new
        if not rank or not count:
            raise Outside
        m.set("axis", m.pick("axis", [*range(rank), *range(-rank, 0)]))
        return
    if m.operator == "SequenceInsert":
        m._inputs.append("more")
        m.feeds["more"] = values.array(dtype, shape, "plain", "more")
        if m.present("position"):
            _position(m, count, end=True)
        count += 1
    if m.operator == "SequenceErase":
        if not count:
            raise Outside
        if m.present("position"):
            _position(m, count)
        count -= 1
    if count:
        m.feeds["at"] = np.array(0)
        m.constants.add("at")
        m.after.append(helper.make_node("SequenceAt", ["y0", "at"], ["z"]))
    else:
        m.after.append(helper.make_node("SequenceLength", ["y0"], ["z"]))
    m.last = ["z"]


def split_to_sequence(m: Making) -> None:
    x = m.tensor(m.shape(1), constant=False)
    axis = m.pick("axis", [0, *(a for a in m.axes_of(x.ndim) if a)])
    m.set("axis", axis)
    total = x.shape[axis]
    if m.present("split"):
        if m.flag("parts"):
            first = m.pick("first", range(total + 1))
            m.tensor(elements=np.array([first, total - first]), dtype="int64")
        else:
            m.tensor(elements=np.array(m.pick("chunk", [1, 2, 3])), dtype="int64")
    m.feeds["at"] = np.array(m.pick("at", [0, -1]))
    m.constants.add("at")
    m.after.append(helper.make_node("SequenceAt", ["y0", "at"], ["z"]))
    m.last = ["z"]


def optional(m: Making) -> None:
    """A tensor in an optional, and out of it again."""
    shape = m.shape(0, 2)
    dtype = m.pick("dtype", TYPED)
    m.feeds["e"] = values.array(dtype, shape, "plain", "e")
    m.leave("type")
    if m.operator == "Optional":
        m._inputs.append("e")
        m.after.append(helper.make_node(m.pick("seen", ["OptionalGetElement", "OptionalHasElement"]), ["y0"], ["z"]))
        m.last = ["z"]
        return
    bare = m.opset >= 18 and m.flag("no optional")
    if m.operator == "OptionalHasElement" and m.opset >= 18 and m.flag("nothing"):
        m.feeds.clear()
        return
    if not bare:
        m.before.append(helper.make_node("Optional", ["e"], ["o"]))
    m._inputs.append("e" if bare else "o")


def constant(m: Making) -> None:
    options: dict[str, Any] = {
        "value": onnx.numpy_helper.from_array(np.array([1.5], np.float32)),
        "value_float": 1.5,
        "value_int": 3,
        "value_ints": [1, 2],
        "value_floats": [0.5],
        "value_string": "ä",
        "value_strings": ["a", ""],
        "sparse_value": helper.make_sparse_tensor(
            helper.make_tensor("v", 1, [2], [1.0, -2.0]), helper.make_tensor("i", 7, [2], [0, 3]), [5]
        ),
    }
    m.leave(*m.schema.attributes)
    name = m.pick("attribute", [name for name in options if m.has(name)])
    m.set(name, options[name])
    if name == "value":
        dtype = m.pick("dtype", [one[7:-1] for one in m.schema.outputs[0].types])
        kind, shape = m.pick("elements", values.KINDS), m.shape(0, 2)
        m.set(name, onnx.numpy_helper.from_array(values.array(dtype, shape, kind, "v"), "v"))


def identity(m: Making) -> None:
    """Of a tensor; from 14 on of a sequence, from 16 on of an optional."""
    way = m.pick("of", ["tensor", *(["sequence"] if m.opset >= 14 else []), *(["optional"] if m.opset >= 16 else [])])
    if way == "tensor":
        m.tensor(m.shape())
        return
    m.feeds["e"] = values.array("float", m.shape(0, 2), "plain", "e")
    if way == "optional":
        m.before.append(helper.make_node("Optional", ["e"], ["s"]))
        m.after.append(helper.make_node("OptionalGetElement", ["y0"], ["z"]))
    else:
        m.before.append(helper.make_node("SequenceConstruct", ["e"], ["s"]))
        m.feeds["at"] = np.array(0)
        m.constants.add("at")
        m.after.append(helper.make_node("SequenceAt", ["y0", "at"], ["z"]))
    m._inputs.append("s")
    m.last = ["z"]


DOMAINS: dict[str, Domain] = {
    "If": if_,
    "Loop": loop,
    "Scan": scan,
    "SequenceMap": sequence_map,
    **dict.fromkeys(
        "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength"
        " ConcatFromSequence".split(),
        sequence,
    ),
    "SplitToSequence": split_to_sequence,
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), optional),
    "Constant": constant,
    "Identity": identity,
}
