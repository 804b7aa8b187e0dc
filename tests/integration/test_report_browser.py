"""A report in a real browser: it is drawn at any width, in light and dark, and runs nothing."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from mam_core.operations.report import report
from tests.console.detail_story import registry_in, two_attempts
from tests.support.clock import FakeClock
from tests.support.jobs import add

#: Debian's; it is large, so that nobody is made to install it for the short gate.
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(BROWSER is None, reason="no chromium here: `apt-get install chromium`"),
]


def browse(page: Path, folder: Path, *words: str) -> str:
    profile = folder / f"profile-{len(list(folder.iterdir()))}"
    command = [str(BROWSER), *QUIET, f"--user-data-dir={profile}", *words, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout


def colours(picture: Path) -> tuple[tuple[int, int], set[bytes]]:
    """The size of a PNG, and its colours in a sample of its lines; filters undone line by line."""
    data = picture.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) in ((8, 2), (8, 6))
    size, at, packed = 3 if kind == 2 else 4, 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    raw, stride = zlib.decompress(packed), width * size + 1
    # The first pixel of a line needs only what stands above it; that is the paper.
    first = bytearray(size)
    seen = set()
    for row in range(height):
        filtered = raw[row * stride + 1 : row * stride + 1 + size]
        plain = raw[row * stride] in (0, 1)
        half = raw[row * stride] == 3
        for part in range(size):
            above = 0 if plain else first[part] // 2 if half else first[part]
            first[part] = (filtered[part] + above) % 256
        seen.add(bytes(first[:3]))
    return (width, height), seen


@pytest.mark.parametrize(
    ("size", "more", "paper"),
    [
        ((1200, 1000), (), b"\xff\xff\xff"),
        ((500, 1400), (), b"\xff\xff\xff"),
        ((1200, 1000), ("--blink-settings=preferredColorScheme=0",), b"\x14\x17\x1b"),
    ],
)
def test_a_page_is_drawn(
    tmp_path: Path,
    clock: FakeClock,
    size: tuple[int, int],
    more: tuple[str, ...],
    paper: bytes,
) -> None:
    registry = registry_in(tmp_path, clock)
    page, drawn = tmp_path / "page.html", tmp_path / "page.png"
    report(registry, str(page), [two_attempts(registry, clock, tmp_path)])
    window = f"--window-size={size[0]},{size[1]}"
    browse(page, tmp_path, window, f"--screenshot={drawn}", *more)
    assert colours(drawn) == (size, {paper})
    assert drawn.stat().st_size > 20_000, "an empty page is a small picture"


def test_a_hostile_prompt_runs_nothing_and_calls_nobody(tmp_path: Path, clock: FakeClock) -> None:
    registry = registry_in(tmp_path, clock)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        there = f"http://127.0.0.1:{server.getsockname()[1]}"
        prompt = (
            f"</p></title><script>document.title='owned'</script><img src={there}/x onerror=x>"
            f"<style>@import url({there}/y);body{{background:url({there}/z)}}</style>"
            f'<meta http-equiv="refresh" content="0;url={there}"> &#60;b&#62;'
        )
        job_id = add(registry, prompt)
        page = tmp_path / "page.html"
        report(registry, str(page), [job_id])
        seen = browse(page, tmp_path, "--dump-dom")
        with pytest.raises(BlockingIOError):
            server.accept()
    assert f"<title>Job {job_id}</title>" in seen
    assert "<script" not in seen
    assert "&lt;script&gt;document.title='owned'" in seen
