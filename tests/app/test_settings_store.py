"""Settings on disk: kept, repaired one by one, set aside when broken."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.settings import AppSettings, default_of, names
from app.settings_store import SettingsStore


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "config")


def write(store: SettingsStore, values: dict[str, Any]) -> None:
    store.folder.mkdir(parents=True, exist_ok=True)
    store.path.write_text(json.dumps(values), encoding="utf-8")


def test_without_a_file_the_defaults_are_used(store: SettingsStore) -> None:
    assert store.load().settings == AppSettings() and store.load().notes == ()


def test_every_setting_survives_the_file(store: SettingsStore) -> None:
    changed = AppSettings(
        model="/models/a b",
        context=4096,
        virtual_memory=False,
        budget_gb=8.0,
        speculation=False,
        draft_own=True,
        draft_weight_bits=16,
        output_tokens=8192,
        input_sparsity=0.3,
        neuron_share=0.5,
        head_share=0.5,
        skipped_sublayers=3,
        kv_window=512,
        gamma_fixed=True,
        gamma=7,
        temperature=0.8,
        top_k=40,
        top_p=0.9,
        min_p=0.05,
        repetition_penalty=1.1,
        seed=7,
        max_new_tokens=99,
        system_prompt="Antworte kurz. 你好",
        theme="dark",
        language="zh_CN",
        keep_ghosts=True,
        send_key="ctrl+enter",
        expert=True,
        recent_models=("/a", "/b"),
        sidebar_visible=False,
        cockpit_visible=False,
        cockpit_folded=("layers", "memory"),
        window_geometry="AAAA",
        shortcut_asked=True,
    )
    assert all(getattr(changed, name) != default_of(name) for name in names())
    assert store.save(changed) is None
    assert SettingsStore(store.folder).load().settings == changed
    assert [path.name for path in store.folder.iterdir()] == ["settings.json"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 99),
        ("temperature", "warm"),
        ("temperature", float("nan")),
        ("top_k", 1.5),
        ("gamma", 0),
        ("speculation", 1),
        ("draft_weight_bits", 5),
        ("theme", "pink"),
        ("seed", -1),
        ("recent_models", "abc"),
        ("max_new_tokens", None),
        ("gamma_fixed", 0),
    ],
)
def test_one_bad_value_costs_only_itself(store: SettingsStore, name: str, value: Any) -> None:
    write(store, {"system_prompt": "kept", name: value})
    loaded = store.load()
    assert getattr(loaded.settings, name) == default_of(name)
    assert loaded.settings.system_prompt == "kept"
    [note] = loaded.notes
    assert name in note and "default" in note


def test_unknown_keys_are_kept(store: SettingsStore) -> None:
    write(store, {"from_the_future": {"x": [1]}, "top_k": 5})
    settings = store.load().settings
    store.save(settings.with_value("top_k", 6))
    stored = json.loads(store.path.read_text(encoding="utf-8"))
    assert stored["from_the_future"] == {"x": [1]} and stored["top_k"] == 6


@pytest.mark.parametrize("text", ["{", "[]", "\0\0\0\0", '"a"', "[" * 100_000])
def test_a_broken_file_is_set_aside(store: SettingsStore, text: str) -> None:
    store.folder.mkdir()
    store.path.write_text(text, encoding="utf-8")
    loaded = store.load()
    assert loaded.settings == AppSettings()
    assert "settings.broken.json" in loaded.notes[0]
    assert (store.folder / "settings.broken.json").read_text(encoding="utf-8") == text
    assert not store.path.exists()


def test_a_file_that_is_not_text_is_reported(store: SettingsStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(b"\xff\xfe\x00")
    loaded = store.load()
    assert loaded.settings == AppSettings() and str(store.path) in loaded.notes[0]


def test_a_home_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    store = SettingsStore(blocker / "config")
    first = store.save(AppSettings())
    assert first is not None and "Settings will not be kept" in first and str(store.path) in first
    assert store.save(AppSettings()) is None


def test_a_failed_write_keeps_the_old_file(store: SettingsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(AppSettings(top_k=1))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    sentence = store.save(AppSettings(top_k=2))
    assert sentence is not None and "no space left on device" in sentence
    assert [path.name for path in store.folder.iterdir()] == ["settings.json"]
    assert SettingsStore(store.folder).load().settings.top_k == 1


def test_the_data_folder_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path))
    assert SettingsStore().path == tmp_path / "config" / "settings.json"
