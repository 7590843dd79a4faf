"""`specular-cli models`: the list, one line on each kind of model, downloads with their progress, and removal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import byte_tokenizer, shard, tiny_llama, write_gguf, write_json
from engine.cli.main import main
from engine.cli.models_add import is_repository
from engine.files.paths import cache_dir
from engine.library.staging import downloads
from hub_server import FakeHub, serving

REPO = "someone/tiny"


@pytest.fixture(autouse=True)
def no_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_tokenizer(tiny_llama(tmp_path / "tiny"))


@pytest.fixture
def hub(folder: Path) -> Iterator[FakeHub]:
    with serving() as hub:
        hub.add(REPO, folder)
        yield hub


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """(status, stdout, stderr) of `specular-cli models ...`."""
    status = main(["models", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


class TestInfo:
    """One line a model: the right one, or the right refusal."""

    def test_a_folder_and_a_gguf_file(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        gguf = write_gguf(tmp_path / "tiny.gguf", folder, "Q4_0")
        status, out, _ = run(capsys, "info", folder, gguf)
        first, second = out.splitlines()
        assert status == 0
        assert first == "tiny: llama, 111,168 weights in F32, 0.4 MB, context 256, fits."
        assert second.startswith("tiny.gguf: llama, 111,168 weights in Q4_0, 0.1 MB, context 256, fits. 4-bit source:")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (
                "lfs",
                "model.safetensors is a Git LFS pointer, not the file itself: the real file has not been downloaded.",
            ),
            ("cut", "model.safetensors is cut short: it has "),
            (
                "pickle",
                "holds its weights only as a pickle (pytorch_model.bin), which could run code: only safetensors",
            ),
            ("shard", "Shard 2 of 3 is missing: model-00002-of-00003.safetensors is not in "),
            ("architecture", "config.json names no architecture; supported are "),
            ("shape", "model.safetensors holds model.embed_tokens.weight as [290, 64], but config.json calls for "),
            (
                "quantised",
                "config.json says the weights are quantised (gptq); use the unquantised model or a GGUF of it.",
            ),
            ("template", "fits. The chat template was stopped: it loops more than "),
            ("bare", "It has no tokenizer, so it takes token ids only."),
            ("tied", "tiny: llama, 92,608 weights in F32, 0.4 MB, context 256, fits."),
        ],
    )
    def test_every_kind_of_folder(
        self, folder: Path, change: str, words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        weights, config = folder / "model.safetensors", json.loads((folder / "config.json").read_text())
        if change == "lfs":
            weights.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
        elif change == "cut":
            weights.write_bytes(weights.read_bytes()[:200_000])
        elif change == "pickle":
            weights.rename(folder / "pytorch_model.bin")
        elif change == "shard":
            shard(folder, 3)
            (folder / "model-00002-of-00003.safetensors").unlink()
        elif change == "architecture":
            write_json(folder / "config.json", {key: config[key] for key in config if key != "architectures"})
        elif change == "shape":
            write_json(folder / "config.json", config | {"vocab_size": 300})
        elif change == "quantised":
            write_json(folder / "config.json", config | {"quantization_config": {"quant_method": "gptq"}})
        elif change == "template":
            byte_tokenizer(folder, template="{% for i in range(10**9) %}{% endfor %}")
        elif change == "bare":
            (folder / "tokenizer.json").unlink()
        elif change == "tied":
            tiny_llama(folder, tied=True)
        status, out, _ = run(capsys, "info", folder)
        assert words in out and out.count("\n") == 1
        refused = change not in ("template", "bare", "tied")
        assert status == (2 if refused else 0) and ("cannot be loaded." in out) is refused

    def test_one_refusal_does_not_keep_the_others_back(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        status, out, _ = run(capsys, "info", "--json", tmp_path / "gone", folder)
        gone, tiny = objects(out)
        assert status == 2 and "does not exist" in gone["problem"] and gone["weights"] is None
        assert (tiny["problem"], tiny["family"], tiny["verdict"]) == (None, "llama", "fits")

    def test_names_cannot_steer_the_terminal(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        odd = folder.rename(folder.with_name("a\x1b[31mb"))
        _, out, _ = run(capsys, "info", odd)
        assert "\x1b" not in out and "a\N{REPLACEMENT CHARACTER}[31mb: llama" in out


class TestList:
    def test_nothing_is_said_to_be_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "list") == (0, "No model is known: specular-cli models add takes one.\n", "")

    def test_columns_line_up_and_problems_stand_below(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cjk = byte_tokenizer(tiny_llama(folder.with_name("模型")))
        for path in (folder, cjk):
            assert run(capsys, "add", path)[0] == 0
        (folder / "model.safetensors").unlink()
        status, out, _ = run(capsys, "list")
        head, first, second, problem = out.splitlines()
        assert status == 0 and head.split() == ["name", "size", "family", "type", "context", "here", "from"]
        assert first.index("0.4 MB") == head.index("size") - 2  # two characters of two columns each
        assert second.index("cannot be loaded") == head.index("here") and "holds no weights" in problem

    def test_a_broken_list_is_told_and_replaced(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run(capsys, "add", folder)
        from engine.library.shelf import Shelf

        Shelf.path().write_text("{")
        status, out, err = run(capsys, "list")
        assert status == 0 and out.startswith("No model is known")
        assert err.startswith("The list of models could not be read, so it begins anew, and it is kept as models.json.")


class TestAdd:
    def test_what_is_a_repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert is_repository("owner/name-1.5_x") and not is_repository("owner/name/x")
        assert not is_repository("./name/x") and not is_repository("/owner/name") and not is_repository("starter")
        (tmp_path / "owner" / "name-1.5_x").mkdir(parents=True)
        assert not is_repository("owner/name-1.5_x")

    def test_a_download_ends_on_the_list(self, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, err = run(capsys, "add", REPO)
        assert status == 0 and out.startswith("someone--tiny: llama, 111,168 weights in F32")
        assert err == "Downloading someone/tiny: 5 files, 0.5 MB.\n"
        (card,) = objects(run(capsys, "list", "--json")[1])
        assert (card["name"], card["origin"], card["repo"]) == (REPO, "downloaded", REPO)

    def test_progress_as_json_begins_with_the_size_and_ends_with_the_card(
        self, hub: FakeHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, *steps, last = objects(run(capsys, "add", REPO, "--json")[1])
        assert first == {"download": REPO, "files": 5, "bytes": steps[-1]["bytes"]}
        assert steps[-1]["done_bytes"] == steps[-1]["bytes"] and last["family"] == "llama"

    def test_faults_are_one_sentence(self, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, err = run(capsys, "add", "no/body")
        assert (status, out) == (2, "") and err.startswith("specular-cli: The hub knows no model called no/body")

    def test_options_of_repositories_are_for_repositories(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        status, _, err = run(capsys, "add", folder, "--file", "x.gguf")
        assert status == 2 and "--file and --revision are for repositories of the hub" in err

    def test_a_killed_download_goes_on(self, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
        import threading

        hub.hold = threading.Event()
        command = [sys.executable, "-m", "engine.cli.main", "models", "add", REPO, "--json"]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, env=os.environ)
        assert hub.held.wait(20)
        half = len(hub.repositories[REPO]["model.safetensors"]) // 2
        part = downloads() / ".part-someone--tiny" / "model.safetensors.part"
        deadline = time.monotonic() + 20
        while not (part.is_file() and part.stat().st_size == half) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        hub.hold.set()
        hub.hold = None
        (card,) = objects(run(capsys, "list", "--json")[1])
        assert (card["origin"], card["problem"]) == ("download, not complete", "The download is not complete.")
        hub.requests.clear()
        status, _, err = run(capsys, "add", REPO)
        assert status == 0 and err.startswith("Going on with someone/tiny: ")
        assert hub.asked("model.safetensors") == [f"bytes={half}-"]

    def test_ctrl_c_says_how_to_go_on(
        self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("engine.cli.models_add.download", interrupt)
        status, _, err = run(capsys, "add", REPO)
        assert status == 130
        assert err.endswith("specular-cli models add someone/tiny goes on with the download.\nStopped.\n")


class TestRemove:
    def test_without_a_terminal_only_yes_removes(self, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
        run(capsys, "add", REPO)
        status, _, err = run(capsys, "remove", REPO)
        assert status == 2 and err.startswith(
            "specular-cli: Remove someone/tiny? This deletes 0 MB that were downloaded to "
        )
        assert downloads().joinpath("someone--tiny").is_dir()
        assert run(capsys, "remove", REPO, "--yes")[:2] == (0, "someone/tiny was removed.\n")
        assert not downloads().joinpath("someone--tiny").exists()

    @pytest.mark.parametrize(("answer", "removed"), [("y", True), ("YES", True), ("", False), ("n", False)])
    def test_at_a_terminal_it_asks(
        self,
        folder: Path,
        answer: str,
        removed: bool,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        run(capsys, "add", folder)
        questions: list[str] = []

        def ask(question: str) -> str:
            questions.append(question)
            return answer

        monkeypatch.setattr("engine.cli.models.sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
        monkeypatch.setattr("builtins.input", ask)
        assert run(capsys, "remove", "tiny")[0] == (0 if removed else 1)
        assert questions == ["Remove tiny? This takes it off the list; its files stay where they are. [y/N] "]
        assert run(capsys, "list")[1].startswith("No model is known") is removed and folder.is_dir()

    def test_the_cache_is_cleared(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        from engine.files.gguf_convert import convert

        convert(write_gguf(folder.parent / "m.gguf", folder), lambda _: None, lambda: False)
        assert run(capsys, "clear-cache", "--yes")[:2] == (0, "0 MB were freed.\n")
        assert list((cache_dir() / "models").iterdir()) == []


@pytest.mark.parametrize("arguments", [["models"], ["models", "info"], ["models", "sell", "x"]])
def test_what_cannot_be_understood_is_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    err = capsys.readouterr().err
    assert caught.value.code == 2 and err.count("\n") == 1
