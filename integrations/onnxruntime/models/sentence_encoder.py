# SPDX-License-Identifier: MIT
"""The sentence encoder all-MiniLM-L6-v2 as an ONNX model, from the weights in its package; and its tokenizer."""
import io
import json
import re
import struct
import unicodedata
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, WIDTH, LAYERS = 12, 384, 6


def read_weights(archive):
    with zipfile.ZipFile(archive) as package:
        raw = package.read("model.safetensors")
        vocabulary = json.loads(package.read("tokenizer.json"))["model"]["vocab"]
    size, = struct.unpack("<Q", raw[:8])
    weights = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        weights[name] = np.frombuffer(raw[8 + size + begin:8 + size + end], np.float32).reshape(entry["shape"])
    return weights, vocabulary


def tokens(text, vocabulary, limit=128):
    """Word pieces, with the marks at both ends."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", plain):
        start, pieces = 0, []
        while start < len(word):
            end = len(word)
            while end > start and ("##" if start else "") + word[start:end] not in vocabulary:
                end -= 1
            if end == start:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(vocabulary[("##" if start else "") + word[start:end]])
            start = end
        ids += pieces
    return ids[:limit - 1] + [vocabulary["[SEP]"]]


class Graph:
    """Nodes and constants of a model that is being written."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array, name):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, op, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name


def dense(g, x, weights, prefix, name):
    w = g.constant(weights[f"{prefix}.weight"].T, f"{name}.w")
    return g.add("Add", g.add("MatMul", x, w, name=f"{name}.mm"), g.constant(weights[f"{prefix}.bias"], f"{name}.b"), name=name)


def norm(g, x, weights, prefix, name):
    return g.add("LayerNormalization", x, g.constant(weights[f"{prefix}.weight"], f"{name}.s"),
                 g.constant(weights[f"{prefix}.bias"], f"{name}.o"), name=name, axis=-1, epsilon=1e-12)


def attention(g, x, bias, weights, prefix, name):
    def heads(part, order):
        split = g.add("Reshape", dense(g, x, weights, f"{prefix}.self.{part}", f"{name}.{part}"), "split", name=f"{name}.{part}.r")
        return g.add("Transpose", split, name=f"{name}.{part}.t", perm=order)
    scores = g.add("MatMul", heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), name=f"{name}.qk")
    scaled = g.add("Add", g.add("Mul", scores, "scale", name=f"{name}.scaled"), bias, name=f"{name}.biased")
    mixed = g.add("MatMul", g.add("Softmax", scaled, name=f"{name}.p", axis=-1), heads("value", [0, 2, 1, 3]), name=f"{name}.pv")
    joined = g.add("Reshape", g.add("Transpose", mixed, name=f"{name}.back", perm=[0, 2, 1, 3]), "join", name=f"{name}.joined")
    return dense(g, joined, weights, f"{prefix}.output.dense", f"{name}.out")


def gelu(g, x, name):
    inner = g.add("Add", g.add("Erf", g.add("Div", x, "root2", name=f"{name}.d"), name=f"{name}.e"), "one", name=f"{name}.a")
    return g.add("Mul", g.add("Mul", x, inner, name=f"{name}.m"), "half", name=name)


def layer(g, x, bias, weights, index):
    prefix, name = f"encoder.layer.{index}", f"l{index}"
    attended = g.add("Add", attention(g, x, bias, weights, f"{prefix}.attention", f"{name}.att"), x, name=f"{name}.add1")
    x = norm(g, attended, weights, f"{prefix}.attention.output.LayerNorm", f"{name}.n1")
    inner = gelu(g, dense(g, x, weights, f"{prefix}.intermediate.dense", f"{name}.ff1"), f"{name}.gelu")
    grown = g.add("Add", dense(g, inner, weights, f"{prefix}.output.dense", f"{name}.ff2"), x, name=f"{name}.add2")
    return norm(g, grown, weights, f"{prefix}.output.LayerNorm", f"{name}.n2")


def build(archive):
    """(bytes of the ONNX model, vocabulary). Inputs ids and mask [B,S], output: one vector a sentence, of length 1."""
    weights, vocabulary = read_weights(archive)
    g = Graph()
    for name, value in (("scale", 1 / np.sqrt(WIDTH / HEADS)), ("root2", np.sqrt(2)), ("one", 1), ("half", 0.5), ("blocked", -10000)):
        g.constant(np.float32(value), name)
    g.constant(np.array([0, 0, HEADS, WIDTH // HEADS]), "split")
    g.constant(np.array([0, 0, WIDTH]), "join")
    g.constant(np.array([1, 2]), "axes12")
    g.constant(np.array([2]), "axes2")
    words = g.add("Gather", g.constant(weights["embeddings.word_embeddings.weight"], "words"), "ids", name="word")
    length = g.add("Slice", g.add("Shape", "ids", name="dims"), g.constant(np.array([1]), "from"), g.constant(np.array([2]), "to"),
                   name="length")
    places = g.constant(weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0], "places")
    place = g.add("Slice", places, g.constant(np.array([0]), "zero"), length, name="place")
    x = norm(g, g.add("Add", words, place, name="sum"), weights, "embeddings.LayerNorm", "n0")
    kept = g.add("Cast", "mask", name="kept", to=TensorProto.FLOAT)
    wide = g.add("Unsqueeze", g.add("Sub", "one", kept, name="gone"), "axes12", name="wide")
    bias = g.add("Mul", wide, "blocked", name="bias")
    for index in range(LAYERS):
        x = layer(g, x, bias, weights, index)
    column = g.add("Unsqueeze", kept, "axes2", name="column")
    total = g.add("ReduceSum", g.add("Mul", x, column, name="seen"), g.constant(np.array([1]), "axes1"), name="total", keepdims=0)
    length2 = g.add("ReduceL2", total, name="norm", axes=[1], keepdims=1)
    g.add("Div", total, length2, name="sentence")
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("ids", "mask")]
    graph = helper.make_graph(g.nodes, "all-MiniLM-L6-v2", inputs, [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["batch", WIDTH])],
                              g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    out = io.BytesIO()
    onnx.save(model, out)
    return out.getvalue(), vocabulary
