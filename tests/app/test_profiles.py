"""Draft settings per model: kept on leaving it, back on its return, across runs and bad files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot
from window_bench import BenchMaker

from app.live_settings import LiveSettings
from app.profile_store import MOST, ProfileStore, profile_names, profile_of
from app.profiles import Profiles
from app.settings import AppSettings, default_of
from app.settings_store import SettingsStore
from app.states import HostState


@pytest.fixture
def live(tmp_path: Path, qtbot: QtBot) -> Any:
    settings = LiveSettings(SettingsStore(tmp_path), AppSettings(model="/a"))
    yield settings
    settings.flush()


def test_only_the_draft_belongs_to_a_model() -> None:
    assert {"speculation", "draft_own", "draft_weight_bits", "gamma", "gamma_fixed", "kv_window"} <= set(
        profile_names()
    )
    assert not {"temperature", "theme", "context", "model", "expert", "recent_models"} & set(profile_names())


def test_each_model_has_its_own(live: LiveSettings, tmp_path: Path) -> None:
    profiles = Profiles(live, ProfileStore(tmp_path), live)
    live.set("gamma", 9)
    live.set("temperature", 0.5)
    live.set("model", "/b")
    assert live.current.gamma == default_of("gamma") and live.current.temperature == 0.5
    live.set("speculation", False)
    live.set("model", "/a")
    assert (live.current.gamma, live.current.speculation) == (9, True)
    live.set("model", "/b")
    assert (live.current.gamma, live.current.speculation) == (default_of("gamma"), False)
    assert profiles.parent() is live


def test_they_survive_the_end_of_the_program(live: LiveSettings, tmp_path: Path) -> None:
    Profiles(live, ProfileStore(tmp_path), live)
    live.set("draft_own", True)
    live.set("neuron_share", 0.5)
    live.set("model", "/b")
    live.flush()
    again = LiveSettings(SettingsStore(tmp_path), SettingsStore(tmp_path).load().settings)
    Profiles(again, ProfileStore(tmp_path), again)
    assert again.current.model == "/b" and not again.current.draft_own
    again.set("model", "/a")
    assert again.current.draft_own and again.current.neuron_share == 0.5
    again.flush()


def test_what_is_in_force_at_the_start_belongs_to_the_model_that_is_set(live: LiveSettings, tmp_path: Path) -> None:
    ProfileStore(tmp_path).put("/a", {"gamma": 2})
    live.set("gamma", 9)  # changed since, and kept with the settings
    Profiles(live, ProfileStore(tmp_path), live)
    live.set("model", "/b")
    live.set("model", "/a")
    assert live.current.gamma == 9


def test_a_model_with_defaults_takes_no_room(tmp_path: Path) -> None:
    store = ProfileStore(tmp_path)
    store.put("/a", {"gamma": 9})
    store.put("/a", profile_of(AppSettings()))
    assert json.loads(store.path.read_text())["profiles"] == {}


def test_the_models_used_longest_ago_are_forgotten(tmp_path: Path) -> None:
    store = ProfileStore(tmp_path)
    store._profiles = {f"/m{i}": {"gamma": 9} for i in range(MOST)}
    store.put("/m0", {"gamma": 8})
    store.put("/new", {"gamma": 7})
    kept = list(json.loads(store.path.read_text())["profiles"])
    assert len(kept) == MOST and kept[-2:] == ["/m0", "/new"] and "/m1" not in kept


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"version": 2, "profiles": {}}', '{"version": 1}', '{"version": 1, "profiles": {"/a": 3}}'],
)
def test_a_bad_file_counts_as_none_and_is_set_aside(tmp_path: Path, text: str) -> None:
    store = ProfileStore(tmp_path)
    store.path.write_text(text)
    assert store.get("/a") == {}
    assert store.path.with_suffix(".broken.json").read_text() == text
    assert store.put("/a", {"gamma": 9}) is None and ProfileStore(tmp_path).get("/a") == {"gamma": 9}


def test_values_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    store = ProfileStore(tmp_path)
    profile = {"gamma": 99, "draft_weight_bits": 4, "theme": "dark", "unknown": 1, "speculation": "no"}
    store.path.write_text(json.dumps({"version": 1, "profiles": {"/a": profile}}))
    assert store.get("/a") == {"draft_weight_bits": 4}


def test_a_place_that_cannot_be_written_is_told_and_the_settings_still_change(
    live: LiveSettings, tmp_path: Path
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    profiles = Profiles(live, ProfileStore(blocker / "config"), live)
    told: list[str] = []
    profiles.not_kept.connect(told.append)
    live.set("gamma", 9)
    live.set("model", "/b")
    assert live.current.gamma == default_of("gamma")
    assert len(told) == 1 and "will not be kept" in told[0] and told[0].endswith(").")


def test_loading_a_model_in_the_window_brings_its_draft_back(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    bench.ready()
    bench.settings.set("gamma_fixed", True)
    bench.settings.set("gamma", 7)
    bench.window.models.load(str(tmp_path))
    bench.qtbot.waitUntil(lambda: bench.settings.current.model == str(tmp_path), timeout=5000)
    bench.reach(HostState.READY)
    bench.ask("One?")
    assert bench.engine.requests[-1].speculation.gamma is None
    bench.ready()
    bench.qtbot.waitUntil(lambda: bench.settings.current.model == "starter", timeout=5000)
    bench.reach(HostState.READY)
    bench.ask("Two?")
    assert bench.engine.requests[-1].speculation.gamma == 7


def test_a_failed_load_changes_nothing(benches: BenchMaker, tmp_path: Path) -> None:
    from engine.errors import ModelFileError

    bench = benches()
    bench.ready()
    bench.settings.set("gamma", 7)
    bench.engine.load_error = ModelFileError("m.gguf is cut short.")
    bench.window.models.load(str(tmp_path / "m.gguf"))
    bench.reach(HostState.LOADING)
    bench.qtbot.waitUntil(lambda: bench.banner == "m.gguf is cut short.", timeout=5000)
    assert (bench.settings.current.model, bench.settings.current.gamma) == ("starter", 7)
