"""Every kernel of a decode step compiles for older and newer cards, and fits their shared memory; no card is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).resolve().parents[2]
KERNELS = {"embed_kernel", "matmul_kernel", "attention_kernel", "judge_kernel", "propose_kernel"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capability", "dtype", "shape", "limit"),
    [
        (75, "float16", "smollm2-135m", 65536),
        (86, "bfloat16", "smollm2-135m", 101376),
        (86, "bfloat16", "qwen3-0.6b", 101376),
        (86, "bfloat16", "mistral-7b", 101376),
    ],
)
def test_a_step_compiles_for_other_cards(capability: int, dtype: str, shape: str, limit: int, tmp_path: Path) -> None:
    """limit: bytes of shared memory that one program may have there (CUDA C++ programming guide)."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "compile_for.py"), str(capability), dtype, shape],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    sizes = [(name, int(size)) for name, size in (line.split() for line in done.stdout.splitlines())]
    assert {name for name, _ in sizes} == KERNELS | ({"head_norm_kernel"} if shape.startswith("qwen3") else set())
    assert max(size for _, size in sizes) <= limit, sizes
