"""`specular-cli bench`: decode steps of a known shape on this computer's card, with random weights, or sets of
questions by a model (see bench_questions.py)."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.session import StatusLine
from engine.errors import BadSetting, SpecularError

if TYPE_CHECKING:
    from engine.bench.kv_memory import KvReport
    from engine.bench.offload import OffloadReport
    from engine.bench.replay import ReplayReport
    from engine.bench.steps import StepReport
    from engine.bench.traces import Trace


def bench(options: argparse.Namespace) -> int:
    """Measure, print a table and, where asked, write JSON or a report; returns the exit status.

    Raises BadSetting where there is no card for it, SpecularError where the shape does not fit its memory or a trace
    cannot be read.
    """
    if options.shape is None:
        from engine.cli.bench_questions import bench_compare, bench_fetch, bench_questions

        if options.data is not None:
            return bench_questions(options)
        return bench_fetch(options) if options.fetch is not None else bench_compare(options)
    from engine.kernels.dispatch import choose_device

    traces = _traces(options)
    if options.budget_gb is not None and not traces:
        raise BadSetting("--budget-gb measures a replay: give --trace or --alpha too.")
    choose_device("cuda")
    StatusLine().show(f"Measuring {options.shape}")
    import torch

    from engine.bench.shapes import SHAPES
    from engine.bench.steps import POSITIONS, measure_shape

    if not 1 <= options.kv_length <= POSITIONS - 256:
        raise BadSetting(f"--kv-length is {options.kv_length}, but must be from 1 to {POSITIONS - 256}.")
    try:
        if options.budget_gb is not None:
            return _offload(options, traces)
        if traces:
            return _replay(options, traces)
        if options.kv_report:
            return _kv_report(options)
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


def _traces(options: argparse.Namespace) -> list[Trace]:
    """The traces to replay: of files, or made up; none where steps are to be measured. Raises BadSetting."""
    from engine.bench.traces import read_traces, synthetic

    if options.alpha is None:
        return [trace for file in options.trace or () for trace in read_traces(Path(file))]
    if options.trace:
        raise BadSetting("--trace and --alpha exclude each other.")
    if not 0.0 <= options.alpha <= 1.0:
        raise BadSetting(f"--alpha is {options.alpha:g}, but must be from 0 to 1.")
    return synthetic(options.alpha)


def _replay(options: argparse.Namespace, traces: list[Trace]) -> int:
    import torch

    from engine.bench.replay import measure_replay
    from engine.bench.shapes import SHAPES

    shape = SHAPES[options.shape]
    reports = measure_replay(shape, getattr(torch, options.dtype), options.kv_length, traces)
    StatusLine().clear()
    print(replay_table(options.shape, shape.config.layers, reports))
    if options.json is not None:
        Path(options.json).write_text(json.dumps([asdict(report) for report in reports], indent=1), "utf-8")
    return 0


def _offload(options: argparse.Namespace, traces: list[Trace]) -> int:
    import torch

    from engine.bench.offload import measure_offload, plans
    from engine.bench.shapes import SHAPES

    shape, budget = SHAPES[options.shape], int(options.budget_gb * 1e9)
    if options.context is not None and not 1 <= options.context <= shape.config.context:
        raise BadSetting(f"--context is {options.context}, but must be from 1 to {shape.config.context}.")
    plain, plan = plans(shape, budget, options.context)
    report = measure_offload(shape, getattr(torch, options.dtype), options.kv_length, traces, plain, plan)
    StatusLine().clear()
    print(offload_table(report))
    if options.json is not None:
        Path(options.json).write_text(json.dumps(asdict(report), indent=1), "utf-8")
    return 0


def offload_table(report: OffloadReport) -> str:
    """The report of a budget for people."""
    giga, bare = 1e9, report.copy_bytes_per_second
    lines = [
        f"{report.shape}, {report.dtype}, {report.card}, budget {report.budget / giga:.2f} GB; a bare pinned copy "
        f"{bare / giga:.1f} GB/s",
        f"plain streaming {report.plain_seconds * 1e3:.1f} ms a token ({report.predicted_plain_seconds * 1e3:.1f} "
        f"predicted), {report.plain_streamed / giga:.2f} GB a pass at {report.plain_share:.1%} of the bare copy",
        f"with a draft    {report.verify_seconds * 1e3:.1f} ms a pass, {report.streamed / giga:.2f} GB streamed, "
        f"{report.resident / giga:.2f} GB resident, {report.draft / giga:.2f} GB of the draft"
        + f", which brings in {report.draft_streamed / giga:.2f} GB a step"
        * bool(report.draft_streamed),
        f"memory          {report.memory / giga:.2f} GB of tensors ({report.predicted_memory / giga:.2f} planned)",
        f"S predicted     {report.predicted_speed_up:.2f} over plain streaming in the same budget",
    ]
    for way in report.ways:
        lines.append(
            f"{way.name:26} S {way.speed_up:.3f}  acceptance {way.acceptance:.3f}  {way.tokens_per_cycle:.2f} tokens a "
            f"cycle  {way.looked_up} looked up"
        )
    return "\n".join(lines)


def _kv_report(options: argparse.Namespace) -> int:
    import torch

    from engine.bench.kv_memory import measure_kv_memory
    from engine.bench.shapes import SHAPES

    report = measure_kv_memory(SHAPES[options.shape], getattr(torch, options.dtype))
    StatusLine().clear()
    print(kv_table(report))
    if options.json is not None:
        Path(options.json).write_text(json.dumps(asdict(report), indent=1), "utf-8")
    return 0 if report.equal and not report.held else 1


def kv_table(report: KvReport) -> str:
    """The report of the KV cache for people, one figure a line."""
    gib, costs = 2**30, ", ".join(f"{name} {seconds * 1e6:.0f} µs" for name, seconds in report.page_seconds.items())
    return "\n".join(
        (
            f"{report.shape}, {report.dtype}, context {report.context:,}, {report.card}",
            f"reserved        {report.reserved / gib:.1f} GiB of addresses; a full context takes "
            f"{report.full / gib:.2f} GiB in pages of {report.page_bytes >> 10:,} KiB",
            f"300 tokens      {report.mapped / 2**20:,.0f} MiB mapped, {report.share:.1%} of a full context; "
            f"at most {report.wasted_pages:.2f} pages a layer unused",
            f"decoding        {report.ratio:.4f} of the time over plain tensors, "
            + ("the same tokens" if report.equal else "OTHER TOKENS")
            + f"; {report.late} pages created while a cycle waited",
            f"{report.rounds:,} rounds   {report.free_before - report.free_after:,} bytes of the card lost",
            f"chat closed     {report.held / 2**20:,.0f} MiB held after {report.closed_seconds:.1f} s",
            f"a page          {costs}",
        )
    )


def replay_table(shape: str, layers: int, reports: tuple[ReplayReport, ...]) -> str:
    """The reports for people, one way of speculating a line."""
    first = reports[0]
    lines = [
        f"A replay: {first.tokens} tokens of recorded acceptance over the kernels of {shape}, {layers} layers, "
        "random weights; wall time",
        f"draft step      c {first.draft_cost:.3f}",
    ]
    for report in reports:
        lines.append(
            f"{report.name:26} S {report.speed_up:.3f}  acceptance {report.acceptance:.3f}  "
            f"{report.tokens_per_cycle:.2f} tokens a cycle  {report.looked_up} looked up  "
            f"{report.siblings_taken} siblings taken"
        )
    return "\n".join(lines)


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
