"""The forward pass as data: a list of instructions, built once from the model's shape and a recipe.

Plain decoding, verification and prefill run the *same* programme; a draft runs a shorter or cheaper one. Executors
(`engine/kernels/compiled` on the CPU, `engine/kernels/reference` in torch) know operations, not models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from engine.errors import BadSetting, ModelFileError
from engine.files.config import ModelConfig
from engine.predict.planes import planes_fit
from engine.recipe import Recipe


class Buffer(Enum):
    """The float32 activations of a pass, one row a token. Widths are in `widths`."""

    STREAM = "stream"  # the residual stream
    NORMED = "normed"
    QKV = "qkv"  # query heads, key heads, value heads
    ATTENDED = "attended"
    DELTA = "delta"  # what a block adds to the stream
    GATE_UP = "gate_up"  # gates, then ups
    ACTIVATED = "activated"
    LOGITS = "logits"
    # Of drafts with a reduced vocabulary only; not in `widths`, because their width is the recipe's.
    KEPT_LOGITS = "kept_logits"  # one column a kept token
    DRAFT_LOGITS = "draft_logits"  # one column a token; minus infinity where it is not kept


@dataclass(frozen=True, slots=True)
class Embed:
    """STREAM = rows of the embedding matrix."""

    weight: str


@dataclass(frozen=True, slots=True)
class AddNorm:
    """STREAM += DELTA (if `adds`); NORMED = RMS norm of STREAM. on_tail: only the rows whose logits are wanted."""

    weight: str
    adds: bool
    on_tail: bool = False


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
    """DELTA = ACTIVATED (over the chosen neurons of `layer`) times the matching columns of weight."""

    weight: str
    layer: int


@dataclass(frozen=True, slots=True)
class RotateStore:
    """Rotate queries and keys of QKV; write keys and values of the pass's rows into the layer's KV cache."""

    layer: int


@dataclass(frozen=True, slots=True)
class Attend:
    """ATTENDED = causal attention of the rows over the layer's KV cache.

    window: only the first few and the last so many positions; None for all.
    """

    layer: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class GatedSilu:
    """ACTIVATED = SiLU(gates) * ups over `count` neurons of `layer`; observes: feed the neuron statistic."""

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


Instruction = Embed | AddNorm | Linear | NeuronDown | RotateStore | Attend | GatedSilu | PlaneMlp | PlaneDown | Scatter
Programme = tuple[Instruction, ...]

EMBEDDING = "model.embed_tokens.weight"
OUTPUT = "lm_head.weight"
FINAL_NORM = "model.norm.weight"


def widths(config: ModelConfig) -> dict[Buffer, int]:
    """float32 values a row of each buffer."""
    heads = config.heads * config.head_dim
    return {
        Buffer.STREAM: config.hidden_size,
        Buffer.NORMED: config.hidden_size,
        Buffer.QKV: heads + 2 * config.kv_heads * config.head_dim,
        Buffer.ATTENDED: heads,
        Buffer.DELTA: config.hidden_size,
        Buffer.GATE_UP: 2 * config.intermediate_size,
        Buffer.ACTIVATED: config.intermediate_size,
        Buffer.LOGITS: config.vocabulary,
    }


def kept_neurons(config: ModelConfig, recipe: Recipe) -> int:
    """MLP neurons a layer the recipe keeps, rounded up to a multiple of eight. Raises BadSetting for no share."""
    if not 0 < recipe.neuron_share <= 1:
        raise BadSetting(f"The draft's share of MLP neurons is {recipe.neuron_share}, but must be above 0 to 1.")
    wanted = max(8, round(config.intermediate_size * recipe.neuron_share))
    return min(config.intermediate_size, (wanted + 7) // 8 * 8)


def chooses_by_planes(config: ModelConfig, names: frozenset[str], recipe: Recipe) -> bool:
    """Whether the neurons are chosen token by token from planes of 4-bit weights, not by a moving average.

    Planes need groups of a multiple of 64 and an MLP without biases.
    """
    share = kept_neurons(config, recipe) < config.intermediate_size
    biased = any(name.endswith(("gate_proj.bias", "up_proj.bias", "down_proj.bias")) for name in names)
    return recipe.weight_bits == 4 and share and not biased and planes_fit(config.hidden_size, config.intermediate_size)


def kept_tokens(config: ModelConfig, recipe: Recipe) -> int:
    """Tokens of the recipe's vocabulary, rounded up to a multiple of eight. Raises BadSetting for none."""
    wanted = config.vocabulary if recipe.reduced_vocabulary is None else recipe.reduced_vocabulary
    if wanted < 1:
        raise BadSetting(f"The draft's vocabulary is {wanted} tokens, but must be at least 1.")
    return min(config.vocabulary, -(-wanted // 8) * 8)


def output_matrix(config: ModelConfig, names: frozenset[str]) -> str:
    """The tensor that makes logits: lm_head, or the embedding where the two are tied or no lm_head is in the file."""
    return EMBEDDING if config.tied_embeddings or OUTPUT not in names else OUTPUT


def build(config: ModelConfig, names: frozenset[str], recipe: Recipe | None = None) -> Programme:
    """The full model's programme, or with a recipe that of the draft. names: tensors the files hold."""
    if config.hidden_act != "silu":
        raise ModelFileError(f"The activation {config.hidden_act} of a gated MLP is not supported; silu is.")
    return tuple(_instructions(config, names, recipe))


def _instructions(config: ModelConfig, names: frozenset[str], recipe: Recipe | None) -> Iterator[Instruction]:
    yield Embed(EMBEDDING)
    adds, window = False, None if recipe is None else recipe.kv_window
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        if recipe is None or layer not in recipe.skipped_attention:
            yield AddNorm(prefix + "input_layernorm.weight", adds)
            yield from _attention(config, names, layer, prefix + "self_attn.", window)
            adds = True
        if recipe is None or layer not in recipe.skipped_mlp:
            yield AddNorm(prefix + "post_attention_layernorm.weight", adds)
            yield from _mlp(config, names, layer, prefix + "mlp.", recipe)
            adds = True
    yield AddNorm(FINAL_NORM, adds, on_tail=True)
    output = output_matrix(config, names)
    if recipe is not None and kept_tokens(config, recipe) < config.vocabulary:
        yield Linear(output, Buffer.NORMED, Buffer.KEPT_LOGITS, kept=True, on_tail=True)
        yield Scatter()
    else:
        yield Linear(output, Buffer.NORMED, Buffer.LOGITS, on_tail=True)


def _attention(
    config: ModelConfig, names: frozenset[str], layer: int, prefix: str, window: int | None
) -> Iterator[Instruction]:
    query, key = config.heads * config.head_dim, config.kv_heads * config.head_dim
    for part, column in (("q", 0), ("k", query), ("v", query + key)):
        weight, bias = f"{prefix}{part}_proj.weight", _bias(f"{prefix}{part}_proj.bias", names)
        yield Linear(weight, Buffer.NORMED, Buffer.QKV, column, bias, meets=part == "v")
    yield RotateStore(layer)
    yield Attend(layer, window)
    yield Linear(prefix + "o_proj.weight", Buffer.ATTENDED, Buffer.DELTA, bias=_bias(prefix + "o_proj.bias", names))


def _mlp(
    config: ModelConfig, names: frozenset[str], layer: int, prefix: str, recipe: Recipe | None
) -> Iterator[Instruction]:
    count = config.intermediate_size if recipe is None else kept_neurons(config, recipe)
    if recipe is not None and chooses_by_planes(config, names, recipe):
        yield PlaneMlp(layer)
        yield PlaneDown(layer)
        return
    chosen = layer if count < config.intermediate_size else None
    for part, column in (("gate", 0), ("up", count)):
        weight, bias = f"{prefix}{part}_proj.weight", _bias(f"{prefix}{part}_proj.bias", names)
        yield Linear(weight, Buffer.NORMED, Buffer.GATE_UP, column, bias, neurons_of=chosen, meets=part == "up")
    yield GatedSilu(layer, count, observes=recipe is None)
    down, bias = prefix + "down_proj.weight", _bias(prefix + "down_proj.bias", names)
    if chosen is None:
        yield Linear(down, Buffer.ACTIVATED, Buffer.DELTA, bias=bias)
    else:
        yield NeuronDown(down, layer)


def _bias(name: str, names: frozenset[str]) -> str | None:
    return name if name in names else None


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a programme that people know by name, up to and including the instruction at `last`.

    buffer: what the part leaves for the rest. on_tail: only of the rows whose logits are wanted.
    """

    name: str
    last: int
    buffer: Buffer
    on_tail: bool = False


def stages(programme: Programme) -> tuple[Stage, ...]:
    """The embedding, each layer's attention and MLP with their norms, the final norm, and the output matrix."""
    found: list[Stage] = []
    block = ""
    for index, step in enumerate(programme):
        match step:
            case Embed():
                found.append(Stage("the token embedding", index, Buffer.STREAM))
            case Attend(layer):
                block = f"layer {layer}'s attention"
            case GatedSilu(layer):
                block = f"layer {layer}'s MLP"
            case NeuronDown() | Linear(target=Buffer.DELTA):
                found.append(Stage(block, index, Buffer.DELTA))
            case AddNorm(on_tail=True):
                found.append(Stage("the final norm", index, Buffer.NORMED, on_tail=True))
            case Linear(target=Buffer.LOGITS):
                found.append(Stage("the output matrix", index, Buffer.LOGITS, on_tail=True))
    return tuple(found)


def matrices(programme: Programme) -> tuple[str, ...]:
    """Names of the matrices a programme multiplies with, in order of first use."""
    used = [step.weight for step in programme if isinstance(step, Linear | NeuronDown)]
    return tuple(dict.fromkeys(used))


@dataclass(frozen=True, slots=True)
class SharedInput:
    """One input of the programme: its buffer, the index of the first product that reads it, and all their weights."""

    buffer: Buffer
    first: int
    weights: tuple[str, ...]


def shared_inputs(programme: Programme) -> tuple[SharedInput, ...]:
    """The inputs of a programme's products, in order."""
    makers = {AddNorm: Buffer.NORMED, Attend: Buffer.ATTENDED, GatedSilu: Buffer.ACTIVATED}
    current: dict[Buffer, int] = {}
    readers: dict[int, tuple[Buffer, list[str]]] = {}
    for index, step in enumerate(programme):
        if type(step) in makers:
            current.pop(makers[type(step)], None)
        elif isinstance(step, Linear):
            first = current.setdefault(step.source, index)
            readers.setdefault(first, (step.source, []))[1].append(step.weight)
    return tuple(SharedInput(buffer, first, tuple(names)) for first, (buffer, names) in readers.items())
