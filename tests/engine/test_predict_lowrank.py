"""Low-rank predictors, on a ReLU model trained here whose neurons are about 10 % active."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from engine.predict.lowrank import LowRankPredictor, fit_low_rank, report_low_rank
from engine.predict.report import LayerReport
from relu_model import LAYERS, NEURONS, PLACES, ReluModel, Tensor, sentences, train_relu_model

RANK = 32  # half the model's width
FIT, HELD_BACK = 16, 6  # sequences


@dataclass(frozen=True)
class Lesson:
    """The model, what it computes on text, and which sequences are kept back from fitting."""

    model: ReluModel
    inputs: tuple[Tensor, ...]  # a layer: [tokens, hidden], one sub-layer ahead of the MLP
    active: tuple[Tensor, ...]  # a layer: [tokens, neurons]
    later: tuple[list[int], ...]

    def importance(self, layer: int) -> Tensor:
        return self.active[layer] * self.model.layer(layer, "down").norm(dim=0)


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    model = train_relu_model()
    inputs: tuple[list[Tensor], ...] = tuple([] for _ in range(LAYERS))
    active: tuple[list[Tensor], ...] = tuple([] for _ in range(LAYERS))

    def see(layer: int, early: Tensor, activations: Tensor) -> Tensor:
        inputs[layer].append(early)
        active[layer].append(activations)
        return activations

    words = sentences(77, (FIT + HELD_BACK) * PLACES)
    pieces = [words[at : at + PLACES] for at in range(0, len(words), PLACES)]
    with torch.inference_mode():
        for piece in pieces:
            model.logits(piece, see)
    joined = [tuple(torch.cat(part).clone() for part in parts) for parts in (inputs, active)]
    return Lesson(model, joined[0], joined[1], tuple(pieces[FIT:]))


def fitted(lesson: Lesson, share: float) -> tuple[list[LowRankPredictor], list[LayerReport]]:
    predictors, reports = [], []
    split = FIT * PLACES
    for layer in range(LAYERS):
        importance = lesson.importance(layer)
        predictor = fit_low_rank(lesson.inputs[layer][:split], importance[:split], RANK, share, steps=120)
        reports.append(report_low_rank(layer, predictor, lesson.inputs[layer][split:], importance[split:]))
        predictors.append(predictor)
    return predictors, reports


def agreement(lesson: Lesson, choose: Callable[[int, Tensor, Tensor], Tensor]) -> float:
    """Share of held-back places where the draft's best word is the full model's."""
    same = [lesson.model.logits(ids).argmax(-1) == lesson.model.logits(ids, choose).argmax(-1) for ids in lesson.later]
    return float(torch.cat(same).float().mean())


def test_the_model_is_sparse_and_knows_something(lesson: Lesson) -> None:
    shares = [float((active > 0).float().mean()) for active in lesson.active]
    assert all(0.02 < share < 0.2 for share in shares), shares
    hits = [lesson.model.logits(ids)[:-1].argmax(-1) == torch.tensor(ids[1:]) for ids in lesson.later]
    assert float(torch.cat(hits).float().mean()) > 0.25, "a word guessed blindly is right 3 % of the time"


@pytest.mark.parametrize(("share", "least"), [(0.1, 0.85), (0.2, 0.9)])
def test_few_neurons_of_a_relu_model_keep_most_of_its_choices(lesson: Lesson, share: float, least: float) -> None:
    predictors, reports = fitted(lesson, share)
    assert all(abs(report.kept - share) < 0.03 for report in reports), reports
    assert all(report.recall > 0.55 for report in reports) and reports[-1].recall > 0.75, reports
    alpha = agreement(lesson, lambda layer, early, active: active * predictors[layer].choose(early))

    kept = round(share * NEURONS)
    usual = [lesson.importance(layer).mean(0).topk(kept).indices for layer in range(LAYERS)]
    masks = [torch.zeros(NEURONS).index_fill(0, ids, 1.0) for ids in usual]
    by_average = agreement(lesson, lambda layer, _, active: active * masks[layer])
    assert alpha > least and alpha > by_average + 0.1, (alpha, by_average)


def test_inputs_and_activations_of_zero_fit_a_predictor_that_chooses_nothing_wrong() -> None:
    silent = fit_low_rank(torch.zeros(20, 8), torch.zeros(20, 16), 4, 0.25, steps=5)
    assert all(bool(part.isfinite().all()) for part in (silent.inward, silent.outward, silent.bias))
    assert report_low_rank(0, silent, torch.zeros(3, 8), torch.zeros(3, 16)).recall == 1.0


def test_heads_are_predicted_as_neurons_are_and_a_large_rank_is_cut_to_what_there_is() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(600, 24, generator=generator)
    norms = (inputs @ torch.randn(24, 6, generator=generator)).exp()
    predictor = fit_low_rank(inputs[:500], norms[:500], 64, 0.5)
    assert predictor.inward.shape == (24, 6) and predictor.outward.shape == (6, 6)
    report = report_low_rank(4, predictor, inputs[500:], norms[500:])
    assert report.layer == 4 and abs(report.kept - 0.5) < 0.06 and report.recall > 0.95


def test_the_same_activations_give_the_same_predictor() -> None:
    inputs, importance = torch.randn(100, 16), torch.rand(100, 32)
    first, second = (fit_low_rank(inputs, importance, 4, 0.3, steps=20) for _ in range(2))
    assert torch.equal(first.outward, second.outward) and first.threshold == second.threshold


def test_what_does_not_match_is_refused() -> None:
    with pytest.raises(ValueError, match="fitted"):
        fit_low_rank(torch.ones(3, 4), torch.ones(4, 4), 2, 0.5)
    with pytest.raises(ValueError, match="share"):
        fit_low_rank(torch.ones(3, 4), torch.ones(3, 4), 2, 0.0)
