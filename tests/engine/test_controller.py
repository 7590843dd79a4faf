"""The gamma controller in simulated worlds with known costs and acceptance. Times it sees are noisy; it is scored on
the true ones, so that a lucky or unlucky clock is not mistaken for a good or bad decision."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean

import pytest

from engine.settings import MAX_GAMMA
from engine.speculation.controller import GammaController
from engine.speculation.cycle_plan import CyclePlan
from engine.speculation.drafter import Proposal
from engine.speculation.estimates import CostProfile, RowCost, SuccessRate
from engine.speculation.lookup import NOTHING
from speculation_rig import RIGHT, block

PLAIN = 0.04
Alpha = Callable[[int, int], float]
Cost = Callable[[int], float]


def always(alpha: float) -> Alpha:
    return lambda k, t: alpha


def flat(gamma: int) -> float:
    return 1.02


def rising(gamma: int) -> float:
    return 1.0 + 0.075 * gamma


def steep(gamma: int) -> float:
    return 1.3 + 0.2 * gamma


@dataclass
class World:
    """alpha(k, t): probability that proposal k (from 0) is right at token t. confident: the draft knows which are."""

    alpha: Alpha
    draft_cost: float
    verify_cost: Cost
    seed: int
    noise: float = 0.05
    outliers: float = 0.0
    confident: bool = False
    gammas: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def seen(self, cost: float) -> float:
        """What a clock would show for a cost in plain steps."""
        factor = max(0.3, self.random.gauss(1, self.noise))
        if self.random.random() < self.outliers:
            factor *= self.random.uniform(3, 10)
        return cost * factor * PLAIN

    def step(self, controller: GammaController, at: int) -> tuple[int, float]:
        """One plain step or cycle: tokens and true cost in plain steps."""
        gamma = controller.next_gamma()
        self.gammas.append(gamma)
        if gamma == 0:
            controller.record_plain(self.seen(1.0))
            return 1, 1.0
        plan = controller.plan(gamma, MAX_GAMMA)
        probs: list[float] = []
        right = []
        while plan.next_pass(len(probs), NOTHING, 1) is not None:
            p = self.alpha(len(probs), at)
            if self.confident and 0 < p < 1:
                p = self.random.betavariate(2 * p, 2 * (1 - p))
            probs.append(p)
            right.append(self.random.random() < p)
            plan.added([Proposal(RIGHT, p)], 0, NOTHING)
        drafted = len(probs)
        accepted = right.index(False) if False in right else drafted
        draft, verify = drafted * self.draft_cost, self.verify_cost(drafted)
        controller.record(block(probs, accepted, self.seen(draft), self.seen(verify)))
        return accepted + 1, draft + verify

    def speed_up(self, tokens: int, controller: GammaController | None = None, skip: int = 50) -> float:
        """True speed over plain of the tokens after the first `skip`."""
        controller = controller or GammaController()
        at, done, cost = 0, 0, 0.0
        while at < tokens:
            got, spent = self.step(controller, at)
            if at >= skip:
                done, cost = done + got, cost + spent
            at += got
        return done / cost


def best_fixed(alpha: float, draft_cost: float, verify_cost: Cost) -> float:
    """The best S of any fixed gamma, or of plain decoding."""

    def s(gamma: int) -> float:
        return sum(alpha**k for k in range(gamma + 1)) / (gamma * draft_cost + verify_cost(gamma))

    return max(1.0, *(s(gamma) for gamma in range(1, MAX_GAMMA + 1)))


@pytest.mark.parametrize("verify_cost", [flat, rising])
@pytest.mark.parametrize("draft_cost", [0.1, 0.25, 0.4, 0.6, 0.9])
def test_close_to_the_best_fixed_gamma(draft_cost: float, verify_cost: Cost) -> None:
    for alpha in (0.0, 0.3, 0.5, 0.7, 0.9, 0.97):
        got = mean(World(always(alpha), draft_cost, verify_cost, seed).speed_up(500) for seed in range(6))
        assert got >= 0.93 * best_fixed(alpha, draft_cost, verify_cost), f"alpha {alpha}"


BAD: dict[str, Alpha] = {
    "never right": always(0.0),
    "seldom right": always(0.15),
    "coin": always(0.5),
    "good, then never": lambda k, t: 0.95 if t < 100 else 0.0,
    "never, then good": lambda k, t: 0.0 if t < 100 else 0.9,
    "turns every 20": lambda k, t: 0.95 if t // 20 % 2 else 0.0,
    "turns every 60": lambda k, t: 0.95 if t // 60 % 2 else 0.0,
    "drifts": lambda k, t: 0.5 + 0.45 * math.sin(t / 50),
    "right twice, then wrong": lambda k, t: 1.0 if k < 2 else 0.0,
    "only the first": lambda k, t: 0.9 if k == 0 else 0.0,
}


@pytest.mark.parametrize("name", BAD)
def test_never_noticeably_slower_than_plain(name: str) -> None:
    for draft_cost in (0.25, 0.5, 0.9):
        for verify_cost in (flat, rising, steep):
            for seed in range(4):
                for tokens in (250, 600):
                    got = World(BAD[name], draft_cost, verify_cost, seed).speed_up(tokens)
                    assert got >= 0.95, f"c {draft_cost}, {verify_cost.__name__}, seed {seed}, {tokens} tokens"


@pytest.mark.parametrize(("noise", "outliers"), [(0.2, 0.0), (0.05, 0.05)])
def test_noisy_clocks(noise: float, outliers: float) -> None:
    for alpha in (0.0, 0.3, 0.7, 0.9):
        for draft_cost in (0.25, 0.6):
            got = [World(always(alpha), draft_cost, rising, seed, noise, outliers).speed_up(500) for seed in range(10)]
            assert min(got) >= 0.95, f"alpha {alpha}, c {draft_cost}"
            assert mean(got) >= 0.9 * best_fixed(alpha, draft_cost, rising), f"alpha {alpha}, c {draft_cost}"


def test_comes_back_when_the_draft_becomes_good() -> None:
    worlds = [World(lambda k, t: 0.0 if t < 150 else 0.95, 0.25, flat, seed) for seed in range(10)]
    assert mean(world.speed_up(1200, skip=800) for world in worlds) > 1.8
    assert all(0 in world.gammas[20:60] for world in worlds)


def test_pauses_are_short_again_once_drafting_has_paid() -> None:
    worlds = [World(lambda k, t: 0.0 if t < 600 or 1100 <= t < 1200 else 0.95, 0.25, flat, seed) for seed in range(10)]
    assert mean(world.speed_up(1500, skip=1200) for world in worlds) > 1.5


def test_a_spent_allowance_means_plain_steps_whatever_the_estimates_say() -> None:
    controller = GammaController()
    controller.next_gamma()
    controller.record_plain(PLAIN)
    for _ in range(60):
        controller.record(block([0.9] * 4, 4, 4 * 0.25 * PLAIN, 1.02 * PLAIN))
    assert controller.next_gamma() == 0, "a plain step is due"
    controller.record_plain(PLAIN)
    assert controller.next_gamma() > 4
    for _ in range(2):
        controller.record(block([0.9] * 15, 0, 15 * 0.25 * PLAIN, 1.02 * PLAIN))
    assert max(controller.speed_ups()) > 1.2
    for _ in range(60):  # also no probe until plain steps have earned one
        assert controller.next_gamma() == 0
        controller.record_plain(PLAIN)
    for _ in range(100):
        controller.record_plain(PLAIN)
    assert controller.next_gamma() > 0


def test_one_lucky_probe_leads_to_another_before_the_next_pause() -> None:
    worlds = [World(lambda k, t: 0.98 if t % 80 < 60 else 0.0, 0.7, flat, seed) for seed in range(10)]
    assert mean(world.speed_up(800) for world in worlds) > 1.03


def test_probes_become_rarer_while_they_fail() -> None:
    world = World(always(0.0), 0.5, flat, 1)
    world.speed_up(3000)
    cycles = [i for i, gamma in enumerate(world.gammas) if gamma]
    early, late = (sum(a <= i < b for i in cycles) for a, b in ((20, 520), (2000, 3000)))
    assert 1 <= late <= 3 < early


def test_stopping_by_confidence_gains_over_ignoring_it() -> None:
    class Blunt(GammaController):
        def plan(self, gamma: int, most: int) -> CyclePlan:
            return CyclePlan(self.measured, gamma, most, 1.0, fixed=True)

    def gain(controller: type[GammaController]) -> float:
        return mean(
            World(always(0.9), 0.3, flat, seed, confident=True).speed_up(800, controller()) for seed in range(10)
        )

    assert gain(GammaController) > 1.05 * gain(Blunt)


def test_an_unsure_draft_stops_and_a_sure_one_goes_on() -> None:
    controller = GammaController()
    World(always(0.85), 0.25, flat, 3, confident=True).speed_up(400, controller)
    while (gamma := controller.next_gamma()) < 2:
        controller.record_plain(PLAIN)

    def goes_on(*probs: float) -> bool:
        plan = controller.plan(gamma, MAX_GAMMA)
        plan.added([Proposal(RIGHT, p) for p in probs], 0, NOTHING)
        return plan.next_pass(len(probs), NOTHING, 1) is not None

    assert goes_on(0.97)
    assert not goes_on(0.05)
    assert not goes_on(*[1.0] * gamma)


def test_a_fixed_gamma_is_kept_and_plain_steps_stay_rare() -> None:
    world = World(always(0.1), 0.9, steep, 2, confident=True)
    controller = GammaController(fixed=5)
    world.speed_up(500, controller)
    assert set(world.gammas) == {0, 5}
    assert world.gammas[0] == 0, "the first step measures plain decoding"
    assert 0.02 < world.gammas.count(0) / len(world.gammas) < 0.1
    assert controller.plain_seconds == pytest.approx(PLAIN, rel=0.1)


def test_gamma_never_exceeds_its_limit() -> None:
    world = World(always(1.0), 0.05, flat, 2)
    world.speed_up(300, GammaController(3))
    assert max(world.gammas) == 3
    unlimited = World(always(1.0), 0.05, flat, 2)
    unlimited.speed_up(400)
    assert max(unlimited.gammas) == MAX_GAMMA


def test_costs_are_measured_and_make_a_profile() -> None:
    controller = GammaController()
    assert controller.plain_seconds is None
    assert controller.measured.draft_cost == 0.4
    World(lambda k, t: 0.75 + 0.2 * math.sin(t / 40), 0.2, rising, 5).speed_up(600, controller)
    assert controller.plain_seconds == pytest.approx(PLAIN, rel=0.1)
    assert controller.measured.draft_cost == pytest.approx(0.2, rel=0.15)
    for gamma in (1, 4):
        assert controller.measured.verify(gamma) == pytest.approx(rising(gamma), rel=0.1)
    warm = GammaController(costs=controller.profile())
    assert warm.measured.draft_cost == controller.measured.draft_cost
    assert warm.measured.verify(4) == pytest.approx(controller.measured.verify(4))


def test_a_profile_spares_the_first_tokens() -> None:
    def first_gamma(costs: CostProfile) -> int:
        controller = GammaController(costs=costs)
        assert controller.next_gamma() == 0
        controller.record_plain(PLAIN)
        return controller.next_gamma()

    assert first_gamma(CostProfile(draft=1.2)) == 0
    assert first_gamma(CostProfile(draft=0.1)) > first_gamma(CostProfile()) > 0


def test_plain_time_is_a_median_of_recent_steps() -> None:
    controller = GammaController()
    for seconds in (0.1, 0.1, 5.0):
        controller.record_plain(seconds)
    assert controller.plain_seconds == 0.1
    for _ in range(9):
        controller.record_plain(0.3)
    assert controller.plain_seconds == 0.3


def test_success_rate_follows() -> None:
    rate = SuccessRate(0.7, 4.0)
    assert rate.value() == pytest.approx(0.7)
    assert rate.value(0.2) == pytest.approx(0.2)
    for _ in range(400):
        rate.add(True)
    assert rate.value() > 0.97
    rate.add(False)
    assert rate.value() > 0.95
    for _ in range(65):
        rate.add(False)
    assert 0.3 < rate.value() < 0.5


def test_verify_cost_learns_a_line_and_shrugs_off_an_outlier() -> None:
    cost = RowCost(1.0, 0.02)
    for gamma in (2, 5, 3, 8, 4, 6) * 5:
        cost.add(gamma, 1.1 + 0.08 * gamma)
    assert cost(1) == pytest.approx(1.18, rel=0.05)
    assert cost(12) == pytest.approx(2.06, rel=0.05)
    before = cost(6)
    cost.add(6, 100.0)
    assert cost(6) < 1.15 * before
