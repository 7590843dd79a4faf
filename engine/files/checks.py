"""What tensors a model of a given shape must have, and whether a folder has them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import ModelFileError
from engine.files.config import ModelConfig
from engine.files.safetensors_header import ITEM_BYTES, TensorEntry
from engine.files.wording import shown

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of the model, in order; a tied model has no lm_head. Matrices are (out, in)."""
    hidden, inner = config.hidden_size, config.intermediate_size
    q_rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (config.vocabulary, hidden)}
    attention = {"q_proj": (q_rows, hidden), "k_proj": (kv_rows, hidden), "v_proj": (kv_rows, hidden)}
    attention["o_proj"] = (hidden, q_rows)
    mlp = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        shapes[at + "input_layernorm.weight"] = (hidden,)
        shapes |= _linear(at + "self_attn.", attention, config.attention_bias)
        shapes[at + "post_attention_layernorm.weight"] = (hidden,)
        shapes |= _linear(at + "mlp.", mlp, config.mlp_bias)
    shapes["model.norm.weight"] = (hidden,)
    if not config.tied_embeddings:
        shapes[HEAD] = (config.vocabulary, hidden)
    return shapes


def _linear(at: str, matrices: Mapping[str, tuple[int, int]], bias: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in matrices.items():
        shapes[f"{at}{name}.weight"] = shape
        if bias:
            shapes[f"{at}{name}.bias"] = shape[:1]
    return shapes


def needed_entries(config: ModelConfig, entries: Mapping[str, TensorEntry], where: str) -> dict[str, TensorEntry]:
    """The entries the model needs, in file order of the model; others (old buffers, a head that is tied) are left out.

    Raises ModelFileError naming the first tensor that is missing, of a wrong element type or of a wrong shape.
    """
    expected = expected_tensors(config)
    missing = [name for name in expected if name not in entries]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelFileError(f"{where} lacks the tensor {missing[0]}{more}: the model is not complete.")
    for name, shape in expected.items():
        if entries[name].dtype not in ITEM_BYTES:
            raise ModelFileError(
                f"{entries[name].file.name} holds {name} as {shown(entries[name].dtype)}; "
                f"supported element types are {', '.join(ITEM_BYTES)}."
            )
        if entries[name].shape != shape:
            raise ModelFileError(
                f"{entries[name].file.name} holds {name} as {shown(list(entries[name].shape))}, "
                f"but config.json calls for {list(shape)}."
            )
    return {name: entries[name] for name in expected}
