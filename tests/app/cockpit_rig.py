"""What the tests of the cockpit in the window share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fake_engine import FakeEngine
from window_bench import Bench

from app.settings import AppSettings
from app.ui.cockpit import Cockpit
from engine.records import LoadProgress, ModelInfo
from nvml_stub import CARD

OPEN = AppSettings(cockpit_folded=())


def cockpit_of(bench: Bench) -> Cockpit:
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=5000)
    found = bench.window.cockpit.cockpit
    assert found is not None
    return found


def settled(bench: Bench) -> Cockpit:
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: not cockpit.updating, timeout=5000)
    return cockpit


@dataclass
class CardEngine(FakeEngine):
    """Its models are on a card."""

    def load(
        self,
        model: str,
        *,
        context: int | None = None,
        virtual_memory: bool = True,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        **options: object,
    ) -> ModelInfo:
        info = super().load(model, context=context, virtual_memory=virtual_memory, progress=progress, **options)
        self.info = replace(info, card=CARD)
        return self.info
