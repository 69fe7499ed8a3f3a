"""The dense products by the vendor's library: to compare with, and to fall back on.

Checked like our own GEMMs; the product is PyTorch's call of cuBLASLt. Which bits it gives is the library's choice.
"""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor

from ..fake_checks import check_cublaslt_gemm, expect_tensor_kinds
from ..torch_ops import _register, is_tracing, needs_op
from ..vendor_product import vendor_product

_SCHEMA = "(Tensor a, Tensor b, Tensor(a!) d, Tensor? c, bool accumulate) -> ()"


def _register_layout(layout: str) -> Any:
    """Defines `cublaslt_gemm_<layout>`; `accumulate` stands for `c` being `d` itself, as in `fp8_gemm_<layout>`."""

    def run(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool) -> None:
        vendor_product(layout, a, b, d, d if accumulate else c)

    def fake(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool) -> None:
        check_cublaslt_gemm(layout, a, b, d, c)

    return _register(f"cublaslt_gemm_{layout}", _SCHEMA, run, fake)


_OPERATORS = {layout: _register_layout(layout) for layout in ("nt", "nn", "tn", "tt")}


def _call(layout: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor]) -> None:
    """The product, through the operator where one must be seen."""
    if not (is_tracing() or needs_op(a, b, d, c)):
        return vendor_product(layout, a, b, d, c)
    expect_tensor_kinds({"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}, "")
    _OPERATORS[layout](a, b, d, None if c is d else c, c is d)


def cublaslt_gemm_nt(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None) -> None:
    """Writes D = C + A @ B.T into `d` by the vendor's library.

    Runs on the current stream of the tensors' device, without synchronising. Where C is given and D's dtype is not that of
    the operands, or FP8 operands are multiplied, a temporary holds the FP32 product. CPU tensors: FP64 sums. M, N or K of 0
    succeed; K = 0 gives C, or zeros.

    Args:
        a: `[M, K]` bfloat16, unit stride along K or along M, the other stride a multiple of 16 bytes; or float8_e4m3fn,
            without scales, unit stride along K.
        b: `[N, K]` of a's dtype, likewise. With FP8 operands N and K are multiples of 16.
        d: `[M, N]` bfloat16 or float32, unit stride along N, row stride a multiple of 16 bytes.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: cuBLASLt through `torch.mm`, `torch.addmm` and `torch._scaled_mm`.
    """
    return _call("nt", a, b, d, c)


def cublaslt_gemm_nn(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None) -> None:
    """`cublaslt_gemm_nt` with B given as `[K, N]`: D = C + A @ B. Other arguments and errors as there."""
    return _call("nn", a, b, d, c)


def cublaslt_gemm_tn(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None) -> None:
    """`cublaslt_gemm_nt` with A given as `[K, M]` and B as `[K, N]`: D = C + A.T @ B. Other arguments and errors as there."""
    return _call("tn", a, b, d, c)


def cublaslt_gemm_tt(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None) -> None:
    """`cublaslt_gemm_nt` with A given as `[K, M]`: D = C + A.T @ B.T. Other arguments and errors as there."""
    return _call("tt", a, b, d, c)
