"""The draft on a card: a four-bit copy of the full model, made once a load, and its output rows for a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

from engine.errors import LoadCancelled
from engine.kernels.triton.draft_memory import DraftLayer, DraftMatrix, DraftModel, DraftNorm, reduced
from engine.kernels.triton.draft_packing import pack
from engine.kernels.triton.step_memory import FusedLayer, FusedModel
from engine.lowbit.codes import group_of
from engine.lowbit.rounding import feedback_of, round_matrix
from engine.lowbit.rounding_rule import FEEDBACK_COLUMNS
from engine.model.kept_output import KeptTokens
from engine.records import LoadProgress

BITS = 4
Tensor = torch.Tensor


def four_bit_copy(
    model: FusedModel,
    inputs: Iterator[Tensor],
    progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
    whole: Callable[[int, FusedLayer], FusedLayer] = lambda number, layer: layer,
    take: Callable[[int, DraftLayer], DraftLayer] = lambda number, layer: layer,
) -> DraftModel:
    """Round every matrix of the model to four bits, on its card. Raises LoadCancelled between two layers.

    whole: a layer, by number, with all of its matrices on the card; some may be streamed otherwise.
    take: given each layer's copy as soon as it is made; what it returns stands for it.
    inputs: of each matrix in the order of a pass (qkv, output, gate and up, down, …, the output matrix) on some real
    text, float32 [tokens, K]; the first token's do not count.
    """
    total = len(model.layers) + 1

    def matrix(weight: Tensor, bias: Tensor | None = None) -> DraftMatrix:
        seen, columns = next(inputs)[1:], weight.shape[1]
        feedback = feedback_of(seen) if columns <= FEEDBACK_COLUMNS else None
        return pack(round_matrix(weight, BITS, group_of(columns), seen.square().mean(0), feedback), bias)

    layers = []
    for done, streamed in enumerate(model.layers):
        layer = whole(done, streamed)
        if cancelled():
            raise LoadCancelled("Loading was cancelled.")
        progress(LoadProgress("Preparing the draft", done, total, 0, 0))
        qkv, output = matrix(layer.qkv, layer.qkv_bias), matrix(layer.output, layer.output_bias)
        gate_up, down = matrix(layer.gate_up, layer.up_bias), matrix(layer.down, layer.down_bias)
        attention_norm = _norm(layer.attention_norm, layer.attention_norm_bias, qkv)
        mlp_norm = _norm(layer.mlp_norm, layer.mlp_norm_bias, gate_up)
        made = DraftLayer(attention_norm, qkv, output, mlp_norm, gate_up, down, layer.cache, layer.heads)
        layers.append(take(done, made))
    output = matrix(model.output)
    progress(LoadProgress("Preparing the draft", total, total, 0, 0))
    return DraftModel(
        layers=tuple(layers),
        embedding=model.embedding,
        final_norm=_norm(model.final_norm, model.final_norm_bias, output),
        output=output,
        cosine=model.cosine,
        sine=model.sine,
        positions=model.positions,
        first_place=model.first_place,
    )


def _norm(weight: Tensor, bias: Tensor | None, following: DraftMatrix) -> DraftNorm:
    """The norm before a matrix: its gain times the matrix's factors, or a LayerNorm's parts."""
    if bias is None:
        return DraftNorm(weight * following.factors)
    return DraftNorm(following.factors, weight, bias, following.factors)


class KeptRows:
    """A draft's output matrix cut to the rows of kept tokens; the rows change in place as tokens are met.

    model: the low-bit copy with those rows. See engine.model.kept_output for which tokens are kept.
    """

    def __init__(self, whole: DraftModel, kept: int, always: Iterable[int]) -> None:
        self._output = whole.output
        self._tokens = KeptTokens(whole.output.codes.shape[0], kept, always)
        device = whole.embedding.device
        self.model = reduced(whole, torch.from_numpy(self._tokens.ids.copy()).to(device))

    def meet(self, tokens: Iterable[int]) -> None:
        """Keep these tokens from now on, in place of those met longest ago. Ordered on the current stream."""
        moved = {place: token for place, _, token in self._tokens.meet(tokens)}
        if not moved:
            return
        output, ids = self.model.output, self.model.ids
        assert ids is not None
        places = torch.tensor(list(moved), device=ids.device)
        fresh = torch.tensor(list(moved.values()), device=ids.device)
        output.codes[places], output.groups[places] = self._output.codes[fresh], self._output.groups[fresh]
        ids[places] = fresh.int()
