"""Thresholds that stand for a share, the figures of a choice, and limits of input channels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.predict.channels import fit_channels
from engine.predict.report import LayerReport, PredictorReport, layer_report
from engine.predict.thresholds import KEEP_ALL, threshold_for


@pytest.mark.parametrize(("share", "above"), [(0.5, 50), (0.1, 10), (0.99, 99), (0.999, 100), (1.0, 100)])
def test_the_wanted_share_lies_above_the_threshold(share: float, above: int) -> None:
    scores = np.random.default_rng(0).permutation(100).astype(np.float32).reshape(4, 25)
    assert (scores > threshold_for(scores, share)).sum() == above
    assert threshold_for(torch.from_numpy(scores), share) == threshold_for(scores, share)


def test_a_share_above_which_only_zeros_remain_keeps_no_zeros() -> None:
    scores = np.array([0] * 90 + [1] * 10, np.float32)
    assert threshold_for(scores, 0.5) == 0.0
    assert threshold_for(scores, 1.0) == KEEP_ALL


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        threshold_for(np.ones(4), share)


@pytest.mark.parametrize("scores", [np.zeros((0, 3)), np.array([1.0, np.nan])])
def test_no_scores_and_nan_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match="NaN"):
        threshold_for(scores, 0.5)


def test_recall_weighs_what_was_found_and_top_recall_counts_it() -> None:
    importance = np.array([[8, 1, 1, 0], [0, 6, 0, 4]], np.float32)
    chosen = np.array([[True, True, False, False], [True, True, False, False]])
    report = layer_report(3, chosen, importance)
    assert (report.layer, report.kept) == (3, 0.5)
    assert (report.recall, report.top_recall) == pytest.approx((15 / 20, 3 / 4))


def test_where_nothing_matters_nothing_is_missed() -> None:
    report = layer_report(0, np.zeros((2, 4), bool), np.zeros((2, 4)))
    assert (report.kept, report.recall, report.top_recall) == (0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="measured"):
        layer_report(0, np.zeros((2, 4), bool), np.zeros((2, 5)))


def test_a_report_averages_its_layers() -> None:
    report = PredictorReport("planes", (LayerReport(0, 0.4, 0.9, 0.8), LayerReport(1, 0.6, 0.7, 0.8)))
    assert report.kept == pytest.approx(0.5) and report.recall == pytest.approx(0.8)
    assert PredictorReport("planes", ()).recall == 1.0


@pytest.mark.parametrize("dropped", [0.3, 0.5])
def test_channel_limits_drop_the_wanted_share(dropped: float) -> None:
    random = np.random.default_rng(1)
    spread = random.lognormal(0, 1, 64)
    seen, later = ((random.normal(size=(300, 64)) * spread).astype(np.float32) for _ in range(2))
    limits = fit_channels(seen, dropped)
    assert limits.limits.dtype == np.float32 and len(set(limits.limits.tolist())) == 1
    assert abs(1 - limits.keep(later).mean() - dropped) < 0.02
    assert np.array_equal(limits.keep(torch.from_numpy(later)).numpy(), limits.keep(later))


def test_limits_follow_inputs_that_are_divided_by_factors() -> None:
    random = np.random.default_rng(2)
    seen = random.normal(size=(100, 32)).astype(np.float32)
    factors = random.lognormal(0, 1, 32).astype(np.float32)
    limits = fit_channels(seen, 0.4)
    assert (limits.divided(factors).keep(seen / factors) == limits.keep(seen)).mean() > 0.999
    everything = fit_channels(seen, 0.0).divided(factors)
    assert everything.keep(np.zeros((1, 32), np.float32)).all()


def test_with_nothing_to_drop_all_channels_are_kept_and_zeros_divide_nothing() -> None:
    silent = np.zeros((5, 8), np.float32)
    assert fit_channels(silent, 0.0).keep(silent).all()
    assert not fit_channels(silent, 0.5).keep(silent).any()
    with pytest.raises(ValueError, match="share"):
        fit_channels(silent, 1.0)
