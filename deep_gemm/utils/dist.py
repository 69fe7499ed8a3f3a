"""Small helpers for programs of one process per device."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from .ue8m0 import flat

__all__ = ["dist_print", "init_dist", "uneven_all_gather"]

_local_rank: int | None = None


def init_dist(local_rank: int, num_local_ranks: int) -> tuple[int, int, dist.ProcessGroup]:
    """Join the default process group and take one device.

    Environment: ``MASTER_ADDR`` (first 127.0.0.1), ``MASTER_PORT`` (first 8361), and, counting *nodes* and not
    processes, ``WORLD_SIZE`` (first 1) and ``RANK`` (first 0).

    Args:
        local_rank: this process on its node, 0 … ``num_local_ranks`` - 1.
        num_local_ranks: processes on each node.

    Returns:
        ``(rank, size, group)``: this process's rank among all, their number, and a group of all of them. With
        a GPU the backend is NCCL, device ``local_rank`` becomes the current one and CUDA PyTorch's default
        device; without one the backend is Gloo.
    """
    global _local_rank
    num_nodes = int(os.environ.get("WORLD_SIZE", "1"))
    node_rank = int(os.environ.get("RANK", "0"))
    address = os.environ.get("MASTER_ADDR", "127.0.0.1")
    port = int(os.environ.get("MASTER_PORT", "8361"))
    has_cuda = torch.cuda.is_available()
    if has_cuda:
        torch.cuda.set_device(local_rank)
        torch.set_default_device("cuda")
    dist.init_process_group(
        backend="nccl" if has_cuda else "gloo",
        init_method=f"tcp://{address}:{port}",
        world_size=num_nodes * num_local_ranks,
        rank=node_rank * num_local_ranks + local_rank,
        **({"device_id": torch.device("cuda", local_rank)} if has_cuda else {}),
    )
    _local_rank = local_rank
    size = dist.get_world_size()
    return dist.get_rank(), size, dist.new_group(list(range(size)))


def uneven_all_gather(
    tensor: torch.Tensor, dim: int = 0, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """Concatenate every rank's tensor along ``dim``, in rank order.

    Args:
        tensor: any dtype; the extents may differ between ranks along ``dim`` alone.
        dim: the dimension to concatenate along.
        group: the ranks that take part; None for all.

    Returns:
        A new tensor, contiguous, the same on every rank. Waits for the ranks' extents.
    """
    rows = tensor.detach().movedim(dim, 0)
    extent = torch.tensor([rows.shape[0]], dtype=torch.int64, device=tensor.device)
    extents = [torch.empty_like(extent) for _ in range(dist.get_world_size(group))]
    dist.all_gather(extents, extent, group=group)
    counts = [int(count) for count in extents]

    # Bytes, because not every backend carries every dtype; padded, because all_gather wants equal extents.
    row_shape = rows.shape[1:]
    row_bytes = row_shape.numel() * rows.element_size()
    padded = torch.zeros((max(counts), row_bytes), dtype=torch.uint8, device=tensor.device)
    padded[: rows.shape[0]] = flat(rows).view(torch.uint8).view(rows.shape[0], row_bytes)
    gathered = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(gathered, padded, group=group)
    joined = flat(torch.cat([part[:count] for part, count in zip(gathered, counts)]))
    return joined.view(tensor.dtype).view(sum(counts), *row_shape).movedim(0, dim).contiguous()


def dist_print(s: object = "", once_in_node: bool = False) -> None:
    """Print at once, with this process's rank in front.

    Args:
        s: what to print.
        once_in_node: only the process with local rank 0 prints (the one given to `init_dist`).
    """
    if once_in_node and _local_rank not in (None, 0):
        return
    prefix = f"[rank {dist.get_rank()}] " if dist.is_available() and dist.is_initialized() else ""
    print(f"{prefix}{s}", flush=True)
