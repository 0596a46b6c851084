# SPDX-License-Identifier: MIT
"""torch.enpu: what PyTorch and programs ask of the device."""
import os

import torch

_opened_in = os.getpid()


def is_available():
    """Whether the device that ENPU_DEVICE names can be opened; opens it."""
    return torch.ops.enpu.is_available()


def is_initialized():
    return torch.ops.enpu.is_opened()


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, 0, -1):
        raise ValueError(f"there is one enpu device, not index {index}")


class device:  # pylint: disable=invalid-name
    """with torch.enpu.device(0): there is one device, so that only the number is checked."""

    def __init__(self, which):
        set_device(which)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def get_device_name(device=None):
    return torch.ops.enpu.device_name()


def _is_in_bad_fork():
    return is_initialized() and os.getpid() != _opened_in


def synchronize(device=None):
    """Blocks until all that was enqueued is done; raises what failed in flight."""
    torch.accelerator.synchronize("enpu")


def recover():
    """Makes streams usable again on which work failed; what was enqueued behind it is lost."""
    torch.ops.enpu.recover()


def current_stream(device=None):
    return torch.accelerator.current_stream("enpu")


def Stream(**options):  # noqa: N802 - the name that device modules have
    return torch.Stream(device="enpu", **options)


def Event(**options):  # noqa: N802
    return torch.Event(device="enpu", **options)


# ---- random numbers: drawn on the host by the device's generator


def manual_seed(seed):
    torch.ops.enpu.manual_seed(int(seed))


def manual_seed_all(seed):
    manual_seed(seed)


def get_rng_state(device="enpu"):
    return torch.ops.enpu.get_rng_state()


def set_rng_state(state, device="enpu"):
    torch.ops.enpu.set_rng_state(state)


# ---- mixed precision


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


# ---- what ran where


def counters():
    """What the device itself counted since it was opened: kernels by name, jobs, copies, bytes."""
    return dict(torch.ops.enpu.counters())


def fallbacks():
    """Calls by operator that ran on the CPU because the NPU has no kernel."""
    return dict(torch.ops.enpu.fallbacks())


def repairs():
    """What the policy of ENPU_TORCH_ON_FAILURE did about operations that failed; empty without it."""
    return dict(torch.ops.enpu.repairs())


def reset_fallbacks():
    torch.ops.enpu.reset_fallbacks()


def set_fallback(mode):
    """'allow', 'warn' (once an operator) or 'forbid' running on the CPU what has no kernel."""
    torch.ops.enpu.set_fallback(mode)


def fallback_mode():
    return torch.ops.enpu.fallback_mode()


# ---- memory


def memory_allocated(device=None):
    return torch.accelerator.memory_allocated("enpu")


def memory_reserved(device=None):
    return torch.accelerator.memory_reserved("enpu")


def empty_cache():
    torch.accelerator.empty_cache()
