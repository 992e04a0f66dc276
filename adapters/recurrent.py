# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU, LSTM.

3: GRU gets `linear_before_reset`, `Y_h` becomes optional, and the default direction, misspelt "foward", is put right.
7: `output_sequence` goes: that `Y` has a name is enough.
14: with `layout` 1, the batch comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

FAMILY = ("RNN", "GRU", "LSTM")
_Y, _LAST = 0, 1
_INITIAL = (5, 6)


@upgrade("GRU", at=3)
def spell_forward(node: Node, op: Emitter) -> Value:
    """The default direction is written out, and spelt as everywhere else."""
    given = node.attr("direction")
    return op.same(direction="forward" if given == "foward" else given)


@downgrade("GRU", at=3)
def name_last_state(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """The default direction is written out, and the last state gets a name."""
    if node.attr("linear_before_reset"):
        node.refuse("linear_before_reset does not exist below opset 3", "export the model with linear_before_reset=0")
    outputs = node.proto.output
    changed = {"direction": node.attr("direction"), "linear_before_reset": None}
    if len(outputs) == 1 or node.uses_output(_LAST):
        return op.same(outputs=2, **changed)
    kept = {attribute.name: attribute for attribute in node.proto.attribute}
    y, _ = op.node("GRU", *node.inputs, outputs=2, **{**kept, **changed})
    return y, None


@upgrade(*FAMILY, at=7)
def forget_output_sequence(node: Node, op: Emitter) -> Value:
    """The hint is dropped."""
    return op.same(drop=("output_sequence",))


@downgrade(*FAMILY, at=7)
def tell_output_sequence(node: Node, op: Emitter) -> Value:
    """Writes out whether `Y` has a name."""
    return op.same(output_sequence=1) if node.uses_output(_Y) else op.same()


@downgrade(*FAMILY, at=14)
def put_sequence_first(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Where the batch comes first, it is transposed to the second place, and back."""
    if not node.attr("layout"):
        return op.same(drop=("layout",))
    inputs = [
        op.Transpose(value, perm=[1, 0, 2]) if value is not None and index in (0, *_INITIAL) else value
        for index, value in enumerate(node.inputs)
    ]
    values = op.sames(*inputs, drop=("layout",))
    perms = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
    return tuple(
        op.Transpose(value, perm=perm) if node.uses_output(index) else None
        for index, (value, perm) in enumerate(zip(values, perms, strict=False))
    )
