"""What a model asks of the fast memory beside its parts, and the drafts it could have: sizes from its shape alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.files.config import ModelConfig
from engine.lowbit.codes import group_of
from engine.lowbit.packed import container_bits, packed_shape
from engine.model import programme as p
from engine.model.cpu_default import default_recipe
from engine.model.runner import CYCLE_ROWS, MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.offload.parts import ATTENTION, MLP, Part, part_index
from engine.recipe import Recipe

CARD_PAGE, HOST_PAGE = 2 << 20, 1 << 16  # of the KV cache
CARD_FIXED = 600 << 20  # the context of CUDA, kernels, and captured graphs
CARD_BUFFER_ROWS = 16 + 48 + 64  # of decode steps, wide passes and prompts
HOST_BUFFER_ROWS = 64
WIDE_ROWS = 48  # of a card's verify pass over a streamed model
CARD_MARGIN, HOST_MARGIN = 256 << 20, 8 << 20
USUAL_TOKENS = 512  # in the cache, where speed is told
DRAFT_WIDTHS = {"cuda": (4,), "cpu": (4, 3)}  # bits, as loading makes them
# Share of a draft's tokens that the model accepts: the starter model, a hard case; larger ones agree more often.
ACCEPTANCE = {8: 0.98, 4: 0.91, 3: 0.8}


@dataclass(frozen=True, slots=True)
class DraftOption:
    """A draft that could be made. nbytes: of its copy. read: bytes that a step reads of it.

    acceptance: share of its tokens that the full model agrees with. seconds: of a step, where measured.
    parts: of the copy, those that could be brought in for every step instead; () where it must lie there as a whole.
    """

    recipe: Recipe
    nbytes: int
    read: int
    acceptance: float
    seconds: float | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Demands:
    """Bytes of the fast memory, unless said otherwise; what comes before the parts.

    always: embedding, norms, biases. output_read: what a pass reads of the embedding where it makes logits too.
    kv: rows of the KV cache that are counted on. attended: what of them a pass reads where speed is told.
    workspace: activations, graphs, the context. margin: kept free. others: of the budget, taken by other programs.
    drafts: those to choose from; none forbids drafting. always_drafts: whether the device has one in any case.
    allow_host: whether the CPU may compute parts.
    rows, streamed_rows: of the widest verify pass, where all is resident and where parts are streamed.
    """

    always: int
    output_read: int
    kv: int
    attended: int
    workspace: int
    margin: int
    others: int
    drafts: tuple[DraftOption, ...] = ()
    always_drafts: bool = False
    allow_host: bool = False
    rows: int = MAX_DECODE_ROWS
    streamed_rows: int = MAX_DECODE_ROWS

    def plain(self) -> Demands:
        """The same without a draft."""
        return replace(self, drafts=(), always_drafts=False)

    @property
    def choices(self) -> tuple[DraftOption | None, ...]:
        """Drafts that a plan may have; None stands for none."""
        return self.drafts if self.always_drafts else (None, *self.drafts)


def demands_of(
    config: ModelConfig,
    sizes: Mapping[str, int],
    parts: Sequence[Part],
    *,
    device: str,
    context: int,
    others: int = 0,
    widths: Sequence[int] = (4,),
) -> Demands:
    """Of a model on "cuda" or "cpu". sizes: bytes of every tensor. context: tokens that the KV cache shall hold.

    widths: bits that drafts may have; see DraftOption for the acceptance they are given.
    """
    card = device == "cuda"
    placed = {name for part in parts for name in part.tensors}
    embedding = sizes[p.EMBEDDING]
    tied = p.output_matrix(config, frozenset(sizes)) == p.EMBEDDING
    item = 4 if embedding >= 4 * config.vocabulary * config.output_width else 2
    row = 2 * config.kv_heads * config.head_dim * item
    page = CARD_PAGE if card else HOST_PAGE
    drafts = tuple(draft_option(config, device, bits) for bits in widths) if _packable(config) else ()
    return Demands(
        always=sum(size for name, size in sizes.items() if name not in placed),
        output_read=embedding if tied else 0,
        kv=config.layers * -(-min(context + CYCLE_ROWS, config.context) * row // page) * page,
        attended=config.layers * row * min(context, USUAL_TOKENS),
        workspace=_card_workspace(config, context) if card else _host_workspace(config, context),
        margin=CARD_MARGIN if card else HOST_MARGIN,
        others=others,
        drafts=drafts,
        always_drafts=bool(drafts) and not card,
        streamed_rows=WIDE_ROWS if card else MAX_DECODE_ROWS,
    )


def draft_option(config: ModelConfig, device: str, bits: int) -> DraftOption:
    """The device's usual draft at this width."""
    recipe = Recipe(weight_bits=bits) if device == "cuda" else replace(default_recipe(config), weight_bits=bits)
    size = _card_matrix if device == "cuda" else _host_matrix
    layers = config.layers * sum(size(n, k, bits) for n, k in _layer_shapes(config, joined=device == "cuda"))
    output = size(config.vocabulary, config.output_width, bits)
    output += sum(size(n, k, bits) for n, k in _bridges(config))
    kept = p.kept_tokens(config, recipe)
    if kept == config.vocabulary:
        parts = _card_parts(config, bits) if device == "cuda" else ()
        return DraftOption(recipe, layers + output, layers + output, ACCEPTANCE[bits], parts=parts)
    few = size(kept, config.output_width, bits)
    logits = 4 * MAX_DRAFT_ROWS * (kept + config.vocabulary)
    return DraftOption(recipe, layers + output + few + logits, layers + few, ACCEPTANCE[bits])


def _card_parts(config: ModelConfig, bits: int) -> tuple[Part, ...]:
    """Parts of a card's copy, numbered as the model's; its output matrix always lies on the card."""
    output, down, qkv, gate_up = (_card_matrix(n, k, bits) for n, k in _layer_shapes(config, joined=True))
    sizes = {ATTENTION: qkv + output, MLP: gate_up + down}
    return tuple(
        Part(part_index(layer, kind), layer, kind, (), nbytes)
        for layer in range(config.layers)
        for kind, nbytes in sizes.items()
    )


def _packable(config: ModelConfig) -> bool:
    """Low-bit copies need sizes in eights."""
    shapes = (*_layer_shapes(config, joined=False), *_bridges(config))
    return all(size % 8 == 0 for shape in shapes for size in shape)


def _bridges(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """(N, K) of the matrices between the stream and an embedding that is narrower."""
    hidden, width = config.hidden_size, config.output_width
    return () if config.embedding_width is None else ((hidden, width), (width, hidden))


def _layer_shapes(config: ModelConfig, *, joined: bool) -> Iterator[tuple[int, int]]:
    """(N, K) of a layer's matrices. joined: those with the same input are one."""
    hidden, inner = config.hidden_size, config.intermediate_size
    heads, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    gates = 2 if config.gated else 1  # matrices before the activation
    yield from ((hidden, heads), (hidden, inner))
    if joined:
        yield from ((heads + 2 * kv, hidden), (gates * inner, hidden))
    else:
        yield from ((heads, hidden), (kv, hidden), (kv, hidden), *((inner, hidden) for _ in range(gates)))


def _card_matrix(rows: int, columns: int, bits: int) -> int:
    """Codes, and four bytes a group."""
    return rows * columns * bits // 8 + 4 * rows * (columns // group_of(columns))


def _host_matrix(rows: int, columns: int, bits: int) -> int:
    """As engine.lowbit.packed lays it out: tiles of eight rows."""
    group = group_of(columns)
    tiles, groups, nbytes = packed_shape(rows, columns, container_bits(bits, group), group)
    return tiles * groups * nbytes + 4 * columns


def _card_workspace(config: ModelConfig, context: int) -> int:
    """As engine.kernels.triton.step_memory takes it, several times, beside what the driver takes."""
    heads, inner = config.heads * config.head_dim, config.intermediate_size
    row = 6 * config.hidden_size + 2 * (2 * heads + 2 * config.kv_heads * config.head_dim + inner)
    splits = context // 128 + 9
    attention = config.heads * splits * (config.head_dim + 2) * 4
    rotary = 2 * 4 * config.head_dim * context
    return CARD_FIXED + CARD_BUFFER_ROWS * (row + attention) + 3 * 16 * 4 * config.vocabulary + rotary


def _host_workspace(config: ModelConfig, context: int) -> int:
    """As engine.model.compiled_memory takes it."""
    row = 4 * sum(p.widths(config).values())
    return HOST_BUFFER_ROWS * row + 4 * config.layers * config.intermediate_size + 2 * 4 * config.head_dim * context
