"""`DG_VALIDATE=1`: the contents of layouts and scaling factors, looked at on their device before a grouped GEMM runs.

A kernel never leaves its buffers, whatever a layout says, but it cannot say what is wrong with one. This mode can: each rule
names the row or group, and the value. The host waits for the device in every such call, so it is for finding a fault, not for
production; calls under CUDA graph capture, where nobody may wait, are passed with a warning. The binding asks the setting
(`csrc/bindings/validation.h`), so eager calls and operators of compiled graphs are looked at alike.

What the contract would refuse anyway is left to it: a rule that does not fit the arguments' shapes is passed over.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .errors import DeepGemmError

__all__ = ["check_call"]


def first_of(bad: Tensor) -> Optional[Tuple[int, ...]]:
    """The index of the first true element, or None. Waits for the device."""
    if bad.numel() == 0 or not bool(bad.any()):
        return None
    return tuple(bad.nonzero()[0].tolist())


def is_layout(layout: Any) -> bool:
    """Whether this is what the contract takes for one."""
    return isinstance(layout, Tensor) and layout.dim() == 1 and layout.dtype == torch.int32


def refuse_layout(name: str, expected: str, came: Any, where: str) -> None:
    """Raises the refusal of one entry."""
    raise DeepGemmError(f"{name}: expected {expected}, got {came} {where}; check the layout")


def check_ids(layout: Tensor, groups: int, alignment: int) -> Tensor:
    """Rules of the group of each row; returns which rows have one."""
    at = first_of((layout < -1) | (layout >= groups))
    if at is not None:
        refuse_layout("grouped_layout", f"groups from 0 to {groups - 1}, or -1", int(layout[at]), f"in row {at[0]}")
    starts = torch.arange(layout.numel(), device=layout.device) // alignment * alignment
    first = layout[starts]
    at = first_of((layout >= 0) & (layout != first))
    if at is not None:
        start, group = int(starts[at]), int(first[at])
        expected = f"one group, that of row {start}, {group}, or -1, in the {alignment} rows from there on"
        refuse_layout("grouped_layout", expected, int(layout[at]), f"in row {at[0]}")
    return layout >= 0


def check_ends(layout: Tensor, extent: int, alignment: int, unit: str) -> Tensor:
    """Rules of ends, along M or K (`unit` says which, for messages); returns which rows lie in a group, `[extent]`."""
    ends = layout.long()
    following = torch.div(ends + alignment - 1, alignment, rounding_mode="floor") * alignment
    starts = torch.cat([ends.new_zeros(1), following])[: ends.numel()]
    at = first_of((ends < 0) | (ends > starts.clamp(min=extent)) | (following < starts))
    if at is not None:
        expected = f"ends up to {extent} {unit} that leave no group before another"
        refuse_layout("grouped_layout", expected, int(ends[at]), f"for group {at[0]}, which starts at row {int(starts[at])}")
    rows = torch.arange(extent, device=layout.device)[:, None]
    return ((rows >= starts) & (rows < ends)).any(1)


def check_counts(counts: Tensor, m: int) -> Tensor:
    """Rules of `masked_m`; returns which rows are wanted, `[G, m]`."""
    at = first_of((counts < 0) | (counts > m))
    if at is not None:
        refuse_layout("masked_m", f"from 0 to {m} rows", int(counts[at]), f"for group {at[0]}")
    return torch.arange(m, device=counts.device) < counts[:, None]


def check_sizes(layout: Tensor, extent: int, step: int, ks_cpu: Any) -> None:
    """Rules of each group's K."""
    at = first_of((layout < 0) | (layout % step != 0))
    if at is not None:
        refuse_layout("grouped_layout", f"sizes of 0 or more, multiples of {step}", int(layout[at]), f"for group {at[0]}")
    total = int(layout.long().sum())
    if total > extent:
        refuse_layout("grouped_layout", f"sizes that add up to no more than K, {extent}", total, f"in all, of {layout.numel()} groups")
    if isinstance(ks_cpu, (tuple, list)) and len(ks_cpu) == layout.numel():
        at = first_of(layout.cpu() != torch.tensor(list(ks_cpu)))
        if at is not None:
            refuse_layout("grouped_layout", f"the sizes of ks_cpu, {ks_cpu[at[0]]}", int(layout[at]), f"for group {at[0]}")


def bad_factors(factors: Tensor) -> Optional[Tensor]:
    """Which factors are NaN, infinite or negative; of exponents, which are NaN. None for what is no factor."""
    if factors.dtype == torch.float32:
        return ~torch.isfinite(factors) | (factors < 0)
    if factors.dtype == torch.int32:
        shifts = torch.tensor([0, 8, 16, 24], device=factors.device)
        return ((factors.unsqueeze(-1) >> shifts & 255) == 255).any(-1)
    if factors.dtype == getattr(torch, "float8_e8m0fnu", None):
        return factors.view(torch.uint8) == 255
    return None


def check_factors(factors: Tensor, name: str, letters: Sequence[str], wanted: Optional[Tensor] = None) -> None:
    """Refuses a bad factor. `letters`: what each dimension counts; `wanted`: rows that matter, of all dimensions but the last."""
    bad = bad_factors(factors)
    if bad is None or (wanted is not None and wanted.shape != bad.shape[:-1]):
        return
    at = first_of(bad if wanted is None else bad & wanted.unsqueeze(-1))
    if at is None:
        return
    packed = factors.dtype != torch.float32
    value = f"exponents {int(factors[at]) & 0xFFFFFFFF:#010x}" if factors.dtype == torch.int32 else f"{float(factors[at].float())}"
    where = ", ".join(f"{letter} {index}" for letter, index in zip(letters, at))
    expected = "exponents below 255, which is NaN" if packed else "finite factors of 0 or more"
    raise DeepGemmError(f"{name}: expected {expected}, got {value} in {where}; check what the operand was quantised from")


def _parts(operand: Any) -> Tuple[Any, Any]:
    """Data and factors of an operand; BF16 ones have none."""
    return tuple(operand) if isinstance(operand, (tuple, list)) and len(operand) == 2 else (operand, None)


def _check_b_factors(sfb: Any, letters: str) -> None:
    if isinstance(sfb, Tensor) and sfb.dim() == 3:
        inner = ("K block", "row or block of N") if letters == "nn" else ("row or block of N", "K block")
        check_factors(sfb, "sfb (scales of b)", ("group", *inner))


def check_contiguous(letters: str, arguments: Sequence[Any]) -> None:
    """Of `m_grouped_*_gemm_*_contiguous`, FP8 or BF16."""
    (a, sfa), (b, sfb), layout, alignment = _parts(arguments[0]), _parts(arguments[1]), arguments[3], arguments[-1]
    psum = bool(arguments[-4])
    if not is_layout(layout) or a.dim() != 2 or b.dim() != 3 or alignment <= 0:
        return
    if layout.numel() != (b.shape[0] if psum else a.shape[0]):
        return
    wanted = check_ends(layout, a.shape[0], alignment, "rows") if psum else check_ids(layout, b.shape[0], alignment)
    if isinstance(sfa, Tensor):
        check_factors(sfa, "sfa (scales of a)", ("row", "K block"), wanted)
    _check_b_factors(sfb, letters)


def check_masked(letters: str, arguments: Sequence[Any]) -> None:
    """Of `m_grouped_*_gemm_nt_masked`, FP8 or BF16."""
    (a, sfa), (_, sfb), counts = _parts(arguments[0]), _parts(arguments[1]), arguments[3]
    if not is_layout(counts) or a.dim() != 3 or counts.numel() != a.shape[0]:
        return
    wanted = check_counts(counts, a.shape[1])
    if isinstance(sfa, Tensor):
        check_factors(sfa, "sfa (scales of a)", ("group", "row", "K block"), wanted)
    _check_b_factors(sfb, letters)


def check_k_grouped(letters: str, arguments: Sequence[Any]) -> None:
    """Of `k_grouped_*_gemm_*_contiguous`, FP8 or BF16."""
    (a, sfa), (_, sfb), d, ks_cpu, layout = _parts(arguments[0]), _parts(arguments[1]), *arguments[2:5]
    psum, alignment = bool(arguments[-2]), arguments[-1]
    if not is_layout(layout) or d.dim() != 3 or layout.numel() != d.shape[0] or alignment <= 0 or a.numel() == 0:
        return
    extent = a.numel() // d.shape[1]
    if psum:
        check_ends(layout, extent, alignment, "rows of K")
    else:
        check_sizes(layout, extent, 128 if letters == "nt" else alignment, ks_cpu)
    for factors, name, rows in ((sfa, "sfa (scales of a)", "row of M"), (sfb, "sfb (scales of b)", "row of N")):
        if isinstance(factors, Tensor) and factors.dim() == 2:
            check_factors(factors, name, (rows, "K block") if letters == "nt" else ("K block", rows))


_RULES: Dict[str, Callable[[str, Sequence[Any]], None]] = {
    "contiguous": check_contiguous,
    "masked": check_masked,
    "k_grouped": check_k_grouped,
}


def check_call(name: str, arguments: Sequence[Any]) -> None:
    """Looks at the contents of a call to the binding `name`, which has read its arguments.

    Args:
        name: `m_grouped_{fp8,bf16}_gemm_{nt,nn}_{contiguous,masked}` or `k_grouped_{fp8,bf16}_gemm_{nt,tn}_contiguous`.
        arguments: those of the binding, all positional.

    Raises:
        DeepGemmError: a layout or a factor is bad; nothing was written or launched. The message names the row or group and
            the value.
    """
    layout = arguments[4] if name.startswith("k_grouped") else arguments[3]
    if not isinstance(layout, Tensor) or not isinstance(_parts(arguments[0])[0], Tensor):
        return  # of another framework
    if layout.is_cuda and torch.cuda.is_current_stream_capturing():
        warnings.warn(f"DG_VALIDATE: {name} is being captured in a CUDA graph and is not validated", stacklevel=2)
        return
    kind = "k_grouped" if name.startswith("k_grouped") else name.rpartition("_")[2]
    _RULES[kind](name.split("_gemm_")[1][:2], arguments)
