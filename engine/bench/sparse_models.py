"""Random low-bit weights of a shape for measuring sparse draft steps, and their values in torch to check them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.files.config import ModelConfig
from engine.kernels.reference import sparse
from engine.kernels.triton.draft_memory import DraftLayer, DraftMatrix, DraftModel, DraftNorm
from engine.kernels.triton.draft_packing import unpack
from engine.kernels.triton.sparse_memory import ChannelLayer, LowRank, NeuronMlp
from engine.kernels.triton.sparse_packing import ChannelMatrix, PlaneMatrix
from engine.kernels.triton.sparse_step import SparseKernels
from engine.kernels.triton.tiles import Role
from engine.lowbit.codes import dequantise, group_of
from engine.model.rope import rope_tables

RANK = 64
TILE = 64  # words of a tile of channel-major copies
Tensor = torch.Tensor


def random_matrix(rows: int, columns: int, device: torch.device, group: int | None = None) -> DraftMatrix:
    """Four-bit codes whose values are about N(0, 0.7 / sqrt(columns)), in the groups of a copy unless told."""
    words = torch.randint(-(2**31), 2**31, (rows, columns // 8), dtype=torch.int32, device=device)
    terms = _terms((rows, columns // (group or group_of(columns))), columns, device)
    return DraftMatrix(words, terms, torch.ones(columns, device=device))


def random_channels(rows: int, columns: int, device: torch.device, tile: int, *, gated: bool = False) -> ChannelMatrix:
    """The same, channel by channel; `rows` is a multiple of a tile."""
    words = torch.randint(-(2**31), 2**31, (columns, rows // 8), dtype=torch.int32, device=device)
    terms = _terms((columns // group_of(columns), 8, rows // 8), columns, device)
    factors = torch.ones(columns, device=device)
    return ChannelMatrix(words, terms, factors, None, rows // 2 if gated else rows, tile)


def random_draft(config: ModelConfig, device: torch.device, caches: list[Tensor], positions: int) -> DraftModel:
    """A dense low-bit copy of a LLaMA shape."""
    hidden, inner, heads = config.hidden_size, config.intermediate_size, config.heads * config.head_dim
    kv = config.kv_heads * config.head_dim

    def norm() -> DraftNorm:
        return DraftNorm(torch.rand(hidden, device=device) + 0.5)

    layers = tuple(
        DraftLayer(
            norm(),
            random_matrix(heads + 2 * kv, hidden, device),
            random_matrix(hidden, heads, device),
            norm(),
            random_matrix(2 * inner, hidden, device),
            random_matrix(hidden, inner, device),
            cache,
        )
        for cache in caches
    )
    cosine, sine = (torch.from_numpy(table).to(device) for table in rope_tables(config, positions))
    embedding = torch.randn(config.vocabulary, hidden, dtype=torch.bfloat16, device=device)
    return DraftModel(layers, embedding, norm(), random_matrix(config.vocabulary, hidden, device), cosine, sine)


def neuron_parts(model: DraftModel, kind: str) -> tuple[DraftModel, list[NeuronMlp]]:
    """Neuron-major copies beside the model, with predictors of a kind: "ahead", "low rank" or "planes".

    "ahead" also adds the rows of the sketch to the qkv matrices of the model it returns.
    """
    layers, parts = [], []
    for layer in model.layers:
        matrix, device = layer.gate_up, model.embedding.device
        neurons, hidden = matrix.codes.shape[0] // 2, matrix.columns
        gate_up: DraftMatrix | PlaneMatrix = matrix
        predictor: LowRank | Tensor
        if kind == "planes":
            half = (2 * neurons, hidden // 16)
            words = [torch.randint(-(2**31), 2**31, half, dtype=torch.int32, device=device) for _ in range(2)]
            gate_up = PlaneMatrix(words[0], words[1], matrix.groups, matrix.factors)
            predictor = torch.rand(neurons, device=device) + 0.5
        else:
            outward = torch.randn(neurons, RANK, dtype=torch.float16, device=device) / RANK**0.5
            predictor = LowRank(outward, torch.randn(neurons, device=device) * 0.1)
            if kind == "low rank":
                inward = torch.randint(-(2**31), 2**31, (RANK, 2, hidden // 8), dtype=torch.int32, device=device)
                steps = torch.full((RANK,), hidden**-0.5 / 74, device=device)
                predictor = replace(predictor, inward=inward, steps=steps)
            else:
                sketch = random_matrix(RANK, hidden, device)
                codes = torch.cat((layer.qkv.codes, sketch.codes))
                layer = replace(
                    layer, qkv=replace(layer.qkv, codes=codes, groups=torch.cat((layer.qkv.groups, sketch.groups)))
                )
        down = random_matrix(neurons, hidden, device, group_of(hidden))
        down = replace(down, groups=_terms(tuple(down.groups.shape), neurons, device))
        threshold, scores = torch.zeros(1, device=device), torch.zeros(neurons, device=device)
        counters = torch.zeros(2, dtype=torch.int32, device=device)
        parts.append(NeuronMlp(gate_up, down, predictor, threshold, scores, counters))
        layers.append(layer)
    return replace(model, layers=tuple(layers)), parts


def channel_parts(model: DraftModel, config: ModelConfig, tile: int = TILE) -> list[ChannelLayer]:
    """Channel-major copies of all matrices but the attention's output."""
    device, hidden, inner = model.embedding.device, config.hidden_size, config.intermediate_size
    width = (config.heads + 2 * config.kv_heads) * config.head_dim
    return [
        ChannelLayer(
            random_channels(width, hidden, device, tile),
            random_channels(2 * inner, hidden, device, tile, gated=True),
            random_channels(hidden, inner, device, tile),
            *(torch.zeros(columns, device=device) for columns in (hidden, hidden, inner)),
        )
        for _ in model.layers
    ]


def _terms(shape: tuple[int, ...], fan_in: int, device: torch.device) -> Tensor:
    """Scale and low of groups: random scales, lows that put the middle of the codes at zero."""
    scale = (torch.rand(shape, device=device) + 0.5) * (0.7 / 4.6 / fan_in**0.5)
    pair = torch.stack((scale.half(), (scale * -7.5).half()), -1)
    return pair.view(torch.int32)[..., 0].contiguous()


def channel_values(matrix: ChannelMatrix) -> Tensor:
    """float32 [8 words, K], in the order of the packed columns."""
    quads = matrix.codes.view(torch.uint8).view(matrix.codes.shape[0], -1, 4)
    codes = torch.stack((quads & 15, quads >> 4), 2).view(matrix.codes.shape[0], -1).float()
    pairs = matrix.groups.transpose(1, 2).contiguous().view(torch.float16).view(matrix.groups.shape[0], -1, 2).float()
    scale, low = (pairs[..., i].repeat_interleave(matrix.group, 0) for i in (0, 1))
    return (codes * scale + low).T


def plane_codes(words: Tensor) -> Tensor:
    """Two-bit codes, uint8 [N, K], of one plane."""
    quads = words.view(torch.uint8).view(len(words), -1, 4)
    return torch.stack([(quads >> (2 * j)) & 3 for j in range(4)], 2).view(len(words), -1)


def row_values(matrix: DraftMatrix | PlaneMatrix) -> Tensor:
    """float32 [N, K] of row-major codes or of both planes together."""
    if isinstance(matrix, DraftMatrix):
        return dequantise(unpack(matrix))
    return _with_terms(plane_codes(matrix.high).float() * 4 + plane_codes(matrix.rest), matrix.groups)


def _with_terms(codes: Tensor, terms: Tensor) -> Tensor:
    pairs = terms.view(torch.float16).view(len(terms), -1, 2).float()
    times = codes.shape[1] // pairs.shape[1]
    return codes * pairs[..., 0].repeat_interleave(times, 1) + pairs[..., 1].repeat_interleave(times, 1)


@dataclass
class Shares:
    """What a fitting step found: the largest relative error of each kernel, and the share of neurons chosen."""

    errors: dict[str, float]
    chosen: list[float]


class FittingKernels(SparseKernels):
    """Runs a step kernel by kernel, sets each threshold for an exact share just before it is used, and checks results.

    share: of neurons kept, or of channels dropped. checked: ids of the parts and matrices whose kernels are checked.
    """

    share = 0.5
    found = Shares({}, [])
    checked: frozenset[int] = frozenset()

    def _low_rank(self, part: NeuronMlp, sketch: Tensor) -> None:
        predictor = part.predictor
        assert isinstance(predictor, LowRank)
        scores = predictor.outward.float() @ sketch[: predictor.rank].float() + predictor.bias
        part.threshold.fill_(_quantile(scores, 1 - self.share))
        super()._low_rank(part, sketch)
        self._note("low rank scores", part.scores, scores)

    def _plane_choice(self, part: NeuronMlp) -> None:
        matrix = part.gate_up
        assert isinstance(matrix, PlaneMatrix) and isinstance(part.predictor, Tensor)
        high = _with_terms(plane_codes(matrix.high).float() * 4 + 1.5, matrix.groups)
        every = torch.arange(self._neurons, device=high.device)
        scores = sparse.gated(high, self._normed_input(), every).abs() * part.predictor
        part.threshold.fill_(_quantile(scores, 1 - self.share))
        super()._plane_choice(part)
        self._note("plane scores", part.scores, scores)

    def _neuron_gate_up(self, part: NeuronMlp) -> None:
        super()._neuron_gate_up(part)
        count = int(part.counters[0])
        self.found.chosen.append(count / self._neurons)
        if id(part) in self.checked:
            wanted = sparse.gated(row_values(part.gate_up), self._normed_input(), self._own.chosen[:count].long())
            self._note("gate and up", self._own.activated[:count], wanted)

    def _neuron_down(self, part: NeuronMlp, gain: Tensor) -> tuple[Tensor, int]:
        count = int(part.counters[0])
        before, chosen = self._buffers.stream[0].clone(), self._own.chosen[:count].long()
        result = super()._neuron_down(part, gain)
        if id(part) in self.checked:
            added = self._own.activated[:count] @ row_values(part.down)[chosen]
            self._note("down", self._buffers.stream[0] - before, added)
            self._note_stream(gain, result)
        return result

    def _channels(self, role, epilogue, matrix, limits, squares, parts, gain=None):  # type: ignore[no-untyped-def]
        x = self._buffers.activated if role is Role.DOWN else self._buffers.hidden
        values = sparse.dequantised(x[0][0], x[1][0])
        if role is not Role.DOWN:
            values = values * self._inverse(squares, parts)
        limits.fill_(_quantile(values.abs(), self.share) if self.share else -1.0)
        before = self._buffers.stream[0].clone()
        super()._channels(role, epilogue, matrix, limits, squares, parts, gain)
        if id(matrix) not in self.checked:
            return
        wanted = channel_values(matrix) @ sparse.without_channels(values, limits)
        if role is Role.QKV:
            self._note("channels qkv", self._buffers.qkv[0, : matrix.columns], wanted)
        elif role is Role.DOWN:
            self._note("channels down", self._buffers.stream[0] - before, wanted)
        else:
            gate, up = (part.reshape(-1) for part in wanted.view(-1, 2, matrix.tile * 4).unbind(1))
            got = sparse.dequantised(self._buffers.activated[0][0], self._buffers.activated[1][0])
            self._note("channels gate and up", got, torch.nn.functional.silu(gate) * up)

    def _normed_input(self) -> Tensor:
        b = self._buffers
        return sparse.dequantised(b.hidden[0][0], b.hidden[1][0]) * self._inverse(
            b.attention_squares, b.attention_parts
        )

    def _inverse(self, squares: Tensor, parts: int) -> Tensor:
        total = squares.view(-1)[:parts].sum()
        return torch.rsqrt(total / self._config.hidden_size + self._config.rms_norm_eps)

    def _note_stream(self, gain: Tensor, result: tuple[Tensor, int]) -> None:
        b = self._buffers
        self._note("next input", sparse.dequantised(b.hidden[0][0], b.hidden[1][0]), b.stream[0] * gain)
        self._note("sum of squares", result[0][: result[1]].sum(), b.stream[0].square().sum())

    def _note(self, name: str, actual: Tensor, wanted: Tensor) -> None:
        error = float((actual.float() - wanted).norm() / wanted.norm())
        self.found.errors[name] = max(self.found.errors.get(name, 0.0), error)


def _quantile(values: Tensor, share: float) -> float:
    """Half way between two neighbours, so that no value lies on it."""
    place = max(1, min(values.numel() - 1, round(values.numel() * share)))
    ordered = torch.sort(values.flatten())[0]
    return float(ordered[place - 1] + ordered[place]) / 2
