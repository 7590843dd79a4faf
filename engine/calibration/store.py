"""Recipes that calibrations have found, on disk: one JSON file for each model and kind of device.

A file counts only for the model, the device and the version of this format that it was written for; any other is
refused with a sentence, and stays where it is until the next calibration writes over it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from engine.calibration.report import CalibrationReport
from engine.errors import SpecularError
from engine.files.config import ModelConfig
from engine.files.paths import data_dir, ensure_folder
from engine.files.replacing import replace_text
from engine.recipe import Recipe
from engine.speculation.estimates import CostProfile

FORMAT = 1
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Key:
    """What a recipe was measured for. fingerprint: of the model's files. kind: "cpu" or "cuda". device: its name."""

    fingerprint: str
    kind: str
    device: str

    @property
    def path(self) -> Path:
        """The file of this model and kind of device."""
        return data_dir() / "recipes" / f"{self.fingerprint}-{self.kind}.json"


@dataclass(frozen=True, slots=True)
class Saved:
    """A recipe, and the costs, acceptance and speed-up measured with it."""

    recipe: Recipe
    costs: CostProfile
    acceptance: float
    speed_up: float


class _Refused(Exception):
    """A file that does not count here, with the reason as the middle of a sentence."""


def load(key: Key, config: ModelConfig) -> tuple[Saved | None, str | None]:
    """The recipe saved for this key and None; or None and a sentence why not, which is None where there is no file."""
    try:
        with key.path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, _sentence(key.path, f"cannot be read ({error.strerror or error})")
    try:
        return _parsed(data, key, config), None
    except _Refused as refused:
        return None, _sentence(key.path, str(refused))


def save(key: Key, report: CalibrationReport, costs: CostProfile) -> None:
    """Write what a finished calibration found, in place of what was there. Raises SpecularError where it cannot be."""
    assert report.chosen is not None
    values = {
        "format": FORMAT,
        "model": report.model,
        "fingerprint": key.fingerprint,
        "device": key.device,
        "recipe": report.chosen.to_json(),
        "costs": asdict(costs),
        "acceptance": report.acceptance,
        "speed_up": report.speed_up,
        "report": report.to_json(),
    }
    text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    ensure_folder(key.path.parent)
    try:
        replace_text(key.path, text)
    except OSError as error:
        raise SpecularError(f"{key.path} cannot be written: {error.strerror or error}.") from error


def _parsed(data: bytes, key: Key, config: ModelConfig) -> Saved:
    if len(data) > MOST_BYTES:
        raise _Refused("is too large to be a recipe")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _Refused("is damaged: it is not valid JSON") from error
    if not isinstance(values, dict):
        raise _Refused("is damaged: it holds no JSON object")
    if values.get("format") != FORMAT:
        raise _Refused("was written by another version of Specular")
    if values.get("fingerprint") != key.fingerprint:
        raise _Refused("was measured for another model")
    if values.get("device") != key.device:
        raise _Refused(f"was measured on another device ({values.get('device')}, and this is {key.device})")
    costs = _part(values, "costs")
    known = {f.name for f in fields(CostProfile)}
    profile = CostProfile(**{name: _number(costs, name) for name in costs if name in known})
    if profile.draft <= 0 or profile.verify_base <= 0 or profile.few_base <= 0:
        raise _Refused("is damaged: a cost in it is not above 0")
    return Saved(
        _recipe(_part(values, "recipe"), config), profile, _number(values, "acceptance"), _number(values, "speed_up")
    )


def _recipe(values: dict[str, Any], config: ModelConfig) -> Recipe:
    """The recipe, every field of which makes sense for the model."""

    def whole(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def layers(value: Any) -> bool:
        return isinstance(value, list) and all(whole(layer) and 0 <= layer < config.layers for layer in value)

    def share(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1

    checks: dict[str, Callable[[Any], bool]] = {
        "weight_bits": lambda value: whole(value) and value in (16, 8, 4, 3),
        "input_sparsity": lambda value: value == 0 or (share(value) and value <= 0.9),
        "neuron_share": share,
        "head_share": share,
        "skipped_attention": layers,
        "skipped_mlp": layers,
        "reduced_vocabulary": lambda value: value is None or (whole(value) and 0 < value <= config.vocabulary),
        "kv_window": lambda value: value is None or (whole(value) and value > 0),
    }
    for name, fits in checks.items():
        if name not in values or not fits(values[name]):
            raise _Refused(f"is damaged: its {name} makes no sense")
    return Recipe.from_json(values)


def _part(values: dict[str, Any], name: str) -> dict[str, Any]:
    part = values.get(name)
    if not isinstance(part, dict):
        raise _Refused(f"is damaged: its {name} is missing")
    return part


def _number(values: dict[str, Any], name: str) -> float:
    value = values.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _Refused(f"is damaged: its {name} is no number")
    return float(value)


def _sentence(path: Path, reason: str) -> str:
    return f"The saved recipe {path} {reason}, so the default draft is used."
