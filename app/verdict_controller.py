"""Keeps the verdict on the reply that the cockpit shows, and does what its button says."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.conversation import Chats, Reply
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.memory_parts import FREE, memory_picture
from app.monitor import Sample
from app.reply_figures import ReplyFigures
from app.ui.verdict_card import VerdictCard
from app.verdict import Action, Situation, Streaming, judge
from engine.records import ModelInfo

EVERY_SECONDS = 1.0  # while a reply grows: its card changes its words at most every five


class VerdictController(QObject):
    """calibration_asked() where that is what the button is for."""

    calibration_asked = Signal()

    def __init__(
        self,
        card: VerdictCard,
        figures: ReplyFigures,
        host: EngineHost,
        settings: LiveSettings,
        chats: Chats,
        parent: QObject,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._card, self._figures = card, figures
        self._host, self._settings, self._chats = host, settings, chats
        self._clock = clock
        self._judged_at = -EVERY_SECONDS
        self._streaming: Streaming | None = None
        card.applied.connect(self._apply)
        settings.changed.connect(self._on_setting)
        self.judge()

    @Slot(bool)
    def follow(self, growing: bool) -> None:
        """The figures have changed; those of a reply that is growing will do so again soon."""
        if not growing or self._clock() - self._judged_at >= EVERY_SECONDS:
            self.judge()

    @Slot()
    def judge(self) -> None:
        """Show the verdict on what is known now."""
        self._judged_at = self._clock()
        self._card.show_verdict(judge(self.situation()))

    def situation(self) -> Situation:
        """What the verdict is about."""
        reply, info = self._figures.reply, self._host.info
        of_loaded = reply is None or reply.made_by(info)
        request = reply.request if reply is not None else None
        return Situation(
            statistics=self._figures.statistics,
            recent=tuple(self._figures.last),
            info=info if of_loaded else None,
            settings=self._settings.current,
            speculated=request is None or request.speculation.enabled,
            earlier=self._earlier(reply, info),
            streaming=self._streaming,
        )

    @Slot(object)
    def show_sample(self, sample: Sample) -> None:
        """A reading of the monitor: what is streamed, and what is free of the memory that it could lie in."""
        before, self._streaming = self._streaming, None
        if sample.offload is not None and self._host.info is not None:
            picture = memory_picture(sample, self._host.info)
            free = next((part.bytes for part in picture.parts if part.name == FREE), None)
            plan = sample.offload.plan
            if free is not None:
                self._streaming = Streaming(plan.budget, tuple(part.nbytes for part in plan.streamed), int(free))
        if (before is None) != (self._streaming is None):
            self.judge()

    def _earlier(self, reply: Reply | None, info: ModelInfo | None) -> float | None:
        """S of the last reply that the loaded model made before this one by its own recipe."""
        found = [
            turn.reply
            for chat in self._chats.chats
            for turn in chat.turns
            if turn.reply is not None and turn.reply is not reply and _by_own_recipe(turn.reply, info)
        ]
        last = max(found, key=lambda earlier: (earlier.message_id, earlier.reply_id), default=None)
        return None if last is None else last.statistics.speed_up

    @Slot(object)
    def _apply(self, action: Action) -> None:
        for name, value in action.changes:
            self._settings.set(name, value)
        if action.calibrate:
            self.calibration_asked.emit()

    @Slot(str, object)
    def _on_setting(self, _name: str, _value: object) -> None:
        self.judge()


def _by_own_recipe(reply: Reply, info: ModelInfo | None) -> bool:
    request = reply.request
    if request is None or reply.finished is None or not reply.made_by(info):
        return False
    return request.speculation.enabled and request.speculation.recipe is None and reply.statistics.drafted > 0
