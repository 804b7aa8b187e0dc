"""The figures of a soak as one picture: small panels over one time, drawn as plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tests.soak.storm import Sample

_WIDE, _HIGH, _GAP, _LEFT, _TOP = 900, 110, 34, 70, 60
_PANELS = (
    ("memory_mb", "memory of the console, MB"),
    ("workers_mb", "memory of a worker on average, MB"),
    ("files", "open files of the console"),
    ("processes", "processes in the folder"),
    ("answer_ms", "a registration is acknowledged after, ms"),
)


def drawn(samples: Sequence[Sample], title: str, words: str) -> str:
    """From zero up, so that what grows is seen to grow and noise is not."""
    end = max(sample.second for sample in samples)
    height = _TOP + len(_PANELS) * (_HIGH + _GAP) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE + _LEFT + 30} {height}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="17">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="44" fill="#555">{escape(words)}</text>',
    ]
    for number, (name, caption) in enumerate(_PANELS):
        top = _TOP + number * (_HIGH + _GAP) + 16
        values = [float(getattr(sample, name)) for sample in samples]
        most = max(*values, 1.0) * 1.15
        points = " ".join(
            f"{_LEFT + sample.second / end * _WIDE:.1f},{top + _HIGH * (1 - value / most):.1f}"
            for sample, value in zip(samples, values, strict=True)
        )
        parts += [
            f'<text x="{_LEFT}" y="{top - 5}">{caption}</text>',
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDE}" height="{_HIGH}" fill="#f6f6f6"/>',
            f'<text x="{_LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.0f}</text>',
            f'<text x="{_LEFT - 6}" y="{top + _HIGH}" text-anchor="end">0</text>',
            f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>',
        ]
    x, y = _LEFT + _WIDE, height - 6
    parts.append(f'<text x="{x}" y="{y}" text-anchor="end">{end / 60:.1f} minutes</text>')
    return "\n".join([*parts, "</svg>", ""])
