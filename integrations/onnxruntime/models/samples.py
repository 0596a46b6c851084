# SPDX-License-Identifier: MIT
"""Real inputs from the packages' own pictures and files, and sounds that are made."""
import pathlib

import numpy as np
from PIL import Image

RATE = 16000


def pictures(wheels):
    """RGB pictures of scikit-image and scikit-learn: {name: array}."""
    names = sorted(pathlib.Path(wheels, "scikit-image/skimage/data").glob("*.png")) + \
        sorted(pathlib.Path(wheels, "scikit-image/skimage/data").glob("*.jpg")) + \
        sorted(pathlib.Path(wheels, "scikit-learn/sklearn/datasets/images").glob("*.jpg"))
    return {p.name: np.asarray(Image.open(p).convert("RGB")) for p in names}


def scaled(picture, width, height):
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.BILINEAR))


def text_lines(wheels, count):
    """Lines of text cut out of a scanned page, and of them the halves: RGB arrays."""
    page = np.asarray(Image.open(pathlib.Path(wheels, "scikit-image/skimage/data/page.png")).convert("L"))
    notes = np.asarray(Image.open(pathlib.Path(wheels, "ocrmypdf/tests/resources/typewriter.png")).convert("L"))
    lines = []
    for image in (page, notes):
        dark = image < np.median(image) - 60
        rows = dark.sum(1) > 0.02 * image.shape[1]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], rows.astype(int), [0]))))
        for top, bottom in zip(edges[::2], edges[1::2]):
            if 8 <= bottom - top <= 80:
                lines.append(image[max(top - 4, 0):bottom + 4])
    lines += [half for line in lines for half in (line[:, :line.shape[1] // 2], line[:, line.shape[1] // 2:])]
    assert len(lines) >= count, f"{len(lines)} lines of text, {count} are asked"
    return [np.repeat(line[:, :, None], 3, 2) for line in lines[:count]]


def voice(seed, seconds):
    """Vowel-like sounds (pulses through two formants) between stretches of noise."""
    rng = np.random.default_rng(seed)
    total = int(seconds * RATE)
    out = rng.normal(0, 0.002, total)
    at = int(rng.uniform(0.1, 0.3) * RATE)
    while at < total - RATE // 4:
        length = int(rng.uniform(0.15, 0.5) * RATE)
        out[at:at + length] += vowel(rng, length)[:total - at]
        at += length + int(rng.uniform(0.05, 0.4) * RATE)
    return np.clip(out, -1, 1).astype(np.float32)


def vowel(rng, length):
    pitch = rng.uniform(90, 220) * (1 + 0.05 * np.sin(np.arange(length) / RATE * 2 * np.pi * 5))
    phase = np.cumsum(pitch / RATE)
    source = np.diff(np.floor(phase), prepend=0)
    for formant, width in ((rng.uniform(300, 800), 80), (rng.uniform(900, 2400), 120), (2800, 200)):
        radius = np.exp(-np.pi * width / RATE)
        a1, a2 = 2 * radius * np.cos(2 * np.pi * formant / RATE), -radius * radius
        y = np.zeros(length + 2)
        for i in range(length):
            y[i + 2] = source[i] + a1 * y[i + 1] + a2 * y[i]
        source = y[2:]
    envelope = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / (0.02 * RATE))
    return 0.5 * source / np.abs(source).max() * envelope


def melody(seed, samples, rate):
    """Notes with overtones, some of them together."""
    rng = np.random.default_rng(seed)
    out = np.zeros(samples)
    for _ in range(8):
        start, length = rng.integers(0, samples * 3 // 4), rng.integers(rate // 8, rate // 2)
        pitch = 440 * 2 ** (rng.integers(-24, 12) / 12)
        t = np.arange(min(length, samples - start)) / rate
        tone = sum(np.sin(2 * np.pi * pitch * k * t) / k ** 2 for k in range(1, 6)) * np.exp(-3 * t)
        out[start:start + len(t)] += 0.3 * tone
    return out.astype(np.float32)
