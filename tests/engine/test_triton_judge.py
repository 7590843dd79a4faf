"""Choosing tokens and judging drafts on the card, against the host's own rules (engine.sampling)."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.reference import operations as op
from engine.kernels.triton import judge
from engine.sampling.accept import accept
from triton_rig import DEPENDENT, DEVICE, DTYPES, LAUNCH, ROWS, Tensor, assert_close, nan, normal, quiet, random, triton

BLOCK = 32
NONE = 2147483647


class Card:
    """The state on the card, and the kernels that read and write it. Vocabulary 80: the last block is half full."""

    def __init__(self, vocabulary: int = 80, allowed: int = 80) -> None:
        self.vocabulary, self.allowed = vocabulary, allowed
        self.state = torch.full((judge.STATE_SIZE,), -7, dtype=torch.int32, device=DEVICE)
        self.floats = self.state[judge.FLOATS :].view(torch.float32)
        self.logits = nan(ROWS, vocabulary)
        self.report = torch.zeros(judge.REPORT_SIZE, dtype=torch.int32, device=DEVICE)

    def begin(self, position: int, tokens: list[int]) -> None:
        self.state[judge.POSITION], self.state[judge.CURSOR] = position, 0
        self.state[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)

    def _partials(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """What the logits epilogue leaves, a part a block of the vocabulary; rows not in use are left NaN."""
        parts = -(-self.vocabulary // BLOCK)
        peaks, ids = nan(parts, 2, ROWS), torch.full((parts, ROWS), NONE, dtype=torch.int32, device=DEVICE)
        for part in range(parts):
            block = logits[:, part * BLOCK : min((part + 1) * BLOCK, self.allowed)]
            rows = len(logits)
            if block.shape[1] == 0:
                peaks[part, 0, :rows], peaks[part, 1, :rows], ids[part, :rows] = float("-inf"), 0.0, part * BLOCK
                continue
            best = block.max(1).values
            peaks[part, 0, :rows], peaks[part, 1, :rows] = best, (block - best[:, None]).exp().sum(1)
            first = (block == best[:, None]).int().argmax(1).int() + part * BLOCK
            ids[part, :rows] = torch.where(best.isnan(), NONE, first)
        return peaks, ids

    def propose(self, logits: Tensor) -> None:
        """End of a draft step with these logits [1, vocabulary]."""
        peaks, ids = self._partials(logits)
        parts = len(ids)
        shape = {"PARTS": parts, "PARTS_PADDED": triton.next_power_of_2(parts)}
        with quiet():
            judge.propose_kernel[(1,)](
                self.state, self.floats, peaks, ids, self.report, **shape, DEPENDENT=DEPENDENT, num_warps=4, **LAUNCH
            )

    def judge(self, logits: Tensor) -> None:
        """End of a full pass with these logits [rows, vocabulary]."""
        peaks, ids = self._partials(logits)
        self.logits.fill_(float("nan"))
        self.logits[: len(logits)] = logits
        parts = len(ids)
        shape = {"PARTS": parts, "PARTS_PADDED": triton.next_power_of_2(parts)}
        with quiet():
            judge.judge_kernel[(1,)](
                self.state,
                self.floats,
                self.logits,
                peaks,
                ids,
                len(logits),
                self.vocabulary,
                **shape,
                DEPENDENT=DEPENDENT,
                num_warps=8,
                **LAUNCH,
            )

    def ints(self, place: int, count: int) -> list[int]:
        return [int(value) for value in self.state[place : place + count]]

    def values(self, place: int, count: int) -> list[float]:
        return [float(value) for value in self.floats[place : place + count]]


def draw(generator: torch.Generator, count: int) -> list[int]:
    return [int(value) for value in torch.randint(0, 80, (count,), generator=generator)]


@pytest.mark.parametrize("rows", range(1, ROWS + 1))
def test_a_block_is_judged_as_the_host_judges_it(rows: int) -> None:
    """Drafts that agree up to a random place: the same tokens, probabilities, acceptance and state afterwards."""
    generator = random(rows)
    for _ in range(3):
        card, logits = Card(allowed=71), normal(generator, rows, 80, scale=3.0)
        chosen = logits[:, :71].argmax(1).tolist()
        drafted = chosen[:-1]
        for place in draw(generator, 2)[: rows - 1]:
            drafted[place % (rows - 1)] = (drafted[place % (rows - 1)] + 1) % 80
        card.begin(40, [5, *drafted])
        card.judge(logits)
        outcome = accept(drafted, chosen)
        shares = logits[:, :71].exp() / logits[:, :71].exp().sum(1, keepdim=True)
        whole = logits.exp() / logits[:, :71].exp().sum(1, keepdim=True)
        assert card.ints(judge.CHOSEN, rows) == chosen
        assert card.values(judge.CHOSEN_PROBS, rows) == pytest.approx(shares.max(1).values.tolist(), rel=5e-5)
        wanted = [float(whole[i, token]) for i, token in enumerate(drafted)]
        assert card.values(judge.FULL_PROBS, rows - 1) == pytest.approx(wanted, rel=5e-5)
        assert card.ints(judge.ACCEPTED, 1) == [outcome.accepted]
        assert card.ints(judge.POSITION, 2) == [40 + outcome.accepted + 1, 0]
        assert card.ints(judge.TOKENS, rows) == [outcome.next_id, *drafted], "proposals stay for the read-back"


def test_of_equal_logits_the_lowest_id_is_chosen_across_parts() -> None:
    logits = torch.zeros(3, 80, device=DEVICE)
    logits[0, [70, 33, 64]] = 4.0
    logits[1, [31, 32]] = 4.0
    card = Card()
    card.begin(0, [1, 2, 3])
    card.judge(logits)
    assert card.ints(judge.CHOSEN, 3) == [33, 31, 0]
    card.propose(logits[:1])
    assert card.ints(judge.TOKENS + 1, 1) == [33]


@pytest.mark.parametrize("allowed", [80, 79, 65, 64, 33, 1])
def test_padding_ids_are_never_chosen(allowed: int) -> None:
    logits = torch.arange(80.0, device=DEVICE)[None]  # the highest id has the highest logit
    card = Card(allowed=allowed)
    card.begin(0, [1])
    card.propose(logits)
    share = 1.0 / float((logits[0, :allowed] - logits[0, allowed - 1]).exp().sum())
    assert card.ints(judge.TOKENS + 1, 1) == [allowed - 1]
    assert card.values(judge.DRAFT_PROBS, 1) == pytest.approx([share], rel=5e-5)
    card.judge(logits)
    assert card.ints(judge.CHOSEN, 1) == [allowed - 1]
    assert card.values(judge.CHOSEN_PROBS, 1) == pytest.approx([share], rel=5e-5)


def test_probabilities_of_logits_far_apart() -> None:
    logits = torch.full((1, 80), -3.0e4, device=DEVICE)
    logits[0, 50] = 3.0e4
    card = Card()
    card.begin(0, [1])
    card.judge(logits)
    assert card.ints(judge.CHOSEN, 1) == [50] and card.values(judge.CHOSEN_PROBS, 1) == [1.0]


def test_cycles_hand_their_state_on_without_the_host() -> None:
    """Twenty cycles of proposals and judgements; a simulation on the host must see the same block each time."""
    generator = random(9)
    card = Card()
    position, first = 17, 3
    card.begin(position, [first])
    accepted = 0
    for cycle in range(20):
        gamma = cycle % 5
        full = normal(generator, gamma + 1, 80, scale=3.0)
        draft = full[:gamma].clone()
        if gamma:
            draft[draw(generator, 1)[0] % gamma] *= -1.0  # one proposal is wrong
        for step in range(gamma):
            card.propose(draft[step : step + 1])
        drafted = draft.argmax(1).tolist()
        assert card.ints(judge.POSITION, 2) == [position, gamma]
        assert card.ints(judge.TOKENS, gamma + 1) == [first, *drafted]
        best = draft.softmax(1).max(1).values.tolist() if gamma else []
        assert card.values(judge.DRAFT_PROBS, gamma) == pytest.approx(best, rel=5e-5)
        card.judge(full)
        outcome = accept(drafted, full.argmax(1).tolist())
        position, first = position + outcome.accepted + 1, outcome.next_id
        accepted += outcome.accepted
        assert card.ints(judge.POSITION, 2) == [position, 0]
        assert card.ints(judge.TOKENS, 1) == [first]
    assert 0 < accepted < 40, "the test must see both right and wrong proposals"


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_nan_gives_a_token_that_exists_and_no_probability(everywhere: bool) -> None:
    """The host reads the NaN probability; the card may go on with the token, and must not read beyond its tables."""
    logits = torch.zeros(2, 80, device=DEVICE)
    logits[1, slice(None) if everywhere else slice(40, 41)] = float("nan")
    card = Card()
    card.begin(0, [1, 2])
    card.judge(logits)
    first, second = card.values(judge.CHOSEN_PROBS, 2)
    assert first == pytest.approx(1 / 80) and second != second
    assert 0 <= card.ints(judge.CHOSEN, 2)[1] < 80
    card.begin(0, [1])
    card.propose(logits[1:])
    (probability,) = card.values(judge.DRAFT_PROBS, 1)
    assert probability != probability and 0 <= card.ints(judge.TOKENS + 1, 1)[0] < 80


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("width", "learned", "cursor"), [(64, False, 0), (100, False, 3), (100, True, 2)])
def test_embedding_fills_stream_norm_input_and_squares(
    width: int, learned: bool, cursor: int, dtype: torch.dtype
) -> None:
    generator = random(width)
    embedding, gain = normal(generator, 80, width, dtype=dtype), normal(generator, width)
    places = normal(generator, 60, width, dtype=dtype)
    card, rows = Card(), 1 if cursor else ROWS
    tokens = draw(generator, ROWS)
    card.begin(20, tokens)
    card.state[judge.CURSOR] = cursor if cursor else 99
    stream, y, squares = nan(ROWS, width), nan(ROWS, width, dtype=dtype), nan(3, ROWS)
    with quiet():
        judge.embed_kernel[(rows,)](
            card.state,
            embedding,
            gain,
            stream,
            y,
            squares,
            WIDTH=width,
            WIDTH_PADDED=128,
            PARTS=3,
            PARTS_PADDED=4,
            SHRINK=16.0,
            AT_CURSOR=cursor > 0,
            DEPENDENT=DEPENDENT,
            positions=places if learned else None,
            FIRST_PLACE=2,
            num_warps=4,
        )
    expected = op.embed(embedding, torch.tensor(tokens[cursor : cursor + rows], device=DEVICE))
    if learned:
        expected = op.add_positions(expected, places, 20 + cursor + 2)
    assert torch.equal(stream[:rows], expected)
    assert_close(y[:rows], expected * gain / 16.0, dtype)
    torch.testing.assert_close(squares.sum(0)[:rows], expected.square().sum(1), rtol=1e-5, atol=0.0)
    assert stream[rows:].isnan().all() and squares[:, rows:].isnan().all()
