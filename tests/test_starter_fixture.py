"""The starter model as tests see it: real, converted once, and found by name without touching the user's folder."""

from __future__ import annotations

from pathlib import Path

from engine.files.resolve import resolve


def test_the_folder_is_a_converted_model(starter_folder: Path, own_data_folder: Path) -> None:
    assert (starter_folder / "config.json").is_file()
    assert list(starter_folder.glob("*.safetensors"))
    assert own_data_folder not in starter_folder.parents


def test_the_name_resolves_to_the_same_folder_without_converting(
    starter_by_name: str, starter_folder: Path, own_data_folder: Path
) -> None:
    steps: list[object] = []
    found = resolve(starter_by_name, steps.append, lambda: False)
    assert found.resolve() == starter_folder.resolve()
    assert own_data_folder in found.parents
    assert steps == []
