"""Plain decoding against llama.cpp: same weights (F16), threads and machine, taking turns in one process.

    python benchmarks/plain_decode.py F16.gguf [ROUNDS]

F16.gguf is made from the starter model where it does not exist. Needs llama-cpp-python. Decoding only, greedy, from
the same prompt; llama.cpp is driven through its C interface with nothing but an argmax around each step.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from figures import Figure, report
from replies import PROMPTS, prompt_ids, run

from engine.engine import Engine
from engine.files.starter import starter_path
from engine.model.threads import thread_count

GOAL_RATIO = 0.9
TOKENS = 48
MOSTLY_F16 = 1
QUIET = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, user: None)


def make_f16(target: Path) -> None:
    """Write the starter model's weights, which are stored in four bits, as F16: the values our engine computes with."""
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize, parameters.nthread = MOSTLY_F16, True, thread_count()
    names = str(starter_path()).encode(), str(target).encode()
    if llama_cpp.llama_model_quantize(*names, ctypes.byref(parameters)):
        raise SystemExit(f"llama.cpp could not write {target}.")


class Llama:
    """A model in llama.cpp, with as many threads as ours."""

    def __init__(self, path: Path) -> None:
        threads = thread_count()
        self._model: Any = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx, parameters.n_threads, parameters.n_threads_batch = 2048, threads, threads
        self._context: Any = llama_cpp.llama_init_from_model(self._model, parameters)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))

    def run(self, prompt: tuple[int, ...], tokens: int) -> tuple[list[int], float]:
        """Greedy ids after the prompt, and the seconds of decoding them: as many passes as tokens."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        self._decode(prompt[:-1])
        ids, token = [], prompt[-1]
        began = time.perf_counter()
        for _ in range(tokens):
            self._decode((token,))
            row = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self._context, -1), (self._vocabulary,))
            token = int(row.argmax())
            ids.append(token)
        return ids, time.perf_counter() - began

    def _decode(self, ids: tuple[int, ...]) -> None:
        array = (llama_cpp.llama_token * len(ids))(*ids)
        if llama_cpp.llama_decode(self._context, llama_cpp.llama_batch_get_one(array, len(ids))):
            raise SystemExit("llama.cpp could not decode.")


def main() -> None:
    """Take turns and print the medians of both, and of the ratio within each turn."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    path, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6
    llama_cpp.llama_log_set(QUIET, ctypes.c_void_p())
    if not path.exists():
        make_f16(path)
    theirs, engine = Llama(path), Engine()
    engine.load("starter", device="cpu")
    prompt = prompt_ids(engine, PROMPTS[0])
    ours: list[float] = []
    llama: list[float] = []
    same = 0
    for turn in range(rounds + 1):
        mine = run(engine, prompt, TOKENS, plain=True)
        ids, seconds = theirs.run(prompt, TOKENS)
        same = next((i for i, (a, b) in enumerate(zip(mine.ids, ids, strict=True)) if a != b), TOKENS)
        if turn:  # the first one warms both up
            ours.append(TOKENS / mine.seconds)
            llama.append(TOKENS / seconds)
    engine.close()
    ratio = statistics.median(a / b for a, b in zip(ours, llama, strict=True))
    how = f"median of {rounds} turns of {TOKENS} tokens, {thread_count()} threads, in turns with llama.cpp"
    report([
        Figure("plain decoding", statistics.median(ours), "tok/s", note=how),
        Figure("llama.cpp F16, same weights", statistics.median(llama), "tok/s", note=f"first {same} tokens the same"),
        Figure("plain decoding over llama.cpp", ratio, "×", at_least=GOAL_RATIO, note="median of the turns' ratios"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
