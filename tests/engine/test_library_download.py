"""Models from the hub: which files come, pausing and going on, faults of the network, the disk and the hub."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import byte_tokenizer, read_safetensors, shard, split_gguf, tiny_llama, write_gguf, write_json
from engine.errors import LoadCancelled, ModelFileError, SpecularError
from engine.files.folder import open_folder
from engine.library import staging, transfer
from engine.library.hub import HubError, find_remote
from engine.library.remote import RemoteFile, RemoteModel
from engine.library.shelf import Entry, Origin
from engine.library.staging import download, downloaded, downloads, resumable, staging_of, unfinished
from engine.records import LoadProgress
from hub_server import COMMIT, LARGE, FakeHub, serving

REPO = "someone/tiny-llama"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A hub with one repository: a model in three shards, and things beside it that nobody here wants."""
    monkeypatch.setattr(transfer, "PAUSE", 0.0)
    folder = byte_tokenizer(tiny_llama(tmp_path / "source"))
    shard(folder, 3)
    for name in ("pytorch_model.bin", "modeling_evil.py", "README.md", ".gitattributes", "model.onnx"):
        (folder / name).write_bytes(b"x" * 100)
    with serving() as hub:
        hub.add(REPO, folder)
        yield hub


def bring(repo: str = REPO, file: str | None = None, **options: Callable[..., object]) -> Path:
    """Find and download; returns the folder."""
    model = resumable(repo, file) or find_remote(repo, file)
    progress, cancelled = options.get("progress", lambda _: None), options.get("cancelled", lambda: False)
    return Path(download(model, progress, cancelled).path)  # type: ignore[arg-type]


def refusal(repo: str = REPO, file: str | None = None) -> str:
    with pytest.raises(SpecularError) as caught:
        bring(repo, file)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    return text


class TestWhatComes:
    def test_weights_and_texts_and_nothing_else(self, hub: FakeHub, tmp_path: Path) -> None:
        target = bring()
        names = {path.name for path in target.iterdir()}
        shards = {f"model-{part:05d}-of-00003.safetensors" for part in (1, 2, 3)}
        texts = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
        assert names == shards | texts | {"model.safetensors.index.json"}
        assert all((target / name).read_bytes() == hub.repositories[REPO][name] for name in names)
        assert len(open_folder(target).entries) == 21
        assert target == downloads() / "someone--tiny-llama"
        assert downloaded() == (Entry(str(target), Origin.DOWNLOADED, REPO),) and unfinished() == ()

    def test_texts_come_before_weights_and_all_from_one_commit(self, hub: FakeHub) -> None:
        bring()
        resolved = [path for _, path, _, _ in hub.requests if "/resolve/" in path]
        assert all(f"/resolve/{COMMIT}/" in path for path in resolved)
        weights = [path.endswith(".safetensors") for path in resolved]
        assert weights == sorted(weights) and sum(weights) == 3 and resolved[0].endswith("/config.json")

    def test_progress_counts_every_byte_of_all_files(self, hub: FakeHub) -> None:
        seen: list[LoadProgress] = []
        model = find_remote(REPO)
        download(model, seen.append, lambda: False)
        sizes = sum(len(hub.repositories[REPO][file.name]) for file in model.files)
        assert {state.total_bytes for state in seen} == {sizes} and seen[-1].done_bytes == sizes
        counts = [state.done_bytes for state in seen]
        assert counts == sorted(counts) and len(set(counts)) > len(model.files)

    def test_what_is_here_already_is_not_fetched_again(self, hub: FakeHub) -> None:
        bring()
        before = len(hub.requests)
        bring()
        assert all("/cdn/" not in path for _, path, _, _ in hub.requests[before:])

    def test_one_gguf_file_is_the_model(self, hub: FakeHub, tmp_path: Path) -> None:
        folder = byte_tokenizer(tiny_llama(tmp_path / "m"))
        (tmp_path / "repo").mkdir()
        write_gguf(tmp_path / "repo" / "tiny.Q8_0.gguf", folder, "Q8_0")
        (tmp_path / "repo" / "config.json").write_text("{}")
        hub.add("a/b", tmp_path / "repo")
        assert [path.name for path in bring("a/b").iterdir()] == ["tiny.Q8_0.gguf"]

    def test_of_several_gguf_files_one_is_chosen(self, hub: FakeHub, tmp_path: Path) -> None:
        folder = byte_tokenizer(tiny_llama(tmp_path / "m"))
        (tmp_path / "repo").mkdir()
        whole = write_gguf(tmp_path / "repo" / "tiny.F16.gguf", folder)
        parts = split_gguf(whole, tmp_path / "repo" / "big", [10, 11])
        hub.add("a/b", tmp_path / "repo")
        assert refusal("a/b") == (
            "a/b holds 2 GGUF files; choose one of them (big-00001-of-00002.gguf (0.0 GB), tiny.F16.gguf (0.0 GB))."
        )
        target = bring("a/b", parts[1].name)
        assert {path.name for path in target.iterdir()} == {part.name for part in parts}
        assert refusal("a/b", "other.gguf") == "a/b holds no GGUF file called other.gguf."
        assert [entry.repo for entry in downloaded()] == [f"a/b/{parts[1].name}"]

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["pytorch_model.bin", "config.json"], "no weights that are read here: only safetensors and GGUF are."),
            (["onnx/model.onnx", "sub/model.safetensors"], "no weights that are read here"),
            (["adapter_model.safetensors", "adapter_config.json"], "an adapter for another model, not a model."),
            (["model.safetensors"], "a/b lacks config.json, so its weights cannot be read."),
            (["a.safetensors", "b.safetensors", "config.json"], "2 safetensors files that do not belong together"),
            (["m-00001-of-00002.gguf"], "but not its other part m-00002-of-00002.gguf."),
            ([], "no weights that are read here"),
        ],
    )
    def test_what_is_no_model_is_told_before_anything_comes(self, hub: FakeHub, names: list[str], words: str) -> None:
        hub.repositories["a/b"] = dict.fromkeys(names, b"x" * 50)
        assert words in refusal("a/b")
        assert all("/resolve/" not in path for _, path, _, _ in hub.requests) and not downloads().exists()

    def test_a_kind_that_is_not_supported_is_told_before_the_weights_come(self, hub: FakeHub) -> None:
        hub.repositories[REPO]["config.json"] = json.dumps({"architectures": ["OtherModel"]}).encode()
        assert "The architecture OtherModel is not supported" in refusal()
        assert not any(path.endswith(".safetensors") for _, path, _, _ in hub.requests)
        assert list(downloads().iterdir()) == []


class TestGoingOn:
    def stop_at(self, hub: FakeHub, share: float) -> RemoteModel:
        """Begin a download and stop it when this share of all bytes is here."""
        model, done = find_remote(REPO), [0]
        with pytest.raises(LoadCancelled, match="was stopped"):
            download(
                model,
                lambda state: done.__setitem__(0, state.done_bytes),
                lambda: done[0] >= share * model.nbytes,
            )
        return model

    @pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95])
    def test_a_stopped_download_goes_on_from_the_last_byte(self, hub: FakeHub, share: float) -> None:
        model = self.stop_at(hub, share)
        (entry,) = unfinished()
        assert (entry.repo, entry.origin) == (REPO, Origin.UNFINISHED) and downloaded() == ()
        there = sum(path.stat().st_size for path in staging_of(model).iterdir() if path.name != staging.PLAN)
        hub.requests.clear()
        target = bring()
        sent = sum(
            len(hub.repositories[REPO][path.rsplit("/", 1)[1]]) - int((wanted or "bytes=0-")[6:-1])
            for _, path, wanted, _ in hub.requests
            if "/cdn/" in path
        )
        assert sent == model.nbytes - there
        assert len(open_folder(target).entries) == 21 and unfinished() == ()
        assert len(read_safetensors(target)) == 21

    def test_it_goes_on_with_the_commit_it_began_with(self, hub: FakeHub) -> None:
        self.stop_at(hub, 0.5)
        hub.commit = "f" * 40
        hub.requests.clear()
        bring()
        assert all(f"/resolve/{COMMIT}/" in path for _, path, _, _ in hub.requests if "/resolve/" in path)
        assert not any(path.startswith("/api/") for _, path, _, _ in hub.requests)

    def test_a_server_without_ranges_sends_it_all_again(self, hub: FakeHub) -> None:
        self.stop_at(hub, 0.5)
        hub.ranges = False
        assert len(open_folder(bring()).entries) == 21

    def test_a_plan_that_was_damaged_begins_anew_upon_what_is_there(self, hub: FakeHub) -> None:
        model = self.stop_at(hub, 0.5)
        (staging_of(model) / staging.PLAN).write_text("{")
        assert resumable(REPO) is None and unfinished() == ()
        assert len(open_folder(bring()).entries) == 21

    def test_a_plan_never_leads_out_of_its_folder(self, hub: FakeHub) -> None:
        model = self.stop_at(hub, 0.5)
        plan = staging_of(model) / staging.PLAN
        plan.write_text(plan.read_text().replace('"config.json"', '"../config.json"'))
        assert resumable(REPO) is None

    def test_what_arrived_can_be_thrown_away(self, hub: FakeHub) -> None:
        model = self.stop_at(hub, 0.5)
        staging.discard(staging_of(model))
        assert list(downloads().iterdir()) == [] and resumable(REPO) is None
        staging.discard(downloads())
        assert downloads().is_dir()


class TestFaults:
    def test_a_connection_that_breaks_is_made_again_where_it_broke(self, hub: FakeHub) -> None:
        hub.break_after = [1000, 2000, 0, 3000]
        target = bring()
        first = hub.asked("model-00001-of-00003.safetensors")
        assert first == [None, "bytes=1000-", "bytes=3000-", "bytes=3000-", "bytes=6000-"]
        assert len(read_safetensors(target)) == 21

    def test_after_four_tries_that_bring_nothing_it_is_a_sentence_and_what_arrived_stays(self, hub: FakeHub) -> None:
        hub.break_after = [1000, 0, 0, 0, 0, 0, 0, 0]
        text = refusal()
        assert text.startswith("The hub cannot be reached (") and text.endswith("models on this computer work as ever.")
        assert len(hub.asked("model-00001-of-00003.safetensors")) == 5
        hub.break_after = []
        assert len(read_safetensors(bring())) == 21

    def test_waits_between_tries_grow(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(transfer, "PAUSE", 1.0)
        model, waits = find_remote(REPO), []
        large = next(file for file in model.files if file.size >= LARGE)
        hub.break_after = [0] * 3
        url = f"{hub.url}/{REPO}/resolve/main/{large.name}"
        transfer.fetch(REPO, url, large, tmp_path, lambda _: None, lambda: False, wait=waits.append)
        assert waits == [1.0, 2.0, 4.0] and (tmp_path / large.name).stat().st_size == large.size

    def test_an_overloaded_hub_is_asked_again_a_refusal_is_not(self, hub: FakeHub) -> None:
        hub.statuses = [503, 429]
        bring()
        shutil.rmtree(downloads())
        hub.statuses = [403, 403]
        assert refusal() == "The hub refused (403); models on this computer work as ever."
        assert hub.statuses == [403]

    def test_a_file_that_arrives_damaged_is_thrown_away(self, hub: FakeHub) -> None:
        hub.spoil = True
        assert refusal() == (
            "model-00001-of-00003.safetensors arrived damaged (its checksum is wrong): download it again."
        )
        hub.spoil = False
        assert len(read_safetensors(bring())) == 21

    def test_a_small_file_is_checked_too(self, hub: FakeHub) -> None:
        model = find_remote(REPO)
        hub.repositories[REPO]["tokenizer_config.json"] = b"#" * len(hub.repositories[REPO]["tokenizer_config.json"])
        with pytest.raises(SpecularError, match=r"^tokenizer_config\.json arrived damaged"):
            download(model, lambda _: None, lambda: False)

    def test_a_file_longer_than_promised(self, hub: FakeHub) -> None:
        model = find_remote(REPO)
        hub.repositories[REPO]["config.json"] += b" "
        with pytest.raises(SpecularError, match=r"^config\.json is longer than the hub said it would be\.$"):
            download(model, lambda _: None, lambda: False)

    def test_a_file_shorter_than_promised(self, hub: FakeHub) -> None:
        model = find_remote(REPO)
        hub.repositories[REPO]["config.json"] = b"{}"
        with pytest.raises(HubError, match=r"^The hub sent only 2 of [\d,]+ bytes of config\.json\.$"):
            download(model, lambda _: None, lambda: False)

    def test_a_disk_without_room_is_told_before_anything_comes(
        self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage(".")._replace(free=staging.SPARE + 1000)
        monkeypatch.setattr(staging.shutil, "disk_usage", lambda _: usage)
        text = refusal()
        assert text.startswith(f"{REPO} needs 0.0 GB more in ") and "only 0.3 GB are free there." in text
        assert not hub.asked("") and list(downloads().iterdir()) == []

    def test_room_is_needed_only_for_what_is_missing(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        model = TestGoingOn().stop_at(hub, 0.8)
        there = sum(path.stat().st_size for path in staging_of(model).iterdir() if path.name != staging.PLAN)
        usage = shutil.disk_usage(".")._replace(free=staging.SPARE + model.nbytes - there)
        monkeypatch.setattr(staging.shutil, "disk_usage", lambda _: usage)
        bring()

    def test_a_disk_that_fails_is_a_sentence_at_once(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise transfer._WriteError("config.json.part cannot be written: No space left on device.")

        monkeypatch.setattr(transfer, "_write", full)
        assert refusal() == "config.json.part cannot be written: No space left on device."
        assert len(hub.asked("config.json")) == 1


class TestRefusals:
    def test_a_repository_nobody_knows(self, hub: FakeHub) -> None:
        assert refusal("no/body") == ("The hub knows no model called no/body, or it is private: hf auth login logs in.")

    def test_terms_that_are_not_accepted(self, hub: FakeHub) -> None:
        hub.refusals["meta/llama"] = (403, "GatedRepo")
        assert refusal("meta/llama") == (
            f"meta/llama is given only to those who accept its terms: do so at {hub.url}/meta/llama and log in."
        )

    @pytest.mark.parametrize("repo", ["a/b/c", "a b/c", "-/-", "a/../b"])
    def test_what_is_no_name(self, hub: FakeHub, repo: str) -> None:
        assert refusal(repo).endswith("is no name of a repository: it is OWNER/NAME.") and hub.requests == []

    @pytest.mark.parametrize("status", [400, 500, 503])
    def test_a_hub_that_is_down(self, hub: FakeHub, status: int) -> None:
        hub.refusals[REPO] = (status, "")
        assert refusal() == f"The hub refused ({status}); models on this computer work as ever."

    def test_a_hub_that_cannot_be_reached(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        text = refusal()
        assert text.startswith("The hub cannot be reached (") and text.endswith("models on this computer work as ever.")

    def test_offline_mode_is_obeyed(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: True)
        assert refusal() == "HF_HUB_OFFLINE forbids asking the hub; models on this computer work as ever."
        assert hub.requests == []

    def test_the_login_of_the_hub_is_used_and_kept_from_other_hosts(
        self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        other = hub.url.replace("127.0.0.1", "localhost")
        monkeypatch.setenv("HF_ENDPOINT", other)
        bring()
        by_host = {("/cdn/" in path): login for _, path, _, login in hub.requests}
        assert by_host == {False: "Bearer hf_secret", True: None}


def test_plans_are_read_as_they_were_written(hub: FakeHub) -> None:
    model = RemoteModel("a/b", "c" * 40, (RemoteFile("config.json", 3, blob="d"),), "m.gguf")
    folder = staging_of(model)
    folder.mkdir(parents=True)
    staging._write_plan(model, folder)
    assert resumable("a/b", "m.gguf") == model and resumable("a/b") is None
    write_json(folder / staging.PLAN, {"repo": 1})
    assert resumable("a/b", "m.gguf") is None
    with pytest.raises(ModelFileError):
        open_folder(folder)
