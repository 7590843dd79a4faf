"""Shared set-up of all tests: no display, a data folder of their own, guards, and the starter model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def has_card() -> bool:
    """Whether torch can use an NVIDIA card; torch is imported only where the driver sees one."""
    import pynvml

    try:
        pynvml.nvmlInit()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return False
    import torch

    return torch.cuda.is_available()


HAS_CARD = has_card()
if not HAS_CARD:
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported: its kernels then run on the CPU

USER_DATA_DIR = os.environ.get("SPECULAR_DATA_DIR")
_session_data = tempfile.TemporaryDirectory(prefix="specular-tests-")
os.environ["SPECULAR_DATA_DIR"] = _session_data.name  # for what runs outside a test; each test gets one of its own

from guards import (  # noqa: E402, F401 (guards are used by being here)
    no_leaked_qthreads,
    no_leaked_qtimers,
    no_leaked_threads,
    no_unexpected_log_records,
    own_data_folder,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests marked `gpu` where torch sees no CUDA device."""
    if HAS_CARD:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA card"))


@contextmanager
def user_data_folder() -> Iterator[None]:
    """Inside, `SPECULAR_DATA_DIR` is what it was before the tests: the user's own data folder."""
    with pytest.MonkeyPatch.context() as patch:
        if USER_DATA_DIR is None:
            patch.delenv("SPECULAR_DATA_DIR")
        else:
            patch.setenv("SPECULAR_DATA_DIR", USER_DATA_DIR)
        yield


@pytest.fixture(scope="session")
def starter_folder() -> Path:
    """The converted folder of the starter model in the user's own data folder; made once and then shared.

    Read it, never write to it. `python3 run.py test` has installed the model; fails the test where it is missing.
    """
    from engine.errors import SpecularError
    from engine.files.resolve import STARTER, resolve

    with user_data_folder():
        try:
            return resolve(STARTER, lambda state: None, lambda: False).absolute()
        except SpecularError as error:
            missing = str(error)
    pytest.fail(f"This test needs the starter model. {missing}", pytrace=False)


@pytest.fixture
def starter_by_name(starter_folder: Path, own_data_folder: Path) -> str:  # noqa: F811 (the guard, asked for by name)
    """The name `starter`, usable in a test whose data folder is its own: the model lies there as links."""
    from engine.files import paths, starter

    with user_data_folder():
        original = starter.starter_path().absolute()
    link, converted = starter.starter_path(), paths.cache_dir() / "models" / starter_folder.name
    for name, target in ((link, original), (converted, starter_folder)):
        name.parent.mkdir(parents=True, exist_ok=True)
        name.symlink_to(target)
    return "starter"
