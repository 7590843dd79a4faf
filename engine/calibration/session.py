"""A calibration of a loaded model: its prompts, and what becomes of the outcome."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from engine.calibration import store
from engine.calibration.calibrate import Calibrated, Subject, calibrate
from engine.calibration.report import CalibrationProgress, CalibrationReport
from engine.errors import SpecularError
from engine.model.loaded import LoadedModel
from engine.prove_prompts import PROMPTS
from engine.settings import Message

ORDER = ("chat", "story", "code", "maths", "list", "json", "sql", "german", "chinese", "signs")  # usual ones first


def calibrate_loaded(
    loaded: LoadedModel,
    minutes: float,
    progress: Callable[[CalibrationProgress], None],
    cancelled: Callable[[], bool],
    clock: Callable[[], float] = time.perf_counter,
) -> CalibrationReport:
    """Find the model's recipe on this device; it becomes the default one, and is kept for the next loads.

    Where it is stopped or raises, all is as before, save that a KV cache for one conversation has forgotten it.
    Raises as engine.calibration.calibrate.
    """
    config, info = loaded.folder.config, loaded.info
    chats = loaded.template is not None
    subject = Subject(loaded.runner, config, info.name, loaded.key.device, _prompts(loaded), loaded.end_ids(chats))
    with loaded.runner.kv.scratch():
        done = calibrate(subject, minutes * 60, progress, cancelled, clock)
    return done.report if done.costs is None else _taken(loaded, done)


def _taken(loaded: LoadedModel, done: Calibrated) -> CalibrationReport:
    """Draft by what was found from now on; the report, with a note where it could not be kept."""
    assert done.costs is not None and done.report.chosen is not None
    loaded.default_recipe, loaded.costs = done.report.chosen, done.costs
    loaded.controller = loaded.fresh_controller()
    loaded.info = replace(
        loaded.info, recipe=done.report.chosen, calibrated=True, draft_bytes=loaded.runner.draft_bytes
    )
    try:
        store.save(loaded.key, done.report, done.costs)
    except SpecularError as error:
        return replace(done.report, note=f"The recipe is in use, but not kept for the next start: {error}")
    return done.report


def _prompts(loaded: LoadedModel) -> tuple[tuple[int, ...], ...]:
    """The built-in questions as the model's template puts them; for a model without tokenizer, spread ids.

    Those whose answers any draft would guess, numbers and repetition, are left out.
    """
    if loaded.template is not None:
        texts = {prompt.name: prompt.text for prompt in PROMPTS}
        return tuple(tuple(loaded.chat_ids((Message("user", texts[name]),))) for name in ORDER)
    vocabulary, most = loaded.folder.config.vocabulary, max(1, loaded.runner.capacity // 4)
    source = random.Random(0)
    return tuple(tuple(source.randrange(vocabulary) for _ in range(min(len(prompt.text), most))) for prompt in PROMPTS)
