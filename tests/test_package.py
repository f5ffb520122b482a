"""The floor `models` as the installable package `nanatomy`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the tree stays clean, and without asking an index."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "models", source / "models")
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--quiet", "--wheel-dir", str(target), str(source)]
    subprocess.run(command, check=True)
    (built,) = target.glob("nanatomy-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(target)
    return target


def run(unpacked: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=unpacked.parent,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_models(wheel: Path) -> None:
    """Fails for a folder or a data file that pyproject.toml does not name yet."""
    files = {
        str(path.relative_to(ROOT / "models"))
        for path in (ROOT / "models").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = zipfile.ZipFile(wheel).namelist()
    assert {name for name in packed if ".dist-info/" not in name} == {
        f"nanatomy/{f}" for f in files
    }


def test_it_is_imported_by_its_own_name(unpacked: Path) -> None:
    script = "from nanatomy.scenarios import scenarios; print(*scenarios())"
    assert run(unpacked, "-c", script).split() == ["balanced_loss", "basis_fit", "seq2seq"]


def test_its_command_line_gives_the_same_losses(unpacked: Path) -> None:
    arguments = ("run", "basis_fit", "--preset", "mended", "--steps", "3", "--json", "-")
    installed = json.loads(run(unpacked, "-m", "nanatomy", *arguments))
    here = subprocess.run(
        [sys.executable, "-m", "models", *arguments], cwd=ROOT, capture_output=True, check=True
    )
    assert installed["loss"] == json.loads(here.stdout)["loss"]


def test_what_it_needs_stands_in_requirements_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(project["dependencies"]) <= set(lines)
    assert not any(re.match("streamlit|plotly", line) for line in project["dependencies"])
