"""Weights as the decode kernels read them: projections that share an input lie in one matrix, their parts are views.

The separate names stay usable (prefill multiplies with the views), so nothing is held twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from engine.files.checks import bias_of
from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedLayer, FusedModel, HeadRules
from engine.kernels.triton.tiles import Role
from engine.model import programme as p
from engine.offload.parts import ATTENTION, MLP, Part, part_index

Tensor = torch.Tensor
Place = Callable[[int, tuple[Tensor, ...]], tuple[Tensor, ...]]  # a part, by number, to where it shall lie


def fuse(
    config: ModelConfig,
    weights: dict[str, Tensor],
    caches: Sequence[Tensor],
    cosine: Tensor,
    sine: Tensor,
    place: Place = lambda index, matrices: matrices,
) -> FusedModel:
    """Join q, k, v and gate, up of every layer; `weights` then holds views of the joined matrices.

    At most one layer's parts are held twice at a time. Vectors in `weights` are float32 already.
    place: puts each part where it is to lie and returns it; whoever does so sees to `weights` (see share_part).
    """
    layers: list[FusedLayer] = []
    for layer in range(config.layers):
        layers.append(_placed(place, layer, _joined(config, weights, layer, caches[layer])))
    name = p.output_matrix(config, frozenset(weights))
    output = weights[name]
    if name != p.EMBEDDING:
        (output,) = place(2 * config.layers, (output,))
    return FusedModel(
        layers=tuple(layers),
        embedding=weights[p.EMBEDDING],
        final_norm=weights[p.FINAL_NORM],
        output=output,
        cosine=cosine,
        sine=sine,
        final_norm_bias=weights.get(bias_of(p.FINAL_NORM)),
        positions=_places(config, weights, len(cosine)),
        first_place=config.first_place or 0,
    )


def _joined(config: ModelConfig, weights: dict[str, Tensor], number: int, cache: Tensor) -> FusedLayer:
    at = f"model.layers.{number}."
    attention, mlp, norms = at + "self_attn.", at + "mlp.", (at + "input_layernorm.", at + "post_attention_layernorm.")
    inputs = ("gate", "up") if config.gated else ("up",)
    return FusedLayer(
        attention_norm=weights[norms[0] + "weight"],
        qkv=_join(weights, [attention + part + "_proj.weight" for part in "qkv"]),
        qkv_bias=_join_biases(weights, [attention + part + "_proj.bias" for part in "qkv"]),
        output=weights[attention + "o_proj.weight"],
        output_bias=weights.get(attention + "o_proj.bias"),
        mlp_norm=weights[norms[1] + "weight"],
        gate_up=_join(weights, [f"{mlp}{part}_proj.weight" for part in inputs]),
        down=weights[mlp + "down_proj.weight"],
        down_bias=weights.get(mlp + "down_proj.bias"),
        cache=cache,
        attention_norm_bias=weights.get(norms[0] + "bias"),
        mlp_norm_bias=weights.get(norms[1] + "bias"),
        up_bias=None if config.gated else weights.get(mlp + "up_proj.bias"),
        heads=HeadRules(
            rotates=config.rotates(number),
            window=config.window_of(number) or 0,
            query_norm=weights.get(attention + "q_norm.weight"),
            key_norm=weights.get(attention + "k_norm.weight"),
        ),
    )


def _places(config: ModelConfig, weights: dict[str, Tensor], positions: int) -> Tensor | None:
    """The learned positions, with rows of zeros for what only pads a pass beyond the last of them."""
    if config.first_place is None:
        return None
    table = weights[p.POSITIONS]
    missing = max(0, positions + config.first_place - len(table))
    return torch.cat((table, table.new_zeros(missing, table.shape[1])))


def shapes_of(config: ModelConfig) -> dict[Role, tuple[int, int]]:
    """(N, K) of the matrix of each role."""
    heads, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return {
        Role.QKV: (heads + 2 * kv, config.hidden_size),
        Role.OUTPUT: (config.hidden_size, heads),
        Role.GATE_UP: (config.intermediate_size, config.hidden_size),
        Role.DOWN: (config.hidden_size, config.intermediate_size),
        Role.LOGITS: (config.vocabulary, config.hidden_size),
    }


def unsupported(config: ModelConfig, dtype: torch.dtype, names: frozenset[str]) -> str | None:
    """Why the decode kernels cannot run this model, or None."""
    if dtype not in (torch.float16, torch.bfloat16):
        return f"its weights are {str(dtype).removeprefix('torch.')}, not float16 or bfloat16"
    if config.head_dim & (config.head_dim - 1) or not 32 <= config.head_dim <= 256:
        return f"its heads are {config.head_dim} wide, not a power of two from 32 to 256"
    if config.gated and any(name.endswith(("gate_proj.bias", "up_proj.bias")) for name in names):
        return "its MLP gates have biases"
    lacking = (
        (config.norm_after, "its norms follow its blocks"),
        (config.embedding_width is not None, "its embedding is narrower than its stream"),
        (not config.final_norm, "it has no final norm"),
    )
    return next((reason for applies, reason in lacking if applies), None)


def share_part(weights: dict[str, Tensor], part: Part, matrices: tuple[tuple[Tensor, ...], ...]) -> None:
    """Let a part's names in `weights` stand for its matrices where these lie now: joined, or in blocks of their own."""
    for names, blocks in zip(joined_names(part), matrices, strict=True):
        if len(blocks) == len(names):
            weights.update(zip(names, blocks, strict=True))
        else:
            _share(weights, list(names), blocks[0])


def joined_names(part: Part) -> tuple[tuple[str, ...], ...]:
    """The names that each of a part's matrices is joined from."""
    names = part.tensors
    if part.kind == ATTENTION:
        return names[:3], names[3:]
    return (names[:-1], names[-1:]) if part.kind == MLP else (names,)


def _placed(place: Place, number: int, layer: FusedLayer) -> FusedLayer:
    """The layer with its parts where they are to lie."""
    qkv, output = place(part_index(number, ATTENTION), (layer.qkv, layer.output))
    gate_up, down = place(part_index(number, MLP), (layer.gate_up, layer.down))
    return replace(layer, qkv=qkv, output=output, gate_up=gate_up, down=down)


def _share(weights: dict[str, Tensor], names: list[str], joined: Tensor) -> None:
    """Let the names stand for the parts of a joined matrix, one after the other."""
    for name, view in zip(names, joined.split([weights[name].shape[0] for name in names]), strict=True):
        weights[name] = view


def _join(weights: dict[str, Tensor], names: list[str]) -> Tensor:
    joined = torch.cat([weights[name] for name in names])
    _share(weights, names, joined)
    return joined


def _join_biases(weights: dict[str, Tensor], names: list[str]) -> Tensor | None:
    if names[0] not in weights:
        return None
    return torch.cat([weights[name] for name in names])
