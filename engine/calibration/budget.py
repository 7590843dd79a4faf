"""The time a calibration may take, shared out to its stages, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from engine.calibration.report import CalibrationProgress, Finding

MAKING = 0.5  # copies are kept on disk: they are made once, and their making is not what is to be hurried


class Stage(Enum):
    """A part of a calibration: what it does, for people, and the share of the time by which it should be over."""

    REPLIES = "Answering prompts", 0.12
    VERIFY = "Timing verify passes", 0.16
    WEIGHTS = "Measuring weights", 0.36
    INGREDIENTS = "Measuring ingredients", 0.62
    BLOCKS = "Measuring skipped blocks", 0.84
    TOGETHER = "Measuring ingredients together", 0.89
    FINAL = "Measuring the best again", 0.94
    WINDOW = "Measuring far into a text", 0.98
    FEW_ROWS = "Timing draft passes", 1.0

    def __init__(self, words: str, until: float) -> None:
        self.words, self.until = words, until

    @property
    def since(self) -> float:
        """The share of the time at which it begins at the latest."""
        return max((stage.until for stage in Stage if stage.until < self.until), default=0.0)


@dataclass(slots=True)
class Budget:
    """`seconds` of measuring from the moment it is made, and as much again times MAKING for making copies of weights.

    progress is told of every step; its fraction never falls.
    """

    seconds: float
    clock: Callable[[], float]
    progress: Callable[[CalibrationProgress], None]
    _began: float = 0.0
    _shown: float = 0.0
    _making: float = 0.0  # seconds of copies

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return self.clock() - self._began

    @property
    def spent(self) -> float:
        """Seconds of measuring so far."""
        return self.elapsed - self._making

    @property
    def making_left(self) -> float:
        """Seconds there are for making copies."""
        return self.seconds * MAKING - self._making

    def made(self, seconds: float) -> None:
        """A copy took so long; what was too much is time of measuring."""
        self._making += min(seconds, self.making_left)

    def allows(self, stage: Stage, seconds: float = 0.0) -> bool:
        """Whether something that takes so long would end within the stage's time."""
        return self.spent + seconds <= self.seconds * stage.until

    def tell(self, stage: Stage, done: float, what: str = "", finding: Finding | None = None) -> None:
        """The stage has come so far, 0 to 1."""
        fraction = stage.since + (stage.until - stage.since) * min(max(done, 0.0), 1.0)
        self._shown = max(self._shown, fraction)
        words = f"{stage.words}: {what}" if what else stage.words
        self.progress(CalibrationProgress(words, self._shown, finding))
