"""Pictures of pages for the documentation: as much of a page as says something, as a PNG of at most 256 colours."""

import base64
import struct
import zlib
from typing import Any

from playwright.sync_api import Page

#: Pixels of a picture's height at most.
_HIGHEST = 900
#: Where what a page shows ends, with a margin.
_END = """() => Math.ceil(24 + Math.max(...[...document.querySelectorAll("main > *, nav.side > *")]
  .map((one) => one.getBoundingClientRect().bottom)))"""
#: Makes of a picture its palette, of the colours that most pixels have, and the place in it of each pixel.
_COUNT = """async (png) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, width, height);
  const pixels = new Uint32Array(width * height);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 1) {
    pixels[at] = (data[4 * at] << 16) | (data[4 * at + 1] << 8) | data[4 * at + 2];
    counts.set(pixels[at], (counts.get(pixels[at]) || 0) + 1);
  }
  const palette = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 256).map(([colour]) => colour);
  const parts = (colour) => [16, 8, 0].map((bits) => (colour >> bits) & 255);
  const apart = (one, other) => parts(one).reduce((sum, part, at) => sum + (part - parts(other)[at]) ** 2, 0);
  const places = new Map([...counts.keys()].map((colour) => [colour, palette
    .reduce((best, other, at) => (apart(colour, other) < apart(colour, palette[best]) ? at : best), 0)]));
  const text = [];
  for (let first = 0; first < pixels.length; first += 8192) {
    text.push(String.fromCharCode(...pixels.slice(first, first + 8192).map((colour) => places.get(colour))));
  }
  return { width, height, palette, places: btoa(text.join("")) };
}"""


def take_picture(page: Page) -> bytes:
    """Return the picture of *page*, which is open at its top."""
    size = page.viewport_size
    assert size is not None
    height = min(page.evaluate(_END), _HIGHEST)
    page.set_viewport_size({"width": size["width"], "height": height})
    shot = page.screenshot()
    page.set_viewport_size(size)
    # A page of ours lets no script turn text into a picture; an empty one does.
    blank = page.context.new_page()
    counted = blank.evaluate(_COUNT, base64.b64encode(shot).decode())
    blank.close()
    return _write(counted)


def _write(counted: dict[str, Any]) -> bytes:
    """Return a PNG of the places of *counted* in its palette."""
    width = counted["width"]
    places = base64.b64decode(counted["places"])
    rows = b"".join(
        b"\0" + places[first : first + width] for first in range(0, len(places), width)
    )
    head = struct.pack(">IIBBBBB", width, counted["height"], 8, 3, 0, 0, 0)
    palette = b"".join(one.to_bytes(3, "big") for one in counted["palette"])
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", head),
            _chunk(b"PLTE", palette),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    body = kind + body
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
