"""What a draft is worth: cycles walked along the compared text, and costs between the measured widths."""

from __future__ import annotations

import numpy as np
import pytest

from engine.calibration.costs import fitted, interpolated
from engine.calibration.expected import tokens_per_cycle, worth
from engine.settings import MAX_GAMMA
from engine.speculation.estimates import CostProfile


def pattern(text: str) -> np.ndarray:
    return np.array([mark == "+" for mark in text])


@pytest.mark.parametrize(
    ("marks", "gamma", "tokens"),
    [
        ("", 4, 1.0),
        ("----", 3, 1.0),
        ("++++++++++", 1, 2.0),
        ("++++++++++", 4, 5.0),
        ("+++-" * 5, 3, 4.0),
        ("+++-" * 5, 8, 4.0),
        ("+++-" * 5, 2, 2.0),  # 3 tokens, then the miss by itself
        ("+-" * 6, 5, 2.0),
        ("+" * 6 + "-" * 6, 6, 12 / 6),  # a run and a hard stretch: 1 cycle of 7 tokens, 5 cycles of 1
    ],
)
def test_cycles_are_walked_along_the_text(marks: str, gamma: int, tokens: float) -> None:
    assert tokens_per_cycle(pattern(marks), gamma) == pytest.approx(tokens)


def test_tokens_agree_with_the_formula_for_independent_errors() -> None:
    alpha = 0.9
    matches = np.random.default_rng(0).random(40_000) < alpha
    for gamma in (1, 4, 9):
        expected = sum(alpha**k for k in range(gamma + 1))
        assert tokens_per_cycle(matches, gamma) == pytest.approx(expected, rel=0.02)


def test_the_best_gamma_maximises_tokens_per_time() -> None:
    matches = pattern("++++-" * 40)
    best = worth(matches, 0.3, lambda gamma: 1.0 + 0.05 * gamma)
    by_hand = {
        gamma: tokens_per_cycle(np.append(matches, False), gamma) / (0.3 * gamma + 1.0 + 0.05 * gamma)
        for gamma in range(1, MAX_GAMMA + 1)
    }
    assert best.gamma == max(by_hand, key=by_hand.__getitem__) == 4
    assert best.speed_up == pytest.approx(by_hand[4]) and best.tokens == pytest.approx(5.0, rel=0.02)


def test_few_positions_do_not_promise_the_moon() -> None:
    assert worth(pattern("+" * 48), 0.1, lambda gamma: 1.0).tokens < 13.0  # sixteen, were there no miss ever
    assert worth(np.zeros(0, bool), 0.1, lambda gamma: 1.0).tokens == 1.0


def test_a_draft_that_is_always_wrong_is_slower_than_plain() -> None:
    found = worth(pattern("-" * 50), 0.25, lambda gamma: 1.0)
    assert found.gamma == 1 and found.speed_up == pytest.approx(1 / 1.25)


def test_costs_between_and_beyond_the_measured_widths() -> None:
    cost = interpolated({1: 1.0, 5: 1.2, 9: 2.0})
    assert [cost(gamma) for gamma in (0, 2, 4, 6, 8)] == pytest.approx([1.0, 1.1, 1.2, 1.6, 2.0])
    assert cost(13) == pytest.approx(3.0)
    assert interpolated({1: 1.0})(7) == 1.0
    assert interpolated({1: 1.0, 2: 0.9})(9) == pytest.approx(0.9)  # a falling line is noise


def test_lines_through_measured_costs_make_the_profile() -> None:
    verify = {1: 1.0, **{rows: 1.1 + 0.03 * (rows - 1) for rows in (2, 5, 8)}}
    profile = fitted(0.31, verify, [(2, 1.2), (8, 1.8)])
    assert profile.draft == 0.31
    assert (profile.verify_base, profile.verify_slope) == pytest.approx((1.1, 0.03))
    assert (profile.few_base, profile.few_slope) == pytest.approx((1.2, 0.1))


def test_what_was_not_measured_keeps_the_controllers_guess() -> None:
    guess = CostProfile()
    profile = fitted(0.5, {1: 1.0}, [])
    assert profile == CostProfile(0.5, guess.verify_base, guess.verify_slope, guess.few_base, guess.few_slope)
    one = fitted(0.5, {1: 1.0, 4: 1.5}, [])
    assert one.verify_slope == guess.verify_slope
    assert one.verify_base + 3 * one.verify_slope == pytest.approx(1.5)
    assert fitted(0.5, {1: 1.0, 2: 1.4, 8: 1.1}, []).verify_slope == 0.0
