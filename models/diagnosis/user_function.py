"""A loss function in a person's own file, named as `FILE.py:function`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import BadInput
from .diagnose import diagnose
from .report import Diagnosis

_FIELD = "function"


def diagnose_file(name: str) -> Diagnosis:
    """Diagnoses the loss that `FILE.py:function` returns, by every trainable variable it reads.

    Raises:
        BadInput: The file or the function cannot be found or called.
    """
    return diagnose(load_function(name))


def load_function(name: str) -> Callable[[], Any]:
    """The function that `FILE.py:function` names; the file is run once, as on import.

    Raises:
        BadInput: The file or the function cannot be found or called.
    """
    file, colon, attribute = name.rpartition(":")
    if not colon or not file or not attribute:
        raise BadInput(f"{name!r} should look like FILE.py:function.", field=_FIELD)
    path = Path(file).expanduser().resolve()
    if path.suffix != ".py" or not path.is_file():
        raise BadInput(f"There is no Python file {file!r}.", field=_FIELD)
    function = getattr(_run(path), attribute, None)
    if not callable(function):
        raise BadInput(f"{path.name} has no function {attribute!r}.", field=_FIELD)
    if _needs_arguments(function):
        raise BadInput(
            f"{attribute} must take no arguments and return the loss; wrap it in one that does.",
            field=_FIELD,
        )
    loss: Callable[[], Any] = function
    return loss


def _run(path: Path) -> ModuleType:
    name = f"diagnosed_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent)
    sys.modules[name] = module
    sys.path.insert(0, folder)  # so that the file can import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadInput(
            f"{path.name} could not be run: {type(error).__name__}: {error}.", field=_FIELD
        ) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module


def _needs_arguments(function: Callable[..., Any]) -> bool:
    target = getattr(function, "python_function", function)
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in optional for p in parameters)
