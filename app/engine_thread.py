"""The engine's thread: a worker in it, the commands that are queued for it, and the messages that it sends back."""

from __future__ import annotations

from queue import SimpleQueue

from PySide6.QtCore import QObject, QThread, Signal

from app.worker import EngineFactory, EngineWorker, WorkerMessage


class EngineThread(QObject):
    """Runs from the start. Commands are given by its signals; ended() when the thread has ended after `close_asked`."""

    load_asked = Signal(int, str, object)
    reply_asked = Signal(int, object, object)
    proof_asked = Signal(int, int)
    calibration_asked = Signal(int, float)
    bench_asked = Signal(int)
    look_asked = Signal(int, object)
    count_asked = Signal(int, str)
    budget_asked = Signal(int)
    unload_asked = Signal(int)
    close_asked = Signal()
    ended = Signal()

    def __init__(self, factory: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.messages: SimpleQueue[WorkerMessage] = SimpleQueue()
        self._thread = QThread(self)
        self._thread.setObjectName("engine")
        self.worker = worker = EngineWorker(factory, self.messages)
        worker.moveToThread(self._thread)
        self.load_asked.connect(worker.load)
        self.reply_asked.connect(worker.generate)
        self.proof_asked.connect(worker.prove)
        self.calibration_asked.connect(worker.calibrate)
        self.bench_asked.connect(worker.bench)
        self.look_asked.connect(worker.inspect)
        self.count_asked.connect(worker.count)
        self.budget_asked.connect(worker.settle_budget)
        self.unload_asked.connect(worker.unload)
        self.close_asked.connect(worker.close)
        self._thread.finished.connect(self.ended)
        self._thread.start()

    def wait(self, milliseconds: int) -> bool:
        """Wait for the thread to end after `close_asked`; False when it has not ended in time."""
        return self._thread.wait(milliseconds)
