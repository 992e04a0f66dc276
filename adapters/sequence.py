# SPDX-License-Identifier: Apache-2.0
"""Identity of sequences and optionals, OptionalGetElement, OptionalHasElement.

14: Identity takes sequences too.
16: Identity takes optionals too.
18: what asks an optional also takes a tensor or a sequence, which is always there, and whether there is a value may be
asked of none at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, STRING

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@downgrade("Identity", at=14)
def insert_and_erase(node: Node, op: Emitter) -> Value:
    """A sequence that gets one more element and loses it again is another one like it; a tensor needs nothing."""
    sequence = node.input(0)
    kind = sequence.type
    if kind is None or not kind.HasField("sequence_type"):
        return op.same()
    dtype = kind.sequence_type.elem_type.tensor_type.elem_type
    if not dtype:
        node.refuse("the dtype of the elements is not known", "leave the Identity out", unknown=True)
    element = op.const("" if dtype == STRING else 0, dtype)
    return op.SequenceErase(op.SequenceInsert(sequence, element))


@downgrade("Identity", at=16)
def make_the_optional_again(node: Node, op: Emitter) -> Value:
    """The Optional that made an optional is written once more; a tensor or a sequence needs nothing."""
    optional = node.input(0)
    kind = optional.type
    if kind is None or not kind.HasField("optional_type"):
        return op.same()
    producer = optional.producer
    if producer is None or producer.operator != "Optional" or producer.domain:
        node.refuse("its input is an optional, which Identity takes from opset 16 on", "leave the Identity out")
    values = [value for value in producer.inputs if value]
    return op.Optional(*values, **{attribute.name: attribute for attribute in producer.proto.attribute})


@downgrade("OptionalGetElement", at=18)
def take_the_value_itself(node: Node, op: Emitter) -> Value:
    """Takes a value that is no optional as its own."""
    return op.Identity(node.input(0)) if _is_no_optional(node.input(0)) else op.same()


@downgrade("OptionalHasElement", at=18)
def answer_what_is_known(node: Node, op: Emitter) -> Value:
    """There is always a value if the input is no optional, and never if there is no input."""
    value = node.optional_input(0)
    if value is not None and not _is_no_optional(value):
        return op.same()
    return op.const(value is not None, BOOL)


def _is_no_optional(value: Value) -> bool:
    """Returns whether a value is known to be a tensor or a sequence."""
    return value.type is not None and value.type.WhichOneof("value") not in (None, "optional_type")
