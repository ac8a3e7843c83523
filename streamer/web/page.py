"""The files of the page, read once, with the headers they are served with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType

TRUTH_MARK = b"<!-- truth -->"
_TRUTH_FRAGMENT = "truth.html"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is served."""

    body: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class Page:
    """The page and the files it loads, by name."""

    html: Asset
    assets: Mapping[str, Asset]


def page(with_truth: bool) -> Page:
    """The page of a real stream, or of a simulated one with its extra section."""
    found = {
        file.name: file.read_bytes()
        for file in (files("streamer.web") / "static").iterdir()
        if file.name != "index.html" and (with_truth or not file.name.startswith("truth."))
    }
    html = (files("streamer.web") / "static" / "index.html").read_bytes()
    html = html.replace(TRUTH_MARK, found.pop(_TRUTH_FRAGMENT, b""))
    assets = {name: _asset(name, body) for name, body in found.items()}
    return Page(_asset("index.html", html), MappingProxyType(assets))


def _asset(name: str, body: bytes) -> Asset:
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    return Asset(body, _TYPES[PurePath(name).suffix], etag)
