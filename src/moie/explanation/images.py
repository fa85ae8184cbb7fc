"""Frames to files: strips and sheets for the page, stills and animations for everything else."""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from moie.explanation.scenes import Frame

QUALITIES = (82, 60, 40)  # qualities of a picture; the first that makes it small enough is taken
COLUMNS, PER_SHEET = 10, 100
"""Frames beside each other, and in all, in one picture of an episode's frames."""


@dataclass(frozen=True)
class Film:
    """Frames of one size in a few sheets, addresses that a page can show: a player can go to any
    frame at once."""

    sheets: list[str]
    n: int
    width: int
    height: int
    every: int = 1  # steps from one frame to the next


def _encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def _uri(content: bytes) -> str:
    return "data:image/webp;base64," + base64.b64encode(content).decode()


def _sheet(frames: list[Frame], columns: int, quality: int) -> bytes:
    """A picture of all frames, row by row."""
    height, width, _ = frames[0].shape
    rows = -(-len(frames) // columns)
    sheet = np.full((rows * height, columns * width, 3), 255, dtype=np.uint8)
    for i, frame in enumerate(frames):
        y, x = (i // columns) * height, (i % columns) * width
        sheet[y : y + height, x : x + width] = frame
    return _encoded(Image.fromarray(sheet), "WEBP", quality=quality, method=4)


def strip(frames: list[Frame], most: int) -> Film:
    """All frames in a row, in at most so many bytes: coarser, then smaller, where it must be."""
    height, width, _ = frames[0].shape
    for quality in QUALITIES:
        content = _sheet(frames, len(frames), quality)
        if len(content) <= most or min(width, height) < 40:
            return Film([_uri(content)], len(frames), width, height)
    return strip([frame[::2, ::2] for frame in frames], most)


def video(frames: list[Frame], every: int, most: int) -> Film:
    """All frames in sheets, in at most so many bytes: coarser, then fewer, where it must be."""
    height, width, _ = frames[0].shape
    parts = [frames[i : i + PER_SHEET] for i in range(0, len(frames), PER_SHEET)]
    for quality in QUALITIES:
        sheets = [_sheet(part, COLUMNS, quality) for part in parts]
        if sum(map(len, sheets)) <= most or len(frames) < 10:
            return Film(list(map(_uri, sheets)), len(frames), width, height, every)
    return video(frames[::2], 2 * every, most)


def still(frame: Frame) -> bytes:
    """A PNG."""
    return _encoded(Image.fromarray(frame), "PNG", optimize=True)


def animation(frames: list[Frame], seconds: float) -> bytes:
    """An animated WebP that repeats, each frame shown for some seconds."""
    first, *others = [Image.fromarray(frame) for frame in frames]
    return _encoded(
        first,
        "WEBP",
        save_all=True,
        append_images=others,
        duration=max(10, round(1000 * seconds)),
        loop=0,
        quality=QUALITIES[0],
        method=2,
    )
