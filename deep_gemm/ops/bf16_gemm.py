"""Dense BF16 GEMMs: D = C + A @ B, four operand layouts, either major of each operand.

An eager call on plain tensors goes straight to C++; under torch.compile, a dispatch mode or with a tensor subclass it goes
through `torch.ops`.
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from .. import _C
from ..torch_ops import call_bf16_gemm, is_tracing, needs_op


def bf16_gemm_nt(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None, compiled_dims: str = "nk") -> None:
    """Writes D = C + A @ B.T into `d`.

    Runs on the current stream of the tensors' device, without synchronising and without an allocation; legal inside CUDA
    graph capture. CPU tensors run the reference. M, N or K of 0 succeed without a launch; K = 0 gives C, or zeros.

    Batch-invariant: an element of D is one FP32 chain of sums along K, never split. Its bits depend on its own row of A,
    its own column of B and C alone: not on M, not on the other rows, not on the number of SMs, the strides or the major.

    Args:
        a: `[M, K]` bfloat16, unit stride along K or along M, the other stride a multiple of 16 bytes.
        b: `[N, K]` bfloat16, unit stride along K or along N, likewise.
        d: `[M, N]` bfloat16 or float32, unit stride along N, row stride a multiple of 16 bytes.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: the public contract of BF16 GEMMs; products and sums as the tensor cores of SM90 make them.
    """
    if is_tracing() or needs_op(a, b, d, c):
        return call_bf16_gemm("nt", a, b, d, c, compiled_dims)
    return _C.bf16_gemm_nt(a, b, d, c, compiled_dims)


def bf16_gemm_nn(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None, compiled_dims: str = "nk") -> None:
    """`bf16_gemm_nt` with B given as `[K, N]`: D = C + A @ B. Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_bf16_gemm("nn", a, b, d, c, compiled_dims)
    return _C.bf16_gemm_nn(a, b, d, c, compiled_dims)


def bf16_gemm_tn(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None, compiled_dims: str = "mn") -> None:
    """`bf16_gemm_nt` with A given as `[K, M]` and B as `[K, N]`: D = C + A.T @ B. Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_bf16_gemm("tn", a, b, d, c, compiled_dims)
    return _C.bf16_gemm_tn(a, b, d, c, compiled_dims)


def bf16_gemm_tt(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None, compiled_dims: str = "mn") -> None:
    """`bf16_gemm_nt` with A given as `[K, M]`: D = C + A.T @ B.T. Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_bf16_gemm("tt", a, b, d, c, compiled_dims)
    return _C.bf16_gemm_tt(a, b, d, c, compiled_dims)
