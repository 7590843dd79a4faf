"""What the page's tables say: figures, settings, model and machine. A row is a name, a value, and why there is none."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from app.ui.labels import comparison_label
from engine.recipe import Recipe
from engine.recording import Recording
from engine.records import ModelInfo, StopReason

Row = tuple[str, str | None, str]


translate = QCoreApplication.translate


def figures(recording: Recording) -> Iterable[Row]:
    """Speed, acceptance and sizes of the reply."""
    s, finished = recording.statistics, recording.finished
    nothing = translate("Report", "Nothing was decoded.")
    undrafted = translate("Report", "Nothing was drafted.")
    unmeasured = translate("Report", "No plain step was measured in this reply.")
    plain = f"{1 / s.plain_seconds:.1f} tok/s" if s.plain_seconds else None
    yield translate("Report", "Speed"), _with(s.tokens_per_second, "{:.1f} tok/s"), nothing
    yield translate("Report", "Plain decoding, measured"), plain, unmeasured
    yield translate("Report", "Speed-up over plain"), _with(s.speed_up, "{:.2f}×"), unmeasured
    yield translate("Report", "Accepted of tested drafts"), _with(s.acceptance, "{:.1%}"), undrafted
    yield translate("Report", "Tokens per cycle"), _with(s.tokens_per_cycle, "{:.2f}"), nothing
    yield translate("Report", "Draft step, in plain steps"), _with(s.draft_cost, "{:.3f}"), undrafted
    yield translate("Report", "Verify pass, in plain steps"), _with(s.verify_cost, "{:.3f}"), undrafted
    drafted = f"{s.drafted:,} / {s.tested:,} / {s.accepted:,}"
    yield translate("Report", "Drafted / tested / accepted"), drafted, ""
    yield translate("Report", "Tokens of the prompt (reused)"), _reused(recording), ""
    yield translate("Report", "Tokens of the reply"), f"{finished.new_tokens:,}", ""
    yield translate("Report", "Reading the prompt"), f"{finished.prefill_seconds:.2f} s", ""
    yield translate("Report", "Decoding"), f"{finished.decode_seconds:.2f} s", ""
    yield translate("Report", "Ended by"), reason_words(finished.reason), ""
    compared = comparison_label(recording.comparison) if recording.comparison is not None else None
    not_compared = translate("Report", "This reply was not compared with plain decoding.")
    yield translate("Report", "Compared with plain decoding"), compared, not_compared


def _reused(recording: Recording) -> str:
    return f"{recording.finished.prompt_tokens:,} ({recording.finished.reused_tokens:,})"


def reason_words(reason: StopReason) -> str:
    """Why a reply ended."""
    return {
        StopReason.END_TOKEN: translate("Report", "its end token"),
        StopReason.STOP_STRING: translate("Report", "a stop string"),
        StopReason.LENGTH: translate("Report", "the length limit"),
        StopReason.CONTEXT_FULL: translate("Report", "the context being full"),
        StopReason.STOPPED: translate("Report", "the user"),
        StopReason.FAILED: translate("Report", "an error"),
    }[reason]


def setting_rows(recording: Recording) -> Iterable[Row]:
    """What was asked of the engine."""
    sampling, speculation = recording.sampling, recording.speculation
    yes, no = translate("Report", "on"), translate("Report", "off")
    yield translate("Report", "Speculation"), yes if speculation.enabled else no, ""
    gamma = translate("Report", "automatic") if speculation.gamma is None else str(speculation.gamma)
    yield translate("Report", "Draft length γ"), gamma, ""
    yield from _recipe_rows(speculation.recipe or recording.model.recipe)
    greedy = translate("Report", "Greedy") if sampling.greedy else f"{sampling.temperature:g}"
    yield translate("Report", "Temperature"), greedy, ""
    yield "top-k / top-p / min-p", f"{sampling.top_k} / {sampling.top_p:g} / {sampling.min_p:g}", ""
    yield translate("Report", "Repetition penalty"), f"{sampling.repetition_penalty:g}", ""
    unused = translate("Report", "A greedy reply draws no random numbers.")
    yield translate("Report", "Seed"), None if sampling.greedy else str(recording.finished.seed), unused
    no_limit = translate("Report", "There was no limit but the context.")
    yield translate("Report", "Longest reply"), _with(recording.max_new_tokens, "{:,}"), no_limit


def _recipe_rows(recipe: Recipe) -> Iterable[Row]:
    everything = translate("Report", "all")
    yield translate("Report", "Draft weights"), f"{recipe.weight_bits} bit", ""
    yield translate("Report", "Input channels dropped"), _share(recipe.input_sparsity), ""
    kept = f"{_share(recipe.neuron_share)} / {_share(recipe.head_share)}"
    yield translate("Report", "MLP neurons / attention heads kept"), kept, ""
    skipped = f"{len(recipe.skipped_attention)} / {len(recipe.skipped_mlp)}"
    yield translate("Report", "Attention / MLP blocks skipped"), skipped, ""
    yield translate("Report", "Output tokens"), _with(recipe.reduced_vocabulary, "{:,}") or everything, ""
    yield translate("Report", "Positions attended to"), _with(recipe.kv_window, "{:,}") or everything, ""


def model_rows(info: ModelInfo) -> Iterable[Row]:
    """What was loaded."""
    yield translate("Report", "Name"), info.name, ""
    yield translate("Report", "File or folder"), info.path, ""
    shape = f"{info.family}, {info.layers} × {info.hidden_size}, {info.vocabulary:,}"
    yield translate("Report", "Family, layers × width, vocabulary"), shape, ""
    yield translate("Report", "Context"), f"{info.context:,}", ""
    yield translate("Report", "Weights"), f"{info.weights_dtype}, {info.weights_bytes / 1e6:,.0f} MB", ""
    yield translate("Report", "Draft copy"), f"{info.draft_bytes / 1e6:,.0f} MB", ""
    yield translate("Report", "Chat template"), info.template, ""


def machine_rows(info: ModelInfo) -> Iterable[Row]:
    """What the reply was made on."""
    yield translate("Report", "Device"), info.device, ""
    yield translate("Report", "Kernels"), info.kernels, ""


def _with(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value).replace("%", " %")


def _share(value: float) -> str:
    return f"{value * 100:.0f} %"
