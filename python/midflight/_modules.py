"""At a worker: whether the files of its modules have changed since the import."""

from __future__ import annotations

import contextlib
import os
import sys

#: Modification time and length of a file.
_Stamp = tuple[int, int]

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep


class Modules:
    """Files of the imported modules that users edit, without those of the standard library and of installed packages."""

    def __init__(self) -> None:
        self._count = 0
        #: ``None``: it is unknown which content was imported.
        self._files: dict[str, _Stamp | None] = {}

    def note(self, since: float) -> None:
        """Looks for modules that were imported after this time."""
        if len(sys.modules) == self._count:
            return
        self._count = len(sys.modules)
        for name, module in list(sys.modules.items()):
            path = _file_of(module)
            if path and path not in self._files and name.split(".")[0] not in ("__main__", "midflight") and _is_edited(path):
                stamp = _stamp(path)
                self._files[path] = stamp if stamp and stamp[0] < since * 1e9 else None

    def have_changed(self) -> bool:
        """Whether the files of some have other contents now."""
        return any(stamp is None or stamp != _stamp(path) for path, stamp in self._files.items())


def _file_of(module: object) -> str | None:
    with contextlib.suppress(Exception):  # some put other objects there
        spec = object.__getattribute__(module, "__dict__")["__spec__"]  # a lazy module stays lazy
        if spec.has_location and isinstance(spec.origin, str):
            return spec.origin
    return None


def _is_edited(path: str) -> bool:
    is_installed = f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path
    return not is_installed and not path.startswith(_STANDARD_LIBRARY)


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
