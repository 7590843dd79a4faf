"""C37: models in several GGUF files: any part opens all, and what is missing or of another model is named."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from builders import byte_tokenizer, read_safetensors, split_gguf, tiny_llama, write_gguf
from engine.errors import ModelFileError
from engine.files.gguf_convert import convert, converted_path
from engine.files.gguf_reader import read_gguf
from engine.files.paths import cache_dir
from engine.files.resolve import locate, read_headers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_tokenizer(tiny_llama(tmp_path / "model", vocab=320))


@pytest.fixture
def parts(folder: Path, tmp_path: Path) -> list[Path]:
    """The model in three parts, the first without tensors, as llama.cpp's splitter can write it."""
    return split_gguf(write_gguf(tmp_path / "whole.gguf", folder), tmp_path / "parts" / "m", [0, 8, 13])


def converted(source: Path) -> Path:
    return convert(source, lambda _: None, lambda: False)


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        converted(path)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    assert not list(cache_dir().glob("models/*"))
    return text


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_any_part_opens_the_whole_model(parts: list[Path], tmp_path: Path, opened: int) -> None:
    target, whole = converted(parts[opened]), converted(tmp_path / "whole.gguf")
    found, expected = read_safetensors(target), read_safetensors(whole)
    assert list(found) == list(expected) and len(found) == 21
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        assert (target / name).read_bytes() == (whole / name).read_bytes()
    assert target.name.startswith("m-") and "of" not in target.name


def test_all_parts_are_one_conversion_and_one_model(parts: list[Path]) -> None:
    assert len({converted_path(part) for part in parts}) == 1
    assert locate(str(parts[0].parent)) == parts[0]
    assert sum(read_headers(parts[2]).sizes.values()) == sum(read_headers(converted(parts[0])).sizes.values())


def test_a_changed_part_makes_another_conversion(parts: list[Path]) -> None:
    before = converted_path(parts[0])
    parts[2].write_bytes(parts[2].read_bytes() + b"x")
    assert converted_path(parts[0]) != before


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_the_missing_part_is_named_whichever_is_opened(parts: list[Path], gone: int) -> None:
    parts[gone - 1].unlink()
    for part in parts:
        if part.exists():
            assert refusal(part) == f"Part {gone} of 3 is missing: {parts[gone - 1].name} is not in {part.parent}."


def test_a_part_under_another_name_cannot_find_the_others(parts: list[Path], tmp_path: Path) -> None:
    alone = parts[1].rename(tmp_path / "alone.gguf")
    assert refusal(alone) == (
        "alone.gguf is one of 3 parts, but its name does not end in -00001-of-00003.gguf as theirs do, "
        "so the others cannot be found."
    )


def test_a_part_in_the_place_of_another_is_named(parts: list[Path]) -> None:
    parts[2].write_bytes(parts[1].read_bytes())
    assert refusal(parts[0]) == "m-00003-of-00003.gguf is not part 3 of 3, whatever its name says."


def test_a_tensor_in_two_parts_is_named(folder: Path, tmp_path: Path) -> None:
    parts = split_gguf(
        write_gguf(tmp_path / "whole.gguf", folder), tmp_path / "m", [10, 11], repeat="token_embd.weight"
    )
    assert refusal(parts[1]) == ("token_embd.weight is in two parts, m-00001-of-00002.gguf and m-00002-of-00002.gguf.")


def test_parts_of_two_models_are_noticed(folder: Path, tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", folder)
    first = split_gguf(whole, tmp_path / "m", [10, 11])
    other = split_gguf(whole, tmp_path / "n", [12, 9])
    first[1].write_bytes(other[1].read_bytes())
    assert refusal(first[0]) == (
        "The 2 parts of m-00001-of-00002.gguf hold 19 tensors in place of 21: they are not of one model."
    )


def test_a_part_that_is_cut_short_is_named(parts: list[Path]) -> None:
    whole = parts[2].read_bytes()
    parts[2].write_bytes(whole[: len(whole) // 2])
    assert refusal(parts[0]).startswith("m-00003-of-00003.gguf is cut short: it has ")


def test_a_whole_model_may_be_named_like_a_part(folder: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m-00001-of-00002.gguf", folder)
    assert len(read_gguf(path).tensors) == 21
    assert json.loads((converted(path) / "specular.json").read_text())["source"] == str(path)


def test_counts_are_the_public_keys() -> None:
    split = gguf.Keys.Split
    assert (split.LLM_KV_SPLIT_NO, split.LLM_KV_SPLIT_COUNT, split.LLM_KV_SPLIT_TENSORS_COUNT) == (
        "split.no", "split.count", "split.tensors.count",
    )  # fmt: skip
