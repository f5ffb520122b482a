"""The floors: pages → components → models, and who may import TensorFlow and Streamlit."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("pages", "components", "models")  # from the top
TENSORFLOW = {"tensorflow", "keras"}
FILES = [
    path.relative_to(ROOT)
    for floor in ("app.py", *FLOORS)
    for path in sorted([ROOT / floor] if floor.endswith(".py") else (ROOT / floor).rglob("*.py"))
]
every_file = pytest.mark.parametrize("path", FILES, ids=str)


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """(module, level of a relative import, whether importing the file runs it) of every import."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0, id(node) not in later) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level, id(node) not in later


def roots(path: Path) -> set[str]:
    """First parts of the names of absolute imports."""
    return {module.partition(".")[0] for module, level, _ in imports(path) if level == 0}


def test_there_is_something_to_look_at() -> None:
    assert {Path("app.py"), Path("models/lazy.py")} <= set(FILES)
    assert {path.parts[0] for path in FILES} >= set(FLOORS)


@every_file
def test_imports_only_go_down(path: Path) -> None:
    above = {
        "app.py": {"app"},
        "pages": {"app"},
        "components": {"app", "pages"},
        "models": {"app", "pages", "components"},
    }[path.parts[0]]
    assert not roots(path) & above


@every_file
def test_no_streamlit_under_models_and_no_tensorflow_above(path: Path) -> None:
    if path.parts[0] == "models":
        assert "streamlit" not in roots(path)
    else:
        assert not roots(path) & TENSORFLOW


@every_file
def test_models_import_each_other_relatively_and_tensorflow_lazily(path: Path) -> None:
    """Relative, because the folder is also installed as `nanatomy`."""
    if path.parts[0] != "models":
        return
    assert not roots(path) & {"models", "nanatomy"}
    depth = len(path.parts) - 1
    assert all(level <= depth for _, level, _ in imports(path))
    executed = {m.partition(".")[0] for m, level, now in imports(path) if now and not level}
    assert not executed & TENSORFLOW


@every_file
def test_nothing_evaluates_text_as_code(path: Path) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"eval", "exec"}


@pytest.mark.parametrize("floor", ["models", "components"])
def test_importing_every_module_loads_no_tensorflow(floor: str) -> None:
    modules = [
        ".".join(path.with_suffix("").parts)
        for path in FILES
        if path.parts[0] == floor and path.stem not in ("__init__", "__main__")
    ]
    script = "\n".join(
        [
            "import importlib, sys",
            f"for name in {modules}: importlib.import_module(name)",
            "from models.scenarios import scenarios",
            "assert scenarios()",
            "loaded = {'tensorflow', 'keras'} & set(sys.modules)",
            "assert not loaded, loaded",
            f"assert {floor == 'components'} or 'streamlit' not in sys.modules",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
