"""From ``module:registry`` to the registry."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import goncordia
from goncordia.errors import ConfigurationError, GoncordiaError
from goncordia.registry import Registry

__all__ = ["load_registry"]

_OWN: Final = Path(goncordia.__file__).parent


def load_registry(path: str) -> Registry[Any]:
    """The registry that a path names; modules are looked for in the current folder too.

    Args:
        path: such as ``"app.jobs:registry"``.

    Raises:
        ConfigurationError: nothing can be imported there, or it is no registry.
    """
    module_name, separator, attribute = path.partition(":")
    names = module_name.split(".")
    if not separator or not attribute or not all(name.isidentifier() for name in names):
        raise ConfigurationError(f"registry: {path!r} is not like 'app.jobs:registry'")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _module(path, module_name)
    found: Any = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ConfigurationError(
                f"registry: {path!r}: {module_name} has no {attribute!r}{_advice(found)}"
            ) from None
    if not _is_registry(found):
        what = type(found).__name__
        raise ConfigurationError(
            f"registry: {path!r} is of type {what}, not a Registry{_advice(module)}"
        )
    registry: Registry[Any] = found
    return registry


def _is_registry(value: object) -> bool:
    return isinstance(value, Registry)


def _module(path: str, name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            reason = f"there is no module {error.name!r} here or on PYTHONPATH"
        else:
            reason = f"importing {name} failed: {error}"
        raise ConfigurationError(f"registry: {path!r}: {reason}") from error
    except GoncordiaError as error:  # a wrong registration: it says itself what is wrong
        error.add_note(f"in {name}{_where(error, but=_OWN)}")
        raise
    except (Exception, SystemExit) as error:  # a script that runs, and ends, when imported
        where = _where(error)
        raise ConfigurationError(
            f"registry: {path!r}: importing {name} failed: {type(error).__name__}: {error}{where}"
        ) from error


def _where(error: BaseException, but: Path | None = None) -> str:
    """The last line that it came through, but for those in a folder."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if but is None or not Path(frame.filename).is_relative_to(but)
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _advice(module: object) -> str:
    there = [name for name, value in vars(module).items() if _is_registry(value)]
    return f"; there is {', '.join(map(repr, there))}" if there else ""
