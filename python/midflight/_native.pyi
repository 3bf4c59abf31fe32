from collections.abc import Callable
from typing import Any, final

__all__ = ["Blob", "Buffer", "Calls", "Client"]

_Settle = Callable[[tuple[Any, ...], int, Any], None]


@final
class Blob: ...

@final
class Buffer:
    def __len__(self) -> int: ...

@final
class Calls:
    def __new__(
        cls,
        client: Client,
        blobs: list[Blob],
        *,
        python: tuple[int, int],
        environment: int,
        priority: int,
        resources: int,
        timeout: float | None,
        attempts: int,
        retries: int,
    ) -> Calls: ...
    def submit(self, waiter: object, pickle: bytes) -> int: ...
    def set_size(self, size: int) -> None: ...
    def submit_all(
        self,
        waiter: object,
        calls: list[bytes | tuple[bytes, list[memoryview]]],
        blobs: list[Blob],
        ran: int = 0,
        gives_back: bool = False,
        again: bool = False,
    ) -> int: ...
    def argument(self, calls: list[bytes | tuple[bytes, list[memoryview]]], blobs: list[Blob]) -> bytes: ...

@final
class Client:
    def __new__(
        cls,
        switches: list[str],
        *,
        bind: str | None,
        max_open: int,
        value_max: int,
        blob_max: int,
        timeout: float,
    ) -> Client: ...
    def share(self, pieces: list[bytes | memoryview]) -> Blob: ...
    @staticmethod
    def resources(list: str, names: dict[str, int]) -> int: ...
    def check(self) -> None: ...
    def settled(self) -> int: ...
    def wait(self, settle: _Settle, settled: int, timeout: float) -> bool: ...
    def wait_always(self, settle: _Settle) -> bool: ...
    def cancel(self, token: int) -> None: ...
    def open(self) -> int: ...
    def addresses(self) -> tuple[str, str]: ...
    def close(self, settle: _Settle) -> bool: ...
