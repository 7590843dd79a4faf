"""What the tests of the window share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker, make_bench


@pytest.fixture
def default_engine() -> type[FakeEngine]:
    """What `benches` makes where a test gives no engine; modules with an engine of their own name it here."""
    return FakeEngine


@pytest.fixture
def benches(qtbot: QtBot, tmp_path: Path, default_engine: type[FakeEngine]) -> Iterator[BenchMaker]:
    made: list[Bench] = []

    def make(engine: FakeEngine | None = None, **options: object) -> Bench:
        made.append(make_bench(qtbot, tmp_path / "config", engine or default_engine(), **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for bench in made:
        bench.engine.go.set()
        bench.window.close()
        bench.window.deleteLater()
