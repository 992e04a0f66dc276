# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU, LSTM, with their usual activations."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def recurrent(operator: str) -> Any:
    """Returns the function of an operator."""

    def apply(
        x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None, h0: Array | None = None,
        c0: Array | None = None, p: Array | None = None, *, hidden_size: int | None = None, direction: str = "forward",
        layout: int = 0, clip: float | None = None, linear_before_reset: int = 0, input_forget: int = 0,
        activations: Any = None, outputs: int = 1, **more: Any,
    ) -> Any:  # fmt: skip
        usual = ACTIVATIONS[operator]
        if activations and list(activations) not in (usual, usual * 2):
            raise NotImplementedError("other activations")
        if more.get("output_sequence") == 0:
            raise NotImplementedError("no sequence")
        kind, size = x.dtype, r.shape[-1]
        x, w, r = (value.astype(np.float64) for value in (x, w, r))
        if layout:
            x = x.swapaxes(0, 1)
            h0, c0 = (value if value is None else value.swapaxes(0, 1) for value in (h0, c0))
        steps, batch = x.shape[:2]
        lengths = np.full(batch, steps) if lengths is None else lengths
        ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        y = np.zeros((steps, len(ways), batch, size))
        last = [np.zeros((len(ways), batch, size)) for _ in range(2)]
        for way, backwards in enumerate(ways):
            biases = np.zeros(2 * GATES[operator] * size) if b is None else b[way].astype(np.float64)
            peep = np.zeros(3 * size) if p is None else p[way].astype(np.float64)
            cell = _CELLS[operator](w[way], r[way], biases, peep, clip, bool(linear_before_reset), bool(input_forget))
            for place in range(batch):
                h = np.zeros(size) if h0 is None else h0[way, place].astype(np.float64)
                c = np.zeros(size) if c0 is None else c0[way, place].astype(np.float64)
                order = range(int(lengths[place]))
                for step in reversed(order) if backwards else order:
                    h, c = cell(x[step, place], h, c)
                    y[step, way, place] = h
                last[0][way, place], last[1][way, place] = h, c
        if layout:
            y, last = y.transpose(2, 0, 1, 3), [value.swapaxes(0, 1) for value in last]
        made = tuple(value.astype(kind) for value in (y, *last[: 1 + (operator == "LSTM")]))
        return made[:outputs] if outputs > 1 else made[0]

    return apply


def _clipped(x: Array, clip: float | None) -> Array:
    return x if clip is None else np.clip(x, -clip, clip)


def _rnn(w: Array, r: Array, b: Array, _p: Array, clip: float | None, _linear: bool, _forget: bool) -> Any:
    wb, rb = np.split(b, 2)
    return lambda x, h, c: (np.tanh(_clipped(x @ w.T + h @ r.T + wb + rb, clip)), c)


def _gru(w: Array, r: Array, b: Array, _p: Array, clip: float | None, linear: bool, _forget: bool) -> Any:
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)

    def cell(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        z = _sigmoid(_clipped(x @ wz.T + h @ rz.T + bz + cz, clip))
        reset = _sigmoid(_clipped(x @ wr.T + h @ rr.T + br + cr, clip))
        inner = reset * (h @ rh.T + ch) if linear else (reset * h) @ rh.T + ch
        new = np.tanh(_clipped(x @ wh.T + inner + bh, clip))
        return (1 - z) * new + z * h, c

    return cell


def _lstm(w: Array, r: Array, b: Array, p: Array, clip: float | None, _linear: bool, forget: bool) -> Any:
    gates_w, gates_r = np.split(w, 4), np.split(r, 4)  # input, output, forget, cell
    sums = [one + other for one, other in zip(np.split(b, 8)[:4], np.split(b, 8)[4:], strict=True)]
    pi, po, pf = np.split(p, 3)

    def cell(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        i, o, f, g = (x @ a.T + h @ b_.T + s for a, b_, s in zip(gates_w, gates_r, sums, strict=True))
        i = _sigmoid(_clipped(i + pi * c, clip))
        f = 1 - i if forget else _sigmoid(_clipped(f + pf * c, clip))
        new = f * c + i * np.tanh(_clipped(g, clip))
        return _sigmoid(_clipped(o + po * new, clip)) * np.tanh(new), new

    return cell


_CELLS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
