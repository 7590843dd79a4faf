"""The list of models: what is on it, what each is said to be, and what removing one does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import byte_tokenizer, split_gguf, tiny_llama, write_gguf
from engine.bench.known_shapes import SHAPES, tensor_bytes
from engine.errors import BadSetting, ModelFileError, SpecularError
from engine.files import starter
from engine.files.gguf_convert import conversions, convert
from engine.files.paths import data_dir, ensure_folder
from engine.library import shelf as shelf_module
from engine.library.describe import _fit, describe
from engine.library.hub_cache import cached_models
from engine.library.listing import add, cards, clear_conversions, deleted_by, entries, find, remove
from engine.library.shelf import Entry, Origin, Shelf
from engine.library.staging import PLAN, UNFINISHED, downloads
from engine.library.this_machine import Machine
from engine.offload.fast_memory import FastMemory, unknown_memory
from engine.probes.reading import Measure


def machine(free: float, device: str = "cpu") -> Machine:
    return Machine(device, FastMemory(Measure(max(free, 64e9)), Measure(free)))


ROOMY = machine(32e9)


@pytest.fixture(autouse=True)
def own_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of this test."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub cache"))
    return tmp_path / "hub cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_tokenizer(tiny_llama(tmp_path / "tiny", positions=512))


@pytest.fixture
def gguf(folder: Path, tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.Q4_1.gguf", folder, "Q4_1")


@pytest.fixture
def finished(folder: Path) -> Iterator[Path]:
    """A model that was downloaded."""
    target = downloads() / "someone--tiny"
    ensure_folder(target.parent)
    folder.rename(target)
    yield target


def listed() -> list[Entry]:
    return list(entries(Shelf()))


class TestShelf:
    def test_what_is_put_there_stays_newest_first(self, folder: Path, gguf: Path) -> None:
        for path in (folder, gguf, folder):
            add(str(path), ROOMY)
        assert [entry.path for entry in Shelf().entries] == [str(folder), str(gguf)]
        assert json.loads(Shelf.path().read_text()) == {
            "version": 1,
            "models": [{"path": str(folder)}, {"path": str(gguf)}],
        }

    def test_two_at_once_lose_nothing(self, folder: Path, gguf: Path) -> None:
        first, second = Shelf(), Shelf()
        first.put(Entry(str(folder), Origin.ADDED))
        second.put(Entry(str(gguf), Origin.ADDED))
        assert len(Shelf().entries) == 2

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", '{"version": 9, "models": []}', '{"version": 1, "models": [{"path": 3}]}', "\0"]
    )
    def test_a_file_that_cannot_be_used_is_kept_aside(self, folder: Path, content: str) -> None:
        ensure_folder(data_dir())
        Shelf.path().write_text(content)
        shelf = Shelf()
        assert shelf.entries == () and shelf.note is not None
        assert shelf.note.startswith("The list of models could not be read, so it begins anew, and it is kept as ")
        assert shelf.note.endswith(".") and "\n" not in shelf.note
        assert (data_dir() / "models.json.unreadable").read_text() == content
        shelf.put(Entry(str(folder), Origin.ADDED))
        assert len(Shelf().entries) == 1 and Shelf().note is None

    def test_a_disk_that_refuses_is_a_sentence_and_the_old_list_stays(
        self, folder: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(str(folder), ROOMY)

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(shelf_module, "replace_text", refuse)
        with pytest.raises(SpecularError, match=r"^The list of models cannot be written: No space left on device\.$"):
            add(str(gguf), ROOMY)
        assert [entry.path for entry in Shelf().entries] == [str(folder)]

    def test_what_cannot_be_loaded_is_not_put_there(self, folder: Path, tmp_path: Path) -> None:
        (folder / "model.safetensors").unlink()
        with pytest.raises(SpecularError, match="holds no weights"):
            add(str(folder), ROOMY)
        with pytest.raises(ModelFileError, match="does not exist"):
            add(str(tmp_path / "gone"), ROOMY)
        assert Shelf().entries == ()


class TestHubCache:
    def model(self, cache: Path, folder: Path, name: str = "models--a--b", commit: str = "1" * 40) -> Path:
        snapshot = cache / name / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for path in folder.iterdir():
            blob = cache / name / "blobs" / hashlib.sha256(path.name.encode()).hexdigest()
            blob.parent.mkdir(exist_ok=True)
            blob.write_bytes(path.read_bytes())
            (snapshot / path.name).symlink_to(os.path.relpath(blob, snapshot))
        return snapshot

    def test_its_models_are_on_the_list_by_their_names(self, own_hub_cache: Path, folder: Path) -> None:
        snapshot = self.model(own_hub_cache, folder)
        assert listed() == [Entry(str(snapshot), Origin.HUB_CACHE, "a/b")]
        (card,) = cards(tuple(listed()), ROOMY)
        assert (card.family, card.problem, card.nbytes > 400_000) == ("llama", None, True)

    def test_main_counts_or_else_the_newest_with_weights(self, own_hub_cache: Path, folder: Path) -> None:
        old = self.model(own_hub_cache, folder, commit="1" * 40)
        new = self.model(own_hub_cache, folder, commit="2" * 40)
        os.utime(old, (1, 1))
        assert cached_models()[0].path == str(new)
        refs = own_hub_cache / "models--a--b" / "refs"
        refs.mkdir()
        (refs / "main").write_text("1" * 40)
        assert cached_models()[0].path == str(old)
        (old / "model.safetensors").unlink()
        assert cached_models()[0].path == str(new)

    def test_other_things_in_it_are_left_alone(self, own_hub_cache: Path, folder: Path) -> None:
        assert cached_models() == ()
        (own_hub_cache / "models--a--tokenizer" / "snapshots" / "1").mkdir(parents=True)
        (own_hub_cache / "datasets--a--b" / "snapshots" / "1").mkdir(parents=True)
        (own_hub_cache / "models--a--c").mkdir()
        (own_hub_cache / "models--a--file").write_text("")
        assert cached_models() == ()

    def test_it_is_never_deleted_from_here(self, own_hub_cache: Path, folder: Path) -> None:
        snapshot = self.model(own_hub_cache, folder)
        with pytest.raises(BadSetting, match="hub's own cache"):
            remove(listed()[0])
        assert (snapshot / "model.safetensors").exists()


class TestCards:
    def test_a_folder(self, folder: Path) -> None:
        card = describe(Entry(str(folder), Origin.ADDED), ROOMY)
        assert (card.family, card.dtype, card.context, card.verdict) == ("llama", "F32", 512, "fits")
        assert card.nbytes == 4 * card.weights and card.notes == () and card.advice == ""

    def test_a_gguf_file_by_its_own_types_and_size(self, gguf: Path) -> None:
        card = describe(Entry(str(gguf), Origin.ADDED), ROOMY)
        assert (card.family, card.dtype, card.nbytes) == ("llama", "Q4_1", gguf.stat().st_size)
        assert card.notes == ("4-bit source: a draft on the same grid would match it exactly.",)
        assert not conversions().exists()

    def test_all_parts_count(self, gguf: Path, tmp_path: Path) -> None:
        parts = split_gguf(gguf, tmp_path / "p" / "m", [10, 11])
        card = describe(Entry(str(parts[1]), Origin.ADDED), ROOMY)
        assert card.nbytes == sum(part.stat().st_size for part in parts)

    @pytest.mark.parametrize(
        ("free", "verdict", "words"),
        [
            (32e9, "fits", ""),
            (12e9, "fits streamed", ""),
            (
                5e9,
                "does not fit",
                "but this model with this context needs at least 5.68 GB. A context of 2,048 tokens: ",
            ),
            (1e8, "does not fit", "The budget is 0.100 GB, but this model with this context needs at least "),
        ],
    )
    def test_the_estimate_for_this_computer(self, free: float, verdict: str, words: str) -> None:
        config = SHAPES["llama2-7b"].config
        found, advice = _fit(config, tensor_bytes(config), machine(free))
        assert found == verdict and words in advice
        assert (words == "") == (advice == "")

    def test_an_estimate_that_cannot_be_made_is_none(self, folder: Path) -> None:
        entry = Entry(str(folder), Origin.ADDED)
        assert describe(entry, Machine("cuda", unknown_memory("no driver"))).verdict is None
        assert describe(entry, None).verdict is None

    def test_what_cannot_be_loaded_says_why(self, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        card = describe(Entry(str(folder), Origin.ADDED), ROOMY)
        assert card.problem is not None and card.problem.startswith("config.json names no architecture")
        assert (card.family, card.verdict) == ("", None)

    def test_a_model_that_has_gone_stays_on_the_list_with_the_reason(self, folder: Path) -> None:
        add(str(folder), ROOMY)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        (card,) = cards(tuple(listed()), ROOMY)
        assert card.problem is not None and "does not exist" in card.problem

    def test_a_deep_look_tells_of_template_and_tokenizer(self, folder: Path, tmp_path: Path) -> None:
        evil = write_gguf(tmp_path / "evil.gguf", folder, template="{{ ''.__class__ }}")
        bare = tiny_llama(tmp_path / "bare")
        notes = [describe(Entry(str(path), Origin.ADDED), None, deep=True).notes for path in (evil, bare, folder)]
        assert notes[0][0].startswith("The chat template is unsafe") and notes[2] == ()
        assert notes[1] == ("It has no tokenizer, so it takes token ids only.",)
        assert not conversions().exists()
        (folder / "tokenizer.json").write_text("{}")
        problem = describe(Entry(str(folder), Origin.ADDED), None, deep=True).problem
        assert problem is not None and "is not a readable tokenizer" in problem


class TestRemove:
    def test_an_added_model_is_only_forgotten(self, folder: Path) -> None:
        add(str(folder), ROOMY)
        entry = find("tiny", tuple(listed()))
        assert deleted_by(entry) == "takes it off the list; its files stay where they are"
        remove(entry)
        assert listed() == [] and (folder / "model.safetensors").exists()

    def test_a_download_is_deleted(self, finished: Path) -> None:
        entry = find("someone/tiny", tuple(listed()))
        assert (entry.origin, entry.path) == (Origin.DOWNLOADED, str(finished))
        assert deleted_by(entry) == f"deletes 0 MB that were downloaded to {finished}"
        remove(entry)
        assert listed() == [] and not finished.exists()

    def test_what_was_converted_goes_with_it(self, gguf: Path) -> None:
        folder = downloads() / "a--b"
        ensure_folder(folder)
        made = convert(gguf.rename(folder / gguf.name), lambda _: None, lambda: False)
        remove(find("a/b", tuple(listed())))
        assert not made.exists() and not folder.exists()

    def test_an_unfinished_download_is_thrown_away(self) -> None:
        folder = downloads() / (UNFINISHED + "a--b")
        ensure_folder(folder)
        (folder / PLAN).write_text(json.dumps({"repo": "a/b", "commit": "c", "files": []}))
        (entry,) = listed()
        (card,) = cards((entry,), ROOMY)
        assert (entry.origin, card.problem) == (Origin.UNFINISHED, "The download is not complete.")
        remove(entry)
        assert listed() == [] and not folder.exists()

    def test_the_starter_model_can_go_too(self, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(starter, "SIZE", gguf.stat().st_size)
        ensure_folder(starter.starter_path().parent)
        gguf.rename(starter.starter_path())
        made = convert(starter.starter_path(), lambda _: None, lambda: False)
        (entry,) = listed()
        assert entry.name == "starter"
        remove(entry)
        assert listed() == [] and not made.exists()

    def test_names_that_mean_none_or_several(self, folder: Path, tmp_path: Path) -> None:
        other = byte_tokenizer(tiny_llama(tmp_path / "there" / "tiny"))
        for path in (folder, other):
            add(str(path), ROOMY)
        with pytest.raises(BadSetting, match=r"^No model called nothing is on the list"):
            find("nothing", tuple(listed()))
        with pytest.raises(BadSetting, match=r"^2 models are called tiny; name one by its path \("):
            find("tiny", tuple(listed()))
        assert find(str(other), tuple(listed())).path == str(other)

    def test_files_that_cannot_be_deleted_are_a_sentence(self, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("engine.library.listing.shutil.rmtree", refuse)
        with pytest.raises(SpecularError, match=r"^someone/tiny cannot be deleted: Permission denied\.$"):
            remove(listed()[0])

    def test_the_cache_of_conversions_can_be_cleared(self, gguf: Path) -> None:
        assert clear_conversions() == 0
        made = convert(gguf, lambda _: None, lambda: False)
        nbytes = sum(path.stat().st_size for path in made.iterdir())
        being_made = made.with_name(".part-x")
        being_made.mkdir()
        assert clear_conversions() == nbytes
        assert list(conversions().iterdir()) == [being_made]


def test_it_all_goes_without_torch(folder: Path) -> None:
    add(str(folder), ROOMY)
    code = (
        "import sys; from engine.library.listing import *; from engine.library.shelf import *;"
        "from engine.library.this_machine import this_machine;"
        "found = cards(entries(Shelf()), this_machine()); print(len(found), found[0].problem, 'torch' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["None", "False"]
