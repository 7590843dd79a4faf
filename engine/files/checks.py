"""What tensors a model of a given shape must have, and whether a folder has them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import ModelFileError
from engine.files.config import ModelConfig
from engine.files.safetensors_header import ITEM_BYTES, TensorEntry
from engine.files.stored_names import stored_name
from engine.files.wording import shown

EMBEDDING = "model.embed_tokens.weight"
POSITIONS = "model.embed_positions.weight"
PROJECT_IN, PROJECT_OUT = "model.project_in.weight", "model.project_out.weight"
FINAL_NORM = "model.norm.weight"
HEAD = "lm_head.weight"


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Our name and the shape of every tensor of the model, in order; a tied model has no lm_head.

    Matrices are (out, in).
    """
    hidden, width = config.hidden_size, config.output_width
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (config.vocabulary, width)}
    if config.first_place is not None:
        shapes[POSITIONS] = (config.context + config.first_place, hidden)
    if config.embedding_width is not None:
        shapes[PROJECT_IN] = (hidden, width)
    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        shapes |= _norm(config, at + "input_layernorm.weight")
        shapes |= _attention(config, at + "self_attn.")
        shapes |= _norm(config, at + "post_attention_layernorm.weight")
        shapes |= _mlp(config, at + "mlp.")
    if config.final_norm:
        shapes |= _norm(config, FINAL_NORM)
    if config.embedding_width is not None:
        shapes[PROJECT_OUT] = (width, hidden)
    if not config.tied_embeddings:
        shapes[HEAD] = (config.vocabulary, width)
    return shapes


def _attention(config: ModelConfig, at: str) -> dict[str, tuple[int, ...]]:
    hidden, q_rows, kv_rows = config.hidden_size, config.heads * config.head_dim, config.kv_heads * config.head_dim
    inputs = {"q_proj": (q_rows, hidden), "k_proj": (kv_rows, hidden), "v_proj": (kv_rows, hidden)}
    shapes = _linear(at, inputs, config.attention_bias or config.qkv_bias)
    shapes |= _linear(at, {"o_proj": (hidden, q_rows)}, config.attention_bias)
    if config.qk_norm:
        shapes |= {f"{at}{part}_norm.weight": (config.head_dim,) for part in "qk"}
    return shapes


def _mlp(config: ModelConfig, at: str) -> dict[str, tuple[int, ...]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    inputs = ("gate_proj", "up_proj") if config.gated else ("up_proj",)
    return _linear(at, {**dict.fromkeys(inputs, (inner, hidden)), "down_proj": (hidden, inner)}, config.mlp_bias)


def _norm(config: ModelConfig, weight: str) -> dict[str, tuple[int, ...]]:
    names = (weight, bias_of(weight)) if config.layer_norm else (weight,)
    return dict.fromkeys(names, (config.hidden_size,))


def bias_of(weight: str) -> str:
    """The name of the bias that goes with a weight."""
    return weight.removesuffix("weight") + "bias"


def _linear(at: str, matrices: Mapping[str, tuple[int, int]], bias: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in matrices.items():
        shapes[f"{at}{name}.weight"] = shape
        if bias:
            shapes[f"{at}{name}.bias"] = shape[:1]
    return shapes


def needed_entries(config: ModelConfig, entries: Mapping[str, TensorEntry], where: str) -> dict[str, TensorEntry]:
    """The entries the model needs, in file order of the model; others (old buffers, a head that is tied) are left out.

    entries: by our names. Raises ModelFileError naming the first tensor, as its file would call it, that is missing,
    of a wrong element type or of a wrong shape.
    """
    expected = expected_tensors(config)
    missing = [name for name in expected if name not in entries]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelFileError(
            f"{where} lacks the tensor {stored_name(config, missing[0])}{more}: the model is not complete."
        )
    for name, shape in expected.items():
        stored = stored_name(config, name)
        if entries[name].dtype not in ITEM_BYTES:
            raise ModelFileError(
                f"{entries[name].file.name} holds {stored} as {shown(entries[name].dtype)}; "
                f"supported element types are {', '.join(ITEM_BYTES)}."
            )
        if entries[name].shape != shape:
            raise ModelFileError(
                f"{entries[name].file.name} holds {stored} as {shown(list(entries[name].shape))}, "
                f"but config.json calls for {list(shape)}."
            )
    return {name: entries[name] for name in expected}
