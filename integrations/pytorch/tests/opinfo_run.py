#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own operator samples (torch.testing._internal, f32) on the device against the CPU, falling back forbidden.

opinfo_run.py RESULT.json [OPERATOR…]     all operators without names; runs where PyTorch is (scripts/frameworks pytorch run)

An operator passes when all its samples give the CPU's values and, where it has them, gradients. Samples that the CPU refuses or
that give random values are left out, and counted. Lines of RESULT.json: {name: {verdict, samples, gradients, kernels, reason}}.
"""
import collections
import json
import os
import pathlib
import signal
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import torch  # noqa: E402
import torch_enpu  # noqa: E402,F401
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_map  # noqa: E402

DEADLINE = 240  # seconds an operator
TOLERANCE = 2e-5  # relative and absolute
# Products of several matrices of numbers up to 9: rounding of the sums on both sides.
WIDER = {"nn.functional.scaled_dot_product_attention": 1e-4, "cov": 1e-4}
KERNELS = ("conv2d_fwd conv_transpose2d_fwd matmul_fwd pool2d_fwd unary binary select softmax_fwd norm_fwd reduce arg_reduce move pad gather "
           "resize cast").split()
# What these give is undefined or random by design.
UNDEFINED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"}


def to_device(tensor):
    """The same numbers in the same layout, on the device."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    plain = tensor.detach()
    storage = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    moved = storage.to("enpu").as_strided(plain.shape, plain.stride(), plain.storage_offset())
    return moved.requires_grad_(tensor.requires_grad)


def on_device(sample):
    def move(value):
        if isinstance(value, torch.Tensor):
            return to_device(value)
        if isinstance(value, (str, torch.device)) and str(value) == "cpu":
            return torch.device("enpu")
        return value
    return tree_map(move, (sample.input, sample.args, sample.kwargs))


def call(op, sample, arguments):
    first, args, kwargs = arguments
    return sample.output_process_fn_grad(op(first, *args, **kwargs))


def tensors(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def gradients(result, arguments):
    """Gradients of all inputs that want one, for fixed cotangents."""
    outputs = [t for t in tensors(result) if t.requires_grad]
    inputs = [t for t in tensors(arguments) if t.requires_grad]
    if not outputs or not inputs:
        return None
    generator = torch.Generator().manual_seed(7)
    cotangents = [torch.randn(t.shape, generator=generator).to(t.device) for t in outputs]
    return torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)


def host(tree):
    return tree_map(lambda v: v.detach().cpu() if isinstance(v, torch.Tensor) else v, tree)


def compare(op, ours, theirs, what):
    if ours is None and theirs is None:
        return
    ours, theirs = host(ours), host(theirs)
    tolerance = WIDER.get(op.name, TOLERANCE)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False,
                               msg=lambda text: f"{what}: {' '.join(text.split())[:300]}")


def run_on_cpu(op, sample):
    """(result, gradients), or None when the sample has no fixed result."""
    arguments = (sample.input, sample.args, sample.kwargs)
    first, second = (host(call(op, sample, arguments)) for _ in range(2))
    try:
        torch.testing.assert_close(first, second, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return None
    result = call(op, sample, arguments)
    return result, gradients(result, arguments)


def check_sample(op, sample, grad):
    """Whether the sample counted; raises when the device differs."""
    try:
        reference = run_on_cpu(op, sample)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        reference = None
    if reference is None:
        return False
    arguments = on_device(sample)
    result = call(op, sample, arguments)
    compare(op, result, reference[0], "values")
    if grad and reference[1] is not None:
        compare(op, gradients(result, arguments), reference[1], "gradients")
    return True


def kernels():
    counted = torch.enpu.counters()
    return sum(counted[name] for name in KERNELS)


def run_operator(op):
    row = collections.OrderedDict(verdict="passed", samples=0, left_out=0, gradients=bool(op.supports_autograd), kernels=0)
    before, start = kernels(), time.monotonic()
    number = -1
    try:
        signal.alarm(DEADLINE)
        for number, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)):
            if check_sample(op, sample, op.supports_autograd):
                row["samples"] += 1
            else:
                row["left_out"] += 1
        if row["samples"] == 0:
            row.update(verdict="no samples", reason="the CPU gives no fixed result for any sample")
    except NotImplementedError as error:
        row.update(verdict="unsupported", reason=f"sample {number}: {' '.join(str(error).split())[:300]}")
    except Exception as error:  # pylint: disable=broad-except
        row.update(verdict="failed", reason=f"sample {number}: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
    finally:
        signal.alarm(0)
    try:
        torch.enpu.synchronize()
    except RuntimeError:
        torch.enpu.recover()
    row["kernels"] = kernels() - before
    row["seconds"] = round(time.monotonic() - start, 2)
    return row


def expired(*_):
    raise TimeoutError(f"the operator took more than {DEADLINE} s")


def main():
    path, names = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.enpu.set_fallback(os.environ.get("ENPU_TORCH_FALLBACK", "forbid"))
    signal.signal(signal.SIGALRM, expired)
    rows = {}
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if (names and name not in names) or op.name in UNDEFINED or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        rows[name] = run_operator(op)
        print(f"{name:50} {rows[name]['verdict']:12} {rows[name]['samples']:4} {rows[name].get('reason', '')[:160]}", flush=True)
    table = {"operators": rows, "device": {name: count for name, count in torch.enpu.counters().items() if count},
             "fallbacks": torch.enpu.fallbacks()}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
