"""OPT 125m to 66b (Zhang et al. 2022): learned positions, LayerNorm, biases, and an MLP without gate behind a ReLU.

The 350m model has its norms behind the blocks, no final norm, and an embedding narrower than the stream.
"""

from __future__ import annotations

from engine.errors import ModelFileError
from engine.files.config_values import Values
from engine.files.families.family import Family, read_dtype, read_ends, read_heads
from engine.files.shape import ModelConfig

FIRST_PLACE = 2  # the rows before it stood for padding
EPSILON = 1e-5


def _read(config: Values, generation: Values) -> ModelConfig:
    if not config.flag("layer_norm_elementwise_affine", True):
        raise ModelFileError("config.json asks for norms without weights (Galactica), which are not supported.")
    hidden, first = config.size("hidden_size"), config.flag("do_layer_norm_before", True)
    heads, kv_heads, head_dim = read_heads(
        Values({"num_attention_heads": config.raw.get("num_attention_heads")}), hidden
    )
    width, biased = config.size("word_embed_proj_dim", hidden), config.flag("enable_bias", True)
    bos, eos = read_ends(config, generation)
    return ModelConfig(
        family="opt",
        architecture=config.raw["architectures"][0],
        hidden_size=hidden,
        intermediate_size=config.size("ffn_dim"),
        layers=config.size("num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=config.size("vocab_size"),
        context=config.size("max_position_embeddings"),
        rms_norm_eps=EPSILON,
        rope_theta=1.0,
        rope_scaling=None,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        attention_bias=biased,
        mlp_bias=biased,
        hidden_act=config.choice("activation_function", "relu", ("relu",)),
        bos_id=bos,
        eos_ids=eos,
        dtype=read_dtype(config),
        gated=False,
        layer_norm=True,
        norm_after=not first,
        final_norm=first and not config.flag("_remove_final_layer_norm"),
        embedding_width=None if width == hidden else width,
        first_place=FIRST_PLACE,
    )


OPT = Family(
    "opt",
    ("OPTForCausalLM",),
    _read,
    prefixes=("model.decoder.", "decoder.", "model.", ""),
    names={
        "final_layer_norm": "norm",
        "layers.self_attn_layer_norm": "layers.input_layernorm",
        "layers.final_layer_norm": "layers.post_attention_layernorm",
        "layers.self_attn.out_proj": "layers.self_attn.o_proj",
        "layers.fc1": "layers.mlp.up_proj",
        "layers.fc2": "layers.mlp.down_proj",
    },
)
