"""Where models lie: links to nowhere, names in any script or in none, folders that must not be written, odd folders."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from builders import byte_tokenizer, read_safetensors, shard, split_gguf, tiny_llama, write_gguf
from engine.engine import Engine
from engine.errors import ModelFileError, SpecularError
from engine.files import gguf_convert
from engine.files.folder import open_folder
from engine.files.gguf_convert import convert
from engine.files.resolve import read_headers, resolve
from engine.text.tokenizer import load_tokenizer
from engine_rig import loaded_engine, no_end_tokens, reply, request

NAMES = ["мо дель", "模型", "e\u0301te\u0301 é", "a'b\"c %s {x}", "-rf", " "]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes are Linux's")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_tokenizer(no_end_tokens(tiny_llama(tmp_path / "model", std=0.25)))


def refusal(model: Path) -> str:
    """The one sentence with which the engine refuses to load it."""
    engine = Engine()
    with pytest.raises(ModelFileError) as caught:
        engine.load(str(model), device="cpu")
    engine.close()
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    return text


def dangling(path: Path) -> Path:
    """The file replaced by a link to nowhere."""
    path.unlink(missing_ok=True)
    path.symlink_to(path.with_name("gone-away"))
    return path


class TestLinks:
    """Caches of the hub are folders of links; what clears them up leaves links to nowhere."""

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "generation_config.json"])
    def test_a_file_that_is_a_link_to_nowhere_is_named(self, folder: Path, name: str) -> None:
        target = dangling(folder / name).readlink()
        assert refusal(folder) == f"{name} in {folder} is a link to {target}, which does not exist."

    def test_a_shard_that_is_one(self, folder: Path) -> None:
        shard(folder, 3)
        name = "model-00002-of-00003.safetensors"
        target = dangling(folder / name).readlink()
        for _ in range(2):
            assert refusal(folder) == f"{name} in {folder} is a link to {target}, which does not exist."
            (folder / "model.safetensors.index.json").unlink(missing_ok=True)

    def test_the_model_itself(self, tmp_path: Path) -> None:
        for name in ("model", "m.gguf"):
            link = dangling(tmp_path / name)
            assert refusal(link) == f"{name} in {tmp_path} is a link to {link.readlink()}, which does not exist."

    def test_the_only_gguf_file_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        link = dangling(tmp_path / "one" / "m.gguf")
        assert refusal(tmp_path / "one").startswith(f"m.gguf in {link.parent} is a link to ")

    def test_a_part_of_a_gguf(self, folder: Path, tmp_path: Path) -> None:
        parts = split_gguf(write_gguf(tmp_path / "whole.gguf", folder), tmp_path / "m", [11, 10])
        dangling(parts[1])
        assert refusal(parts[0]) == f"Part 2 of 2 is missing: {parts[1].name} is not in {tmp_path}."

    def test_a_link_in_a_circle_is_a_sentence(self, folder: Path) -> None:
        weights = folder / "model.safetensors"
        weights.unlink()
        weights.symlink_to(weights.name)
        assert weights.name in refusal(folder)

    def test_links_to_files_are_the_files(self, folder: Path, tmp_path: Path) -> None:
        linked, blobs = tmp_path / "snapshot", tmp_path / "blobs"
        linked.mkdir()
        folder.rename(blobs)
        for number, path in enumerate(sorted(blobs.iterdir())):
            target = path.rename(blobs / f"{number:064x}")
            (linked / path.name).symlink_to(os.path.relpath(target, linked))
        with loaded_engine(linked) as engine:
            assert len(reply(engine, request([5, 9, 33], 4)).ids) == 4


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_folder_of_any_name_loads(self, folder: Path, name: str) -> None:
        with loaded_engine(folder.rename(folder.with_name(name))) as engine:
            assert engine.info is not None and engine.info.name == name
            assert len(reply(engine, request([5, 9, 33], 4)).ids) == 4

    @pytest.mark.parametrize("name", NAMES)
    def test_a_gguf_file_of_any_name_is_converted(self, folder: Path, name: str) -> None:
        path = write_gguf(folder.parent / f"{name}.gguf", folder)
        target = convert(path, lambda _: None, lambda: False)
        assert target == convert(path, lambda _: None, lambda: False)
        assert len(open_folder(target).entries) == 21 and load_tokenizer(target) is not None
        assert gguf_convert.conversions_of(path) == [target]

    @LINUX
    def test_names_that_are_no_text_load_too(self, folder: Path) -> None:
        odd = os.fsdecode(b"mod\xe8le\xff")
        path = write_gguf(folder.parent / "m.gguf", folder)
        path = path.rename(path.with_name(odd + ".gguf"))
        target = convert(path, lambda _: None, lambda: False)
        assert target.name.isprintable() and gguf_convert.conversions_of(path) == [target]
        with loaded_engine(folder.rename(folder.with_name(odd))) as engine:
            assert engine.count_tokens(()) >= 0
        with loaded_engine(path) as engine:
            assert len(reply(engine, request([5, 9, 33], 4)).ids) == 4

    def test_a_missing_file_of_such_a_name_is_a_sentence(self, tmp_path: Path) -> None:
        assert refusal(tmp_path / "нет.gguf").startswith(f"{tmp_path / 'нет.gguf'} does not exist: ")


class TestReadOnly:
    def snapshot(self, folder: Path) -> list[tuple[str, int, int]]:
        stats = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
        return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats] + [("", 0, folder.stat().st_mtime_ns)]

    def test_loading_and_replying_writes_nothing_beside_the_model(self, folder: Path) -> None:
        write_gguf(folder.parent / "m.gguf", folder)
        before = self.snapshot(folder), self.snapshot(folder.parent)
        for path in (*folder.iterdir(), folder):
            path.chmod(0o555)
        for model in (folder, folder.parent / "m.gguf"):
            with loaded_engine(model) as engine:
                assert len(reply(engine, request([5, 9, 33], 4)).ids) == 4
        assert (self.snapshot(folder), self.snapshot(folder.parent)) == before
        folder.chmod(0o755)

    def test_a_cache_that_refuses_is_a_sentence(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**_: object) -> str:
            raise PermissionError(30, "Read-only file system")

        monkeypatch.setattr(gguf_convert.tempfile, "mkdtemp", refuse)
        path = write_gguf(folder.parent / "m.gguf", folder)
        with pytest.raises(SpecularError, match=r"^The folder .* cannot be written: Read-only file system\.$"):
            resolve(str(path), lambda _: None, lambda: False)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_may_not_be_read_is_a_sentence(self, folder: Path) -> None:
        (folder / "model.safetensors").chmod(0)
        assert refusal(folder).endswith("model.safetensors cannot be read: Permission denied.")


class TestOddFolders:
    @pytest.mark.parametrize(
        ("name", "words"),
        [("config.json", "Is a directory"), ("model.safetensors", "missing"), ("tokenizer.json", "")],
    )
    def test_a_folder_in_the_place_of_a_file(self, folder: Path, name: str, words: str) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()
        if name == "tokenizer.json":
            with loaded_engine(folder) as engine:
                assert engine.info is not None and engine.info.template == "none"
        else:
            assert words in refusal(folder)

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        assert refusal(tmp_path) == f"config.json is missing from {tmp_path}."

    def test_a_tokenizer_nested_without_end_is_a_sentence(self, folder: Path) -> None:
        (folder / "tokenizer_config.json").write_text("[" * 200_000)
        assert "tokenizer_config.json cannot be read as JSON" in refusal(folder)

    def test_headers_of_all_of_these_are_read_alike(self, folder: Path) -> None:
        dangling(folder / "model.safetensors")
        with pytest.raises(ModelFileError, match="is a link to"):
            read_headers(folder)
        assert read_safetensors(tiny_llama(folder.parent / "other"))
