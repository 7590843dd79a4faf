"""The panes of the engine's long jobs beside the chat: proof, calibration, benchmark; each made when first wanted."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.host import EngineHost
from app.ui.bench_pane import BenchPane
from app.ui.calibration_pane import CalibrationPane
from app.ui.prove_pane import ProvePane


class JobPanes(QObject):
    """Owned by the window, over which the panes stand."""

    def __init__(self, host: EngineHost, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._window = host, window
        self._prove: ProvePane | None = None
        self._calibration: CalibrationPane | None = None
        self._bench: BenchPane | None = None

    @property
    def prove_pane(self) -> ProvePane:
        """The pane of the proof."""
        if self._prove is None:
            self._prove = ProvePane(self._host, self._window)
        return self._prove

    @property
    def calibration_pane(self) -> CalibrationPane:
        """The pane of the calibration."""
        if self._calibration is None:
            self._calibration = CalibrationPane(self._host, self._window)
        return self._calibration

    @property
    def bench_pane(self) -> BenchPane:
        """The pane of the benchmark."""
        if self._bench is None:
            self._bench = BenchPane(self._host, self._window)
        return self._bench

    @Slot()
    def prove(self) -> None:
        """Compare speculation with plain decoding; only where the engine is ready."""
        if self.prove_pane.begin():
            self.prove_pane.show()

    @Slot()
    def calibrate(self) -> None:
        """Measure how the draft is best made; only where the engine is ready."""
        if self.calibration_pane.begin():
            self.calibration_pane.show()

    @Slot()
    def bench(self) -> None:
        """Answer a few questions both ways; only where the engine is ready."""
        if self.bench_pane.begin():
            self.bench_pane.show()
