"""config.json and generation_config.json: every spelling in use is understood, everything else is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import tiny_llama, write_json
from engine.errors import ModelFileError
from engine.files.config import parse_config, read_config


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    """The contents of a good config.json."""
    loaded: dict[str, Any] = json.loads((tiny_llama(tmp_path / "model") / "config.json").read_text())
    return loaded


def refusal(values: dict[str, Any], generation: dict[str, Any] | None = None) -> str:
    with pytest.raises(ModelFileError) as caught:
        parse_config(values, generation or {})
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    return text


def test_shape_is_read(tmp_path: Path) -> None:
    config = read_config(tiny_llama(tmp_path, layers=3, hidden=96, heads=6, kv_heads=3, vocab=300, positions=128))
    assert (config.family, config.architecture) == ("llama", "LlamaForCausalLM")
    assert (config.layers, config.hidden_size, config.intermediate_size) == (3, 96, 192)
    assert (config.heads, config.kv_heads, config.head_dim) == (6, 3, 16)
    assert (config.vocabulary, config.context, config.rms_norm_eps) == (300, 128, 1e-6)
    assert (config.bos_id, config.eos_ids, config.dtype) == (0, (1,), "float32")
    assert not (config.tied_embeddings or config.attention_bias or config.mlp_bias)


def test_every_end_token_is_kept_generation_config_first(values: dict[str, Any]) -> None:
    config = parse_config(values | {"eos_token_id": 1}, {"eos_token_id": [7, 1, 9]})
    assert config.eos_ids == (7, 1, 9)
    assert parse_config(values | {"eos_token_id": None}, {}).eos_ids == ()
    assert parse_config(values | {"eos_token_id": [3, 4]}, {}).eos_ids == (3, 4)


def test_missing_optional_keys_take_the_values_of_the_format(values: dict[str, Any]) -> None:
    for key in ("num_key_value_heads", "head_dim", "rope_theta", "torch_dtype", "tie_word_embeddings", "hidden_act"):
        del values[key]
    config = parse_config(values, {})
    assert (config.kv_heads, config.head_dim, config.rope_theta) == (4, 16, 10000.0)
    assert (config.dtype, config.tied_embeddings, config.hidden_act) == ("float32", False, "silu")


LLAMA3 = {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3}},
        {"rope_theta": None, "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3}},
    ],
)
def test_old_and_new_rope_spellings_mean_the_same(values: dict[str, Any], spelling: dict[str, Any]) -> None:
    config = parse_config(values | spelling, {})
    assert config.rope_theta == 5e5
    assert config.rope_scaling == {"rope_type": "llama3", **LLAMA3}


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 2}}, {"rope_type": "linear", "factor": 2.0}),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, None),
        ({"rope_scaling": None}, None),
        ({"rope_scaling": {}}, None),
    ],
)
def test_other_rope_kinds(values: dict[str, Any], spelling: dict[str, Any], expected: object) -> None:
    assert parse_config(values | spelling, {}).rope_scaling == expected


def test_a_sliding_window_is_what_rows_attend_to_and_not_the_context(values: dict[str, Any]) -> None:
    mistral = values | {"architectures": ["MistralForCausalLM"], "max_position_embeddings": 1024}
    windowed, whole = (parse_config(mistral | {"sliding_window": window}, {}) for window in (96, None))
    assert (windowed.context, windowed.window_of(0)) == (1024, 96)
    assert (whole.context, whole.window_of(0)) == (1024, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architectures": ["BloomForCausalLM"]}, ["BloomForCausalLM", "LlamaForCausalLM"]),
        ({"architectures": []}, ["no architecture", "LlamaForCausalLM"]),
        ({"architectures": "LlamaForCausalLM"}, ["no architecture"]),
        ({"hidden_size": None}, ["lacks hidden_size"]),
        ({"hidden_size": "64"}, ["hidden_size = 64", "whole number"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers = 0"]),
        ({"vocab_size": True}, ["vocab_size = True"]),
        ({"num_key_value_heads": 3}, ["num_key_value_heads = 3", "divide", "4"]),
        ({"head_dim": 15}, ["head_dim = 15", "even"]),
        ({"rms_norm_eps": float("nan")}, ["rms_norm_eps = nan"]),
        ({"rope_theta": -1.0}, ["rope_theta = -1.0"]),
        ({"rope_scaling": "yes"}, ["rope_scaling = yes"]),
        ({"rope_scaling": {"rope_type": "longrope"}}, ["longrope", "llama3"]),
        ({"rope_scaling": {"rope_type": "linear"}}, ["lacks factor"]),
        ({"tie_word_embeddings": "no"}, ["tie_word_embeddings = no"]),
        ({"hidden_act": "swish9"}, ["hidden_act = swish9", "silu"]),
        ({"eos_token_id": "</s>"}, ["eos_token_id = </s>"]),
        ({"eos_token_id": [1, -2]}, ["eos_token_id"]),
        ({"torch_dtype": "int8"}, ["torch_dtype = int8", "bfloat16"]),
        ({"quantization_config": {"quant_method": "gptq"}}, ["quantised (gptq)", "GGUF"]),
    ],
)
def test_what_makes_no_sense_is_named(values: dict[str, Any], change: dict[str, Any], words: list[str]) -> None:
    text = refusal(values | change)
    assert all(word in text for word in words), text


def test_a_bad_generation_config_is_named(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path)
    (folder / "generation_config.json").write_text("{")
    with pytest.raises(ModelFileError, match=r"^generation_config\.json is damaged: it is not valid JSON"):
        read_config(folder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "config.json is empty: the download is not complete."),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "config.json is a Git LFS pointer"),
        (b"[1, 2]", "config.json is damaged: it holds no JSON object."),
        (b'{"a": 1, "a": 2}', "config.json names a twice."),
        (b"\xff\xfe{}", "config.json is damaged: it is not valid JSON"),
        (b"[" * 100_000, "config.json is damaged: it is not valid JSON"),
    ],
)
def test_unreadable_json_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_config(tmp_path)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"^config\.json is missing from "):
        read_config(tmp_path)


def test_custom_code_is_never_imported(tmp_path: Path) -> None:
    """C35: `auto_map` names code inside the folder; a known architecture ignores it, an unknown one is refused."""
    folder, marker = tiny_llama(tmp_path / "model"), tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(marker)!r}, 'w')")
    values = json.loads((folder / "config.json").read_text())
    own_code = {"auto_map": {"AutoModelForCausalLM": "modeling_own.Own"}}
    write_json(folder / "config.json", values | own_code)
    assert read_config(folder).family == "llama"
    write_json(folder / "config.json", values | own_code | {"architectures": ["Own"]})
    with pytest.raises(ModelFileError, match="The architecture Own is not supported and needs code of its own"):
        read_config(folder)
    assert not marker.exists()
