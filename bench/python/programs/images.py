"""A pipeline of images: JPEG in, a smaller JPEG out. The pictures are synthetic."""

from __future__ import annotations

import functools
import hashlib
import io

import numpy
from PIL import Image, ImageFilter, ImageOps

from systems import System

#: Number of different pictures; there are more tasks.
PICTURES = 16


def long(system: System, tasks: int) -> object:
    """Photographs of 800 × 600 pixels: smaller, sharper, with more contrast."""
    return _digest(system.run(develop, _repeated(_pictures(800, 600), tasks)))


def short(system: System, tasks: int) -> object:
    """Icons of 64 × 64 pixels: half as large."""
    return _digest(system.run(thumbnail, _repeated(_pictures(64, 64), tasks)))


def develop(picture: bytes) -> bytes:
    image = Image.open(io.BytesIO(picture)).resize((480, 360), Image.Resampling.LANCZOS)
    image = ImageOps.autocontrast(image.filter(ImageFilter.UnsharpMask(radius=2, percent=120)), cutoff=1)
    return _encoded(image)


def thumbnail(picture: bytes) -> bytes:
    return _encoded(Image.open(io.BytesIO(picture)).resize((32, 32), Image.Resampling.BILINEAR))


def _encoded(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85)
    return out.getvalue()


@functools.cache
def _pictures(width: int, height: int) -> list[bytes]:
    """Smooth colours with some noise, so that they are as large as photographs."""
    random = numpy.random.default_rng(1)
    pictures = []
    for _ in range(PICTURES):
        coarse = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=numpy.uint8))
        smooth = numpy.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=numpy.int16)
        noisy = smooth + random.integers(-8, 9, smooth.shape)
        pictures.append(_encoded(Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))))
    return pictures


def _repeated(pictures: list[bytes], tasks: int) -> list[bytes]:
    return [pictures[number % len(pictures)] for number in range(tasks)]


def _digest(results: list[bytes]) -> object:
    return hashlib.sha256(b"".join(results)).hexdigest()[:16]
