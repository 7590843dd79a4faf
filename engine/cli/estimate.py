"""`specular-cli estimate`: what a model takes of a budget, how fast it should be, and what would help."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engine.bench.known_shapes import SHAPES, tensor_bytes
from engine.errors import BadSetting
from engine.files.resolve import read_headers
from engine.kernels.dispatch import card_of, choose_device
from engine.model.loaded import capacity_of
from engine.offload.demands import DRAFT_WIDTHS
from engine.offload.estimate import Estimate, Verdict, Wanted, estimate, tokens_per_second
from engine.offload.fast_memory import FastMemory, card_memory, host_memory, unknown_memory
from engine.offload.measure_rates import measured_rates
from engine.offload.plan import Residency
from engine.offload.planner import gigabytes
from engine.offload.rates import Rates, default_rates
from engine.probes.reading import Measure

RAM_MARGIN = 512 << 20  # of engine.offload.pinned, which needs torch
MOST_GB = 100_000  # beyond any machine
NO_CARD = "no card was found on this computer"
NAMES = {"cuda": "card", "cpu": "CPU"}
Waterfall = list[tuple[str, Measure, str]]  # what, bytes, remark


def show_estimate(options: argparse.Namespace) -> int:
    """Print the estimate; returns the exit status: 1 where the model does not fit.

    Raises BadSetting for a wrong budget or context, ModelFileError as opening the model would.
    """
    made, notes = asked(options)
    if options.json:
        print(json.dumps(as_json(name_of(options), made, notes)))
    else:
        print("\n".join(lines(name_of(options), made, notes)))
    return 1 if made.verdict is Verdict.TOO_LARGE else 0


def asked(options: argparse.Namespace) -> tuple[Estimate, tuple[str, ...]]:
    """The estimate that the options ask for, and sentences on what it rests on."""
    budget_gb = options.budget_gb
    if budget_gb is not None and not 0 < budget_gb <= MOST_GB:
        raise BadSetting(f"--budget-gb is {budget_gb:g}, but must be a number above 0 and at most {MOST_GB:,}.")
    if options.shape is not None:
        config = SHAPES[options.shape].config
        sizes = tensor_bytes(config)
    else:
        headers = read_headers(options.model)
        config, sizes = headers.config, headers.sizes
    context = capacity_of(config, options.context)
    device, memory, rates, notes = machine(options.device)
    budget = int(budget_gb * 1e9) if budget_gb is not None else memory.free.value
    if budget is None:
        raise BadSetting(f"How much memory there is cannot be told ({memory.free.reason}): give --budget-gb.")
    wanted = Wanted(config, sizes, device, context, int(budget), memory, rates, DRAFT_WIDTHS[device])
    made = estimate(wanted)
    return made, (*notes, *rates.notes(), *_ram_note(made))


def machine(wanted: str | None) -> tuple[str, FastMemory, Rates, tuple[str, ...]]:
    """The device, its memory, what it was measured to give, and notes. A card that is not there has defaults."""
    try:
        placement = choose_device(wanted)
    except BadSetting as error:
        return "cuda", unknown_memory(NO_CARD), default_rates("cuda"), (str(error),)
    card = card_of(placement)
    memory = host_memory() if card is None else card_memory(card)
    rates, notes = default_rates(placement.device), placement.notes
    try:
        rates = measured_rates(rates, placement.device)
    except (MemoryError, RuntimeError) as error:  # no room, or a driver that refuses: defaults do
        notes = (*notes, f"Nothing could be measured ({type(error).__name__}).")
    return placement.device, memory, rates, notes


def _ram_note(made: Estimate) -> tuple[str, ...]:
    """That RAM is too short for what a card's model streams, where it is."""
    streamed = made.plan.bytes_of(Residency.STREAMED) if made.plan and made.wanted.device == "cuda" else 0
    free = host_memory().free.value
    if not streamed or free is None or streamed + RAM_MARGIN <= free:
        return ()
    return (f"Streaming takes {gigabytes(streamed)} of RAM, but only {gigabytes(free)} are free on this computer.",)


def name_of(options: argparse.Namespace) -> str:
    """What to call the model."""
    return options.shape or Path(options.model).absolute().name


def waterfall(made: Estimate) -> Waterfall:
    """What the budget goes to, in order; it adds up to the budget where the model fits."""
    demands, found, slow = made.demands, made.plan, "host memory" if made.wanted.device == "cuda" else "the file"
    rows: Waterfall = [
        ("other programs", made.others, ""),
        ("margin", _known(demands.margin), "kept free"),
        ("workspace", _known(demands.workspace), "activations, graphs, the context of the driver"),
        ("KV cache", _known(demands.kv), f"{made.wanted.context:,} tokens"),
        ("embedding, norms", _known(demands.always), "always there"),
    ]
    if found is None:
        missing = Measure(None, "the model does not fit")
        names = ("draft copy", "weights resident", "slots", "free", "weights streamed")
        return [*rows, *((name, missing, "") for name in names)]
    recipe, taken = found.recipe, found.peak + found.margin + found.others
    count = {lies: found.residency.count(lies) for lies in Residency}
    total, resident, streamed, host = len(found.parts), Residency.RESIDENT, Residency.STREAMED, Residency.HOST
    rows += [
        ("draft copy", _known(found.draft), f"{recipe.weight_bits} bits" if recipe else made.undrafted),
        ("weights resident", _known(found.bytes_of(resident)), f"{count[resident]} of {total} parts"),
        ("slots", _known(found.slots * found.slot_bytes), f"{found.slots}" if found.slots else "nothing is streamed"),
        ("free", _known(found.budget - taken), ""),
        ("weights streamed", _known(found.bytes_of(streamed)), f"from {slow}, not part of the budget"),
    ]
    if count[host]:
        rows.append(("weights on the CPU", _known(found.bytes_of(host)), "not part of the budget"))
    return rows


def lines(name: str, made: Estimate, notes: tuple[str, ...]) -> list[str]:
    """The estimate for people."""
    wanted = made.wanted
    text = [f"{name}, {NAMES[wanted.device]}, budget {gigabytes(wanted.budget)}, context {wanted.context:,} tokens", ""]
    for what, size, remark in waterfall(made):
        shown = "n/a" if size.value is None else _size(size.value)
        remark = remark if size.value is not None else size.reason
        text.append(f"{what:18}{shown:>10}  {remark}".rstrip())
    text += ["", *_speed(made), f"verdict           {made.verdict.value}"]
    if made.refusal:
        text.append(f"                  {made.refusal}")
    text += [f"would help        {_fix_words(fix.text, fix.verdict, fix.tokens_per_second)}" for fix in made.fixes]
    return [*text, *(f"note              {note}" for note in notes)]


def as_json(name: str, made: Estimate, notes: tuple[str, ...]) -> dict[str, Any]:
    """The estimate as plain data, sizes in bytes; what is not known is null, with the reason beside it."""
    found, alone, wanted = made.plan, made.plain_alone, made.wanted
    return {
        "model": name,
        "device": wanted.device,
        "budget": wanted.budget,
        "context": wanted.context,
        "verdict": made.verdict.value,
        "refusal": made.refusal,
        "least_budget": made.least,
        "whole_budget": made.whole,
        "bytes": {what: None if size.value is None else int(size.value) for what, size, _ in waterfall(made)},
        "reasons": {what: size.reason for what, size, _ in waterfall(made) if size.value is None},
        "peak": found.peak if found else None,
        "slots": found.slots if found else None,
        "recipe": found.recipe.to_json() if found and found.recipe else None,
        "residency": [lies.value for lies in found.residency] if found else None,
        "plain_tokens_per_second": 1 / alone.plain_seconds if alone else None,
        "speculative_tokens_per_second": 1 / found.speculative_seconds if found and found.gamma else None,
        "gamma": found.gamma if found else None,
        "tokens_per_cycle": found.tokens_per_cycle if found else None,
        "acceptance": _acceptance(made),
        "fixes": [
            {"text": fix.text, "verdict": fix.verdict.value, "tokens_per_second": fix.tokens_per_second}
            for fix in made.fixes
        ],
        "notes": list(notes),
    }


def _speed(made: Estimate) -> list[str]:
    found, alone = made.plan, made.plain_alone
    if found is None or alone is None:
        return ["plain                n/a  the model does not fit", "speculative          n/a  the model does not fit"]
    beside = "" if alone.draft else ", without a draft's copy"
    rows = [f"plain             {1 / alone.plain_seconds:6.2f} tok/s predicted{beside}"]
    if not found.gamma:
        return [*rows, f"speculative          n/a  {made.undrafted}"]
    gain = alone.plain_seconds * tokens_per_second(found)
    return [
        *rows,
        f"speculative       {tokens_per_second(found):6.2f} tok/s predicted, {gain:.1f} times as fast: {found.gamma} "
        f"tokens drafted a cycle, acceptance taken to be {_acceptance(made):.2f}",
    ]


def _acceptance(made: Estimate) -> float | None:
    recipe = made.plan.recipe if made.plan else None
    return next((draft.acceptance for draft in made.demands.drafts if draft.recipe == recipe), None)


def _fix_words(text: str, verdict: Verdict, rate: float) -> str:
    return f"{text}: {verdict.value}, {rate:.2f} tok/s predicted"


def _known(size: int) -> Measure:
    return Measure(float(size))


def _size(size: float) -> str:
    if size >= 1e9:
        return f"{size / 1e9:.2f} GB"
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 or not size else f"{size / 1e6:.3f} MB"
