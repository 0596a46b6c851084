#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The device beside its operators: copies, views, streams, events, generator, pinned memory, failures, the fallback switch.

device_test.py     runs where PyTorch is (scripts/frameworks pytorch run), on $ENPU_DEVICE
"""
import ast
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import torch  # noqa: E402
import torch_enpu  # noqa: E402,F401
from torch import nn  # noqa: E402


# Steps of a perceptron, checked against the CPU. Nothing is computed in place: that could not be done again.
PROGRAM = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parents[1] / "python")!r})
import torch, torch_enpu
def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
    x = torch.randn(32, 8).to(device)
    for _ in range(10):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        for p in model.parameters():
            p.data = p.data - 0.1 * p.grad
    return loss.item()
ours, theirs = train("enpu"), train("cpu")
assert abs(ours - theirs) < 1e-5 * theirs, (ours, theirs)
print("repairs", torch.enpu.repairs())
"""


# Some of each kind that docs/pytorch.md names.
WITHOUT_KERNEL = {
    "sort": lambda x: x.sort(dim=0).values, "topk": lambda x: x.topk(2, dim=1).indices, "nonzero": lambda x: (x > 1).nonzero(),
    "mask": lambda x: x[x > 1], "unique": lambda x: (x * 2).to(torch.int32).unique(), "solve": lambda x: torch.linalg.solve(x, x[0]),
    "cholesky": torch.linalg.cholesky, "fft": torch.fft.rfft, "median": lambda x: x.median()}


class DeviceTest(unittest.TestCase):
    def setUp(self):
        torch.enpu.set_fallback("forbid")
        torch.enpu.synchronize()
        self.addCleanup(torch.enpu.set_fallback, "forbid")

    def same(self, ours, theirs, **tolerance):
        torch.testing.assert_close(ours.cpu(), theirs, **tolerance)

    def test_copies_keep_layout_and_numbers(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool,
                      torch.complex64):
            host = torch.randn(5, 7, 3).mul(9).to(dtype)
            for layout in (host, host.transpose(0, 2), host[::2, :, 1:]):
                there = layout.to("enpu")
                self.assertTrue(torch.equal(there.cpu(), layout), dtype)
                self.assertTrue(torch.equal(there.transpose(0, 1).contiguous().cpu(), layout.transpose(0, 1)), dtype)

    def test_copies_convert(self):
        host = torch.tensor([-1.5, 0.25, 300.0])
        for dtype in (torch.int32, torch.int64, torch.float16, torch.bool):
            self.same(host.to("enpu").to(dtype), host.to(dtype))
            self.same(host.to("enpu", dtype), host.to(dtype))
            self.assertTrue(torch.equal(host.to("enpu").to("cpu", dtype), host.to(dtype)))

    def test_views_share_memory(self):
        x = torch.zeros(4, 6, device="enpu")
        x[1:3, ::2].add_(1)
        x.view(-1)[23] = 7
        x.t().as_strided((2,), (6,)).fill_(-1)
        y = torch.zeros(4, 6)
        y[1:3, ::2].add_(1)
        y.view(-1)[23] = 7
        y.t().as_strided((2,), (6,)).fill_(-1)
        self.same(x, y)

    def test_overlapping_copies(self):
        x, y = torch.arange(12.0).view(3, 4).to("enpu"), torch.arange(12.0).view(3, 4)
        x[1:].copy_(x[:-1].clone())
        y[1:].copy_(y[:-1].clone())
        square = torch.arange(9.0).view(3, 3)
        ours = square.to("enpu")
        ours.copy_(ours.t())
        self.same(x, y)
        self.same(ours, square.t())

    def test_resize_keeps_what_fits(self):
        x = torch.arange(6.0).to("enpu")
        x.resize_(3, 4)
        self.same(x.view(-1)[:6], torch.arange(6.0))
        x.untyped_storage().resize_(8)
        self.assertEqual(x.untyped_storage().nbytes(), 8)

    def test_streams_and_events(self):
        first, second = torch.Stream(device="enpu"), torch.Stream(device="enpu")
        start, end = torch.Event(device="enpu", enable_timing=True), torch.Event(device="enpu", enable_timing=True)
        x = torch.ones(256, 256, device="enpu")
        torch.enpu.synchronize()
        with first:
            self.assertEqual(torch.accelerator.current_stream().stream_id, first.stream_id)
            start.record(first)
            for _ in range(20):
                x = x @ x / 256
            end.record(first)
        second.wait_event(end)
        with second:
            y = x + 1
            x.record_stream(second)
        second.synchronize()
        self.assertTrue(end.query())
        self.assertGreater(start.elapsed_time(end), 0)
        self.same(y, torch.full((256, 256), 2.0))
        self.assertEqual(torch.accelerator.current_stream().stream_id, 0)

    def test_memory_goes_back_to_the_pool(self):
        torch.enpu.synchronize()
        before = torch.enpu.memory_allocated()
        x = torch.empty(1 << 20, device="enpu")
        self.assertGreaterEqual(torch.enpu.memory_allocated() - before, 4 << 20)
        del x
        torch.enpu.synchronize()
        self.assertEqual(torch.enpu.memory_allocated(), before)

    def test_too_much_memory_is_an_error(self):
        with self.assertRaisesRegex(torch.OutOfMemoryError, "enpu: memory"):
            torch.empty(1 << 42, dtype=torch.uint8, device="enpu")
        self.same(torch.ones(2, device="enpu") + 1, torch.full((2,), 2.0))

    def test_generator(self):
        torch.manual_seed(11)
        first = torch.randn(8, device="enpu").cpu()
        state = torch.enpu.get_rng_state()
        second = torch.rand(8, device="enpu").cpu()
        torch.enpu.set_rng_state(state)
        self.same(torch.rand(8, device="enpu"), second)
        torch.manual_seed(11)
        self.same(torch.randn(8, device="enpu"), first)
        own = torch.Generator(device="enpu").manual_seed(5)
        self.same(torch.rand(3, device="enpu", generator=own), torch.rand(3, generator=torch.Generator().manual_seed(5)))

    def test_pinned_memory(self):
        host = torch.arange(1000.0).pin_memory()
        self.assertTrue(host.is_pinned())
        self.assertFalse(torch.arange(3.0).is_pinned())
        there = host.to("enpu", non_blocking=True)
        back = torch.empty(1000).pin_memory()
        back.copy_(there * 2, non_blocking=True)
        torch.enpu.synchronize()
        self.assertTrue(torch.equal(back, torch.arange(1000.0) * 2))

    def test_a_failure_in_flight_is_reported_and_can_be_left_behind(self):
        x = torch.ones(4, device="enpu")
        with self.assertRaisesRegex(RuntimeError, "gather"):
            x[torch.tensor([9], device="enpu")].cpu()
        with self.assertRaises(RuntimeError):
            (x + 1).cpu()
        torch.enpu.recover()
        self.same(x + 1, torch.full((4,), 2.0))

    def test_fallback_is_counted_or_forbidden(self):
        x = torch.tensor([3.0, 1.0, 2.0], device="enpu")
        with self.assertRaisesRegex(NotImplementedError, "aten::sort.*no kernel on the NPU"):
            x.sort()
        torch.enpu.set_fallback("allow")
        torch.enpu.reset_fallbacks()
        self.same(x.sort().values, torch.tensor([1.0, 2.0, 3.0]))
        self.assertEqual(sum(torch.enpu.fallbacks().values()), 1)
        with self.assertRaisesRegex(ValueError, "allow.*warn.*forbid"):
            torch.enpu.set_fallback("never")

    def test_what_has_no_kernel_gives_the_numbers_of_the_cpu(self):
        torch.manual_seed(3)
        x = torch.rand(6, 6)
        positive = x @ x.T + torch.eye(6)
        for name, compute in WITHOUT_KERNEL.items():
            torch.enpu.set_fallback("forbid")
            with self.assertRaisesRegex(NotImplementedError, "no kernel on the NPU", msg=name):
                compute(positive.to("enpu"))
            torch.enpu.set_fallback("allow")
            torch.enpu.reset_fallbacks()
            got, want = compute(positive.to("enpu")), compute(positive)
            self.assertGreaterEqual(sum(torch.enpu.fallbacks().values()), 1, name)
            self.same(got, want, rtol=1e-4, atol=1e-4)

    def test_shapes_and_dtypes_without_kernel_are_refused_by_name(self):
        torch.enpu.set_fallback("allow")
        x = torch.ones(6, 6, device="enpu")
        for refused, why in ((lambda: torch.nn.functional.conv3d(x.view(1, 1, 2, 3, 6), x.view(1, 1, 2, 3, 6)), "one or two axes, not 3"),
                             (lambda: x.to(torch.int32) @ x.to(torch.int32), "Int")):
            with self.assertRaisesRegex(NotImplementedError, why):
                refused()

    def test_bad_operands_are_errors(self):
        x = torch.ones(3, 4, device="enpu")
        for wrong in (lambda: x @ x, lambda: x + torch.ones(5, device="enpu"), lambda: x.view(5), lambda: torch.cat([x, x.view(4, 3)]),
                      lambda: torch.nn.functional.conv2d(x.view(1, 1, 3, 4), torch.ones(1, 2, 2, 2, device="enpu")),
                      lambda: torch.heaviside(x, x.half()), lambda: x.expand(1 << 40, 3, 4).contiguous(), lambda: x + torch.ones(3, 4)):
            with self.assertRaises(RuntimeError):
                wrong()
        self.same(x + 1, torch.full((3, 4), 2.0))

    def test_damaged_files_are_errors(self):
        file = io.BytesIO()
        torch.save(torch.nn.Linear(8, 8).state_dict(), file)
        whole = file.getvalue()
        for size in range(0, len(whole), len(whole) // 12):
            with self.assertRaises((RuntimeError, EOFError, OSError)):
                torch.load(io.BytesIO(whole[:size]), map_location="enpu")
        with self.assertRaisesRegex(RuntimeError, "size mismatch"):
            torch.nn.Linear(8, 4, device="enpu").load_state_dict(torch.load(io.BytesIO(whole), map_location="enpu"))

    def test_dtypes_that_the_device_lacks_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "dtype Double"):
            torch.ones(2, dtype=torch.float64, device="enpu") + 1

    def test_transformer_layer_trains_as_on_the_cpu(self):
        torch.manual_seed(2)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, activation="gelu")
        x, target = torch.randn(3, 10, 32), torch.randn(3, 10, 32)
        losses = {}
        for device in ("cpu", "enpu"):
            torch.manual_seed(2)
            model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, activation="gelu")
            model.load_state_dict(layer.state_dict())
            model.to(device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            losses[device] = []
            for _ in range(5):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x.to(device)), target.to(device))
                loss.backward()
                optimizer.step()
                losses[device].append(loss.item())
        torch.testing.assert_close(losses["enpu"], losses["cpu"], rtol=1e-4, atol=1e-5)
        self.assertLess(losses["enpu"][-1], losses["enpu"][0])

    def test_writing_by_an_index_out_of_range_is_an_error(self):
        for write in (lambda x, i: x.index_add(0, i, torch.ones(1, 3, device="enpu")), lambda x, i: x.index_fill(0, i, 1.0),
                      lambda x, i: x.index_put((i,), torch.ones(1, 3, device="enpu")), lambda x, i: x.scatter(0, i.view(1, 1), 1.0)):
            x = torch.zeros(4, 3, device="enpu")
            self.same(write(x, torch.tensor([3], device="enpu"))[3, 0], torch.tensor(1.0))
            with self.assertRaisesRegex(RuntimeError, "gather"):
                write(x, torch.tensor([4], device="enpu")).cpu()
            torch.enpu.recover()

    def test_autocast(self):
        layer, x = nn.Linear(8, 4).to("enpu"), torch.randn(3, 8)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("enpu", dtype=dtype):
                y = layer(x.to("enpu"))
                loss = nn.functional.mse_loss(y, torch.zeros(3, 4, device="enpu"))
            self.assertEqual((y.dtype, loss.dtype), (dtype, torch.float32))
            layer.zero_grad()
            loss.backward()
            self.same(layer.weight.grad, self.gradient_on_the_cpu(layer, x), rtol=2e-2, atol=2e-2)

    @staticmethod
    def gradient_on_the_cpu(layer, x):
        weight = layer.weight.detach().cpu().requires_grad_()
        nn.functional.linear(x, weight, layer.bias.detach().cpu()).square().mean().backward()
        return weight.grad

    def in_a_process(self, program, **environment):
        environment = dict(os.environ, **environment)
        return subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300, check=False)

    def test_a_failing_device_ends_the_program_with_the_reason(self):
        for fault, reason in (("lost:after=30", "device-lost"), ("submit:after=30", "unavailable")):
            done = self.in_a_process(PROGRAM, ENPU_HAL_LAYERS="fault", ENPU_HAL_FAULTS=fault)
            self.assertEqual(done.returncode, 1, done.stdout[-2000:])
            self.assertRegex(done.stdout.splitlines()[-1], f"RuntimeError: enpu: .*injected.*{reason}")
            self.assertIn(reason, done.stdout)

    def test_with_the_policy_failed_operations_are_repaired_or_run_on_the_cpu(self):
        for count in (1, 2):  # two failures in a row send the operation to the cpu
            done = self.in_a_process(PROGRAM, ENPU_TORCH_ON_FAILURE="cpu", ENPU_HAL_LAYERS="fault",
                                     ENPU_HAL_FAULTS=f"wait:after=10,count={count}")
            self.assertEqual(done.returncode, 0, done.stdout[-2000:])
            repairs = ast.literal_eval(done.stdout.split("repairs ")[-1])
            self.assertEqual((repairs["failures"], repairs["refused"]), (count, 0), repairs)
            self.assertGreaterEqual(repairs["repaired"] + repairs["fallback_ops"], 1, repairs)

    def test_pytorch_finds_the_package_by_its_entry_point(self):
        package = pathlib.Path(__file__).resolve().parents[1] / "python"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(package, folder, dirs_exist_ok=True)
            subprocess.run([sys.executable, "-c", "from setuptools import setup; setup()", "-q", "egg_info"], cwd=folder, check=True, timeout=120)
            library = str(torch_enpu._library())
            done = self.in_a_process("import torch; print(torch.ones(3, device='enpu').sum().item())", PYTHONPATH=folder,
                                     ENPU_TORCH_LIBRARY=library)
        self.assertEqual(done.stdout.splitlines()[-1:], ["3.0"], done.stdout)

    def test_saving_and_loading(self):
        file = io.BytesIO()
        torch.save({"x": torch.arange(5.0).to("enpu")}, file)
        file.seek(0)
        self.same(torch.load(file, map_location="enpu")["x"], torch.arange(5.0))

    def test_the_device_itself_counts(self):
        before = torch.enpu.counters()
        torch.ones(8, 8, device="enpu").mm(torch.ones(8, 8, device="enpu")).cpu()
        after = torch.enpu.counters()
        self.assertEqual(after["from_device"], 1)
        self.assertEqual(after["matmul_fwd"] - before["matmul_fwd"], 1)
        self.assertEqual(after["jobs_failed"], before["jobs_failed"])

    def test_a_child_process_is_told(self):
        torch.ones(1, device="enpu").cpu()
        pid = os.fork()
        if pid == 0:
            try:
                torch.ones(1, device="enpu").cpu()
                os._exit(1)
            except RuntimeError:
                os._exit(0 if torch.enpu._is_in_bad_fork() else 2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
