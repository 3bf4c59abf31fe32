"""The digest of what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from midflight import _environment


def install(where: Path, folder: str, metadata: bytes) -> None:
    (where / folder).mkdir(parents=True)
    (where / folder / "METADATA").write_bytes(metadata)


def installed(monkeypatch: pytest.MonkeyPatch, *places: Path) -> set[str]:
    monkeypatch.setattr("sys.path", [str(place) for place in places])
    return _environment._installed()


def test_names_are_written_in_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "a", "Foo_Bar-1.0.dist-info", b"Metadata-Version: 2.1\nName: Foo_Bar\nVersion: 1.0\n")
    install(tmp_path / "b", "foo.bar-1.0.dist-info", b"Metadata-Version: 2.1\nName: foo.bar\nVersion: 1.0\n")
    assert installed(monkeypatch, tmp_path / "a") == installed(monkeypatch, tmp_path / "b") == {"foo-bar==1.0"}


def test_a_distribution_that_cannot_be_read_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good-1.0.dist-info", b"Metadata-Version: 2.1\nName: good\nVersion: 1.0\n")
    install(tmp_path, "bad-1.0.dist-info", b"Metadata-Version: 2.1\nName: b\xff\xfed\nVersion: 1.0\n")
    install(tmp_path, "empty-1.0.dist-info", b"")
    assert installed(monkeypatch, tmp_path) == {"good==1.0"}


def test_the_working_directory_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "here", "mine-1.0.dist-info", b"Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    monkeypatch.chdir(tmp_path / "here")
    assert installed(monkeypatch, tmp_path / "here", Path("")) == set()
    monkeypatch.chdir(tmp_path)
    assert installed(monkeypatch, tmp_path / "here") == {"mine==1.0"}
