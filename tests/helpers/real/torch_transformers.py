# SPDX-License-Identifier: Apache-2.0
"""Transformers: encoder, ViT, decoder with a cache, and attention by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from real.torch_rows import ONE, Arguments, Row, calls, rand


class Encoder(nn.Module):
    """Two layers of post-norm attention over tokens, padding masked; the head normalises first."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 10), nn.LogSoftmax(-1))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.layers(self.embed(tokens), src_key_padding_mask=tokens == 0)
        return self.head(x)


class VisionTransformer(nn.Module):
    """Patches, a class token, positions, one pre-norm block."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.token, self.places = nn.Parameter(rand(0, 1, 1, 32)), nn.Parameter(rand(1, 1, 17, 32))
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32, eps=1e-6)
        self.projections, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.feed = nn.Sequential(nn.Linear(32, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        batch, length, width = x.shape
        q, k, v = self.projections(self.first(x)).reshape(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        x = x + self.feed(self.second(x))
        return F.softmax(self.head(x[:, 0]), -1)


class Decoder(nn.Module):
    """One step of a language model: a cache of keys and values, heads that share them, rotated positions, SwiGLU.

    With `operators`, attention, the rotation and the norm are the operators of opset 23.
    """

    def __init__(self, *, operators: bool = False, masked: bool = False) -> None:
        super().__init__()
        self.operators, self.masked = operators, masked
        self.embed, self.norm = nn.Embedding(50, 32), nn.RMSNorm(32, eps=1e-5)
        self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 16), nn.Linear(32, 16)
        self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)
        angles = torch.outer(torch.arange(64), 10000 ** -(torch.arange(0, 8, 2) / 8))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(
        self, tokens: Tensor, places: Tensor, past_key: Tensor, past_value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embed(tokens)
        batch, length, _ = x.shape
        normal = self.norm(x)
        q, k, v = (
            linear(normal).reshape(batch, length, -1, 8).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        q, k = self.rotated(q, places), self.rotated(k, places)
        if self.operators:
            y, key, value, _ = torch.onnx.ops.attention(q, k, v, None, past_key, past_value, is_causal=not self.masked)
        else:
            key, value = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
            ahead = torch.arange(key.shape[2])[None, :] > places[0][:, None]
            y = F.scaled_dot_product_attention(q, key, value, attn_mask=~ahead, enable_gqa=True)
        x = x + y.transpose(1, 2).reshape(batch, length, 32)
        normal = self.norm(x)
        x = x + self.down(F.silu(self.gate(normal)) * self.up(normal))
        return x @ self.embed.weight.T, key, value

    def rotated(self, x: Tensor, places: Tensor) -> Tensor:
        if self.operators:
            return torch.onnx.ops.rotary_embedding(x, self.cos, self.sin, places)
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        left, right = x.chunk(2, -1)
        return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


def steps(n: int) -> Arguments:
    batch, past, length = 2 + n, 3 + 2 * n, 4 - n
    places = torch.arange(past, past + length).expand(batch, length).contiguous()
    tokens = torch.arange(batch * length).reshape(batch, length) % 50
    return tokens, places, rand(n, batch, 2, past, 8), rand(n + 9, batch, 2, past, 8)


STEPS_OPEN = (
    {0: "batch", 1: "length"},
    {0: "batch", 1: "length"},
    {0: "batch", 2: "past"},
    {0: "batch", 2: "past"},
)


def heads(n: int) -> Arguments:
    return rand(n, 2 + n, 4, 5 + n, 8), rand(n + 1, 2 + n, 4, 5 + n, 8), rand(n + 2, 2 + n, 4, 5 + n, 8)


HEADS_OPEN = ({0: "batch", 2: "length"},) * 3


def tokens(n: int) -> Arguments:
    drawn = torch.randint(1, 40, (2 + n, 6 + n), generator=torch.Generator().manual_seed(n))
    drawn[0, -2:] = 0
    return (drawn,)


def onnx_attention(**options: Any) -> Callable[[], nn.Module]:
    return calls(lambda q, k, v: torch.onnx.ops.attention(q, k, v, **options)[0])


TRANSFORMERS = [
    Row("encoder", Encoder, tokens, ({0: "batch", 1: "length"},), (18, 20)),
    # Its mask has one row for all queries.
    Row("encoder with Attention", Encoder, tokens, ({0: "batch", 1: "length"},), (23, 24),
        unable="(between attn_mask and Q)"),
    Row("encoder, sizes known", Encoder, lambda n: tokens(0)),
    Row("ViT", VisionTransformer, lambda n: (rand(n, 2 + n, 3, 16, 16),), ONE, (18, 20, 23)),
    Row("decoder", Decoder, steps, STEPS_OPEN, (18, 23)),
    Row("decoder of opset 23", lambda: Decoder(operators=True), steps, STEPS_OPEN, (23, 24)),
    Row("decoder of opset 23, nothing hidden", lambda: Decoder(operators=True, masked=True), steps, STEPS_OPEN, (23,)),
    Row("attention, causal", calls(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), heads,
        HEADS_OPEN, (18, 23)),
    Row("attention, sizes known", calls(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        lambda n: heads(0), (), (18, 23)),
    Row("attention, a bias", calls(lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, bias, scale=0.3)),
        lambda n: (*heads(n), rand(7, 1, 1, 5 + n, 5 + n)), (*HEADS_OPEN, {2: "length", 3: "length"}), (18, 23)),
    Row("onnx attention, softcap", onnx_attention(softcap=2.0, scale=0.4), heads, HEADS_OPEN, (23,)),
    Row("onnx attention, three axes", onnx_attention(q_num_heads=4, kv_num_heads=2, is_causal=True),
        lambda n: (rand(n, 2 + n, 5, 32), rand(n + 1, 2 + n, 6, 16), rand(n + 2, 2 + n, 6, 16)), ONE * 3, (23,)),
    Row("nn.Transformer", lambda: nn.Transformer(32, 4, 1, 1, 64, batch_first=True, norm_first=True),
        lambda n: (rand(n, 2, 5, 32), rand(n + 1, 2, 4, 32)), (), (18, 23)),
]  # fmt: skip
