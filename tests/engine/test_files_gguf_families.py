"""Every family that GGUF files hold: the same tensors, shape and logits as the folder that the file was made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from builders import byte_tokenizer
from engine.errors import ModelFileError
from engine.files.folder import open_folder
from engine.files.gguf_convert import convert
from engine.files.gguf_families import FAMILIES
from engine.files.resolve import read_headers
from engine_rig import compiled_runner, loaded_engine, step_logits
from family_models import CASES, Case, Made, make
from gguf_family_files import ARCHITECTURES, write_family_gguf

IDS = np.random.default_rng(3).integers(3, 290, 40).tolist()
LEFT_OUT = ("dynamic", "llama3", "biases", "half windowed")  # kinds that no GGUF file tells of in this way
HELD = [c for c in CASES if c.config_class != "OPTConfig" and not any(word in c.name for word in LEFT_OUT)]
# In a GGUF, end tokens are the tokenizer's, and the converter calls a Mistral without a window a LLaMA.
MAY_DIFFER = {"dtype", "bos_id", "eos_ids", "family", "architecture"}


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    case: Case = request.param
    yield make(case, tmp_path_factory.mktemp("family"))


def converted(path: Path) -> Path:
    return convert(path, lambda _: None, lambda: False)


@pytest.mark.parametrize("made", HELD, indirect=True, ids=lambda case: case.name)
class TestFamilies:
    def test_tensors_and_shape_are_those_of_the_folder(self, made: Made, tmp_path: Path) -> None:
        original = open_folder(made.folder)
        model = open_folder(converted(write_family_gguf(tmp_path / "m.gguf", made.folder)))
        assert list(model.entries) == list(original.entries) and model.notes[1:] == ()
        assert all(torch.equal(model.tensor(name), original.tensor(name)) for name in original.entries)
        slots = original.config.__slots__
        changed = {name for name in slots if getattr(original.config, name) != getattr(model.config, name)}
        if model.config.rope_scaling is not None:
            changed.discard("rope_scaling")
            theirs, ours = original.config.rope_scaling, model.config.rope_scaling
            assert theirs is not None and theirs["rope_type"] == ours["rope_type"]
            shared = set(theirs) & set(ours)
            assert all(np.allclose(ours[key], theirs[key], rtol=1e-6) for key in shared - {"rope_type", "truncate"})
        assert changed <= MAY_DIFFER

    def test_logits_are_those_of_transformers(self, made: Made, tmp_path: Path) -> None:
        target = converted(write_family_gguf(tmp_path / "m.gguf", made.folder))
        with compiled_runner(target, capacity=128) as runner:
            assert np.abs(step_logits(runner, IDS) - made.logits(IDS)).max() < 1e-4

    def test_quantised_files_are_as_close_as_their_blocks(self, made: Made, tmp_path: Path) -> None:
        path = write_family_gguf(tmp_path / "m.gguf", made.folder, "Q8_0")
        original, model = open_folder(made.folder), open_folder(converted(path))
        for name, entry in model.entries.items():
            exact, ours = original.tensor(name), model.tensor(name).float()
            if len(entry.shape) == 1:
                assert torch.equal(ours, exact)
            else:
                assert entry.dtype == "F16" and (ours - exact).abs().max() < exact.abs().max() / 120

    def test_headers_tell_the_same_before_anything_is_converted(self, made: Made, tmp_path: Path) -> None:
        path = write_family_gguf(tmp_path / "m.gguf", made.folder)
        before = read_headers(path)
        assert before.values == sum(entry.nbytes // 4 for entry in open_folder(converted(path)).entries.values())


def test_every_family_of_gguf_is_tried() -> None:
    assert {ARCHITECTURES[f"{case.config_class.removesuffix('Config')}ForCausalLM"] for case in HELD} == set(FAMILIES)
    assert all(hasattr(gguf.MODEL_ARCH, name.upper()) for name in FAMILIES)


def phi3(tmp_path: Path) -> Path:
    return make(next(case for case in CASES if case.name == "phi3"), tmp_path / "phi3").folder


def test_a_joined_matrix_of_another_shape_is_named(tmp_path: Path) -> None:
    path = write_family_gguf(tmp_path / "m.gguf", phi3(tmp_path))
    data = path.read_bytes()
    heads = b"phi3.attention.head_count_kv" + (4).to_bytes(4, "little")
    assert data.count(heads + (2).to_bytes(4, "little")) == 1
    path.write_bytes(data.replace(heads + (2).to_bytes(4, "little"), heads + (4).to_bytes(4, "little")))
    with pytest.raises(ModelFileError) as caught:
        converted(path)
    assert str(caught.value) == (
        "m.gguf holds blk.0.attn_qkv.weight as [128, 64], but its metadata calls for [192, 64]."
    )


def test_a_joined_matrix_that_is_missing_is_named(tmp_path: Path) -> None:
    path = write_family_gguf(tmp_path / "m.gguf", phi3(tmp_path))
    path.write_bytes(path.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight"))
    with pytest.raises(ModelFileError, match=r"lacks the tensor for model\.layers\.1\.mlp\.gate_proj\.weight"):
        converted(path)


def test_an_engine_speaks_with_such_a_file(tmp_path: Path) -> None:
    folder = phi3(tmp_path)
    path = write_family_gguf(tmp_path / "m.gguf", folder)
    byte_tokenizer(folder)
    with loaded_engine(path) as engine:
        assert engine.info is not None and (engine.info.family, engine.info.name) == ("phi3", "m")
