"""Everything a user can set, declared once: name, help, range, default, and what a change costs. No Qt.

Labels and help are written in English here and translated when they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from app import draft_declarations as draft
from app.declaration import APPEARANCE, HIDDEN, MODEL, PROMPT, QT_TRANSLATE_NOOP, SAMPLING, Declaration, check
from app.skipping import spread_over
from engine.recipe import Recipe
from engine.records import ModelInfo
from engine.settings import MOST_BUDGET_GB, LoadOptions, Sampling, Speculation

SYSTEM, ENGLISH, CHINESE = "system", "en", "zh_CN"  # languages of the window


def _setting(default: Any, declaration: Declaration) -> Any:
    return field(default=default, metadata={"declaration": declaration})


def _hidden() -> Declaration:
    return Declaration("", "", HIDDEN, "hidden")


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings in force. Change one with `with_value`; read what it means with `declaration`."""

    model: str = _setting(
        "starter",
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Model"),
            QT_TRANSLATE_NOOP("Settings", "A model folder or a GGUF file on this computer."),
            MODEL,
            "path",
            reload=True,
            simple=True,
        ),
    )
    context: int = _setting(
        0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Context length"),
            QT_TRANSLATE_NOOP("Settings", "The most tokens that a chat can hold."),
            MODEL,
            "list",
            choices=(
                (0, QT_TRANSLATE_NOOP("Settings", "As the model")),
                (1024, "1k"),
                (2048, "2k"),
                (4096, "4k"),
                (8192, "8k"),
                (16384, "16k"),
                (32768, "32k"),
            ),
            reload=True,
            simple=True,
        ),
    )
    virtual_memory: bool = _setting(
        True,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Virtual memory"),
            QT_TRANSLATE_NOOP("Settings", "The KV cache takes memory only for tokens that exist."),
            MODEL,
            "switch",
            reload=True,
        ),
    )
    budget_gb: float = _setting(
        0.0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Memory budget"),
            QT_TRANSLATE_NOOP(
                "Settings", "Of the card, or of RAM without one. Parts that do not fit are streamed; no token changes."
            ),
            MODEL,
            "budget",
            low=0.0,
            high=MOST_BUDGET_GB,
        ),
    )
    speculation: bool = _setting(True, draft.SPECULATION)
    draft_own: bool = _setting(False, draft.OWN)
    draft_weight_bits: int = _setting(8, draft.WEIGHTS)
    output_tokens: int = _setting(0, draft.OUTPUT_TOKENS)
    input_sparsity: float = _setting(0.0, draft.SPARSITY)
    neuron_share: float = _setting(1.0, draft.NEURONS)
    head_share: float = _setting(1.0, draft.HEADS)
    skipped_sublayers: int = _setting(0, draft.SKIPPED)
    kv_window: int = _setting(0, draft.WINDOW)
    gamma_fixed: bool = _setting(False, draft.GAMMA_FIXED)
    gamma: int = _setting(4, draft.GAMMA)
    temperature: float = _setting(
        0.0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Temperature"),
            QT_TRANSLATE_NOOP("Settings", "0 always takes the best token (greedy)."),
            SAMPLING,
            "slider",
            low=0.0,
            high=2.0,
            step=0.05,
            simple=True,
        ),
    )
    top_k: int = _setting(
        0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Top-k"),
            QT_TRANSLATE_NOOP("Settings", "Only the k best tokens stay; 0 keeps all."),
            SAMPLING,
            "number",
            low=0,
            high=1_000_000,
        ),
    )
    top_p: float = _setting(
        1.0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Top-p"),
            QT_TRANSLATE_NOOP("Settings", "Only the best tokens that hold this share of the probability stay."),
            SAMPLING,
            "slider",
            low=0.0,
            high=1.0,
            step=0.01,
        ),
    )
    min_p: float = _setting(
        0.0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Min-p"),
            QT_TRANSLATE_NOOP("Settings", "Tokens below this share of the best one are dropped."),
            SAMPLING,
            "slider",
            low=0.0,
            high=1.0,
            step=0.01,
        ),
    )
    repetition_penalty: float = _setting(
        1.0,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Repetition penalty"),
            QT_TRANSLATE_NOOP("Settings", "Above 1, tokens already in the text become less likely."),
            SAMPLING,
            "slider",
            low=0.5,
            high=2.0,
            step=0.05,
        ),
    )
    seed: int | None = _setting(
        None,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Seed"),
            QT_TRANSLATE_NOOP("Settings", "The same seed gives the same reply; empty draws a new one."),
            SAMPLING,
            "seed",
            low=0,
            high=2**31 - 1,
        ),
    )
    max_new_tokens: int = _setting(
        1024,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Longest reply"),
            QT_TRANSLATE_NOOP("Settings", "Tokens after which a reply is cut."),
            SAMPLING,
            "number",
            low=1,
            high=131072,
            simple=True,
        ),
    )
    system_prompt: str = _setting(
        "",
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Instructions"),
            QT_TRANSLATE_NOOP(
                "Settings", "Put before every chat as its system prompt. Empty leaves it to the model's template."
            ),
            PROMPT,
            "text",
            simple=True,
        ),
    )
    theme: str = _setting(
        "system",
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Theme"),
            QT_TRANSLATE_NOOP("Settings", "Colours of the window."),
            APPEARANCE,
            "choice",
            choices=(
                ("system", QT_TRANSLATE_NOOP("Settings", "System")),
                ("light", QT_TRANSLATE_NOOP("Settings", "Light")),
                ("dark", QT_TRANSLATE_NOOP("Settings", "Dark")),
                ("contrast", QT_TRANSLATE_NOOP("Settings", "High contrast")),
            ),
            simple=True,
        ),
    )
    language: str = _setting(
        SYSTEM,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Language"),
            QT_TRANSLATE_NOOP("Settings", "Of the window. What the engine says of files and devices stays English."),
            APPEARANCE,
            "choice",
            # Languages are written in themselves, so that whoever is lost finds the way back.
            choices=((SYSTEM, QT_TRANSLATE_NOOP("Settings", "System")), (ENGLISH, "English"), (CHINESE, "简体中文")),
            restart=True,
            simple=True,
        ),
    )
    keep_ghosts: bool = _setting(
        False,
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Keep ghosts"),
            QT_TRANSLATE_NOOP("Settings", "Rejected guesses stay in the text, struck through, instead of fading."),
            APPEARANCE,
            "switch",
            simple=True,
        ),
    )
    send_key: str = _setting(
        "enter",
        Declaration(
            QT_TRANSLATE_NOOP("Settings", "Send with"),
            QT_TRANSLATE_NOOP("Settings", "Shift+Enter, or Enter where Ctrl+Enter sends, begins a new line."),
            APPEARANCE,
            "choice",
            choices=(("enter", "Enter"), ("ctrl+enter", "Ctrl+Enter")),
            simple=True,
        ),
    )
    expert: bool = _setting(False, _hidden())
    recent_models: tuple[str, ...] = _setting((), _hidden())
    sidebar_visible: bool = _setting(True, _hidden())
    cockpit_visible: bool = _setting(True, _hidden())
    cockpit_folded: tuple[str, ...] = _setting(("kv", "use", "bus", "history"), _hidden())
    window_geometry: str = _setting("", _hidden())
    shortcut_asked: bool = _setting(False, _hidden())

    def with_value(self, name: str, value: Any) -> AppSettings:
        """A copy with one setting changed. Raises ValueError when the value is of a wrong type or out of range."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values[name] = checked(name, value)
        return AppSettings(**values)

    def sampling(self) -> Sampling:
        """The sampling fields as the engine wants them."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty, self.seed)

    def recipe(self, info: ModelInfo) -> Recipe | None:
        """The draft recipe for a loaded model; None, the model's own default, where the user wants no other.

        Dials that the model's device has no use for count as not set.
        """
        if not self.draft_own:
            return None
        able = draft.usable(info.ingredients)
        bits = self.draft_weight_bits if self.draft_weight_bits in info.ingredients.weight_bits else None
        return Recipe(
            weight_bits=bits or info.recipe.weight_bits,
            input_sparsity=self.input_sparsity if able["input_sparsity"] else 0.0,
            neuron_share=self.neuron_share if able["neuron_share"] else 1.0,
            head_share=self.head_share if able["head_share"] else 1.0,
            skipped_attention=spread_over(self.skipped_sublayers, info.layers),
            reduced_vocabulary=self._output_tokens(info.vocabulary) if able["output_tokens"] else None,
            kv_window=(self.kv_window or None) if able["kv_window"] else None,
        )

    def _output_tokens(self, vocabulary: int) -> int | None:
        return self.output_tokens if 0 < self.output_tokens < vocabulary else None

    def loading(self) -> LoadOptions:
        """The model fields as the engine wants them."""
        return LoadOptions(self.context or None, self.virtual_memory, self.budget_gb or None)

    def speculating(self, info: ModelInfo | None) -> Speculation:
        """The speculation fields as the engine wants them, for the loaded model."""
        recipe = self.recipe(info) if info is not None else None
        return Speculation(self.speculation, self.gamma if self.gamma_fixed else None, recipe)


_FIELDS = {f.name: f for f in fields(AppSettings)}


def names() -> tuple[str, ...]:
    """All settings in the order of their declaration."""
    return tuple(_FIELDS)


def preferences(group: str | None = None) -> tuple[str, ...]:
    """The settings of the page, or of one of its groups, without the model, which is not a preference."""
    shown = (name for name in _FIELDS if declaration(name).kind not in ("hidden", "path"))
    return tuple(name for name in shown if group is None or declaration(name).group == group)


def declaration(name: str) -> Declaration:
    """What the page shows for the setting `name`."""
    found: Declaration = _FIELDS[name].metadata["declaration"]
    return found


def default_of(name: str) -> Any:
    """The value of `name` on a new installation."""
    return _FIELDS[name].default


def checked(name: str, value: Any) -> Any:
    """`value` in the type of the setting `name`. Raises ValueError with a sentence where it cannot be."""
    return check(name, declaration(name), default_of(name), value)
