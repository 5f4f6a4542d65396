"""ImageDecoder: the formats that the standard names, and what is refused."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import rooftile as rt
from rooftile.host import images
from rooftile.host.images import image_decoder

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)


def encoded(form: str, pixels: Any = PIXELS, **options: Any) -> Any:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, **options)
    return np.frombuffer(stream.getvalue(), np.uint8)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_formats_that_lose_nothing(form: str) -> None:
    options = {"lossless": True} if form == "WEBP" else {}
    found = image_decoder(encoded(form, **options))
    np.testing.assert_array_equal(found, PIXELS)
    assert found.dtype == np.uint8


def test_orders_of_channels() -> None:
    np.testing.assert_array_equal(image_decoder(encoded("PNG"), "BGR"), PIXELS[..., ::-1])
    assert image_decoder(encoded("PNG"), "Grayscale").shape == (5, 7, 1)
    grey = np.full((2, 3), 9, np.uint8)
    np.testing.assert_array_equal(image_decoder(encoded("PNG", grey)), np.full((2, 3, 3), 9))


@pytest.mark.parametrize(
    ("content", "form", "message"),
    [
        (np.zeros(100, np.uint8), "RGB", "the image cannot be decoded"),
        (encoded("PNG")[:60], "RGB", "the image cannot be decoded"),
        (encoded("PNG"), "CMYK", "pixel_format 'CMYK' is not one of RGB, BGR, Grayscale"),
    ],
)
def test_refused(content: Any, form: str, message: str) -> None:
    with pytest.raises(rt.InvalidInput, match=message):
        image_decoder(content, form)


def test_images_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 34)
    with pytest.raises(rt.InvalidInput, match="an image of 7 x 5 is too large"):
        image_decoder(encoded("PNG"))


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded("PNG")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(rt.UnsupportedOp, match=r"pip install 'rooftile\[image\]'"):
        image_decoder(content)
