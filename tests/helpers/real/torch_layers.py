# SPDX-License-Identifier: Apache-2.0
"""Networks on sequences, and what layers are made of."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers the operators of eight bits

from real.torch_rows import ONE, Arguments, Row, calls, rand


class Recurrent(nn.Module):
    """A recurrent layer on a batch that comes first, with its last states."""

    def __init__(self, layer: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.layer = layer(8, 16, batch_first=True, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, state = self.layer(x)
        return y, *(state if isinstance(state, tuple) else (state,))


class Speech(nn.Module):
    """Frames of a wave by a short-time transform, convolutions over time, a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gru, self.head = nn.Conv1d(17, 16, 3, padding=1), nn.GRU(16, 16), nn.Linear(16, 5)
        self.register_buffer("window", torch.hann_window(32))

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.view_as_real(torch.stft(wave, 32, 16, window=self.window, return_complex=True))
        power = torch.log(spectrum.square().sum(-1) + 1e-6)
        y, _ = self.gru(F.elu(self.conv(power)).permute(2, 0, 1))
        return self.head(y).argmax(-1), self.head(y)


def series(n: int) -> Arguments:
    return (rand(n, 2 + n, 6 + n, 8),)


SERIES_OPEN = ({0: "batch", 1: "length"},)
SIZED_SERIES = lambda n: series(0)  # noqa: E731 - the same sizes for every n

SEQUENCES = [
    Row("LSTM", lambda: Recurrent(nn.LSTM), SIZED_SERIES, (), (18, 22)),
    Row("LSTM, two ways, two layers", lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True),
        lambda n: (rand(n, 2 + n, 6, 8),), ONE),
    Row("GRU, two ways", lambda: Recurrent(nn.GRU, bidirectional=True), SIZED_SERIES, (), (18, 22)),
    Row("RNN", lambda: Recurrent(nn.RNN, nonlinearity="relu"), SIZED_SERIES),
    Row("LSTM by TorchScript", lambda: Recurrent(nn.LSTM, bidirectional=True), series, SERIES_OPEN, (18, 20),
        options={"dynamo": False}),
    Row("GRU by TorchScript", lambda: Recurrent(nn.GRU), series, SERIES_OPEN, (18, 20), options={"dynamo": False}),
    Row("speech", Speech, lambda n: (rand(n, 2 + n, 128),), ONE, (18, 20)),
]  # fmt: skip


# ---- what layers are made of


def indexing(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Slices, gathers, scatters, sorting."""
    top, places = x.topk(3, -1)
    scattered = torch.zeros_like(x).scatter_add(1, places, top)
    changed = x.index_put((torch.tensor([0, 1]),), y[0], accumulate=True)
    return (
        x[:, 1:-1:2], x.gather(1, places), scattered, changed, x.cumsum(1), x.argmin(1), x.sort(1)[0], x.roll(1, 1),
        torch.where(x > 0, x, y), x.masked_fill(y > 1, -1.0), x.repeat(1, 2), x.flip(1), torch.stack([x, y], 2),
        *x.split(4, 1), x.unfold(1, 3, 2), x.tril(), x.amax(1), x.std(1), x.logsumexp(1), x.norm(dim=1), x.nonzero(),
    )  # fmt: skip


def arithmetic(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """One of each activation, and what is not one operator in ONNX."""
    whole = (x * 10).to(torch.int64)
    return (
        F.gelu(x), F.gelu(x, approximate="tanh"), F.mish(x), F.celu(x), F.selu(x), F.softplus(x), F.softshrink(x, 0.3),
        F.hardtanh(x), F.leaky_relu(x, 0.2), F.logsigmoid(x), F.glu(x, 1), F.threshold(x, 0.1, 3.0), torch.erf(x),
        torch.remainder(x, 0.7), whole // 3, whole % 3, torch.round(x), torch.sign(x), x.clamp(-1),
        torch.isnan(x / x), torch.isinf(x), torch.atan2(x, y), x.abs().pow(1.5), torch.exp2(x), torch.log1p(x.abs()),
        torch.bitwise_and(whole, 6), torch.logaddexp(x, y), torch.frac(x), x.trunc(), x.asinh(), x.abs().sqrt(),
    )  # fmt: skip


def bits(x: Tensor, y: Tensor) -> Arguments:
    one, other = (x * 50).to(torch.int64), (y * 50).to(torch.int32)
    return one & 6, one | 9, one ^ one.flip(1), ~one, one << 2, one >> 1, other >> 1, other & 7


def einsums(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.einsum("bhqd,bhkd->bhqk", x, y), torch.einsum("bhqd,bhqd->bq", x, x), torch.einsum("bhqd,de->bqhe", x, z),
        torch.einsum("...d,...d->...", x, x), torch.einsum("ii->i", z), torch.einsum("bhqd,bhkd,de->bqe", x, y, z),
    )  # fmt: skip


class Branches(nn.Module):
    """A branch that data decide, and what each side computes by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: F.gelu(self.one(x)), lambda x: self.other(x).softmax(0), (x,))


class Norms(nn.Module):
    """Each norm on three axes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.bare = nn.LayerNorm((6, 8)), nn.LayerNorm(8, elementwise_affine=False)
        self.group, self.root = nn.GroupNorm(3, 6), nn.RMSNorm(8)
        self.instance, self.batch = nn.InstanceNorm1d(6), nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        norms = (self.layer, self.bare, self.group, self.root, self.instance, self.batch)
        return *(norm(x) for norm in norms), F.local_response_norm(x[:, :, None], 3), F.normalize(x, dim=-1)


class Quantized(nn.Module):
    """A convolution whose input, weight and output go through eight bits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("weight", torch.randint(-128, 127, (4, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.tensor([0.01, 0.02, 0.03, 0.04]))
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        through, whole = torch.ops.quantized_decomposed, (-128, 127, torch.int8)
        x = through.dequantize_per_tensor(through.quantize_per_tensor(x, 0.05, 3, *whole), 0.05, 3, *whole)
        weight = through.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, *whole)
        y = F.relu(F.conv2d(x, weight, self.conv.bias))
        return through.quantize_per_tensor(y, 0.1, -5, *whole)


class Summing(nn.Module):
    """A state that a sequence goes through step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def step(state: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
            state = torch.tanh(self.gate(state)) + now
            return state, F.gelu(state)

        return scan(step, torch.zeros(8), x)


class Halves(nn.Module):
    """A transformer's feed-forward part in half precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.layers = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.to(self.dtype)).half()


def rows(n: int) -> Arguments:
    return rand(n, 3 + n, 8), rand(n + 1, 3 + n, 8)


ROWS_OPEN = ({0: "batch"}, {0: "batch"})

LAYERS = [
    Row("norms", Norms, lambda n: (rand(n, 2 + n, 6, 8),), ONE, (18, 21, 23)),
    Row("indexing", calls(indexing), lambda n: rows(0), (), (18, 23)),
    Row("indexing, batch open", calls(lambda x, y: indexing(x, y)[:-1]), rows, ROWS_OPEN, (18,)),
    Row("arithmetic", calls(arithmetic), rows, ROWS_OPEN, (18, 20, 22)),
    Row("einsum", calls(einsums), lambda n: (rand(n, 2 + n, 3, 5, 4), rand(n + 1, 2 + n, 3, 6, 4), rand(3, 4, 4)),
        (*ROWS_OPEN, {}), (18,)),
    Row("triangles", calls(lambda x: (x.tril(-1), (x > 0).tril(), (x < 9).triu(1))), lambda n: (rand(n, 3 + n, 4),),
        ONE),
    Row("stacks", calls(lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y]))), rows, ROWS_OPEN, (18, 23),
        refused={12: "seq"}),
    Row("bits", calls(bits), rows, ROWS_OPEN),
    Row("branches", Branches, lambda n: (rand(n, 3, 8),), (), (18, 20, 23)),
    Row("float16", lambda: Halves(torch.float16), lambda n: (rand(n, 2 + n, 16),), ONE, (18, 20)),
    Row("bfloat16", lambda: Halves(torch.bfloat16), lambda n: (rand(n, 2 + n, 16),), ONE,
        refused={12: "bfloat16"}, unable="Could not find an implementation for "),
    Row("random", calls(lambda x: x + torch.rand_like(x) * 0), lambda n: (rand(n, 3, 8),), (), (18,),
        unable="Could not find an implementation for RandomUniformLike(22)"),
    Row("fmod", calls(torch.fmod), rows, ROWS_OPEN, (18,), refused={9: "the only form is right if"}),
    Row("losses", calls(lambda x, y: (F.cross_entropy(x, y.argmax(1)), F.mse_loss(x, y), F.smooth_l1_loss(x, y),
                                      F.cosine_similarity(x, y), F.nll_loss(x, y.argmax(1)))), rows, ROWS_OPEN),
    Row("quantized", Quantized, lambda n: (rand(n, 2 + n, 3, 8, 8),), ONE, (18, 21),
        unable="Could not find an implementation for QuantizeLinear(28)"),
    Row("scan", Summing, lambda n: (rand(n, 6, 8),), (), (18, 23)),
]  # fmt: skip
