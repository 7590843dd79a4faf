"""An OPT-shaped model small enough to be trained in a test: LayerNorm, learned positions, and few neurons active.

It learns a made-up language with a price on every activation, which makes its ReLU as sparse as large models of this
family become by themselves (Mirzadeh et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from engine.kernels.reference import operations as op

Tensor = torch.Tensor
Parts = dict[str, Tensor]

HIDDEN, NEURONS, HEADS, LAYERS, WORDS, PLACES = 64, 512, 4, 2, 32, 128
STEPS, SEQUENCES, LENGTH = 200, 16, 40
PRICE = 1.0  # of the mean activation, against the loss
EPSILON = 1e-5

KINDS = 4  # of words; what follows a word depends on it and on the kind of the word before it
ODDS = (0.75, 0.2, 0.05)  # of the words that can follow


def sentences(seed: int, length: int) -> list[int]:
    """`length` words of a made-up language, the same language for every seed."""
    followers = np.random.default_rng(1).integers(0, WORDS, (WORDS, KINDS, len(ODDS)))
    choices = np.random.default_rng(seed).choice(len(ODDS), length, p=ODDS)
    words = [0, 1]
    for choice in choices:
        words.append(int(followers[words[-1], words[-2] % KINDS, choice]))
    return words[2:]


@dataclass(frozen=True)
class ReluModel:
    """Weights by name, float32, [out, in]. `chooser` in `logits` sees and thins out each layer's activations."""

    parts: Parts

    def layer(self, number: int, part: str) -> Tensor:
        """A tensor of a layer."""
        return self.parts[f"{number}.{part}"]

    def logits(self, ids: list[int], chooser: Callable[[int, Tensor, Tensor], Tensor] | None = None) -> Tensor:
        """float32 [tokens, words] by the engine's reference operations, one sequence from position 0.

        chooser(layer, stream before the layer's attention, normed, [tokens, HIDDEN]; activations [tokens, NEURONS])
        returns the activations to go on with.
        """
        rows, dim = len(ids), HIDDEN // HEADS
        stream = op.add_positions(op.embed(self.parts["embedding"], torch.tensor(ids)), self.parts["positions"], 0)
        for number in range(LAYERS):

            def of(part: str, number: int = number) -> Tensor:
                return self.layer(number, part)

            early = op.layer_norm(stream, of("attention_norm"), of("attention_norm_bias"), EPSILON)
            query, key, value = op.linear(early, of("qkv"), of("qkv_bias")).view(rows, -1, dim).split(HEADS, 1)
            mixed = op.attend(query, key, value, 0, dim**-0.5).reshape(rows, -1)
            stream = stream + op.linear(mixed, of("output"), of("output_bias"))
            normed = op.layer_norm(stream, of("mlp_norm"), of("mlp_norm_bias"), EPSILON)
            active = op.relu(op.linear(normed, of("up"), of("up_bias")))
            if chooser is not None:
                active = chooser(number, early, active)
            stream = stream + op.linear(active, of("down"), of("down_bias"))
        final = op.layer_norm(stream, self.parts["final_norm"], self.parts["final_norm_bias"], EPSILON)
        return op.linear(final, self.parts["embedding"], None)

    def reply(self, prompt: list[int], length: int) -> list[int]:
        """Greedy continuation."""
        ids = list(prompt)
        for _ in range(length):
            ids.append(int(self.logits(ids)[-1].argmax()))
        return ids[len(prompt) :]


def train_relu_model(seed: int = 0) -> ReluModel:
    """Some seconds on one core; the same weights each time on one machine."""
    torch.manual_seed(seed)
    parts = {name: tensor.requires_grad_() for name, tensor in _fresh().items()}
    text = torch.tensor(sentences(seed, 40_000))
    optimiser = torch.optim.Adam(parts.values(), 3e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=STEPS)
    for _ in range(STEPS):
        starts = torch.randint(len(text) - LENGTH - 1, (SEQUENCES, 1))
        batch = text[starts + torch.arange(LENGTH + 1)]
        logits, activity = _batch_pass(parts, batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()) + PRICE * activity
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return ReluModel({name: tensor.detach() for name, tensor in parts.items()})


def _fresh() -> Parts:
    parts = {"embedding": torch.randn(WORDS, HIDDEN) * 0.1, "positions": torch.randn(PLACES, HIDDEN) * 0.02}
    shapes = {
        "qkv": (3 * HIDDEN, HIDDEN),
        "output": (HIDDEN, HIDDEN),
        "up": (NEURONS, HIDDEN),
        "down": (HIDDEN, NEURONS),
    }
    for number in range(LAYERS):
        for name, shape in shapes.items():
            parts[f"{number}.{name}"] = torch.randn(shape) * shape[1] ** -0.5
            parts[f"{number}.{name}_bias"] = torch.zeros(shape[0])
        for name in ("attention_norm", "mlp_norm"):
            parts[f"{number}.{name}"], parts[f"{number}.{name}_bias"] = torch.ones(HIDDEN), torch.zeros(HIDDEN)
    return parts | {"final_norm": torch.ones(HIDDEN), "final_norm_bias": torch.zeros(HIDDEN)}


def _batch_pass(parts: Parts, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [sequences, length, words] and the mean activation, differentiable."""
    count, length = ids.shape
    stream = parts["embedding"][ids] + parts["positions"][:length]
    activity = torch.zeros(())
    for number in range(LAYERS):

        def of(part: str, number: int = number) -> Tensor:
            return parts[f"{number}.{part}"]

        normed = functional.layer_norm(stream, (HIDDEN,), of("attention_norm"), of("attention_norm_bias"), EPSILON)
        qkv = functional.linear(normed, of("qkv"), of("qkv_bias")).view(count, length, 3, HEADS, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(count, length, HIDDEN)
        stream = stream + functional.linear(mixed, of("output"), of("output_bias"))
        normed = functional.layer_norm(stream, (HIDDEN,), of("mlp_norm"), of("mlp_norm_bias"), EPSILON)
        active = functional.relu(functional.linear(normed, of("up"), of("up_bias")))
        activity = activity + active.mean()
        stream = stream + functional.linear(active, of("down"), of("down_bias"))
    final = functional.layer_norm(stream, (HIDDEN,), parts["final_norm"], parts["final_norm_bias"], EPSILON)
    return functional.linear(final, parts["embedding"]), activity / LAYERS
