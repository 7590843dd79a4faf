"""What the window has done with models through processes: with a stand-in for the command, and with the real one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from models_command import ModelsCommand, row
from pytestqt.qtbot import QtBot

from app.known_model import HubName, KnownModel, hub_name, known_model
from app.model_library import Download, ModelLibrary, Phase
from builders import byte_tokenizer, tiny_llama
from hub_server import serving

NAME = HubName("someone/tiny")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsCommand:
    return ModelsCommand(tmp_path, monkeypatch)


@pytest.fixture
def library(qtbot: QtBot) -> Iterator[ModelLibrary]:
    made = ModelLibrary()
    yield made
    made.close()


class Heard:
    """Everything that a library says."""

    def __init__(self, library: ModelLibrary) -> None:
        self.lists: list[tuple[KnownModel, ...]] = []
        self.failures: list[str] = []
        self.told: list[str] = []
        self.downloads: list[Download] = []
        library.listed.connect(self.lists.append)
        library.failed.connect(self.failures.append)
        library.told.connect(self.told.append)
        library.download_changed.connect(self.downloads.append)


def idle(qtbot: QtBot, library: ModelLibrary) -> None:
    qtbot.waitUntil(lambda: not library.busy and library.download.phase is not Phase.RUNNING, timeout=10_000)


def test_the_list_is_read_line_by_line(qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
    command.lists(row("a"), row("b", verdict=None, problem="It is cut short.", bytes=None), row("日本", notes=["x"]))
    heard = Heard(library)
    library.refresh()
    idle(qtbot, library)
    (models,) = heard.lists
    assert [model.name for model in models] == ["a", "b", "日本"] == [model.name for model in library.models]
    assert (models[1].problem, models[1].nbytes, models[2].notes) == ("It is cut short.", 0, ("x",))
    assert command.calls == [["list", "--json"]]


def test_other_lines_are_no_models(qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
    command.lay_out(list={"out": ["a warning of a library", "[1, 2]", "", row("a")]})
    heard = Heard(library)
    library.refresh()
    idle(qtbot, library)
    assert [model.name for model in heard.lists[0]] == ["a"]


def test_commands_wait_for_each_other_and_the_list_is_read_after_each(
    qtbot: QtBot, command: ModelsCommand, library: ModelLibrary
) -> None:
    command.lists(row())
    heard = Heard(library)
    library.add("/models/a")
    library.remove("/models/b")
    library.refresh()
    library.refresh()
    idle(qtbot, library)
    assert command.calls == [
        ["add", "/models/a", "--json"],
        ["remove", "/models/b", "--yes", "--json"],
        ["list", "--json"],
    ]
    assert heard.failures == [] and len(heard.lists) == 1


def test_a_failure_is_the_last_line_without_the_program_s_name(
    qtbot: QtBot, command: ModelsCommand, library: ModelLibrary
) -> None:
    command.lay_out(add={"status": 2, "error": "noise\nspecular-cli: /x does not exist."}, list={"out": []})
    heard = Heard(library)
    library.add("/x")
    idle(qtbot, library)
    assert heard.failures == ["/x does not exist."]
    command.lay_out(list={"status": 1, "out": [row()]})
    library.refresh()
    idle(qtbot, library)
    assert heard.failures[1:] == ["The command ended without saying why."] and len(heard.lists) == 1


def test_a_program_that_cannot_start_is_a_sentence(
    qtbot: QtBot, library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models_process.COMMAND", ("/no/such/program",))
    heard = Heard(library)
    library.refresh()
    qtbot.waitUntil(lambda: heard.failures != [], timeout=10_000)
    assert heard.failures[0].startswith("The list of models cannot be read: ") and heard.failures[0].endswith(".")


def test_cleared_copies_are_told_in_megabytes(qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
    command.lay_out(clear_cache={"out": [{"freed_bytes": 271_400_000}]})
    heard = Heard(library)
    library.clear_cache()
    idle(qtbot, library)
    assert heard.told == ["271 MB were freed."] and command.calls == [["clear-cache", "--yes", "--json"]]


def test_a_running_command_ends_with_the_window(qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
    command.lay_out(list={"hold": True}, add={"hold": True})
    heard = Heard(library)
    library.refresh()
    library.add("/x")
    library.fetch(NAME)
    qtbot.waitUntil(lambda: len(command.calls) == 2, timeout=10_000)
    library.close()
    assert not library.busy and heard.lists == [] and heard.failures == []


class TestDownload:
    STEPS = (
        {"download": "someone/tiny", "files": 5, "bytes": 400},
        {"what": "Downloading config.json", "done_bytes": 100, "bytes": 400},
        {"what": "Downloading model.safetensors", "done_bytes": 300, "bytes": 400},
    )

    def test_progress_and_end(self, qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
        command.lay_out(add={"out": [*self.STEPS, row()]}, list={"out": [row("someone/tiny", origin="downloaded")]})
        heard = Heard(library)
        library.fetch(NAME)
        idle(qtbot, library)
        assert [download.done_bytes for download in heard.downloads] == [0, 0, 100, 300, 300]
        assert [download.phase for download in heard.downloads] == [Phase.RUNNING] * 4 + [Phase.DONE]
        assert heard.downloads[-1].total_bytes == 400
        assert command.calls == [["add", "someone/tiny", "--json"], ["list", "--json"]]

    def test_the_speed_is_of_the_last_seconds(self, qtbot: QtBot, command: ModelsCommand) -> None:
        times = iter([0.0, 2.0, 4.0, 12.0])
        library = ModelLibrary(clock=lambda: next(times))
        heard = Heard(library)
        for done in (1000, 3000, 5000, 5000):
            library._on_progress({"what": "x", "done_bytes": done, "bytes": 9000})
        assert [download.rate for download in heard.downloads] == [None, 1000.0, 1000.0, 0.0]

    def test_pause_keeps_what_arrived_and_resume_goes_on(
        self, qtbot: QtBot, command: ModelsCommand, library: ModelLibrary
    ) -> None:
        command.lay_out(add={"out": list(self.STEPS), "hold": True}, list={"out": []})
        heard = Heard(library)
        library.fetch(HubName("a/b", "m.gguf"))
        qtbot.waitUntil(lambda: library.download.done_bytes == 300, timeout=10_000)
        library.fetch(NAME)
        library.pause()
        assert (library.download.phase, library.download.done_bytes) == (Phase.PAUSED, 300)
        idle(qtbot, library)
        command.lay_out(add={"out": [row()]})
        library.resume()
        assert (library.download.phase, library.download.done_bytes) == (Phase.RUNNING, 300)
        idle(qtbot, library)
        assert library.download.phase is Phase.DONE and heard.failures == []
        add = ["add", "a/b", "--file", "m.gguf", "--json"]
        assert [call for call in command.calls if call[0] == "add"] == [add, add]

    def test_cancel_deletes_what_arrived(self, qtbot: QtBot, command: ModelsCommand, library: ModelLibrary) -> None:
        nothing = {"status": 2, "error": "specular-cli: No model called someone/tiny is on the list."}
        command.lay_out(add={"out": list(self.STEPS), "hold": True}, list={"out": []}, remove=nothing)
        heard = Heard(library)
        library.fetch(NAME)
        qtbot.waitUntil(lambda: library.download.done_bytes == 300, timeout=10_000)
        library.cancel()
        assert library.download == Download()
        idle(qtbot, library)
        assert command.calls[1:] == [["remove", "someone/tiny", "--yes", "--json"], ["list", "--json"]]
        assert heard.failures == []
        library.remove("someone/tiny")
        idle(qtbot, library)
        assert heard.failures == ["No model called someone/tiny is on the list."]

    def test_a_failure_stays_with_the_download_and_can_be_tried_again(
        self, qtbot: QtBot, command: ModelsCommand, library: ModelLibrary
    ) -> None:
        command.lay_out(add={"status": 2, "error": "specular-cli: The hub cannot be reached (no route)."})
        heard = Heard(library)
        library.fetch(NAME)
        idle(qtbot, library)
        assert library.download.phase is Phase.FAILED
        assert library.download.sentence == "The hub cannot be reached (no route)." and heard.failures == []
        command.lay_out(add={"out": [row()]})
        library.resume()
        assert library.download.sentence == ""
        idle(qtbot, library)
        assert library.download.phase is Phase.DONE


def test_the_real_command_downloads_pauses_goes_on_and_removes(
    qtbot: QtBot, library: ModelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    with serving() as hub:
        hub.add("someone/tiny", byte_tokenizer(tiny_llama(tmp_path / "source")))
        hub.hold = threading.Event()
        library.fetch(NAME)
        half = len(hub.repositories["someone/tiny"]["model.safetensors"]) // 2
        part = Path(os.environ["SPECULAR_DATA_DIR"]) / "data/models/hub/.part-someone--tiny/model.safetensors.part"
        qtbot.waitUntil(lambda: part.exists() and part.stat().st_size >= half, timeout=20_000)
        library.pause()
        hub.hold.set()
        hub.hold = None
        idle(qtbot, library)
        (model,) = library.models
        assert (model.origin, model.name) == ("download, not complete", "someone/tiny")
        library.resume()
        idle(qtbot, library)
        assert library.download.phase is Phase.DONE and hub.asked("model.safetensors")[-1] == f"bytes={half}-"
        (model,) = library.models
        assert (model.origin, model.family, model.verdict, model.problem) == ("downloaded", "llama", "fits", "")
        library.remove(model.path)
        idle(qtbot, library)
        assert library.models == () and not Path(model.path).exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owner/name", HubName("owner/name")),
        ("  owner/na.me-1_x \n", HubName("owner/na.me-1_x")),
        ("owner/name/m.Q4_K_M.gguf", HubName("owner/name", "m.Q4_K_M.gguf")),
        ("https://huggingface.co/owner/name", HubName("owner/name")),
        ("https://huggingface.co/owner/name/tree/main", HubName("owner/name")),
        ("https://huggingface.co/owner/name/blob/main/m.gguf?x=1#y", HubName("owner/name", "m.gguf")),
        ("owner", None),
        ("", None),
        ("owner/", None),
        ("../name", None),
        ("owner/name/other.bin", None),
        ("a b/c", None),
    ],
)
def test_what_a_user_may_type_or_paste(text: str, expected: HubName | None) -> None:
    assert hub_name(text) == expected


def test_a_line_that_is_no_model_is_an_error() -> None:
    with pytest.raises(KeyError):
        known_model({"name": "x"})
    assert known_model(row()).nbytes == 1_500_000_000
