"""What a user may name as a model, what it becomes, and what it will need."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from builders import byte_tokenizer, tiny_llama, write_gguf, write_json
from engine.errors import LoadCancelled, ModelFileError
from engine.files import starter
from engine.files.folder import open_folder
from engine.files.paths import cache_dir, config_dir, data_dir, ensure_folder
from engine.files.resolve import SizeEstimate, estimate_bytes, locate, resolve
from engine.records import LoadProgress


def quietly(model: str | Path) -> Path:
    return resolve(str(model), lambda _: None, lambda: False)


def refusal(model: str | Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        quietly(model)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_tokenizer(tiny_llama(tmp_path / "model"))


@pytest.fixture
def source(folder: Path, tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "small.gguf", folder, "Q8_0")


class TestResolve:
    def test_a_folder_is_itself(self, folder: Path) -> None:
        assert quietly(folder) == folder

    def test_a_gguf_file_is_converted_once(self, source: Path) -> None:
        seen: list[LoadProgress] = []
        first = resolve(str(source), seen.append, lambda: False)
        assert first.parent == cache_dir() / "models" and len(seen) == 22
        assert resolve(str(source), seen.append, lambda: False) == first
        assert len(seen) == 22
        assert open_folder(first).config.layers == 2

    def test_a_gguf_file_of_any_name(self, source: Path) -> None:
        assert open_folder(quietly(source.rename(source.with_name("model.download")))).config.layers == 2

    def test_a_folder_with_one_gguf_file_is_that_file(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "download").mkdir()
        moved = source.rename(tmp_path / "download" / "m.gguf")
        assert quietly(moved.parent) == quietly(moved)
        (moved.parent / "n.GGUF").write_bytes(b"x")
        assert refusal(moved.parent) == f"{moved.parent} holds 2 GGUF files; open one of them (m.gguf, n.GGUF)."

    def test_cancelling_reaches_the_conversion(self, source: Path) -> None:
        with pytest.raises(LoadCancelled):
            resolve(str(source), lambda _: None, lambda: True)

    def test_home_is_understood(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(folder.parent))
        monkeypatch.setenv("USERPROFILE", str(folder.parent))
        assert quietly("~/model") == folder

    def test_the_starter_is_named_by_its_word(self, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(starter, "SIZE", source.stat().st_size)
        monkeypatch.setattr(starter, "SHA256", hashlib.sha256(source.read_bytes()).hexdigest())
        ensure_folder(starter.starter_path().parent)
        source.rename(starter.starter_path())
        assert locate("starter") == starter.starter_path()
        assert open_folder(quietly("starter")).config.layers == 2

    def test_a_starter_not_installed_names_the_command(self) -> None:
        assert refusal("starter").endswith("run python3 run.py setup to fetch it.")

    def test_what_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("hello")
        hint = 'give "starter", a model folder or a .gguf file.'
        assert refusal(tmp_path / "gone") == f"{tmp_path / 'gone'} does not exist: {hint}"
        assert (
            refusal(tmp_path / "notes.txt") == f"{tmp_path / 'notes.txt'} is neither a model folder nor a .gguf file."
        )
        assert refusal("x" * 5000).endswith(" cannot be read: File name too long.")
        assert "does not exist" in refusal("~nobody_of_this_name/model")
        assert refusal(" ") == f"No model is named: {hint}"


class TestEstimate:
    def test_a_folder(self, folder: Path) -> None:
        model = open_folder(folder)
        assert estimate_bytes(folder) == SizeEstimate(
            weights_bytes=model.total_bytes,
            values=model.total_bytes // 4,
            kv_bytes_per_token_f16=2 * 2 * 2 * 16 * 2,  # K and V, layers, KV heads, head size, bytes
            kv_bytes_per_token_f32=2 * 2 * 2 * 16 * 4,
        )

    def test_a_gguf_file_counts_as_converted_and_converts_nothing(self, source: Path) -> None:
        before = estimate_bytes(source)
        assert not cache_dir().exists()
        folder = quietly(source)
        assert before.weights_bytes == open_folder(folder).total_bytes
        assert estimate_bytes(source) == estimate_bytes(folder) == before

    def test_a_tied_matrix_counts_once(self, tmp_path: Path) -> None:
        tied, untied = tiny_llama(tmp_path / "tied", tied=True), tiny_llama(tmp_path / "untied")
        assert estimate_bytes(untied).values - estimate_bytes(tied).values == 290 * 64

    def test_errors_are_those_of_opening(self, folder: Path) -> None:
        write_json(folder / "config.json", {"architectures": ["FalconForCausalLM"]})
        with pytest.raises(ModelFileError, match="FalconForCausalLM is not supported"):
            estimate_bytes(folder)


class TestPaths:
    def test_the_override_holds_all_three(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path / "all"))
        assert {data_dir(), cache_dir(), config_dir()} == {
            tmp_path / "all" / name for name in ("data", "cache", "config")
        }
        assert not (tmp_path / "all").exists()

    def test_without_it_each_is_a_folder_of_the_user(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("SPECULAR_DATA_DIR")
        for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "no such home"))
        folders = [data_dir(), cache_dir(), config_dir()]
        assert all("specular" in folder.parts for folder in folders) and len(set(folders)) >= 2
        assert not (tmp_path / "no such home").exists()
