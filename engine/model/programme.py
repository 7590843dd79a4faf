"""The forward pass as data: a list of instructions, built once from the model's shape and a recipe.

Plain decoding, verification and prefill run the *same* programme; a draft runs a shorter or cheaper one. Executors
(`engine/kernels/compiled` on the CPU, `engine/kernels/reference` in torch) know operations, not models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.errors import BadSetting
from engine.files.checks import EMBEDDING, FINAL_NORM, POSITIONS, PROJECT_IN, PROJECT_OUT, bias_of
from engine.files.checks import HEAD as OUTPUT
from engine.files.config import ModelConfig
from engine.model.instructions import (
    SINKS,
    AddNorm,
    AddPositions,
    Attend,
    Buffer,
    Embed,
    GatedSilu,
    Instruction,
    Linear,
    NeuronDown,
    PlaneDown,
    PlaneMlp,
    Programme,
    Relu,
    RotateStore,
    Scatter,
)
from engine.predict.planes import planes_fit
from engine.recipe import Recipe

__all__ = [
    "EMBEDDING",
    "FINAL_NORM",
    "OUTPUT",
    "POSITIONS",
    "PROJECT_IN",
    "PROJECT_OUT",
    "SINKS",
    "AddNorm",
    "AddPositions",
    "Attend",
    "Buffer",
    "Embed",
    "GatedSilu",
    "Instruction",
    "Linear",
    "NeuronDown",
    "PlaneDown",
    "PlaneMlp",
    "Programme",
    "Relu",
    "RotateStore",
    "Scatter",
    "SharedInput",
    "Stage",
    "build",
    "chooses_by_planes",
    "kept_neurons",
    "kept_tokens",
    "matrices",
    "output_matrix",
    "output_source",
    "shared_inputs",
    "stages",
    "widths",
    "written",
]


def widths(config: ModelConfig) -> dict[Buffer, int]:
    """float32 values a row of each buffer."""
    heads = config.heads * config.head_dim
    narrow = {} if config.embedding_width is None else {Buffer.NARROW: config.embedding_width}
    return narrow | {
        Buffer.STREAM: config.hidden_size,
        Buffer.NORMED: config.hidden_size,
        Buffer.QKV: heads + 2 * config.kv_heads * config.head_dim,
        Buffer.ATTENDED: heads,
        Buffer.DELTA: config.hidden_size,
        Buffer.GATE_UP: (2 if config.gated else 1) * config.intermediate_size,
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

    Planes need groups of a multiple of 64 and a gated MLP without biases.
    """
    share = kept_neurons(config, recipe) < config.intermediate_size
    biased = any(name.endswith(("gate_proj.bias", "up_proj.bias", "down_proj.bias")) for name in names)
    fit = config.gated and not biased and planes_fit(config.hidden_size, config.intermediate_size)
    return recipe.weight_bits == 4 and share and fit


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
    return (*_beginning(config), *_blocks(config, names, recipe), *_end(config, names, recipe))


def _beginning(config: ModelConfig) -> Iterator[Instruction]:
    if config.embedding_width is None:
        yield Embed(EMBEDDING)
    else:
        yield Embed(EMBEDDING, Buffer.NARROW)
        yield Linear(PROJECT_IN, Buffer.NARROW, Buffer.STREAM)
    if config.first_place is not None:
        yield AddPositions(POSITIONS, config.first_place)


def _blocks(config: ModelConfig, names: frozenset[str], recipe: Recipe | None) -> Iterator[Instruction]:
    """Attention and MLP of each layer with the norm that comes before or after them; the last sum is left to _end."""
    adds = False
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        for attends, norm in ((True, "input_layernorm"), (False, "post_attention_layernorm")):
            if recipe is not None and layer in (recipe.skipped_attention if attends else recipe.skipped_mlp):
                continue
            block = _attention if attends else _mlp
            if config.norm_after:
                yield from block(config, names, layer, recipe, Buffer.STREAM)
                yield _norm(config, f"{prefix}{norm}.weight", adds=True, target=Buffer.STREAM)
            else:
                yield _norm(config, f"{prefix}{norm}.weight", adds)
                yield from block(config, names, layer, recipe, Buffer.NORMED)
                adds = True


def _end(config: ModelConfig, names: frozenset[str], recipe: Recipe | None) -> Iterator[Instruction]:
    source = Buffer.STREAM
    if config.final_norm:
        source = Buffer.NORMED
        yield _norm(config, FINAL_NORM, adds=not config.norm_after and _has_blocks(config, recipe), on_tail=True)
    if config.embedding_width is not None:
        yield Linear(PROJECT_OUT, source, Buffer.NARROW, on_tail=True)
        source = Buffer.NARROW
    output = output_matrix(config, names)
    if recipe is not None and kept_tokens(config, recipe) < config.vocabulary:
        yield Linear(output, source, Buffer.KEPT_LOGITS, kept=True, on_tail=True)
        yield Scatter()
    else:
        yield Linear(output, source, Buffer.LOGITS, on_tail=True)


def _has_blocks(config: ModelConfig, recipe: Recipe | None) -> bool:
    every = set(range(config.layers))
    return recipe is None or not every <= set(recipe.skipped_attention) & set(recipe.skipped_mlp)


def _norm(
    config: ModelConfig, weight: str, adds: bool, on_tail: bool = False, target: Buffer = Buffer.NORMED
) -> AddNorm:
    return AddNorm(weight, adds, on_tail, bias_of(weight) if config.layer_norm else None, target)


def _attention(
    config: ModelConfig, names: frozenset[str], layer: int, recipe: Recipe | None, source: Buffer
) -> Iterator[Instruction]:
    prefix = f"model.layers.{layer}.self_attn."
    query, key = config.heads * config.head_dim, config.kv_heads * config.head_dim
    for part, column in (("q", 0), ("k", query), ("v", query + key)):
        weight, bias = f"{prefix}{part}_proj.weight", _bias(f"{prefix}{part}_proj.bias", names)
        yield Linear(weight, source, Buffer.QKV, column, bias, meets=part == "v")
    norms = (f"{prefix}q_norm.weight", f"{prefix}k_norm.weight") if config.qk_norm else (None, None)
    yield RotateStore(layer, config.rotates(layer), *norms)
    yield _attend(config, layer, recipe)
    yield Linear(prefix + "o_proj.weight", Buffer.ATTENDED, Buffer.DELTA, bias=_bias(prefix + "o_proj.bias", names))


def _attend(config: ModelConfig, layer: int, recipe: Recipe | None) -> Attend:
    own = config.window_of(layer)
    window = None if recipe is None else recipe.kv_window
    if window is None or (own is not None and own <= window + SINKS):
        return Attend(layer, own, sinks=0)
    return Attend(layer, window)


def _mlp(
    config: ModelConfig, names: frozenset[str], layer: int, recipe: Recipe | None, source: Buffer
) -> Iterator[Instruction]:
    prefix = f"model.layers.{layer}.mlp."
    count = config.intermediate_size if recipe is None else kept_neurons(config, recipe)
    if recipe is not None and chooses_by_planes(config, names, recipe):
        yield PlaneMlp(layer)
        yield PlaneDown(layer)
        return
    chosen = layer if count < config.intermediate_size else None
    for part, column in (("gate", 0), ("up", count)) if config.gated else (("up", 0),):
        weight, bias = f"{prefix}{part}_proj.weight", _bias(f"{prefix}{part}_proj.bias", names)
        yield Linear(weight, source, Buffer.GATE_UP, column, bias, neurons_of=chosen, meets=part == "up")
    yield (GatedSilu if config.gated else Relu)(layer, count, observes=recipe is None)
    down, bias = prefix + "down_proj.weight", _bias(prefix + "down_proj.bias", names)
    if chosen is None:
        yield Linear(down, Buffer.ACTIVATED, Buffer.DELTA, bias=bias)
    else:
        yield NeuronDown(down, layer, bias)


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
            case Embed(target=buffer):
                found.append(Stage("the token embedding", index, buffer))
            case AddPositions():
                found.append(Stage("the position embedding", index, Buffer.STREAM))
            case Attend(layer):
                block = f"layer {layer}'s attention"
            case GatedSilu(layer) | Relu(layer):
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


def output_source(programme: Programme) -> Buffer:
    """The buffer that the output matrix reads."""
    return next(step.source for step in reversed(programme) if isinstance(step, Linear))


def written(step: Instruction) -> Buffer | None:
    """The buffer whose old contents an instruction ends, of those that products read."""
    match step:
        case Embed(target=buffer) | AddNorm(target=buffer):
            return buffer
        case Linear(target=Buffer.STREAM | Buffer.NARROW as buffer):
            return buffer
        case AddPositions():
            return Buffer.STREAM
        case Attend():
            return Buffer.ATTENDED
        case GatedSilu() | Relu() | PlaneMlp():
            return Buffer.ACTIVATED
    return None


def shared_inputs(programme: Programme) -> tuple[SharedInput, ...]:
    """The inputs of a programme's products, in order."""
    current: dict[Buffer, int] = {}
    readers: dict[int, tuple[Buffer, list[str]]] = {}
    for index, step in enumerate(programme):
        if isinstance(step, Linear):
            first = current.setdefault(step.source, index)
            readers.setdefault(first, (step.source, []))[1].append(step.weight)
        ended = written(step)
        if ended is not None:
            current.pop(ended, None)
    return tuple(SharedInput(buffer, first, tuple(names)) for first, (buffer, names) in readers.items())
