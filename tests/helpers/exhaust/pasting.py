# SPDX-License-Identifier: Apache-2.0
"""A case as a row, to be pasted into `tests/adapters/<family>.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.parser
import onnx.printer
from fuzz import apart
from onnx import GraphProto, ModelProto, TensorProto, helper

from exhaust.choices import again
from exhaust.judging import Crossing, Verdict, made, stated
from exhaust.making import Made


def pasted(crossing: Crossing, picked: Sequence[int]) -> str:
    """Returns the row of the case of these picks, made in a process of its own; empty if the source is no model."""
    try:
        return apart.call(row_of, crossing, list(picked))
    except apart.Broke as broke:
        return f"# no row: {broke}"


def row_of(crossing: Crossing, picked: Sequence[int]) -> str:
    """Returns the same, in this process; "" if no row holds it: tensors of attributes that have no text form."""
    (case, target), choices = again(picked, lambda choices: made(crossing, choices))
    source = stated(case)
    if isinstance(source, Verdict):
        return ""
    attributes = (attribute for node in source[0].graph.node for attribute in node.attribute)
    if any(attribute.HasField("t") and not _parses(attribute.t) for attribute in attributes):
        return ""
    return row(f"{crossing}: {', '.join(choices.named) or 'the simplest case'}", case, target, source[0])


def row(name: str, case: Made, target: int, model: ModelProto) -> str:
    """Returns the text of a row: of the model, its opsets, the values of its inputs and the options.

    Constants that ONNX's text form cannot hold, of 4 bits or complex, become inputs. A disguise is not in the row but
    above it: rows are run in all of them.
    """
    graph = GraphProto()
    graph.CopyFrom(model.graph)
    unspeakable = [tensor for tensor in graph.initializer if not _parses(tensor)]
    _let(graph, unspeakable)
    given = {value.name: case.feeds[value.name] for value in graph.input}
    lines = [] if case.disguise == "plain" else [f"# in the variant {case.disguise!r}, which --thorough runs"]
    lines += ["# and back"] if case.returns else []
    lines += [f"# constants: {', '.join(tensor.name for tensor in unspeakable)}"] if unspeakable else []
    lines += ["rewrites(", f"    {json.dumps(name)},", f"    {case.opset},", f"    {target},", *_text(graph)]
    if given:
        lines += ["    feeds={", *(f'        "{key}": {_literal(value)},' for key, value in given.items()), "    },"]
    if case.options:
        lines.append(f"    options={json.dumps(dict(case.options))},")
    return "\n".join([*lines, "),"])


def _let(graph: GraphProto, free: Sequence[TensorProto]) -> None:
    """Makes these initializers inputs, and lets the others be none: at IR version 3 a row makes inputs of them."""
    names = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    inputs += [helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in free]
    kept = [tensor for tensor in graph.initializer if tensor not in free]
    del graph.input[:], graph.initializer[:]
    graph.input.extend(inputs)
    graph.initializer.extend(kept)


def _text(graph: GraphProto) -> list[str]:
    """Returns the graph in ONNX's text form, as pieces of one string."""
    for node in graph.node:
        node.ClearField("name")
    graph.name = "g"
    pieces = [line.strip() for line in onnx.printer.to_text(graph).splitlines()]
    pieces[0] = pieces[0].removeprefix("g ")
    quoted = [json.dumps(piece, ensure_ascii=False) for piece in [*(f"{piece} " for piece in pieces[:-1]), pieces[-1]]]
    return [f"    {piece}" for piece in quoted[:-1]] + [f"    {quoted[-1]},"]


def _parses(tensor: TensorProto) -> bool:
    """Tells whether ONNX's text form can say what a tensor holds."""
    graph = GraphProto(name="g", initializer=[tensor])
    try:
        onnx.parser.parse_graph(onnx.printer.to_text(graph))
    except onnx.parser.ParseError:
        return False
    return True


def _literal(value: Any) -> str:
    """Returns an array as an expression; where it has no elements, the lists would not tell its shape."""
    array = np.asarray(value)
    return f"np.zeros({array.shape})" if not array.size else _listed(array.tolist())


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_listed, value))}]"
    if isinstance(value, complex):
        return f"complex({_listed(value.real)}, {_listed(value.imag)})"
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if np.isnan(value) else f"{'-' if value < 0 else ''}np.inf"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
