"""Tracks what the pickle of a function depends on, to detect at each call whether the pickle is outdated."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from operator import is_
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

#: Values of these types never change.
_CONSTANT = frozenset((bool, bytes, complex, float, int, range, str, type(None), type(Ellipsis), type(NotImplemented)))

#: Marks a variable without a value.
_ABSENT = object()


class _Reloads:
    """Counts reloaded modules: ``importlib.reload`` asks each finder for the module, and passes it as `target`."""

    count = 0

    def find_spec(self, _name: str, _path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if target is not None:
            self.count += 1
        return None


reloads = _Reloads()
sys.meta_path.insert(0, reloads)


class Dependencies:
    """Everything that the pickle of a function depends on, if no part of it can change in place."""

    __slots__ = ("_by_value", "_functions", "_parts", "_reloads", "_variables")

    def __init__(self, function: object) -> None:
        self._parts = _parts(function)
        self._reloads = reloads.count
        self._by_value = cloudpickle.list_registry_pickle_by_value()
        #: Variables of modules: the namespace, the name, the value.
        self._variables: list[tuple[dict[str, Any], str, Any]] = []
        #: Other functions that are pickled by value, with their parts.
        self._functions: list[tuple[FunctionType, list[Any]]] = []

    @classmethod
    def of(cls, function: object) -> Dependencies | None:
        """``None`` if a part may change in place, such as a list, an array or a class of ``__main__``."""
        found = cls(function)
        return found if found._collect(function) else None

    def are_unchanged(self, function: object) -> bool:
        """Whether the pickle is still valid for this function: the same one, or one from the same ``lambda`` or ``def``."""
        for names, name, value in self._variables:
            if names.get(name, _ABSENT) is not value:
                return False
        for other, parts in self._functions:
            if not _are_same(parts, _parts(other)):
                return False
        return (
            self._reloads == reloads.count
            and _are_same(self._parts, _parts(function))
            and self._by_value == cloudpickle.list_registry_pickle_by_value()
        )

    def _collect(self, function: object) -> bool:
        values: list[Any] = [function]
        seen: set[int] = set()
        for value in values:
            if type(value) in _CONSTANT or value is _ABSENT or id(value) in seen:
                continue
            seen.add(id(value))
            if type(value) is ModuleType:
                if sys.modules.get(value.__name__) is not value or self._is_by_value(value.__name__):
                    return False
            elif type(value) in (tuple, frozenset):
                values += value
            elif not self._is_by_reference(value):
                if type(value) is not FunctionType or value.__dict__:
                    return False
                parts = _parts(value)
                if value is not function:
                    self._functions.append((value, parts))
                used = [(name, value.__globals__.get(name, _ABSENT)) for name in _names(value.__code__)]
                self._variables += [(value.__globals__, name, of_name) for name, of_name in used]
                values += parts[2:]
                values += [of_name for _, of_name in used]
        return True

    def _is_by_value(self, module: str) -> bool:
        """Whether objects defined in this module are pickled by value."""
        return module == "__main__" or any(module == name or module.startswith(f"{name}.") for name in self._by_value)

    def _is_by_reference(self, value: Any) -> bool:
        """Whether its pickle is a name in a module. Then that name is a dependency."""
        if type(value) not in (FunctionType, BuiltinFunctionType) and not issubclass(type(value), type):
            return False
        module, name = value.__module__, value.__qualname__
        if not isinstance(module, str) or self._is_by_value(module):
            return False
        names = getattr(sys.modules.get(module), "__dict__", {})
        first, *others = name.split(".")
        root = found = names.get(first)
        for other in others:
            found = getattr(found, other, None)
        if found is not value:
            return False
        self._variables.append((names, first, root))
        return True


def _parts(function: Any) -> list[Any]:
    """The parts of a function: code, variables of its module, defaults, captured variables. Another callable is its only part."""
    if type(function) is not FunctionType:
        return [function]
    parts = [function.__code__, function.__globals__, bool(function.__dict__)]
    if function.__defaults__:
        parts += function.__defaults__
    if function.__kwdefaults__:
        parts += [*function.__kwdefaults__, *function.__kwdefaults__.values()]
    if function.__closure__:
        parts += map(_content, function.__closure__)
    return parts


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _ABSENT


def _names(code: CodeType) -> set[str]:
    """Names of globals that the code and its inner functions may look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
