"""HumanEval: a program is right where its tests pass, in a process of its own with little time and memory.

This is no prison: a process can still read files and reach the network. So it is off by default, and the user is asked.
Tests are the question's own `test` and `entry_point`, as the data set has them, or the examples in its docstring.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile

SECONDS, MEMORY = 6, 512 << 20  # of a program
PASSED = 77  # the status of a process whose tests were all run: a program may end by itself, with 0
_FENCED = re.compile(r"```[\w+-]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_PREAMBLE = f"""
import resource, sys
for limit, most in (("CPU", {SECONDS}), ("AS", {MEMORY}), ("FSIZE", 1 << 20), ("NOFILE", 32)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (most, most))
"""
_DOCTESTS = f"""
import doctest
_finder, _count = doctest.DocTestRunner(verbose=False), 0
for _test in doctest.DocTestFinder().find(sys.modules["__main__"]):
    _count += len(_test.examples)
    _finder.run(_test, out=lambda _: None)
sys.exit({PASSED} if _count and not _finder.failures else 1)
"""


def program_of(prompt: str, reply: str) -> str | None:
    """The program that a reply stands for, with the prompt's own lines before it where they are not repeated; None
    where it is no Python."""
    task = _task(prompt)
    blocks = _FENCED.findall(reply)
    candidates = [*sorted(blocks, key=len, reverse=True), reply]
    for body in candidates:
        for whole in (f"{_imports(task)}\n{body}", task + body) if "def " in body else (task + body,):
            if _is_python(whole):
                return whole
    return None


def passes(program: str, prompt: str, test: str = "", entry_point: str = "") -> bool:
    """Run a program with the tests of its question; whether they pass. Examples of the prompt stand in for tests."""
    if test:
        ending = f"{test}\ncheck({entry_point})\nsys.exit({PASSED})\n"
    else:
        ending = _with_examples(prompt) + _DOCTESTS
    return _run(f"{_PREAMBLE}\n{program}\n{ending}")


def _run(source: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="specular-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", source],
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=2 * SECONDS,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == PASSED


def _task(prompt: str) -> str:
    """The code of a prompt: from its first import or definition on."""
    lines = prompt.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(("def ", "import ", "from ", "class ", "@")):
            return "\n".join(lines[number:])
    return ""


def _imports(task: str) -> str:
    return "\n".join(line for line in task.split("\n") if line.startswith(("import ", "from ")))


def _with_examples(prompt: str) -> str:
    """A copy of the prompt's docstring at the module, for programs that left it out."""
    examples = [line.strip() for line in prompt.split("\n")]
    started = [number for number, line in enumerate(examples) if line.startswith(">>>")]
    if not started:
        return ""
    kept: list[str] = []
    for line in examples[started[0] :]:
        if line.startswith(('"""', "'''")):
            break
        kept.append(line)
    return f"__doc__ = {chr(10).join(kept)!r}\n"


def _is_python(source: str) -> bool:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.FunctionDef) for node in tree.body)
