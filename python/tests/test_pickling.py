"""What is pickled by reference, and what by value."""

from __future__ import annotations

import __main__
import pickle
import typing
import warnings
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest

from midflight import _entries, _pickling

#: Values that contain the text ``__main__`` but do not refer to it; a pickle with it was mistaken for one that does.
HARMLESS: list[Any] = [
    ["__main__"],
    {"filters": [("ignore", None, warnings.WarningMessage, "__main__", 0)]},
    (pickle.PicklingError("__main__"), len, [].append),
]


def of_main(name: str, made: Any) -> Any:
    """What a script defines."""
    made.__module__ = "__main__"
    setattr(__main__, name, made)
    return made


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


def double(x: int) -> int:
    return 2 * x


@pytest.fixture
def script() -> Iterator[dict[str, Any]]:
    """What a script defines, which its workers do not have."""
    defined = {"Point": type("Point", (), {"__init__": Point.__init__}), "double": cloudpickle.loads(cloudpickle.dumps(double))}
    defined["T"] = typing.TypeVar("T")
    yield {name: of_main(name, made) for name, made in defined.items()}
    for name in defined:
        vars(__main__).pop(name, None)


def loaded_elsewhere(pickled: _entries.Pickled, script: dict[str, Any]) -> Any:
    for name in script:
        vars(__main__).pop(name, None)
    data, buffers = (pickled, []) if isinstance(pickled, bytes) else pickled
    return pickle.loads(data, buffers=buffers)


@pytest.mark.parametrize("value", HARMLESS)
def test_the_name_of_main_alone_does_not_make_pickles_slow(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudpickle, "dumps", None)
    for _ in range(2):  # the first finds the name, the second looks for it at once
        assert _pickling.dumps(value) == pickle.dumps(value, 5)
    assert _pickling.dumps(["other"]) == _pickling.dumps(["other"]) == pickle.dumps(["other"], 5)


@pytest.mark.parametrize("before", [["other"], ["__main__"]])
@pytest.mark.parametrize("what", ["Point", "double", "T"])
def test_what_a_script_defines_goes_by_value(what: str, before: Any, script: dict[str, Any]) -> None:
    _pickling.dumps(before)
    pickled = _pickling.dumps([1, {"within": script[what]}, "__main__"])
    assert loaded_elsewhere(pickled, script)[1]["within"].__name__ == what


def test_an_instance_of_a_class_of_a_script_goes_by_value(script: dict[str, Any]) -> None:
    pickled = _pickling.dumps({"key": (script["Point"](7), pickle.PickleBuffer(bytearray(8192)))})
    assert isinstance(pickled, tuple) and len(pickled[1]) == 1, "the large buffer is kept once, though pickle was tried before"
    found = loaded_elsewhere(pickled, script)["key"]
    assert found[0].x == 7 and len(found[1]) == 8192


def test_a_large_buffer_beside_the_name_of_main_is_kept_once() -> None:
    _pickling.dumps(["other"])
    pickled = _pickling.dumps(["__main__", pickle.PickleBuffer(bytearray(8192))])
    assert isinstance(pickled, tuple) and [buffer.nbytes for buffer in pickled[1]] == [8192]
