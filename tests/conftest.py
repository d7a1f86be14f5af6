"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of real inputs with their right values; RECRAWL_CASES says where it is."""
    folder = os.environ.get("RECRAWL_CASES")
    if not folder:
        pytest.skip("RECRAWL_CASES is not set: the shared case files are not here")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"RECRAWL_CASES={folder} is not a folder")
    return path
