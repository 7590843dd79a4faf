"""One sentence on the speed of a reply: how fast, why, and what to change with which gain. Plain data: no Qt.

Every figure is measured: S, acceptance, c and v come from the cycle records, the gain of another draft length from
`engine.what_if` over the same cycles, the gain of other switches from replies that were made with them.
Sentences are written in English here and translated when they are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from app.declaration import QT_TRANSLATE_NOOP
from app.settings import AppSettings
from app.verdict_facts import Fact, explain
from app.words import Words, factor, one, percent, two, words
from engine.profile import Profile, break_even_acceptance
from engine.records import CycleRecord, ModelInfo
from engine.settings import GB
from engine.statistics import ReplyStatistics
from engine.what_if import WhatIf, best_length

LONGEST = 150  # characters of the sentence
BUDGETS_GB = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 48.0)  # that are proposed
FEWEST_CYCLES = 8  # that drafted, before anything is said about why
WORTH_SAYING = 1.05  # a change that promises less is not proposed
WAITING = 0.15  # share of the time from which the wait for transfers is the reason


@dataclass(frozen=True, slots=True)
class Action:
    """What the button does: settings to change, or a calibration. `label` names the result."""

    label: Words
    changes: tuple[tuple[str, Any], ...] = ()
    calibrate: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the card shows. slower: S is below 1."""

    sentence: Words
    action: Action | None = None
    facts: tuple[Fact, ...] = ()
    slower: bool = False


@dataclass(frozen=True, slots=True)
class Streaming:
    """Bytes: of the budget that the model is loaded within, of each part that is streamed, of memory that is free."""

    budget: int
    parts: tuple[int, ...]
    free: int


@dataclass(frozen=True, slots=True)
class Situation:
    """What a verdict is about.

    statistics: of the whole reply; recent: its last cycles. info: the loaded model, None where none is or another
    wrote the reply. speculated: whether the reply was asked for with speculation. earlier: S of the last reply of this
    model by its own recipe, None where there was none. streaming: None where nothing is streamed, or not known yet.
    """

    statistics: ReplyStatistics = field(default_factory=ReplyStatistics)
    recent: Sequence[CycleRecord] = ()
    info: ModelInfo | None = None
    settings: AppSettings = field(default_factory=AppSettings)
    speculated: bool = True
    earlier: float | None = None
    streaming: Streaming | None = None


TURN_OFF = Action(Words(QT_TRANSLATE_NOOP("Verdict", "Turn speculation off")), (("speculation", False),))
TURN_ON = Action(Words(QT_TRANSLATE_NOOP("Verdict", "Turn speculation on")), (("speculation", True),))
CALIBRATED = Action(Words(QT_TRANSLATE_NOOP("Verdict", "Use the calibrated draft")), (("draft_own", False),))
AUTOMATIC = Action(Words(QT_TRANSLATE_NOOP("Verdict", "Choose the length automatically")), (("gamma_fixed", False),))
CALIBRATE = Action(Words(QT_TRANSLATE_NOOP("Verdict", "Measure the best draft")), calibrate=True)


def judge(situation: Situation) -> Verdict:
    """The verdict on a reply, running or over."""
    now = _recent(situation)
    facts = explain(now)
    if not situation.statistics.cycles:
        text = QT_TRANSLATE_NOOP("Verdict", "No reply yet: once there is one, this says how fast it is, and why.")
        return Verdict(Words(text))
    if now.speed_up is not None and now.drafting_cycles >= FEWEST_CYCLES:
        sentence, action = _slower(situation, now) if now.speed_up < 1 else _faster(situation, now)
    else:
        sentence, action = _undrafted(situation, now)
    if situation.info is None:
        action = None  # a stored reply: nothing that is set here would change it
    return Verdict(sentence, action, facts, slower=now.speed_up is not None and now.speed_up < 1)


def _recent(situation: Situation) -> ReplyStatistics:
    """Figures of the last cycles; of the whole reply where those drafted too little."""
    sums = ReplyStatistics(plain_seconds=situation.statistics.plain_seconds)
    for record in situation.recent:
        sums = sums.with_cycle(record)
    return sums if sums.drafting_cycles >= FEWEST_CYCLES or not situation.statistics.drafted else situation.statistics


def _undrafted(situation: Situation, now: ReplyStatistics) -> tuple[Words, Action | None]:
    """Plain steps only, or too few cycles to say why."""
    speed = one(now.tokens_per_second)
    if not situation.speculated:
        if situation.settings.speculation:
            text = QT_TRANSLATE_NOOP(
                "Verdict", "Plain decoding, {speed} tok/s: speculation was off for this reply. It is on now."
            )
            return words(text, speed=speed), None
        if situation.earlier is not None and situation.earlier >= WORTH_SAYING:
            text = QT_TRANSLATE_NOOP(
                "Verdict",
                "Plain decoding, {speed} tok/s: speculation is off. An earlier reply ran at {factor} with it.",
            )
            return words(text, speed=speed, factor=factor(situation.earlier)), TURN_ON
        text = QT_TRANSLATE_NOOP(
            "Verdict", "Plain decoding, {speed} tok/s: speculation is off. Its gain is known after one reply with it."
        )
        return words(text, speed=speed), TURN_ON
    if now.cycles >= 2 * FEWEST_CYCLES and not now.drafted:
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "As fast as plain, {speed} tok/s: drafts would cost more than they bring here. Nothing to change.",
        )
        return words(text, speed=speed), None
    text = QT_TRANSLATE_NOOP(
        "Verdict", "{speed} tok/s so far. Why, and what would help, is said after a few more cycles."
    )
    return words(text, speed=speed), None


def _slower(situation: Situation, now: ReplyStatistics) -> tuple[Words, Action | None]:
    """Slower than plain is said first; the way out is the better of another length and plain decoding."""
    values = {"factor": factor(now.speed_up or 0.0), "accepted": percent(now.acceptance), "cost": two(now.draft_cost)}
    if not situation.settings.speculation:
        text = QT_TRANSLATE_NOOP(
            "Verdict", "Slower than plain ({factor}): {accepted} of drafts were right. Speculation is off from now on."
        )
        return words(text, **values), None
    plain = 1 / now.plain_seconds if now.plain_seconds else 0.0
    best = _other_length(situation, now)
    if best is not None and best.speed_up > 1:
        values["speed"] = one(best.speed_up * plain)
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "Slower than plain ({factor}): {accepted} of drafts are right at {cost} of a plain step each. "
            "A fitting length: {speed} tok/s.",
        )
        return words(text, **values), AUTOMATIC
    values |= {"needed": percent(break_even_acceptance(now)), "speed": one(plain)}
    if break_even_acceptance(now) is None:
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "Slower than plain ({factor}): at {cost} of a plain step each, no draft pays here. "
            "Plain decoding: {speed} tok/s.",
        )
    else:
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "Slower than plain ({factor}): {accepted} of drafts are right, {needed} must be to pay. "
            "Plain decoding: {speed} tok/s.",
        )
    return words(text, **values), TURN_OFF


def _faster(situation: Situation, now: ReplyStatistics) -> tuple[Words, Action | None]:
    settings, info = situation.settings, situation.info
    speed_up, plain = now.speed_up or 1.0, 1 / now.plain_seconds if now.plain_seconds else 0.0
    values = {"factor": factor(speed_up), "accepted": percent(now.acceptance), "cost": two(now.draft_cost)}
    waiting = now.wait_seconds / now.seconds
    if waiting >= WAITING:
        values["share"] = percent(waiting)
        raised = _more_budget(situation, now)
        if raised is not None:
            return raised.sentence(values), raised.action
        values |= {"share": percent(waiting), "speed": one(now.emitted / (now.seconds - now.wait_seconds))}
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "{factor} plain; {share} of each cycle waits for streamed parts. With all of them on the card: "
            "{speed} tok/s at most.",
        )
        return words(text, **values), None
    best = _other_length(situation, now)
    if best is not None:
        values |= {"gamma": str(best.gamma), "speed": one(best.speed_up * plain)}
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "{factor} plain; later drafts of a cycle are too often wrong to pay. {gamma} at a time: "
            "about {speed} tok/s.",
        )
        label = words(QT_TRANSLATE_NOOP("Verdict", "Draft {gamma} at a time"), gamma=str(best.gamma))
        return words(text, **values), Action(label, (("gamma", best.gamma),))
    if settings.draft_own and situation.earlier is not None and situation.earlier >= speed_up * WORTH_SAYING:
        values["earlier"] = factor(situation.earlier)
        text = QT_TRANSLATE_NOOP(
            "Verdict", "{factor} plain with your own draft recipe. With the model's, an earlier reply ran at {earlier}."
        )
        return words(text, **values), CALIBRATED
    if info is not None and not info.calibrated and not settings.draft_own:
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "{factor} plain: {accepted} of drafts are right at {cost} of a plain step each. "
            "No draft has been measured here yet.",
        )
        return words(text, **values), CALIBRATE
    text = QT_TRANSLATE_NOOP(
        "Verdict",
        "{factor} plain: {accepted} of drafts are right and each costs {cost} of a plain step. Nothing to change.",
    )
    return words(text, **values), None


@dataclass(frozen=True, slots=True)
class _Raised:
    """A budget that keeps `kept` of the streamed parts, and the speed when the wait for them is gone."""

    budget_gb: float
    kept: int
    speed: float
    count: int

    def sentence(self, values: dict[str, str]) -> Words:
        text = QT_TRANSLATE_NOOP(
            "Verdict",
            "{factor} plain; {share} of each cycle waits for streamed parts. {budget} GB keep {kept} of {count}: "
            "about {speed} tok/s.",
        )
        shown = {"budget": f"{self.budget_gb:g}", "kept": str(self.kept), "count": str(self.count)}
        return words(text, factor=values["factor"], share=values["share"], speed=one(self.speed), **shown)

    @property
    def action(self) -> Action:
        text = QT_TRANSLATE_NOOP("Verdict", "Raise the budget to {budget} GB")
        return Action(words(text, budget=f"{self.budget_gb:g}"), (("budget_gb", self.budget_gb),))


def _more_budget(situation: Situation, now: ReplyStatistics) -> _Raised | None:
    """The smallest budget of those to choose from that free memory allows and that keeps the most parts."""
    streaming = situation.streaming
    if streaming is None or not streaming.parts:
        return None
    total, best = sum(streaming.parts), None
    for choice in BUDGETS_GB:
        more = choice * GB - streaming.budget
        if not 0 < more <= streaming.free:
            continue
        kept = sum(1 for taken in accumulate(streaming.parts) if taken <= more)
        if kept and (best is None or kept > best.kept):
            share = sum(streaming.parts[:kept]) / total
            speed = now.emitted / (now.seconds - now.wait_seconds * share)
            best = _Raised(choice, kept, speed, len(streaming.parts))
    worth = best is not None and best.speed >= WORTH_SAYING * now.emitted / now.seconds
    return best if worth else None


def _other_length(situation: Situation, now: ReplyStatistics) -> WhatIf | None:
    """Where the user fixed the draft length: the measured one that is worth changing to, if any is."""
    settings, cost, verify = situation.settings, now.draft_cost, now.verify_cost
    if not settings.gamma_fixed or cost is None or verify is None or now.speed_up is None:
        return None
    profile = Profile()
    for record in situation.recent:
        if record.drafted_ids:
            profile = profile.with_cycle(record)
    best = best_length(profile.positions, cost, verify)
    if best is None or best.gamma == settings.gamma or best.speed_up < now.speed_up * WORTH_SAYING:
        return None
    return best
