# SPDX-License-Identifier: Apache-2.0
"""Checks the attributes of one node against the schema at its opset: their types, and values that no text allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onnx import AttributeProto, TensorProto

from onnx_convert.model import tensor_validation
from onnx_convert.model.attributes import KIND_NUMBERS, attribute_value, field_of, holds_value
from onnx_convert.spec import opsets
from onnx_convert.validation import forests, words

if TYPE_CHECKING:
    from onnx import NodeProto

_INT, _INTS, _STRING, _STRINGS = (
    AttributeProto.INT,
    AttributeProto.INTS,
    AttributeProto.STRING,
    AttributeProto.STRINGS,
)


_OF_ALL: Final = {"name", "doc_string", "type", "ref_attr_name"}


def fault(node: NodeProto, opset: int, domain: str) -> str:
    """Returns what is wrong with the attributes of a node, "" if nothing is. Attributes that the schema does not have,
    or demands, are for the stamp to tell."""
    formals = opsets.attributes_of(node.op_type, opset, domain)
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        if not isinstance(name, str) or not isinstance(attribute.ref_attr_name, str):
            return f"the name of attribute {name!r} is not UTF-8"
        if name in seen:
            return f"it has attribute {name} twice"
        seen.add(name)
        if attribute.ref_attr_name or name not in formals:
            continue
        wanted = KIND_NUMBERS.get(formals[name].type, 0)
        kind = attribute.type or _untyped(attribute, wanted)
        if not kind:
            return f"attribute {name} has no type"
        strange = {field.name for field, _ in attribute.ListFields()} - _OF_ALL - {field_of(kind)}
        if strange and attribute.type:
            return f"attribute {name} holds {', '.join(sorted(strange))} besides its value"
        if kind != wanted:
            given, right = (AttributeProto.AttributeType.Name(number) for number in (kind, wanted))
            return f"attribute {name} is of type {given} where opset {opset} has {right}"
        if found := _value_fault(node.op_type, attribute, kind, domain):
            return found
    given_values = {a.name: a for a in node.attribute if not a.ref_attr_name}
    return (
        _lengths_fault(node.op_type, given_values)
        or _pool_fault(given_values)
        or forests.fault(node.op_type, given_values)
    )


def _untyped(attribute: AttributeProto, wanted: int) -> int:
    """Returns the type of an attribute that does not say it, as before IR version 2: that of the one field that is
    there."""
    return wanted if holds_value(attribute, wanted) else 0


def _value_fault(operator: str, attribute: AttributeProto, kind: int, domain: str) -> str:
    name = attribute.name
    if kind in (_STRING, _STRINGS):
        allowed = words.WORDS.get((operator, name)) if domain in (opsets.AI_ONNX, opsets.AI_ONNX_ML) else None
        if (operator, name) == ("Cast", "to") and _text(attribute.s) not in TensorProto.DataType.keys():  # noqa: SIM118
            return f"attribute to is {_text(attribute.s)!r}, which is no dtype"
        for word in (attribute.s,) if kind == _STRING else attribute.strings:
            if allowed is not None and word and word not in allowed:
                return f"attribute {name} is {_text(word)!r}, which is none of {', '.join(sorted(map(_text, allowed)))}"
        return ""
    if kind in (_INT, _INTS):
        return _integers_fault(operator, name, [attribute.i] if kind == _INT else list(attribute.ints), kind)
    tensors: list[Any] = []
    if kind == AttributeProto.TENSOR:
        tensors = [attribute.t]
    elif kind == AttributeProto.TENSORS:
        tensors = list(attribute.tensors)
    elif kind == AttributeProto.SPARSE_TENSOR:
        found = tensor_validation.sparse_fault(attribute.sparse_tensor)
        return f"attribute {name}: {found}" if found else ""
    found = next((text for tensor in tensors if (text := tensor_validation.fault(tensor))), "")
    return f"attribute {name}: {found}" if found else ""


def _integers_fault(operator: str, name: str, numbers: list[int], kind: int) -> str:
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    if name in words.DTYPES and kind == _INT and not _is_dtype(low):
        return f"attribute {name} is {low}, which is no dtype"
    if name in words.DTYPES_OR_NONE and low and not _is_dtype(low):
        return f"attribute {name} is {low}, which is no dtype"
    least = words.AT_LEAST.get(name)
    if least is not None and low < least and (operator, name) != ("Loop", "num_scan_inputs"):
        return f"attribute {name} is {low}, and has to be at least {least}"
    if name in words.AXES and (low < -words.MOST_AXES or high > words.MOST_AXES):
        return f"attribute {name} is {high if high > words.MOST_AXES else low}: no tensor has so many axes"
    if name in words.MOST and max(high, -low) > words.MOST[name]:
        return f"attribute {name} is {high if high > words.MOST[name] else low}, which is too large"
    if name == "perm" and sorted(numbers) != [*range(len(numbers))]:
        return f"attribute perm is {_list(numbers)}, which is no order of axes"
    if name == "shape" and operator != "Reshape" and low < 0:
        return f"attribute shape is {_list(numbers)}, and has a size below 0"
    if name in ("shape", "output_shape") and (found := tensor_validation.dims_fault(numbers, 8)):
        return f"attribute {name}: {found}"
    if name == "split" and low < 0:
        return f"attribute split is {_list(numbers)}, and has a size below 0"
    if name == "p" and low < 1:
        return f"attribute p is {low}, and has to be at least 1"
    return f"attribute k is {low}, and has to be at least 0" if (operator, name) == ("TopK", "k") and low < 0 else ""


def _lengths_fault(operator: str, given: dict[str, AttributeProto]) -> str:
    for group in words.EQUALLY_LONG.get(operator, ()):
        first: tuple[str, int] | None = None
        for name in group:
            count = _length(given[name]) if name in given else 0
            if not count:
                continue
            first = first or (name, count)
            if count != first[1]:
                return f"attribute {first[0]} has {first[1]} entries, {name} {count}"
    return ""


def _length(attribute: AttributeProto) -> int:
    if attribute.type == AttributeProto.TENSOR:
        return tensor_validation.count(attribute.t.dims)
    value = attribute_value(attribute) if attribute.type else ()
    return len(value) if isinstance(value, list) else 0


def _pool_fault(given: dict[str, AttributeProto]) -> str:
    """Returns what is wrong with the lists that have an entry for each spatial axis."""
    alone = not {"kernel_shape", "strides", "dilations"} & given.keys()
    if alone and "pads" in given and len(given["pads"].ints) % 2:
        return f"attribute pads has {len(given['pads'].ints)} entries, which are no pairs"
    lengths = {name: len(given[name].ints) for name in ("kernel_shape", "strides", "dilations") if name in given}
    lengths |= {"pads": len(given["pads"].ints) / 2} if "pads" in given else {}  # type: ignore[dict-item]
    lengths = {name: count for name, count in lengths.items() if count}
    if len(set(lengths.values())) > 1:
        return f"attributes {' and '.join(lengths)} are not for one number of axes"
    return ""


def _is_dtype(number: int) -> bool:
    return number > 0 and number in TensorProto.DataType.values()


def _text(word: bytes) -> str:
    return word.decode("utf-8", "replace")


def _list(numbers: list[int]) -> str:
    return f"[{', '.join(map(str, numbers[:8]))}{', ...' if len(numbers) > 8 else ''}]"
