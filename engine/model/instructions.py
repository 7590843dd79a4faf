"""What a pass is made of: its buffers, and instructions as frozen data. Executors know these, not models."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Buffer(Enum):
    """The float32 activations of a pass, one row a token. Widths are in `widths`."""

    STREAM = "stream"  # the residual stream
    NARROW = "narrow"  # of models whose embedding is narrower than the stream: what comes from it, what goes to logits
    NORMED = "normed"
    QKV = "qkv"  # query heads, key heads, value heads
    ATTENDED = "attended"
    DELTA = "delta"  # what a block adds to the stream
    GATE_UP = "gate_up"  # gates, then ups; without gates the ups alone
    ACTIVATED = "activated"
    LOGITS = "logits"
    # Of drafts with a reduced vocabulary only; not in `widths`, because their width is the recipe's.
    KEPT_LOGITS = "kept_logits"  # one column a kept token
    DRAFT_LOGITS = "draft_logits"  # one column a token; minus infinity where it is not kept


SINKS = 4  # first positions that a draft attends to beside its window


@dataclass(frozen=True, slots=True)
class Embed:
    """target = rows of the embedding matrix."""

    weight: str
    target: Buffer = Buffer.STREAM


@dataclass(frozen=True, slots=True)
class AddPositions:
    """STREAM += rows of a learned table, the row `first` standing for position 0."""

    weight: str
    first: int


@dataclass(frozen=True, slots=True)
class AddNorm:
    """STREAM += DELTA (if `adds`); target = norm of STREAM. on_tail: only the rows whose logits are wanted.

    bias: of a LayerNorm; None for an RMS norm. target: NORMED, or STREAM itself where norms follow the blocks.
    """

    weight: str
    adds: bool
    on_tail: bool = False
    bias: str | None = None
    target: Buffer = Buffer.NORMED


@dataclass(frozen=True, slots=True)
class Linear:
    """target[:, column:] = source times weight transposed, plus bias.

    neurons_of: the layer whose chosen neurons stand for all rows of the weight (target is then dense over them).
    kept: of the weight only the rows of the reduced vocabulary.
    meets: whether the next instruction needs this result.
    """

    weight: str
    source: Buffer
    target: Buffer
    column: int = 0
    bias: str | None = None
    neurons_of: int | None = None
    kept: bool = False
    on_tail: bool = False
    meets: bool = True


@dataclass(frozen=True, slots=True)
class NeuronDown:
    """DELTA = ACTIVATED (over the chosen neurons of `layer`) times the matching columns of weight, plus bias."""

    weight: str
    layer: int
    bias: str | None = None


@dataclass(frozen=True, slots=True)
class RotateStore:
    """Rotate queries and keys of QKV; write keys and values of the pass's rows into the layer's KV cache.

    rotates: False for a layer that has no rotary positions. query_norm, key_norm: weights of the RMS norms that each
    query and key head goes through first; both or neither.
    """

    layer: int
    rotates: bool = True
    query_norm: str | None = None
    key_norm: str | None = None


@dataclass(frozen=True, slots=True)
class Attend:
    """ATTENDED = causal attention of the rows over the layer's KV cache.

    window: only the last so many positions, a row's own among them, and the first `sinks`; None for all.
    """

    layer: int
    window: int | None = None
    sinks: int = SINKS


@dataclass(frozen=True, slots=True)
class GatedSilu:
    """ACTIVATED = SiLU(gates) * ups over `count` neurons of `layer`; observes: feed the neuron statistic."""

    layer: int
    count: int
    observes: bool


@dataclass(frozen=True, slots=True)
class Relu:
    """ACTIVATED = the ups where they are above zero, over `count` neurons of `layer`; observes: as in GatedSilu."""

    layer: int
    count: int
    observes: bool


@dataclass(frozen=True, slots=True)
class PlaneMlp:
    """ACTIVATED = SiLU(gates) * ups of the neurons that the upper planes of gate and up choose, token by token."""

    layer: int


@dataclass(frozen=True, slots=True)
class PlaneDown:
    """DELTA = ACTIVATED times the chosen neurons' rows of the layer's down matrix."""

    layer: int


@dataclass(frozen=True, slots=True)
class Scatter:
    """DRAFT_LOGITS at the ids of the kept tokens = KEPT_LOGITS, in the rows whose logits are wanted."""


Instruction = (
    Embed
    | AddPositions
    | AddNorm
    | Linear
    | NeuronDown
    | RotateStore
    | Attend
    | GatedSilu
    | Relu
    | PlaneMlp
    | PlaneDown
    | Scatter
)
Programme = tuple[Instruction, ...]
