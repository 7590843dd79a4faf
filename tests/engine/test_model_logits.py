"""Logits of both runners against transformers, the oracle, in float32."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from builders import (
    byte_tokenizer,
    random_tensors,
    read_safetensors,
    shard,
    tiny_llama,
    write_gguf,
    write_json,
    write_safetensors,
)
from engine.files.resolve import resolve
from engine.model.runner import Runner
from engine.recipe import Recipe
from engine_rig import compiled_runner, step_logits, torch_runner

IDS = np.random.default_rng(11).integers(3, 290, 100).tolist()


def oracle(folder: Path, tensors: dict[str, np.ndarray] | None = None) -> np.ndarray:
    """transformers' logits [len(IDS), vocabulary] of the folder's config with these (or its own) float32 weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    settings: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    settings.pop("torch_dtype", None)
    model = LlamaForCausalLM(LlamaConfig(**settings, attn_implementation="eager")).eval().float()
    weights = tensors if tensors is not None else read_safetensors(folder)
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()}, False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}
    model.tie_weights()
    with torch.no_grad():
        logits: np.ndarray = model(torch.tensor([IDS])).logits[0].numpy()
    assert logits.std() > 0.5, "the oracle's logits must not be trivial"
    return logits


def check(runner: Runner, wanted: np.ndarray, tolerance: float = 1e-4) -> None:
    """One token at a time, then in chunks with 16 rows of logits each, against the oracle."""
    steps = step_logits(runner, IDS)
    assert np.abs(steps - wanted).max() < tolerance
    for first in range(0, len(IDS), 50):
        tail = runner.full(IDS[first : first + 50], first, 16)
        assert np.abs(tail - wanted[first + 34 : first + 50]).max() < tolerance


def check_both(folder: Path, wanted: np.ndarray, tolerance: float = 1e-4) -> None:
    with compiled_runner(folder) as runner:
        check(runner, wanted, tolerance)
    slow = torch_runner(folder)
    check(slow, wanted, tolerance)
    slow.close()


def change_config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | changes)
    return folder


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
def test_grouped_queries(tmp_path: Path, heads: int, kv_heads: int) -> None:
    folder = tiny_llama(tmp_path, heads=heads, kv_heads=kv_heads, std=0.2)
    check_both(folder, oracle(folder))


def test_a_tied_model_without_a_head(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path, tied=True, std=0.2)
    check_both(folder, oracle(folder))


def test_a_sharded_model(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path, layers=3, std=0.2)
    wanted = oracle(folder)
    shard(folder, 5)
    check_both(folder, wanted)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, **LLAMA3}},
        {"rope_theta": 100.0},
    ],
    ids=["llama3", "linear", "newer spelling", "base"],
)
def test_rope(tmp_path: Path, scaling: dict[str, Any]) -> None:
    folder = tiny_llama(tmp_path, std=0.2)
    unscaled = oracle(folder)
    wanted = oracle(change_config(folder, **scaling))
    assert np.abs(wanted - unscaled).max() > 0.1, "the scaling must matter"
    check_both(folder, wanted)


def test_attention_and_mlp_biases(tmp_path: Path) -> None:
    folder = change_config(tiny_llama(tmp_path, std=0.2), attention_bias=True, mlp_bias=True)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    random = np.random.default_rng(4)
    tensors = random_tensors(config, random, 0.2)
    for name, weight in list(tensors.items()):
        if "_proj" in name:
            tensors[name.replace("weight", "bias")] = random.normal(0, 0.5, len(weight)).astype(np.float32)
    write_safetensors(folder / "model.safetensors", tensors)
    check_both(folder, oracle(folder))


def test_a_head_dimension_the_compiled_kernels_cannot_take_runs_in_torch(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path, heads=8, kv_heads=2, std=0.2)
    slow = torch_runner(folder)
    check(slow, oracle(folder))
    slow.close()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.02), ("bfloat16", 0.02)])
def test_half_weights_stay_near_the_oracle_on_the_same_rounded_weights(
    tmp_path: Path, dtype: str, tolerance: float
) -> None:
    """The KV cache is float16 there, which is all that differs: 2^-11 of each key and value."""
    folder = tiny_llama(tmp_path, dtype=dtype, std=0.2)
    with compiled_runner(folder) as runner:
        check(runner, oracle(folder), tolerance)


@pytest.mark.parametrize(("quant", "tolerance"), [("F32", 1e-4), ("F16", 0.02), ("Q8_0", 0.02)])
def test_gguf_with_its_row_order_undone(tmp_path: Path, quant: str, tolerance: float) -> None:
    source = byte_tokenizer(tiny_llama(tmp_path / "source", std=0.2))
    path = write_gguf(tmp_path / "model.gguf", source, quant)
    kind = gguf.GGMLQuantizationType[quant]
    stored = {
        name: tensor if tensor.ndim == 1 else gguf.quants.dequantize(gguf.quants.quantize(tensor, kind), kind)
        for name, tensor in read_safetensors(source).items()
    }
    if quant == "Q8_0":  # converted once to float16
        stored = {name: tensor.astype(np.float16).astype(np.float32) for name, tensor in stored.items()}
    wanted = oracle(source, stored)
    folder = resolve(str(path), lambda _: None, lambda: False)
    with compiled_runner(folder) as runner:
        check(runner, wanted, tolerance)


def test_int8_drafts_resemble_the_full_model_and_skipping_changes_them(tmp_path: Path) -> None:
    """A draft that silently ran the full weights, or another model, would fail one of these."""
    folder = tiny_llama(tmp_path, std=0.2)
    with compiled_runner(folder, recipe=Recipe(weight_bits=8)) as runner:
        runner.full(IDS[:50], 0, 0)
        full = runner.full(IDS[50:51], 50, 1)[0].copy()
        eight = runner.draft(IDS[50:51], 50)[0].copy()
        assert 0 < np.abs(eight - full).max() < 0.25 * full.std()
        runner.use_recipe(Recipe(weight_bits=16))
        assert np.array_equal(runner.draft(IDS[50:51], 50)[0], full)
        runner.use_recipe(Recipe(weight_bits=16, skipped_mlp=(0,)))
        assert np.abs(runner.draft(IDS[50:51], 50)[0] - full).max() > 0.5 * full.std()


@pytest.mark.parametrize("bits", [16, 8])
def test_drafts_of_both_runners_agree_on_skipping_and_neurons(tmp_path: Path, bits: int) -> None:
    folder = tiny_llama(tmp_path, layers=3, std=0.2)
    recipe = Recipe(weight_bits=bits, neuron_share=0.5, skipped_attention=(1,), skipped_mlp=(2,))
    slow = torch_runner(folder, recipe=Recipe(**{**recipe.to_json(), "weight_bits": 16}))
    with compiled_runner(folder, recipe=recipe) as fast:
        for runner in (slow, fast):
            for position, token in enumerate(IDS[:20]):
                runner.full([token], position, 0)
            runner.refresh_neurons()
        chosen = [ids.tolist() for ids in slow._choice.chosen]
        assert chosen == [ids.tolist() for ids in fast._draft.choice.chosen]
        assert chosen[0] != list(range(64)), "the choice must have moved from where it began"
        wanted, got = slow.draft(IDS[20:21], 20)[0], fast.draft(IDS[20:21], 20)[0]
        assert np.abs(got - wanted).max() < (1e-4 if bits == 16 else 0.25 * wanted.std())
    slow.close()
