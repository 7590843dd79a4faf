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
    note, kept = loaded.notes
    assert name in note and "default" in note and "settings.before.json" in kept
    before = store.path.read_bytes()
    store.save(loaded.settings)
    assert (store.folder / "settings.before.json").read_bytes() == before != store.path.read_bytes()


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


def test_a_file_that_is_not_text_is_set_aside(store: SettingsStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(b"\xff\xfe\x00")
    loaded = store.load()
    assert loaded.settings == AppSettings() and "settings.broken.json" in loaded.notes[0]
    store.save(loaded.settings)
    assert (store.folder / "settings.broken.json").read_bytes() == b"\xff\xfe\x00"


def test_a_mark_of_byte_order_does_no_harm(store: SettingsStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(b"\xef\xbb\xbf" + b'{"top_k": 5}')  # as some editors save it
    assert store.load().settings.top_k == 5 and store.load().notes == ()


def test_a_file_that_cannot_be_read_is_not_written_over(store: SettingsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store, {"top_k": 5})

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        loaded = store.load()
    assert loaded.settings == AppSettings() and "permission denied" in loaded.notes[0]
    assert store.save(loaded.settings) is None
    assert json.loads((store.folder / "settings.unread.json").read_text(encoding="utf-8")) == {"top_k": 5}
    assert SettingsStore(store.folder).load().settings.top_k == 0


@pytest.mark.parametrize("version", [999, 10**30, True, "x", -1, None, float("nan")])
def test_a_file_of_a_newer_version_is_kept_beside_this_ones(store: SettingsStore, version: Any) -> None:
    write(store, {"version": version, "top_k": 5, "of_the_future": [1], "temperature": {"now": "an object"}})
    before = store.path.read_bytes()
    loaded = store.load()
    assert loaded.settings == AppSettings(top_k=5)
    store.save(loaded.settings)
    stored = json.loads(store.path.read_text(encoding="utf-8"))
    assert stored["version"] == 1 and stored["of_the_future"] == [1]
    newer = type(version) is int and version > 1
    kept = list(store.folder.glob("settings.v*.json" if newer else "settings.before.json"))
    assert [path.read_bytes() for path in kept] == [before]
    assert ("newer version of Specular" in loaded.notes[0]) is newer
    assert SettingsStore(store.folder).load().notes == (), "told once"


def test_parts_that_a_kill_left_are_swept(store: SettingsStore) -> None:
    write(store, {"top_k": 5})
    old, young = store.folder / "settings.jsonab.part", store.folder / "settings.jsoncd.part"
    old.write_text("{")
    young.write_text("{")
    os.utime(old, (0, 0))
    assert store.load().settings.top_k == 5
    assert not old.exists() and young.exists(), "somebody may be writing the other"


def test_safe_mode_reads_nothing_and_says_so(store: SettingsStore) -> None:
    write(store, {"top_k": 5})
    loaded = SettingsStore(store.folder, safe=True).load()
    assert loaded.settings == AppSettings() and loaded.notes[0].startswith("Safe mode")


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
