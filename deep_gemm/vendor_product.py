"""D = C + A @ B by the vendor's library, as PyTorch calls it. On CPU tensors: FP64 sums, rounded to D's dtype."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from . import _C


def sees_k_last(layout: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A as `[M, K]` and B as `[K, N]`, views of what `layout` takes."""
    return a.t() if layout[0] == "t" else a, b if layout[1] == "n" else b.t()


def product_of(left: Tensor, right: Tensor, dtype: torch.dtype, out: Optional[Tensor] = None) -> Tensor:
    """`left @ right` in `dtype`, sums in FP32, on the device's library; written to `out` where it is given."""
    if left.dtype == torch.float8_e4m3fn:
        one = torch.ones((), dtype=torch.float32, device=left.device)
        # PyTorch has no public FP8 product.
        return torch._scaled_mm(left, right, one, one, out_dtype=dtype, **({} if out is None else {"out": out}))
    multiply = torch.bmm if left.dim() == 3 else torch.mm
    if dtype == left.dtype:
        return multiply(left, right, out=out)
    if "dtype" in torch.ops.aten.mm.overloads():
        return multiply(left, right, out_dtype=dtype, **({} if out is None else {"out": out}))
    return multiply(left.to(dtype), right.to(dtype), out=out)  # PyTorch before 2.8: slower, no less exact


def vendor_product(layout: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor]) -> None:
    """`cublaslt_gemm_<layout>`: checks everything, then writes D. Raises DeepGemmError before any write."""
    getattr(_C, f"check_cublaslt_gemm_{layout}")(a, b, d, c)
    write_product(*sees_k_last(layout, a, b), d, c)


def write_product(left: Tensor, right: Tensor, d: Tensor, c: Optional[Tensor]) -> None:
    """D = C + left @ right, of matrices or batches of them that are known to fit."""
    if d.numel() == 0:
        return
    if left.shape[-1] == 0:
        d.zero_() if c is None else d.copy_(c)
    elif d.device.type == "cpu":
        product = left.double() @ right.double()
        d.copy_(product if c is None else product + c.double())
    elif c is None:
        product_of(left, right, d.dtype, out=d)
    elif d.dtype == left.dtype:
        (torch.baddbmm if d.dim() == 3 else torch.addmm)(c, left, right, out=d)
    else:  # C is added in FP32: D is rounded once
        product = product_of(left, right, torch.float32)
        torch.add(product, c, out=d) if d.dtype == torch.float32 else d.copy_(product + c)


def vendor_einsum(expr: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor]) -> None:
    """`einsum` with `use_cublaslt`: checks everything, then writes D. Raises DeepGemmError before any write."""
    _C.check_vendor_einsum(expr, a, b, d, c)
    right = b.transpose(1, 2) if expr.replace(" ", "") == "bhr,hdr->bhd" else b  # [h, r, d], [h, d, r]
    write_product(a.transpose(0, 1), right, d.transpose(0, 1), None if c is None else c.transpose(0, 1))
