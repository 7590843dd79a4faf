"""Costs and acceptance come out as they are, whatever the machine does beside, and the cache stays the model's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from calibration_rig import VOCABULARY, Clock, RuledRunner, every, follower
from engine.calibration.measure import WORST_LOSS, Bench, block_width, widths_within
from engine.calibration.replies import OwnText, Reader, own_replies
from engine.calibration.timing import times_of
from engine.errors import NumericFault
from engine.recipe import Recipe


def bench_of(runner: RuledRunner) -> Bench:
    check = lambda: None  # noqa: E731
    return Bench(runner, Reader(runner, check), times_of(runner, runner.clock), check)


def text_of(length: int = 40, first: int = 7) -> OwnText:
    ids = list(range(1, first + 1))
    while len(ids) < length:
        ids.append(follower(ids[-1], len(ids) - 1))
    return OwnText(tuple(ids), first)


def test_replies_are_the_models_own_greedy_ones() -> None:
    runner = RuledRunner(Clock())
    reader = Reader(runner, lambda: None)
    prompts = [[3, 1, 4], [1, 5]]
    made = list(own_replies(runner, reader, prompts, frozenset(), lambda: None, lambda n: n >= 70, runner.clock))
    first, second = (text for text, _ in made)
    assert first == OwnText(text_with([3, 1, 4], 64), 3) and second == OwnText(text_with([1, 5], 6), 2)
    assert [seconds for _, times in made for seconds in times] == pytest.approx([0.01] * 70)
    assert tuple(runner.rows[: len(second.ids)]) == second.ids


def text_with(prompt: list[int], count: int) -> tuple[int, ...]:
    ids = list(prompt)
    for _ in range(count):
        ids.append(follower(ids[-1], len(ids) - 1))
    return tuple(ids)


def test_a_reply_ends_at_an_end_token_and_prompts_without_room_are_passed_over() -> None:
    runner = RuledRunner(Clock(), capacity=12)
    ends = frozenset({text_with([3, 1, 4], 5)[-1]})
    prompts = [[7] * 12, [], [3, 1, 4], [2] * 10]
    reader = Reader(runner, lambda: None)
    made = [text for text, _ in own_replies(runner, reader, prompts, ends, lambda: None, lambda n: False, runner.clock)]
    assert [(len(text.ids), text.first) for text in made] == [(8, 3), (12, 10)]


def test_the_reader_reads_only_what_the_cache_does_not_hold() -> None:
    passes: list[tuple[int, int]] = []

    class Counting(RuledRunner):
        def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            passes.append((position, len(tokens)))
            return super().full(tokens, position, wanted)

    reader = Reader(Counting(Clock(), chunk=8), lambda: None)
    reader.hold([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    reader.hold([1, 2, 3, 4, 9, 9])
    reader.hold([1, 2, 3, 4])
    reader.hold([1, 2, 3, 4, 9])
    assert passes == [(0, 8), (8, 2), (4, 2), (4, 1)]


@pytest.mark.parametrize("recipe", [Recipe(weight_bits=4), Recipe(weight_bits=4, neuron_share=0.5)])
def test_acceptance_is_counted_at_every_chosen_token(recipe: Recipe) -> None:
    runner = RuledRunner(Clock(), recipe=recipe, errs=lambda _, position: every(5)(position))
    texts = (text_of(40, 7), text_of(61, 20))
    found = bench_of(runner).agreement(texts)
    positions = [*range(7, 40), *range(20, 61)]
    assert found.matches.tolist() == [position % 5 != 0 for position in positions]
    assert found.acceptance == pytest.approx(np.mean([position % 5 != 0 for position in positions]))
    assert not runner.drafted
    assert bool(runner.refreshed) == (recipe.neuron_share < 1)


def test_the_first_tokens_only_and_in_the_same_order_whatever_the_cache_holds() -> None:
    runner = RuledRunner(Clock(), recipe=Recipe(weight_bits=4), errs=lambda _, position: every(4)(position))
    bench, texts = bench_of(runner), (text_of(40, 7), text_of(61, 20))
    whole = bench.agreement(texts).matches
    assert bench.agreement(texts, 50).matches.tolist() == whole[:50].tolist()  # begins with the text that is held
    assert bench.agreement(texts, 10).matches.tolist() == whole[:10].tolist()
    assert len(bench.agreement(texts, 0).matches) == 0 and bench.agreement((), None).acceptance == 0.0


def test_loss_tells_how_sure_the_draft_is_of_the_models_token() -> None:
    runner = RuledRunner(Clock(), recipe=Recipe(weight_bits=4), errs=lambda _, position: position == 30)
    alone = np.log(np.exp(10.0) + VOCABULARY - 1)
    found = bench_of(runner).agreement((text_of(40, 7),))
    assert found.loss == pytest.approx(((alone - 10.0) * 32 + alone) / 33, rel=1e-5)


def test_a_draft_that_computes_nonsense_is_a_miss_and_no_fault() -> None:
    class Broken(RuledRunner):
        def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
            logits = super().draft(tokens, position)
            logits[0] = np.nan
            return logits

    runner = Broken(Clock(), recipe=Recipe(weight_bits=4))
    bench = bench_of(runner)
    found = bench.agreement((text_of(23, 7),))
    assert found.matches.tolist() == [i % 8 != 0 for i in range(16)] and found.loss > WORST_LOSS / 8
    assert bench.draft_cost(text_of()) == pytest.approx(0.25)


def test_a_token_without_a_row_costs_the_worst_loss_and_not_infinity() -> None:
    class Reduced(RuledRunner):
        def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
            logits = super().draft(tokens, position)
            logits[:, 1:] = -np.inf
            return logits

    found = bench_of(Reduced(Clock(), recipe=Recipe(weight_bits=4))).agreement((text_of(),))
    assert found.acceptance == 0.0 and found.loss == WORST_LOSS


def test_a_full_pass_that_computes_nonsense_is_told() -> None:
    class Broken(RuledRunner):
        def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            return super().full(tokens, position, wanted) * np.nan

    with pytest.raises(NumericFault):
        bench_of(Broken(Clock())).verify(text_of(), 4)


def test_costs_are_ratios_to_passes_made_beside_them() -> None:
    runner = RuledRunner(Clock(), recipe=Recipe(weight_bits=4), verify_slope=0.03, few_slope=0.2)
    bench, text = bench_of(runner), text_of()
    assert bench.verify(text, 5) == pytest.approx(1 + 4 * 0.03)
    assert bench.draft_cost(text) == pytest.approx(0.25)
    assert bench.few_rows(text, 4) == pytest.approx(1.6)
    assert bench.plain_seconds == pytest.approx(0.01)
    assert not runner.drafted


def test_passes_of_a_card_are_timed_where_they_run() -> None:
    class Card(RuledRunner):
        """Its passes take no time of the host."""

        def timed_full(self, tokens: Sequence[int], position: int) -> float:
            self.full(tokens, position, len(tokens))
            return 0.001 * (1 + 0.01 * (len(tokens) - 1))

        def timed_draft(self, tokens: Sequence[int], position: int) -> float:
            self.draft(tokens, position)
            return 0.0003 * len(tokens)

    bench, text = bench_of(Card(Clock(), plain_seconds=0.0, recipe=Recipe(weight_bits=4))), text_of()
    assert bench.draft_cost(text) == pytest.approx(0.3)
    assert bench.verify(text, 5) == pytest.approx(1.04)
    assert bench.few_rows(text, 4) == pytest.approx(4.0)
    assert bench.plain_seconds == pytest.approx(0.001)


def test_other_work_on_the_machine_cancels_out() -> None:
    """The machine gets slower and slower, and now and then a pass takes fifty times as long."""
    passes = 0

    class Busy(RuledRunner):
        def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            nonlocal passes
            passes += 1
            self.plain_seconds *= 1.002
            self.clock.now += 0.5 * (passes % 9 == 0)
            return super().full(tokens, position, wanted)

    bench = bench_of(Busy(Clock(), recipe=Recipe(weight_bits=4)))
    assert bench.draft_cost(text_of()) == pytest.approx(0.25, rel=0.02)
    assert bench.verify(text_of(), 5) == pytest.approx(1.08, rel=0.02)


def test_short_texts_are_timed_at_the_widths_they_have() -> None:
    assert widths_within(4) == (2, 3, 4) and set(widths_within(400)) == {2, 3, 4, 5, 6, 8, 11, 16}
    assert bench_of(RuledRunner(Clock())).verify(text_of(4, 2), 4) == pytest.approx(1.06)


def test_rows_are_compared_one_by_one_where_weights_are_chosen_for_each() -> None:
    assert block_width(Recipe(weight_bits=4, reduced_vocabulary=9, skipped_mlp=(1,))) == 8
    chosen = (Recipe(neuron_share=0.5), Recipe(head_share=0.5), Recipe(input_sparsity=0.3))
    assert [block_width(recipe) for recipe in chosen] == [1, 1, 1]
