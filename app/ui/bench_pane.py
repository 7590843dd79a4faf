"""A small benchmark as a user sees it: a few questions of each kind, both ways, in a table that grows."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.host import EngineHost
from app.states import Command, HostState
from app.theme import PX_LABEL
from app.ui.bench_table import BenchTable
from app.ui.job_pane import JobPane
from app.ui.panel import ToneLabel
from engine.bench.questions.small import BenchProgress, BenchReport

SIZE = (760, 420)


class BenchPane(JobPane):
    """A window of its own beside the chat. `begin` starts the benchmark; closing it stops a running one."""

    def __init__(self, host: EngineHost, parent: QWidget | None = None) -> None:
        super().__init__(host, Command.BENCH, HostState.BENCHMARKING, host.bench, parent)
        self.setWindowTitle(self.tr("Benchmark"))
        self.about.setText(
            self.tr(
                "Answers a few questions of four kinds twice, by plain decoding and with speculation, in turns, and "
                "compares speed and text. specular-cli bench --data does so with whole sets of questions, and with "
                "other programs beside."
            )
        )
        self.bar.setAccessibleName(self.tr("Progress of the benchmark"))
        self.again_button.setText(self.tr("Measure again"))
        self.table = BenchTable()
        self._column.addWidget(self.table)
        self._column.addStretch(1)
        key = self.tr("S: speed over plain decoding, and where it is with 95 % · α: acceptance")
        self._add_buttons(ToneLabel(key, "text2", PX_LABEL))
        self.resize(*SIZE)
        host.bench_progress.connect(self._on_progress)
        host.bench_ended.connect(self._on_ended)

    def _clear(self) -> None:
        """See JobPane._clear."""
        self.table.show_sets(())
        self.bar.setRange(0, 0)

    @Slot(object)
    def _on_progress(self, step: BenchProgress) -> None:
        self.bar.setRange(0, step.total)
        self.bar.setValue(step.done)
        words = self.tr("Question {done} of {total}: {what}") if step.what else self.tr("Warming up")
        text = words.replace("{done}", str(min(step.done + 1, step.total))).replace("{total}", str(step.total))
        text = text.replace("{what}", step.what)
        if step.seconds_left is not None:
            left = self.tr("about {seconds} s left").replace("{seconds}", f"{step.seconds_left:.0f}")
            text = f"{text} · {left}"
        self.progress.setText(text)
        self.table.show_sets(step.sets)

    @Slot(object)
    def _on_ended(self, report: BenchReport) -> None:
        self.table.show_sets(report.sets)
        sentence, tone = self._outcome(report)
        self._settle(" ".join([sentence, *(f"{fault}." for fault in report.faults)]), tone)

    def _outcome(self, report: BenchReport) -> tuple[str, str]:
        whole = report.whole
        speculative = None if whole is None else whole.way("speculative")
        if whole is None or speculative is None or speculative.speed_up is None:
            return self.tr("Stopped before anything could be compared."), "text"
        if whole.different:
            words = self.tr("Another text with speculation: {questions}")
            return words.replace("{questions}", ", ".join(whole.different)), "error"
        words = (
            self.tr("Stopped. So far {factor}× the speed of plain decoding, and the same text in {count} answers.")
            if report.stopped
            else self.tr("{factor}× the speed of plain decoding, and the same text in all {count} answers.")
        )
        text = words.replace("{factor}", f"{speculative.speed_up:.2f}").replace("{count}", str(speculative.replies))
        return text, "text" if report.stopped or speculative.speed_up < 1 else "ok"
