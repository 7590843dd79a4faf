"""Runners, engines and whole replies for the engine's tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.engine import Engine
from engine.files.folder import open_folder
from engine.model.compiled_runner import CompiledRunner
from engine.model.runner import Runner
from engine.model.torch_runner import TorchRunner
from engine.recipe import Recipe
from engine.records import CycleEvent, CycleRecord, Event, Finished, PrefillProgress
from engine.settings import GenerateRequest, Sampling, Speculation

INT8 = Recipe(weight_bits=8)
DEFAULT = Recipe(weight_bits=4)  # of a small model on the CPU
RECIPES = (
    INT8,
    Recipe(weight_bits=16, skipped_attention=(1,), skipped_mlp=(0,)),
    Recipe(weight_bits=16, neuron_share=0.5),
    Recipe(weight_bits=8, neuron_share=0.5, skipped_attention=(0, 1)),
)


@contextmanager
def compiled_runner(folder: Path, *, capacity: int = 256, recipe: Recipe = INT8) -> Iterator[CompiledRunner]:
    """The CPU runner of a folder, closed at the end."""
    runner = CompiledRunner(open_folder(folder), capacity, recipe, lambda _: None, lambda: False)
    try:
        yield runner
    finally:
        runner.close()


def torch_runner(folder: Path, *, capacity: int = 256, recipe: Recipe | None = None) -> TorchRunner:
    """The torch runner of a folder, on the CPU."""
    recipe = recipe or Recipe(weight_bits=16)
    return TorchRunner(open_folder(folder), capacity, recipe, lambda _: None, lambda: False, "cpu")


def step_logits(runner: Runner, ids: Sequence[int]) -> np.ndarray:
    """Logits [len(ids), vocabulary] of every position, computed one token at a time."""
    return np.stack([runner.full([token], position, 1)[0].copy() for position, token in enumerate(ids)])


@contextmanager
def loaded_engine(folder: Path, *, context: int | None = None, budget: int | None = None) -> Iterator[Engine]:
    """An engine with a model on the CPU, closed at the end."""
    engine = Engine()
    try:
        engine.load(str(folder), context=context, device="cpu", budget_bytes=budget)
        yield engine
    finally:
        engine.close()


@dataclass(frozen=True)
class Reply:
    """A reply taken to its end."""

    events: tuple[Event, ...]

    @property
    def cycles(self) -> tuple[CycleEvent, ...]:
        return tuple(event for event in self.events if isinstance(event, CycleEvent))

    @property
    def records(self) -> tuple[CycleRecord, ...]:
        return tuple(event.record for event in self.cycles)

    @property
    def prefills(self) -> tuple[PrefillProgress, ...]:
        return tuple(event for event in self.events if isinstance(event, PrefillProgress))

    @property
    def ids(self) -> list[int]:
        return [token for record in self.records for token in record.emitted_ids]

    @property
    def text(self) -> str:
        return "".join(piece for event in self.cycles for piece in event.pieces) + self.finished.tail

    @property
    def finished(self) -> Finished:
        last = self.events[-1]
        assert isinstance(last, Finished), f"the reply ended with {last}"
        return last

    @property
    def drafted(self) -> int:
        return sum(len(record.drafted_ids) for record in self.records)


PLAIN = Speculation(enabled=False)


def request(
    prompt: Sequence[int],
    most: int | None = 40,
    *,
    gamma: int | None = None,
    plain: bool = False,
    recipe: Recipe | None = None,
    sampling: Sampling | None = None,
) -> GenerateRequest:
    """A request for ids from ids."""
    speculation = PLAIN if plain else Speculation(gamma=gamma, recipe=recipe)
    ids = tuple(int(token) for token in prompt)
    return GenerateRequest(
        prompt_ids=ids, max_new_tokens=most, speculation=speculation, sampling=sampling or Sampling()
    )


def reply(engine: Engine, wanted: GenerateRequest, on_event: Callable[[Event], None] = lambda _: None) -> Reply:
    """The whole reply; `on_event` sees every event as it comes."""
    events = []
    for event in engine.generate(wanted):
        events.append(event)
        on_event(event)
    return Reply(tuple(events))


def random_prompts(count: int, vocabulary: int, seed: int = 0, longest: int = 40) -> list[list[int]]:
    """Prompts of 1 to `longest` random ids."""
    random = np.random.default_rng(seed)
    return [random.integers(0, vocabulary, random.integers(1, longest + 1)).tolist() for _ in range(count)]


def no_end_tokens(folder: Path) -> Path:
    """Take the end tokens out of a model folder, so that only limits end its replies."""
    return end_tokens(folder, None)


def end_tokens(folder: Path, ids: int | list[int] | None) -> Path:
    """Set a model folder's end tokens."""
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        values["eos_token_id"] = ids
        path.write_text(json.dumps(values), encoding="utf-8")
    return folder


class ScriptedRunner:
    """A runner whose draft proposes what a script says, after writing rubbish into the KV cache as a draft may.

    script: (position of the proposed token) -> its id. before_draft, before_full: called with the number of earlier
    passes of that kind; they may raise, stop the engine or wait.
    """

    def __init__(
        self,
        inner: CompiledRunner,
        script: Callable[[int], int] | None = None,
        *,
        before_draft: Callable[[int], None] = lambda _: None,
        before_full: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.inner, self.script = inner, script
        self.before_draft, self.before_full = before_draft, before_full
        self.drafts = self.fulls = 0
        self._random = np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        self.before_full(self.fulls)
        self.fulls += 1
        return self.inner.full(tokens, position, wanted)

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        self.before_draft(self.drafts)
        self.drafts += 1
        if self.script is None:
            return self.inner.draft(tokens, position)
        vocabulary = self.inner.config.vocabulary
        logits = self.inner.draft(self._random.integers(vocabulary, size=len(tokens)).tolist(), position)
        logits[:] = -1e9
        for i, row in enumerate(logits):
            row[self.script(position + i + 1)] = 0.0
        return logits


def script_engine(engine: Engine, **options: Any) -> ScriptedRunner:
    """Put a ScriptedRunner in front of the engine's runner."""
    loaded = engine._loaded
    assert loaded is not None and isinstance(loaded.runner, CompiledRunner)
    runner = ScriptedRunner(loaded.runner, **options)
    loaded.runner = runner
    return runner


def cache_rows(engine: Engine, count: int) -> list[np.ndarray]:
    """Copies of the first `count` rows of every layer's KV cache."""
    assert engine._loaded is not None
    runner = engine._loaded.runner
    inner = runner.inner if isinstance(runner, ScriptedRunner) else runner
    assert isinstance(inner, CompiledRunner)
    return [layer[:count].copy() for layer in inner._memory.cache]


def same_bits(first: Iterable[np.ndarray], second: Iterable[np.ndarray]) -> bool:
    """Whether two lists of arrays are equal bit for bit (NaN differs from everything)."""
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
