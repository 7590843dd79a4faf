"""A runner made of rules for the tests of calibration: known costs on a clock that only it moves, known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.calibration.calibrate import Subject
from engine.errors import BadSetting, LoadCancelled
from engine.files.config import ModelConfig, parse_config
from engine.model.ingredients import require_ingredients
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.sampling.distribution import require_finite

VOCABULARY = 256
EVERYTHING = Ingredients((16, 8, 4, 3), True, True, True, True, True)


def config(layers: int = 6, **others: object) -> ModelConfig:
    """The shape of a small LLaMA."""
    values: dict[str, object] = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "torch_dtype": "float16",
    }
    return parse_config(values | others, {})


@dataclass
class Clock:
    """Time that passes only where something is said to take it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class RuledRunner:
    """Implements Runner. The next token follows from the last one and its place; a draft errs where `errs` says.

    cost: c of a recipe. errs: (recipe, position of the proposed token) -> whether the draft is wrong there. before: is
    called before every pass and every change of recipe with its kind ("full", "draft" or "recipe"); it may raise. A
    pass that reads a row of the cache that it must not read fails the test at once.
    """

    clock: Clock
    cost: Callable[[Recipe], float] = lambda recipe: recipe.weight_bits / 16
    errs: Callable[[Recipe, int], bool] = lambda recipe, position: False
    before: Callable[[str], None] = lambda kind: None
    ingredients: Ingredients = EVERYTHING
    recipe: Recipe = field(default_factory=lambda: Recipe(weight_bits=16))
    capacity: int = 2048
    chunk: int = 64
    plain_seconds: float = 0.01
    verify_slope: float = 0.02
    few_slope: float = 0.1
    making_seconds: float = 0.0
    kernels: str = "rules"
    draft_bytes: int = 0
    refreshed: int = 0
    rows: list[int] = field(default_factory=list)  # the cache: the token of each row
    drafted: set[int] = field(default_factory=set)  # rows of it that a draft wrote last
    made: set[int] = field(default_factory=set)  # widths of weights

    def __post_init__(self) -> None:
        self.made.add(self.recipe.weight_bits)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        assert 0 < len(tokens) <= self.chunk and 0 <= wanted <= min(16, len(tokens))
        self.before("full")
        assert min(self.drafted, default=position) >= position, "a full pass reads what a draft wrote"
        self._write(tokens, position)
        self.drafted -= set(range(position, position + len(tokens)))
        steps = 1 + self.verify_slope * (len(tokens) - 1)
        self.clock.now += self.plain_seconds * steps
        return self._logits(tokens[len(tokens) - wanted :], position + len(tokens) - wanted, None)

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        assert 1 <= len(tokens) <= 8
        self.before("draft")
        assert min(self.drafted, default=position) > position - 15, "a draft reads rows of an earlier block"
        self._write(tokens, position)
        self.drafted |= set(range(position, position + len(tokens)))
        steps = 1 + self.few_slope * (len(tokens) - 1)
        self.clock.now += self.plain_seconds * self.cost(self.recipe) * steps
        return self._logits(tokens, position, self.recipe)

    def _write(self, tokens: Sequence[int], position: int) -> None:
        assert position <= len(self.rows), "a pass reads rows that nothing wrote"
        self.rows[position : position + len(tokens)] = tokens

    def _logits(self, tokens: Sequence[int], position: int, recipe: Recipe | None) -> np.ndarray:
        logits = np.zeros((len(tokens), VOCABULARY), np.float32)
        for i, token in enumerate(tokens):
            right = follower(token, position + i)
            wrong = recipe is not None and self.errs(recipe, position + i + 1)
            logits[i, (right + 1) % VOCABULARY if wrong else right] = 10.0
        return logits

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        best = int(row.argmax())
        require_finite(row[best], position)
        return best, row[best], float(np.exp(row - row[best]).sum())

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.before("recipe")
        if max((*recipe.skipped_attention, *recipe.skipped_mlp), default=0) > 99:
            raise BadSetting("There is no such layer.")
        require_ingredients(recipe, "this desk", self.ingredients)
        if recipe.weight_bits not in self.made:
            for step in range(1, 5):
                progress(LoadProgress("Preparing the draft", step, 4, step, 4))
                if cancelled():
                    raise LoadCancelled("Loading was cancelled.")
                self.clock.now += self.making_seconds / 4
        self.made.add(recipe.weight_bits)
        self.recipe = recipe

    def release_copies(self, kept: Collection[int]) -> None:
        self.made &= {*kept, self.recipe.weight_bits}

    def refresh_neurons(self) -> None:
        self.refreshed += 1

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        return None

    def close(self) -> None:
        self.rows.clear()


def follower(token: int, position: int) -> int:
    """The token that the model of rules chooses after this one; never the end token, 0."""
    return 1 + (token * 31 + position * 17 + 5) % (VOCABULARY - 1)


_SCATTER = np.random.default_rng(0).random(4096)


def scattered(one_in: int, position: int) -> bool:
    """Errors at about one position in so many, without a pattern that a cycle could follow."""
    return bool(_SCATTER[position] < 1 / one_in)


def every(step: int, offset: int = 0) -> Callable[[int], bool]:
    """Errors at each position that leaves `offset` when divided by `step`."""
    return lambda position: position % step == offset


def subject(runner: RuledRunner, shape: ModelConfig | None = None) -> Subject:
    """What is calibrated, with prompts of several lengths."""
    prompts = tuple(tuple(range(1, 10 + 3 * number)) for number in range(8))
    return Subject(runner, shape or config(), "rules", "this desk", prompts, frozenset({0}))
