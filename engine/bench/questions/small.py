"""The small benchmark: a few questions of each kind, both ways, in a minute or so; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn
from engine.bench.questions.run import Progress, run
from engine.bench.questions.summary import SetSummary, summarise
from engine.bench.questions.ways import EngineWay, Replying
from engine.errors import BadSetting, NoModel
from engine.records import ModelInfo
from engine.settings import Sampling

MOST = 64  # new tokens of a reply

QUESTIONS = (
    Question(
        "mt_bench",
        "1",
        "",
        ("Write a short note to a neighbour who plays music at night.", "Now make it rhyme."),
    ),
    Question("mt_bench", "2", "", ("Name three rivers in Europe.", "Which of them is the longest?")),
    Question(
        "humaneval",
        "1",
        "",
        ('Complete the code.\n\ndef add(a, b):\n    """The sum.\n    >>> add(1, 2)\n    3\n    """\n',),
    ),
    Question("humaneval", "2", "", ("Write a Python function that says whether a number is even.",)),
    Question("gsm8k", "1", "", ("A box holds 12 eggs. How many eggs are in 5 boxes?",), ("#### 60",)),
    Question("gsm8k", "2", "", ("Anna has 20 euros and spends 7. How many are left?",), ("#### 13",)),
    Question("alpaca", "1", "", ("Give three tips for staying healthy.",)),
    Question("alpaca", "2", "", ("Translate into French: the cat sleeps.",)),
)


class Benchmarked(Replying, Protocol):
    """What it needs of engine.engine.Engine."""

    @property
    def info(self) -> ModelInfo | None: ...
    @property
    def takes_text(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class BenchProgress:
    """done of total questions; what: the one at work. sets: the figures so far."""

    done: int
    total: int
    what: str
    seconds_left: float | None
    sets: tuple[SetSummary, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """sets: see summarise; the last sums up all. faults: sentences. stopped: before the end."""

    sets: tuple[SetSummary, ...]
    faults: tuple[str, ...]
    stopped: bool

    @property
    def whole(self) -> SetSummary | None:
        """All sets together; None where nothing was answered."""
        return self.sets[-1] if self.sets else None


@dataclass(slots=True)
class _Kept:
    """Answers in memory."""

    turns: dict[str, tuple[Turn, ...]] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        return key in self.turns

    def add(self, key: str, turns: Sequence[Turn], note: str = "") -> None:
        self.turns[key] = tuple(turns)


def small_benchmark(
    engine: Benchmarked,
    *,
    questions: Sequence[Question] = QUESTIONS,
    progress: Callable[[BenchProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> BenchReport:
    """Answer the questions plainly and with speculation, in turns. Raises NoModel; without a tokenizer BadSetting."""
    info = engine.info
    if info is None:
        raise NoModel("No model is loaded.")
    if not engine.takes_text:
        raise BadSetting(f"{info.name} has no tokenizer: questions are texts.")
    kept = _Kept()

    def told(step: Progress) -> None:
        turns = [turn for answered in kept.turns.values() for turn in answered]
        what = "" if step.question is None else f"{step.question.set} {step.question.id}, {step.way}"
        progress(BenchProgress(step.done, step.total, what, step.seconds_left, summarise(turns) if turns else ()))

    ways = [EngineWay(engine, speculates, Sampling(), MOST, info.context, cancelled) for speculates in (False, True)]
    faults = run(questions, ways, kept, told, cancelled)
    engine.forget()
    turns = [turn for answered in kept.turns.values() for turn in answered]
    return BenchReport(summarise(turns) if turns else (), faults, cancelled())
