# SPDX-License-Identifier: MIT
"""The NPU as a device of PyTorch: import torch_enpu (or let PyTorch find it by its entry point), then torch.device("enpu")."""
import os
import pathlib

import torch

from . import device as _module


def _library():
    given = os.environ.get("ENPU_TORCH_LIBRARY")
    if given:
        return pathlib.Path(given)
    here = pathlib.Path(__file__).resolve()
    for folder in (here.parent, *(parent / "build/lib" for parent in here.parents), pathlib.Path("/usr/lib/enpu")):
        if (folder / "libenpu-pytorch.so").exists():
            return folder / "libenpu-pytorch.so"
    raise ImportError("libenpu-pytorch.so was not found; ENPU_TORCH_LIBRARY names it")


def _load():
    built_for = "2.14."
    if not torch.__version__.startswith(built_for):
        raise ImportError(f"libenpu-pytorch.so is built for PyTorch {built_for}x, this is {torch.__version__}")
    torch.ops.load_library(str(_library()))
    torch.utils.rename_privateuse1_backend("enpu")
    torch._register_device_module("enpu", _module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


_load()


def autoload():
    """What PyTorch's entry point group torch.backends calls; importing has done the work."""
