"""Decoding of image files, by Pillow where it is installed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput, UnsupportedOp
from rooftile.host.registry import body

Array = npt.NDArray[Any]
MAX_PIXELS = 1 << 28
"""Larger images are refused before they are decoded."""
_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@body("ImageDecoder", why="it decodes image files")
def image_decoder(encoded: Array, pixel_format: str = "RGB") -> Array:
    """The bytes of a file as pixels: u8 [height, width, channels]."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedOp(
            "decoding images needs Pillow; install rooftile with its extra: "
            "pip install 'rooftile[image]'"
        ) from error
    if pixel_format not in _MODES:
        raise InvalidInput(f"pixel_format {pixel_format!r} is not one of {', '.join(_MODES)}")
    try:
        with Image.open(io.BytesIO(encoded.tobytes())) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InvalidInput(f"an image of {image.width} x {image.height} is too large")
            pixels = np.array(image.convert(_MODES[pixel_format]))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InvalidInput(f"the image cannot be decoded: {error}") from error
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels[..., ::-1] if pixel_format == "BGR" else pixels)
