"""The kernels that choose MLP neurons and compute only those, against torch over the same codes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.reference import sparse
from engine.kernels.triton.draft_packing import pack
from engine.kernels.triton.neuron_choice import low_rank_choice_kernel, sketch_kernel
from engine.kernels.triton.neuron_down import neuron_down_kernel
from engine.kernels.triton.neuron_gate_up import neuron_gate_up_kernel
from engine.kernels.triton.neuron_planes import plane_choice_kernel
from engine.kernels.triton.sparse_packing import pack_planes
from engine.lowbit.codes import LowBitCodes
from engine.predict.planes import PlanePredictor, high_plane
from sparse_rig import DEVICE, activations, codes, counters, nan, normal, plain, random, relative
from triton_rig import DEPENDENT, EPSILON, LAUNCH, quiet, triton

NEURONS, HIDDEN, GROUP, BLOCK = 72, 96, 32, 8
STREAM = 272  # two tiles of 32 words, the second nearly empty


def partial_squares(x: torch.Tensor) -> torch.Tensor:
    """Three partial sums that make the squares of a stream with an inverse root mean square of about a half."""
    return torch.tensor([1.0, 2.5, 0.5], device=DEVICE) * len(x)


def inverse_rms(squares: torch.Tensor, width: int) -> float:
    return float(torch.rsqrt(squares.sum() / width + EPSILON))


@pytest.mark.parametrize(("count", "early"), [(0, True), (1, False), (13, True), (NEURONS, False)])
def test_gate_and_up_of_the_chosen(count: int, early: bool) -> None:
    matrix, x = codes(1, 2 * NEURONS, HIDDEN, GROUP), activations(2, HIDDEN)
    packed, squares = pack(matrix), partial_squares(x.values)
    chosen = torch.randperm(NEURONS, generator=random(3)).int().to(DEVICE)
    activated = nan(NEURONS)
    with quiet():
        neuron_gate_up_kernel[(triton.cdiv(NEURONS, BLOCK),)](
            x.words, x.scales, packed.codes, packed.groups, nan(1), nan(1), squares, chosen, counters(count, 1),
            activated, NEURONS, 1, EPSILON, K=HIDDEN, BITS=4, GROUP_W=GROUP // 8, BLOCK=BLOCK, BLOCK_W=16, GATED=True,
            NORMED=True, HAS_BIAS=False, LOOKS_AHEAD=early, PARTS=3, PARTS_PADDED=4, DEPENDENT=DEPENDENT, num_warps=4,
            **LAUNCH,
        )  # fmt: skip
    assert activated[count:].isnan().all()
    normed = x.values * inverse_rms(squares, HIDDEN)
    wanted = sparse.gated(plain(matrix), normed, chosen[:count].long())
    torch.testing.assert_close(activated[:count], wanted, rtol=1e-4, atol=1e-5)


def test_neurons_behind_a_relu_have_a_bias_and_no_gate() -> None:
    matrix, x = codes(4, NEURONS, HIDDEN, GROUP), activations(5, HIDDEN)
    packed, bias = pack(matrix), normal(random(6), NEURONS)
    chosen = torch.randperm(NEURONS, generator=random(3)).int().to(DEVICE)
    activated = nan(NEURONS)
    with quiet():
        neuron_gate_up_kernel[(triton.cdiv(NEURONS, BLOCK),)](
            x.words, x.scales, packed.codes, packed.groups, nan(1), bias, nan(1), chosen, counters(31), activated,
            NEURONS, 1, EPSILON, K=HIDDEN, BITS=4, GROUP_W=GROUP // 8, BLOCK=BLOCK, BLOCK_W=16, GATED=False,
            NORMED=False, HAS_BIAS=True, LOOKS_AHEAD=False, PARTS=1, PARTS_PADDED=1, DEPENDENT=DEPENDENT, num_warps=4,
            **LAUNCH,
        )  # fmt: skip
    wanted = sparse.relu(plain(matrix), bias, x.values, chosen[:31].long())
    torch.testing.assert_close(activated[:31], wanted, rtol=1e-4, atol=1e-5)
    assert (activated[:31] == 0).any() and activated[31:].isnan().all()


@pytest.mark.parametrize("threshold", [0.02, float("-inf"), 1e9])
def test_planes_choose_and_leave_the_other_half_to_read(threshold: float) -> None:
    """The choice is that of the predictor; the chosen neurons come out as if their codes had been read in one piece."""
    matrix, x = codes(7, 2 * NEURONS, HIDDEN, GROUP), activations(8, HIDDEN)
    planes, squares, reach = pack_planes(matrix), partial_squares(x.values), normal(random(9), NEURONS).abs()
    sums, scores, activated = nan(2, NEURONS), nan(NEURONS), nan(NEURONS)
    chosen, counts = torch.full((NEURONS,), -1, dtype=torch.int32, device=DEVICE), counters()
    limit = torch.tensor([threshold], device=DEVICE)
    programs = triton.cdiv(NEURONS, 16)
    with quiet():
        plane_choice_kernel[(programs,)](
            x.words, x.scales, planes.high, planes.groups, reach, limit, squares, sums, scores, chosen, counts, NEURONS,
            EPSILON, K=HIDDEN, GROUP_W=GROUP // 16, BLOCK=16, BLOCK_W=8, NORMED=True, PARTS=3, PARTS_PADDED=4,
            DEPENDENT=DEPENDENT, num_warps=4, **LAUNCH,
        )  # fmt: skip
        neuron_gate_up_kernel[(triton.cdiv(NEURONS, BLOCK),)](
            x.words, x.scales, planes.rest, planes.groups, sums, nan(1), squares, chosen, counts, activated, NEURONS,
            programs, EPSILON, K=HIDDEN, BITS=2, GROUP_W=GROUP // 16, BLOCK=BLOCK, BLOCK_W=8, GATED=True, NORMED=True,
            HAS_BIAS=False, LOOKS_AHEAD=False, PARTS=3, PARTS_PADDED=4, DEPENDENT=DEPENDENT, num_warps=4, **LAUNCH,
        )  # fmt: skip
    normed = x.values * inverse_rms(squares, HIDDEN)
    high = high_plane(matrix)
    gate, up = (half(high, first) for first in (0, NEURONS))
    wanted = PlanePredictor(gate, up, reach, threshold).scores((normed * matrix.factors)[None])[0]
    torch.testing.assert_close(scores, wanted, rtol=1e-4, atol=1e-5)
    count, done = counts.tolist()
    assert done == programs
    assert set(chosen[:count].tolist()) == set(torch.nonzero(scores > threshold)[:, 0].tolist())
    assert threshold != 0.02 or 0 < count < NEURONS, "the test would not tell a choice from all or none"
    assert (chosen[count:] == -1).all() and activated[count:].isnan().all()
    exact = sparse.gated(plain(matrix), normed, chosen[:count].long())
    torch.testing.assert_close(activated[:count], exact, rtol=1e-4, atol=1e-5)


def half(matrix: LowBitCodes, first: int) -> LowBitCodes:
    """Rows first to first + NEURONS of codes."""
    rows = slice(first, first + NEURONS)
    return replace(matrix, codes=matrix.codes[rows], scale=matrix.scale[rows], low=matrix.low[rows])


@pytest.mark.parametrize("normed", [False, True])
def test_a_low_rank_predictor_in_two_kernels(normed: bool) -> None:
    rank, x, squares = 16, activations(10, HIDDEN), partial_squares(torch.ones(HIDDEN))
    generator = random(11)
    inward = torch.randint(-127, 128, (rank, HIDDEN), generator=generator, dtype=torch.int8).to(DEVICE)
    inward[0, :2] = torch.tensor([-128, 127])
    steps = (torch.rand(rank, generator=generator) * 0.002).to(DEVICE)
    outward, bias = normal(generator, NEURONS, rank, dtype=torch.float16), normal(generator, NEURONS)
    sketch, scores, counts = nan(rank), nan(NEURONS), counters()
    chosen = torch.full((NEURONS,), -1, dtype=torch.int32, device=DEVICE)
    words = inward.view(rank, HIDDEN // 8, 2, 4).transpose(1, 2).contiguous().view(torch.int32)
    with quiet():
        sketch_kernel[(rank,)](
            x.words, x.scales, words, steps, squares, sketch, EPSILON, K=HIDDEN, BLOCK_W=16, NORMED=normed, PARTS=3,
            PARTS_PADDED=4, DEPENDENT=DEPENDENT, num_warps=4, **LAUNCH,
        )  # fmt: skip
        low_rank_choice_kernel[(triton.cdiv(NEURONS, 32),)](
            sketch, outward, bias, torch.tensor([0.5], device=DEVICE), scores, chosen, counts, NEURONS, RANK=rank,
            BLOCK=32, DEPENDENT=DEPENDENT, num_warps=4, **LAUNCH,
        )  # fmt: skip
    wanted = (inward.float() * steps[:, None]) @ x.values * (inverse_rms(squares, HIDDEN) if normed else 1.0)
    torch.testing.assert_close(sketch, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scores, outward.float() @ wanted + bias, rtol=1e-4, atol=1e-5)
    count, done = counts.tolist()
    assert 0 < count < NEURONS and done == triton.cdiv(NEURONS, 32)
    assert set(chosen[:count].tolist()) == set(torch.nonzero(scores > 0.5)[:, 0].tolist())


@pytest.mark.parametrize(("count", "words"), [(0, 64), (3, 32), (29, 64), (NEURONS, 32)])
def test_down_over_the_chosen_adds_to_the_stream_and_readies_what_follows(count: int, words: int) -> None:
    matrix = codes(12, NEURONS, STREAM, 16, factors=False)  # neuron-major: its rows are neurons
    packed, generator = pack(matrix), random(13)
    stream, gain, bias = normal(generator, STREAM), normal(generator, STREAM), normal(generator, STREAM)
    before, tiles = stream.clone(), triton.cdiv(STREAM, 8 * words)
    chosen = torch.randperm(NEURONS, generator=generator).int().to(DEVICE)
    activated = normal(generator, NEURONS)
    activated[count:] = float("nan")
    planes = torch.full((2, STREAM // 2), 77, dtype=torch.int8, device=DEVICE)
    scales, squares, counts = nan(STREAM // 8), nan(tiles), counters(count, 5)
    arrivals = torch.zeros(tiles + 1, dtype=torch.int32, device=DEVICE)
    with quiet():
        neuron_down_kernel[(tiles, 3)](
            chosen, counts, activated, packed.codes, packed.groups, bias, gain, stream, planes, scales, squares,
            arrivals, N=STREAM, GROUP=16, ROWS=2, TILE=words, SPLITS=3, HAS_BIAS=True, QUANTISES=True,
            DEPENDENT=DEPENDENT, num_warps=2, num_stages=1, **LAUNCH,
        )  # fmt: skip
    added = activated[:count] @ plain(matrix)[chosen[:count].long()]
    assert relative(stream, before + bias + added) < 0.004
    if count == 0:
        assert torch.equal(stream, before + bias)
    torch.testing.assert_close(squares.sum(), stream.square().sum(), rtol=1e-5, atol=0.0)
    assert relative(sparse.dequantised(planes, scales), stream * gain) < 0.01
    assert counts.tolist() == [0, 0] and not arrivals.any(), "the next layer starts from zero"
