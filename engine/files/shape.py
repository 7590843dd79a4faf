"""The shape of a model: all that the engine knows of it beside its weights, whatever family it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a model of one family. What the defaults say is LLaMA.

    context: positions the model may use.
    rms_norm_eps: what norms of either kind add to the mean square.
    rope_scaling: None, or {"rope_type": "linear", "dynamic", "llama3", "yarn" or "longrope", …} with the numbers that
        the kind has (see engine.model.rope), as floats, whatever spelling the file used.
    attention_bias: on queries, keys, values and the output. mlp_bias: on all matrices of the MLP.
    eos_ids: every end token, those of generation_config.json first; may be empty.
    dtype: what config.json says the weights are ("float32", "float16", "bfloat16"); the files decide.
    qkv_bias: on queries, keys and values alone. qk_norm: an RMS norm of each query and key head before the rotation.
    gated: whether the MLP has a gate; one without has `hidden_act` between two matrices.
    layer_norm: LayerNorm with biases, not RMS norm. norm_after: the norms follow the blocks. final_norm: there is one.
    embedding_width: of the embedding, where it is narrower than the stream; two matrices lead in and out.
    first_place: row of the learned position table where position 0 is; None for rotary positions.
    unrotated: layers without any positions. window: positions a row attends to, its own the last; None for all.
    unwindowed: layers that attend to all in spite of `window`.
    """

    family: str
    architecture: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    tied_embeddings: bool
    attention_bias: bool
    mlp_bias: bool
    hidden_act: str
    bos_id: int | None
    eos_ids: tuple[int, ...]
    dtype: str
    qkv_bias: bool = False
    qk_norm: bool = False
    gated: bool = True
    layer_norm: bool = False
    norm_after: bool = False
    final_norm: bool = True
    embedding_width: int | None = None
    first_place: int | None = None
    unrotated: tuple[int, ...] = ()
    window: int | None = None
    unwindowed: tuple[int, ...] = ()

    @property
    def rotary(self) -> bool:
        """Whether positions are rotations of queries and keys."""
        return self.first_place is None

    @property
    def output_width(self) -> int:
        """Columns of the embedding and of the output matrix."""
        return self.hidden_size if self.embedding_width is None else self.embedding_width

    def rotates(self, layer: int) -> bool:
        """Whether the layer rotates queries and keys."""
        return self.rotary and layer not in self.unrotated

    def window_of(self, layer: int) -> int | None:
        """Positions a row of the layer attends to, its own the last; None for all."""
        return None if layer in self.unwindowed else self.window
