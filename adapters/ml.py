# SPDX-License-Identifier: Apache-2.0
"""LabelEncoder, of the domain ai.onnx.ml.

2: pairs of keys and values, of floats too; below, a list of strings, which integers index and strings are found in.
4: keys, values and the default may be tensors, of more dtypes. Repeated keys: the text of 4 says that the last one
counts, those below say nothing, and runtimes differ; lists that go on as they are keep their order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.adapter import AI_ONNX_ML, downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT16, INT32, INT64, STRING, is_integer

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_LISTS: Final = {STRING: "strings", INT64: "int64s", FLOAT: "floats"}
_DEFAULTS: Final = {STRING: "default_string", INT64: "default_int64", FLOAT: "default_float"}
_NARROW: Final = (INT16, INT32)
_ALL: Final = (
    *_DEFAULTS.values(),
    "default_tensor",
    *(f"{side}_{kind}" for side in ("keys", "values") for kind in (*_LISTS.values(), "tensor")),
)


@upgrade("LabelEncoder", at=2, domain=AI_ONNX_ML)
def number_classes(node: Node, op: Emitter) -> Value:
    """The classes are paired with their indices; of a class that is repeated the last one counts, as it did."""
    classes: list[str] = node.attr("classes_strings") or []
    indices = range(len(classes))
    if _indexes(node):
        pairs = {"keys_int64s": indices, "values_strings": classes, "default_string": node.attr("default_string")}
    else:
        last = dict(zip(classes, indices, strict=True))
        pairs = {"keys_strings": last, "values_int64s": last.values(), "default_int64": node.attr("default_int64")}
    return op.same(drop=("classes_strings", "default_string", "default_int64"), **pairs)


def _indexes(node: Node) -> bool:
    """Returns whether integers become strings."""
    if node.input(0).dtype is None and node.output().dtype is not None:
        return node.output().dtype == STRING
    if node.input(0).dtype is None and node.has("default_string") != node.has("default_int64"):
        return node.has("default_string")
    return node.dtype(0) == INT64


@downgrade("LabelEncoder", at=2, domain=AI_ONNX_ML)
def list_classes(node: Node, op: Emitter) -> Value:
    """Strings and their indices become a list of classes; anything else goes from key to index, and on to value."""
    keys, key_type, values, value_type = _pairs(node)
    default = _default(node, value_type)
    if (key_type, value_type) == (STRING, INT64) and sorted(values) == list(range(len(values))):
        ordered = [key for _, key in sorted(zip(values, keys, strict=True))]
        return op.same(drop=_ALL, classes_strings=ordered, default_int64=default)
    if (key_type, value_type) == (INT64, STRING) and sorted(keys) == list(range(len(keys))):
        ordered = [value for _, value in sorted(zip(keys, values, strict=True))]
        return op.same(drop=_ALL, classes_strings=ordered, default_string=default)
    return _look_up(node, op)


@downgrade("LabelEncoder", at=4, domain=AI_ONNX_ML)
def tensors_to_lists(node: Node, op: Emitter) -> Value:
    """Tensors become lists, narrow integers go as int64; doubles go from key to index, and on to value."""
    if not any(node.has(f"{what}_tensor") for what in ("keys", "values", "default")):
        return op.same()
    (keys, key_type), (values, value_type) = _side(node, "keys"), _side(node, "values")
    x = node.input(0)
    listed_key, listed_value = (INT64 if dtype in _NARROW else dtype for dtype in (key_type, value_type))
    if listed_key not in _LISTS or listed_value not in _LISTS:
        return _look_up(node, op)
    pairs = {
        f"keys_{_LISTS[listed_key]}": keys,
        f"values_{_LISTS[listed_value]}": values,
        _DEFAULTS[listed_value]: _default(node, value_type),
    }
    y = op.same(x if listed_key == key_type else op.at(13).Cast(x, to=INT64), drop=_ALL, **pairs)
    return y if listed_value == value_type else op.at(13).Cast(y, to=value_type)


def _side(node: Node, side: str) -> tuple[list[Any], int]:
    """Returns the keys or the values, and their dtype."""
    for dtype, kind in _LISTS.items():
        if node.has(f"{side}_{kind}"):
            return node.attr(f"{side}_{kind}"), dtype
    if not node.has(f"{side}_tensor"):
        node.invalid(f"there are no {side}")
    return node.tensor(f"{side}_tensor").ravel().tolist(), node.attr(f"{side}_tensor").data_type


def _default(node: Node, dtype: int) -> Any:
    """Returns what a key that is not listed becomes."""
    if node.has("default_tensor"):
        return node.tensor("default_tensor").reshape(-1)[0].tolist()
    if dtype in _DEFAULTS:
        return node.attr(_DEFAULTS[dtype])
    return -1 if is_integer(dtype) else -0.0


def _alike(elements: list[Any]) -> list[Any]:
    """Returns elements in which each NaN is the same one, so that it is found again."""
    return [math.nan if element != element else element for element in elements]  # noqa: PLR0124


def _pairs(node: Node) -> tuple[list[Any], int, list[Any], int]:
    """Returns keys, each once, and values. One NaN is like the other."""
    (keys, key_type), (values, value_type) = _side(node, "keys"), _side(node, "values")
    keys, values = _alike(keys), _alike(values)
    pairs = dict(zip(keys, values, strict=False))
    if any(pairs[key] is not value and pairs[key] != value for key, value in zip(keys, values, strict=False)):
        node.refuse("a key is repeated with another value, and runtimes differ in which one counts", "remove one")
    return list(pairs), key_type, list(pairs.values()), value_type


def _look_up(node: Node, op: Emitter) -> Value:
    """Returns the index of each element among the keys, one past the last if it is none, then the value at that
    index."""
    keys, key_type, values, value_type = _pairs(node)
    x, count = node.input(0), len(keys)
    if key_type == STRING:
        index = label(op, x, keys, default_int64=count)
    else:
        column = op.at(11).Unsqueeze(x, axes=[-1])
        hits = op.at(11).Equal(column, op.const(keys, key_type))
        missing = [math.isnan(key) for key in keys]
        if any(missing):  # which equals nothing
            op.equivalent("every NaN is found: below 4 that is a matter of its bits, and runtimes find none there")
            found = op.at(7).And(op.at(9).IsNaN(column), op.const(missing, BOOL))
            hits = op.at(7).Or(hits, found)
        weights = op.const([place - count for place in range(count)], FLOAT)
        place = op.at(9).MatMul(op.at(13).Cast(hits, to=FLOAT), weights)
        index = op.at(13).Cast(op.at(7).Add(place, op.const(count, FLOAT)), to=INT64)
    default = _default(node, value_type)
    if value_type == STRING:
        return label(op, index, values, default_string=default)
    return op.at(1).Gather(op.const([*values, default], value_type), index)


def label(op: Emitter, x: Value, classes: list[str], **default: Any) -> Value:
    """Returns integers as the strings that they index, or strings as their indices."""
    return op.node("LabelEncoder", x, at=1, domain=AI_ONNX_ML, classes_strings=classes, **default)[0]
