"""`specular-cli bench`: times of decode steps of a known shape on this computer's card, with random weights."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.session import StatusLine
from engine.errors import BadSetting, SpecularError

if TYPE_CHECKING:
    from engine.bench.steps import StepReport


def bench(options: argparse.Namespace) -> int:
    """Measure, print a table and, where asked, write JSON; returns the exit status.

    Raises BadSetting where there is no card for it, SpecularError where the shape does not fit its memory.
    """
    from engine.kernels.dispatch import choose_device

    choose_device("cuda")
    StatusLine().show(f"Measuring {options.shape}")
    import torch

    from engine.bench.shapes import SHAPES
    from engine.bench.steps import POSITIONS, measure_shape

    if not 1 <= options.kv_length <= POSITIONS - 256:
        raise BadSetting(f"--kv-length is {options.kv_length}, but must be from 1 to {POSITIONS - 256}.")
    try:
        report = measure_shape(
            SHAPES[options.shape], getattr(torch, options.dtype), options.kv_length, tunes=options.tune
        )
    except torch.cuda.OutOfMemoryError as error:
        raise SpecularError(f"The shape {options.shape} does not fit the memory of this card.") from error
    StatusLine().clear()
    print(table(report))
    if options.json is not None:
        Path(options.json).write_text(json.dumps(asdict(report), indent=1), "utf-8")
    return 0 if report.rows_equal else 1


def table(report: StepReport) -> str:
    """The report for people, one figure a line."""
    rate = report.weight_bytes / report.step_seconds
    widths = "  ".join(f"v({rows}) {ratio:.3f}" for rows, ratio in report.verify.items() if rows > 1)
    drafts = "  ".join(f"c({rows}) {ratio:.3f}" for rows, ratio in report.draft.items())
    return "\n".join(
        (
            f"{report.shape}, {report.dtype}, {report.layers} layers, KV {report.kv_length}, {report.card}",
            f"plain step      {report.step_seconds * 1e3:.3f} ms, {1 / report.step_seconds:.1f} tok/s",
            f"weights read    {report.weight_bytes / 1e9:.3f} GB at {rate / 1e12:.2f} TB/s, "
            f"{report.bandwidth_share:.1%} of the {report.copy_bytes_per_second / 1e12:.2f} TB/s of a copy",
            f"verify passes   {widths}",
            f"draft steps     {drafts}",
            f"host overhead   {report.overhead_seconds * 1e3:.3f} ms a cycle",
            "rows            " + ("equal bits at every width" if report.rows_equal else "DIFFER BETWEEN WIDTHS"),
            "tiles           " + "  ".join(f"{role} {tile}" for role, tile in report.tiles.items()),
        )
    )
