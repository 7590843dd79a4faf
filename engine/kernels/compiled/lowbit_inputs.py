"""Who writes the int8 inputs of packed matrices: what makes the input, or an instruction of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.files.config import ModelConfig
from engine.kernels.compiled.activations import NEURONS_OF_BLOCK
from engine.kernels.compiled.memory import PlanedMlp, Weights
from engine.lowbit.packed import PackedMatrix
from engine.model import programme as p
from engine.model.matrix import Matrix


@dataclass(frozen=True, slots=True)
class InputPlan:
    """folded: index of an instruction -> the buffer it writes in int8 too, and a matrix that reads it.

    before: index -> the same of a row of the table that quantises first, and whether only of the wanted rows.
    """

    folded: dict[int, tuple[p.Buffer, PackedMatrix]]
    before: dict[int, tuple[p.Buffer, PackedMatrix, bool]]


def matrix_of(step: p.Linear | p.PlaneMlp, weights: Weights) -> Matrix | PackedMatrix:
    """The weight a product reads. Raises ValueError for a programme that needs rows or planes nobody made."""
    if isinstance(step, p.PlaneMlp):
        return planes_of(step.layer, weights).layer.gate
    if step.kept:
        if weights.kept is None:
            raise ValueError("a reduced vocabulary needs the rows of its tokens")
        return weights.kept
    if step.neurons_of is not None and weights.chosen_of is not None:
        return weights.chosen_of(step.weight)
    return weights.matrix(step.weight)


def planes_of(layer: int, weights: Weights) -> PlanedMlp:
    """A layer's planes. Raises ValueError where there are none."""
    if weights.planes is None:
        raise ValueError("neurons chosen by planes need planes")
    return weights.planes(layer)


def plan_inputs(programme: p.Programme, config: ModelConfig, weights: Weights) -> InputPlan:
    """Which inputs are wanted in int8. Raises ValueError where two matrices want one input in different groups."""
    plan = InputPlan({}, {})
    producers: dict[p.Buffer, int] = {}
    readers: dict[tuple[p.Buffer, int | None], PackedMatrix] = {}
    for index, step in enumerate(programme):
        match step:
            case p.Linear() | p.PlaneMlp():
                matrix, source = matrix_of(step, weights), source_of(step)
                if isinstance(matrix, PackedMatrix):
                    producer = producers.get(source)
                    key = (source, producer)
                    if key in readers:
                        _require_same(step, matrix, readers[key])
                        continue
                    readers[key] = matrix
                    if producer is not None and _folds(programme[producer], matrix, config):
                        plan.folded[producer] = (source, matrix)
                    else:
                        plan.before[index] = (source, matrix, isinstance(step, p.Linear) and step.on_tail)
        made = p.written(step)
        if made is not None:
            producers[made] = index
    return plan


def source_of(step: p.Linear | p.PlaneMlp) -> p.Buffer:
    """The buffer a product reads."""
    return step.source if isinstance(step, p.Linear) else p.Buffer.NORMED


def _folds(producer: p.Instruction, matrix: PackedMatrix, config: ModelConfig) -> bool:
    """Whether the blocks of the producer end where groups do."""
    match producer:
        case p.Attend():
            return config.head_dim % matrix.group == 0
        case p.GatedSilu() | p.Relu():
            return producer.count == matrix.columns and NEURONS_OF_BLOCK % matrix.group == 0
    return isinstance(producer, p.AddNorm)


def _require_same(step: p.Linear | p.PlaneMlp, matrix: PackedMatrix, other: PackedMatrix) -> None:
    if matrix.group != other.group or not np.array_equal(matrix.inverse, other.inverse):
        name = step.weight if isinstance(step, p.Linear) else f"the gate of layer {step.layer}"
        raise ValueError(f"{name} must share groups and factors with the matrices that read the same input")
