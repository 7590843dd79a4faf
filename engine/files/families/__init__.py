"""Families of models as data: one short file each says how its config.json is read and what its tensors are called.

A new family is one more file and one more entry of FAMILIES. What sets it apart is expressed in the fields of
ModelConfig; only a model that computes something new needs more than its file (`engine.model.programme`).
"""

from __future__ import annotations

from engine.files.families.family import Family
from engine.files.families.llama import LLAMA
from engine.files.families.mistral import MISTRAL
from engine.files.families.opt import OPT
from engine.files.families.phi3 import PHI3
from engine.files.families.qwen import QWEN2, QWEN3
from engine.files.families.smollm import SMOLLM3

FAMILIES: tuple[Family, ...] = (LLAMA, MISTRAL, QWEN2, QWEN3, SMOLLM3, PHI3, OPT)
FAMILY_OF = {architecture: family for family in FAMILIES for architecture in family.architectures}
