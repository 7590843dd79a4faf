"""`specular-cli calibrate`: finds by measuring how the model's draft is best made on this computer, and keeps it."""

from __future__ import annotations

import argparse
import json

from engine.calibration.report import CalibrationProgress, CalibrationReport, check_minutes, figures_lines, table
from engine.cli.session import INTERRUPTED, EngineLike, Interrupts, StatusLine, load


def calibrate(engine: EngineLike, options: argparse.Namespace) -> int:
    """Load the model and measure; the exit status: 0 done, 130 stopped by Ctrl+C, which leaves the draft as it was.

    Raises SpecularError for bad options, a model that cannot be loaded, and where memory runs out.
    """
    check_minutes(options.minutes)
    info, _ = load(engine, options)
    if not options.json:
        print(f"{info.name} on {info.device}, {info.kernels}", flush=True)
    report = _measure(engine, options.minutes)
    if options.json:
        print(json.dumps(report.to_json()))
    else:
        for line in report_lines(report):
            print(line)
    return INTERRUPTED if report.stopped else 0


def _measure(engine: EngineLike, minutes: float) -> CalibrationReport:
    status = StatusLine()

    def show(step: CalibrationProgress) -> None:
        status.show(f"{step.fraction:.0%} {step.what}".replace("%", " %"))

    with Interrupts() as interrupts:
        try:
            return engine.calibrate(minutes, progress=show, cancelled=lambda: interrupts.pending)
        finally:
            status.clear()


def report_lines(report: CalibrationReport) -> list[str]:
    """The table of what was measured, the costs of passes, and the outcome."""
    lines = [*table(report.findings), *figures_lines(report)] if report.findings else []
    return [*lines, report.sentence, *([report.note] if report.note else [])]
