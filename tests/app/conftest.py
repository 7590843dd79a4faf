"""What the tests of the window share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from pytestqt.qtbot import QtBot
from translatable import ROOT
from window_bench import Bench, BenchMaker, make_bench


@pytest.fixture(scope="session", autouse=True)
def _translations() -> None:
    """The compiled translations are those of their source, as `run.py` leaves them."""
    folder = ROOT / "assets" / "translations"
    for source in folder.glob("*.ts"):
        compiled = source.with_suffix(".qm")
        if not compiled.is_file() or compiled.stat().st_mtime < source.stat().st_mtime:
            subprocess.run([sys.executable, folder / "update.py", "release"], check=True)


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
