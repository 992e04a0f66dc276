# SPDX-License-Identifier: Apache-2.0
"""Tensors: their elements, and the tensor behind a Constant node."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_convert.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import NodeProto


def elements_of(tensor: TensorProto) -> numpy.ndarray[Any, Any]:
    """Returns the elements of a tensor that holds them. InvalidModelError if they are not what dtype and dimensions
    demand."""
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise InvalidModelError(f"damaged: {error}", where=f"tensor {tensor.name!r}") from error


def unequal(one: numpy.ndarray[Any, Any], other: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Returns which elements of two arrays of the same dtype and shape have other bits."""
    if one.dtype.kind in "OUSb":
        return numpy.asarray(one != other)
    bits = [numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8) for array in (one, other)]
    wrong = bits[0] != bits[1]
    return numpy.asarray(wrong.reshape(one.size, one.dtype.itemsize).any(axis=1)).reshape(one.shape)


_ATTRIBUTE_FIELDS: Final = {"value_int": "i", "value_ints": "ints", "value_float": "f", "value_floats": "floats"}
_ATTRIBUTE_DTYPES: Final = {
    "value_int": numpy.int64,
    "value_ints": numpy.int64,
    "value_float": numpy.float32,
    "value_floats": numpy.float32,
}


def elements(tensor: TensorProto) -> int:
    """Returns how many elements a tensor has, from its dimensions alone."""
    return math.prod(tensor.dims)


def tensor_of(node: NodeProto) -> TensorProto | None:
    """Returns the tensor that a Constant node stands for, None where only a function's caller or a sparse value knows
    it."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            tensor: TensorProto = attribute.t
            return tensor
        if attribute.name in _ATTRIBUTE_DTYPES:
            value: Any = {
                AttributeProto.INT: attribute.i,
                AttributeProto.FLOAT: attribute.f,
                AttributeProto.INTS: attribute.ints,
                AttributeProto.FLOATS: attribute.floats,
            }.get(attribute.type)
            if value is None:  # it does not say its type
                value = getattr(attribute, _ATTRIBUTE_FIELDS[attribute.name])
            return numpy_helper.from_array(numpy.array(value, dtype=_ATTRIBUTE_DTYPES[attribute.name]))
        if attribute.name in ("value_string", "value_strings"):
            strings: Any = attribute.s if attribute.name == "value_string" else list(attribute.strings)
            return numpy_helper.from_array(numpy.array(strings, dtype=object))
    return None
