#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small convolutional network on handwritten digits: digits.py [--device enpu|cpu] [--epochs N] [--result FILE].

Same seeds, same order of the pictures: two devices differ by rounding only. With torch.distributed's variables in the environment
(torchrun sets them) every process takes its share of each batch and gradients are averaged, so that the result is that of one process.
"""
import argparse
import datetime
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from torch import nn  # noqa: E402

BATCH = 64


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.LayerNorm(64), nn.SiLU(), nn.Linear(64, 10))


def pictures():
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    images, labels = images[order], labels[order]
    return (images[:1536], labels[:1536]), (images[1536:], labels[1536:])


def sum_over_processes(tensor):
    try:
        distributed.all_reduce(tensor)
    except RuntimeError as error:
        # Not sys.exit: the group's threads may still wait for the one that is gone.
        print(f"another process of the training is gone or late: {str(error).splitlines()[0]}", flush=True)
        os._exit(3)


def average_gradients(model, world):
    """Sums over all processes by the host; gradients come and go in one piece."""
    flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).cpu()
    sum_over_processes(flat)
    flat = (flat / world).to(next(model.parameters()).device)
    for p, part in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.grad.copy_(part.view_as(p))


def train_epoch(model, optimizer, data, rank, world, epoch):
    images, labels = data
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(100 + epoch)).to(labels.device)
    total = torch.zeros((), device=labels.device)
    for start in range(0, len(labels), BATCH):
        mine = order[start:start + BATCH].chunk(world)[rank]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[mine]), labels[mine])
        loss.backward()
        if world > 1:
            average_gradients(model, world)
        optimizer.step()
        total += loss.detach()
    total = total.cpu() / (len(labels) / BATCH)
    if world > 1:
        sum_over_processes(total)
    return total.item() / world


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        right = (model(data[0]).argmax(1) == data[1]).float().mean().item()
    model.train()
    return right


def join():
    """(rank, world); several processes are joined by TCP when the environment says so."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return 0, 1
    deadline = datetime.timedelta(seconds=int(os.environ.get("ENPU_DISTRIBUTED_TIMEOUT", "60")))
    distributed.init_process_group("gloo", timeout=deadline)
    return distributed.get_rank(), distributed.get_world_size()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="enpu", choices=("enpu", "cpu"))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--result", type=pathlib.Path)
    parser.add_argument("--norm", action=argparse.BooleanOptionalAction, default=True, help="batch normalisation, whose statistics are those of one process")
    args = parser.parse_args()
    if args.device == "enpu":
        import torch_enpu  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
    rank, world = join()
    torch.manual_seed(3)
    model = network()
    if not args.norm:
        model[1] = nn.Identity()
    model.to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training, held_back = (tuple(t.to(args.device) for t in part) for part in pictures())
    start, losses = time.monotonic(), []
    for epoch in range(args.epochs):
        losses.append(train_epoch(model, optimizer, training, rank, world, epoch))
        if rank == 0:
            print(f"epoch {epoch}: loss {losses[-1]:.6f}, {time.monotonic() - start:.1f} s", flush=True)
    right = accuracy(model, held_back)
    report = {"device": args.device, "losses": losses, "accuracy": right, "world": world}
    if args.device == "enpu":
        report["counters"] = {name: count for name, count in torch.enpu.counters().items() if count}
        report["fallbacks"] = torch.enpu.fallbacks()
    if rank == 0:
        print(f"accuracy on {len(held_back[1])} digits not seen in training: {right:.4f}")
        if args.result:
            args.result.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if world > 1:
        distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
