"""A tiny random model of every family, made and saved by transformers, with transformers itself as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from builders import read_safetensors, write_safetensors

HIDDEN, NEURONS, HEADS, VOCABULARY, POSITIONS, WINDOW = 64, 128, 4, 290, 256, 24
USUAL: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": NEURONS,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": POSITIONS,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "tie_word_embeddings": False,
}
OPT: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "ffn_dim": NEURONS,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": POSITIONS,
    "word_embed_proj_dim": HIDDEN,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
OPT_350M = {"word_embed_proj_dim": 32, "do_layer_norm_before": False}
SLIDING: dict[str, Any] = {"sliding_window": WINDOW}
WAVES = {"rope_theta": 10000.0, "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **WAVES}
LONG = {"rope_type": "longrope", "short_factor": [1.0 + 0.1 * i for i in range(8)], "long_factor": [4.0] * 8}
LONG |= {"rope_theta": 10000.0, "original_max_position_embeddings": POSITIONS // 2}


@dataclass(frozen=True)
class Case:
    """A model: transformers' configuration class and what it is made with.

    rename: of the tensors in the file, for files that other tools have written.
    """

    name: str
    config_class: str
    settings: dict[str, Any] = field(default_factory=dict)
    rename: Callable[[str], str] = str

    @property
    def all_settings(self) -> dict[str, Any]:
        """Of the configuration."""
        return (OPT if self.config_class == "OPTConfig" else USUAL) | self.settings


def llama(name: str, **settings: Any) -> Case:
    return Case(name, "LlamaConfig", settings)


CASES = (
    llama("llama"),
    llama("llama tied, all heads", num_key_value_heads=4, tie_word_embeddings=True),
    llama("llama biases", attention_bias=True, mlp_bias=True),
    llama("llama linear", rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}),
    llama("llama dynamic", rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}),
    llama("llama llama3", rope_parameters=LLAMA3),
    llama("llama yarn", rope_parameters={"rope_type": "yarn", "factor": 8.0, **WAVES}),
    Case("mistral", "MistralConfig", SLIDING),
    Case("mistral without window", "MistralConfig", {"sliding_window": None}),
    Case("qwen2", "Qwen2Config", {"tie_word_embeddings": True, **SLIDING}),
    Case("qwen2 half windowed", "Qwen2Config", {"use_sliding_window": True, "max_window_layers": 1, **SLIDING}),
    Case("qwen3", "Qwen3Config", {"head_dim": 32}),
    Case("smollm3", "SmolLM3Config", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    Case("phi3", "Phi3Config", SLIDING),
    Case("phi3 longrope", "Phi3Config", {"rope_parameters": LONG, "original_max_position_embeddings": POSITIONS // 2}),
    Case("opt", "OPTConfig", OPT),
    Case("opt 350m", "OPTConfig", OPT_350M),
    Case("opt without prefix", "OPTConfig", OPT_350M, lambda name: name.removeprefix("model.")),
    Case("opt without biases", "OPTConfig", {"enable_bias": False}),
)


@dataclass(frozen=True)
class Made:
    """A model folder and the model that transformers made it of."""

    case: Case
    folder: Path
    model: Any

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """float32 [len(ids), vocabulary]."""
        with torch.no_grad():
            found: np.ndarray = self.model(torch.tensor([list(ids)])).logits[0].numpy()
        assert found.std() > 0.3, "the oracle's logits must not be trivial"
        return found

    def keys_and_values(self, ids: Sequence[int]) -> list[np.ndarray]:
        """What each layer's cache holds after these ids, float32 [len(ids), 2, kv heads, head dim]."""
        with torch.no_grad():
            cache = self.model(torch.tensor([list(ids)]), use_cache=True).past_key_values
        layers = [torch.stack((layer.keys[0], layer.values[0])) for layer in cache.layers]
        return [layer.permute(2, 0, 1, 3).numpy() for layer in layers]

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """The best continuation, whatever end tokens it has."""
        with torch.no_grad():
            found = self.model.generate(
                torch.tensor([list(prompt)]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                do_sample=False,
                max_new_tokens=count,
                eos_token_id=None,
                pad_token_id=None,
            )
        ids: list[int] = found[0, len(prompt) :].tolist()
        return ids


def make(case: Case, folder: Path, std: float = 0.2, dtype: str = "float32", **settings: Any) -> Made:
    """Make the model with every weight, bias and norm random, and save it as `dtype`. settings: that differ."""
    import transformers

    config = getattr(transformers, case.config_class)(**case.all_settings | settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=random)
            is_norm = "norm" in name and name.endswith("weight")
            weight.copy_(1 + 0.1 * noise if is_norm else (std if weight.ndim > 1 else 0.3) * noise)
    model.save_pretrained(folder)
    tensors = {case.rename(name): tensor for name, tensor in read_safetensors(folder).items()}
    write_safetensors(folder / "model.safetensors", tensors, dtype)
    return Made(case, folder, model)
