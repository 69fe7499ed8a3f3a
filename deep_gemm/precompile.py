"""Kernels built ahead of time: for a range of shapes, with no GPU and no tensor, into the same cache as a real call's."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

from . import _C
from .errors import DeepGemmError
from .ops.support import arch_name
from .ops.table import BY_NAME
from .utils.layout import get_mk_alignment_for_contiguous_layout

Extent = Union[int, Sequence[int]]
MAX_EXTENT, MAX_SMS = 2**31 - 1, 2**16 - 1
BF16_PREFIXES = ("bf16_gemm_", "m_grouped_bf16_gemm_", "einsum")
COMPILABLE = ("fp8_gemm_", "fp8_einsum", "m_grouped_fp8_gemm_", "m_grouped_gemm_fp8_fp8_bf16_", "k_grouped_fp8_gemm_nt_",
              *BF16_PREFIXES)
DEFAULT_RECIPE = (1, 128, 128)
# Of contractions that have kernels: the planner's keywords, as contiguous operands have them.
_BATCHED = {"grouping": "batched"}
EXPRESSIONS: Dict[str, Dict[str, Dict[str, Any]]] = {
    "fp8_einsum": {"bhr,hdr->bhd": _BATCHED},
    "einsum": {
        "bhr,hdr->bhd": _BATCHED,
        "bhd,hdr->bhr": {**_BATCHED, "b_major": "mn"},
        "bmk,bnk->mn": {"grouping": "batch_sum"},
    },
}
OUT_WORDS = {torch.bfloat16: "bf16", torch.float32: "f32"}
OUT_WORDS.update({str(dtype).rpartition(".")[2]: word for dtype, word in list(OUT_WORDS.items())})
OUT_WORDS.update(bf16="bf16", fp32="f32", f32="f32")


@dataclass(frozen=True)
class BreakPoint:
    """The first M, in a range of M at one N and K, that runs another kernel than the M before it."""

    m: int
    n: int
    k: int
    config: Dict[str, Any]
    config_text: str
    text: str  # the plan at this M, for people


@dataclass(frozen=True)
class BuiltKernel:
    """One kernel of the cache: what it is and how long it took to come by, in seconds."""

    entry: str
    digest: str
    seconds: float
    text: str


@dataclass(frozen=True)
class Target:
    """An architecture to plan and compile for; `sm_count` 0 takes the count the planner knows for it."""

    major: int
    minor: int
    sm_count: int = 0
    image: str = "cubin"

    def planning(self) -> Dict[str, Any]:
        """The device numbers in which this target differs from the planner's own."""
        numbers = {"major": self.major, "minor": self.minor}
        return {**numbers, "sm_count": self.sm_count} if self.sm_count else numbers


def target_of(arch: Union[str, int, Tuple[int, int]], sm_count: int = 0, image: str = "cubin") -> Target:
    """The target that `arch` names: "sm_90a", "sm_90", 90 or (9, 0)."""
    name = arch_name(arch)
    if name == "cpu":
        raise DeepGemmError("arch: expected a GPU architecture such as 'sm_90a' to compile for, got 'cpu'")
    number = int(name[3:])
    if not (isinstance(sm_count, int) and 0 <= sm_count <= MAX_SMS):
        raise DeepGemmError(f"sm_count: expected 0...{MAX_SMS}, got {sm_count!r}; 0 takes the count known for the architecture")
    if image not in ("cubin", "ptx"):
        raise DeepGemmError(f"image: expected 'cubin' or 'ptx', got {image!r}")
    return Target(number // 10, number % 10, sm_count, image)


@dataclass(frozen=True)
class Kind:
    """What of an operation, beside its shape and groups, may choose a kernel. `recipe` None: FP8's default, none for BF16."""

    op: str = "fp8_gemm_nt"
    recipe: Optional[Sequence[int]] = None
    out: Any = torch.bfloat16
    accumulate: bool = False


def planning_options(target: Target, kind: Kind = Kind()) -> Dict[str, Any]:
    """The keywords of the planner of an operation's family; those of BF16 have the majors of contiguous operands."""
    name, out = op_name(kind.op), kind.out
    if not isinstance(out, (str, torch.dtype)) or out not in OUT_WORDS:
        raise DeepGemmError(f"out: expected torch.bfloat16, torch.float32 or their names, got {out!r}")
    options = {"d_dtype": OUT_WORDS[out], "has_c": kind.accumulate, "arch": target.planning()}
    if name.startswith(BF16_PREFIXES):
        if kind.recipe is not None:
            raise DeepGemmError(f"recipe: BF16 operands have no factors, got {kind.recipe!r} for {kind.op}; leave it out")
        a, b = name.partition("_gemm_")[2][:2] or "nt"
        return {**options, "a_major": "mn" if a == "t" else "k", "b_major": "mn" if b == "n" else "k"}
    recipe = DEFAULT_RECIPE if kind.recipe is None else kind.recipe
    if not is_integers(recipe, 3):
        raise DeepGemmError(f"recipe: expected (gran_m, gran_n, gran_k), got {recipe!r}; pass e.g. (1, 128, 128)")
    return {**options, "recipe": tuple(recipe)}


def family_of(options: Dict[str, Any]) -> str:
    """The family whose planner takes these keywords, or whose config this is: only BF16 operands have majors."""
    return "bf16_gemm" if "a_major" in options else "fp8_gemm"


def is_integers(value: Any, count: int) -> bool:
    """Whether `value` is a tuple or list of `count` integers."""
    return isinstance(value, (tuple, list)) and len(value) == count and all(isinstance(x, int) for x in value)


@dataclass(frozen=True)
class Groups:
    """What of the groups of a grouped GEMM may choose a kernel: their number, the rows expected in one (masked; 0: nobody
    knows), the alignment of their starts (contiguous; None: what is set now), whether calls of a contiguous one pass ends
    (`use_psum_layout`), then with rows expected, too."""

    count: int = 1
    expected_m: Extent = 0
    alignment: Optional[int] = None
    psum: bool = False

    def planning(self, op: str) -> List[Dict[str, Any]]:
        """The planner's keywords for `op`, one entry for each expected M; none of the groups' where `op` has none."""
        name = op_name(op)
        if name.startswith("k_grouped") and not self.psum:
            return [{"grouping": "k_grouped", "num_groups": extents(self.count, "num_groups")[0]}]
        grouping = next((word for word in ("contiguous", "masked") if name.startswith("m_") and name.endswith(word)), "dense")
        if self.psum and grouping != "contiguous":
            raise DeepGemmError(f"use_psum_layout: only m_grouped_*_contiguous has such a layout, got {op!r}; leave it out")
        if op_name(op) in EXPRESSIONS:
            return [{"num_groups": extents(self.count, "num_groups")[0]}]  # expression_options say how
        if grouping == "dense":
            return [{}]
        common = {"grouping": grouping, "num_groups": extents(self.count, "num_groups")[0]}
        if grouping == "contiguous":
            alignment = self.alignment or get_mk_alignment_for_contiguous_layout()
            common["alignment"] = extents(alignment, "alignment")[0]
            if not self.psum:
                return [common]
            common["grouping"] = "psum"
        hints = [self.expected_m] if isinstance(self.expected_m, int) else list(self.expected_m)
        if not hints or not all(isinstance(hint, int) and hint >= 0 for hint in hints):
            raise DeepGemmError(f"expected_m: expected an integer of 0 or more, or several, got {self.expected_m!r}")
        return [{**common, "expected_m": hint} for hint in hints]


def op_name(op: str) -> str:
    """The name in the table of an operation that has kernels to compile ahead of time; other names are refused."""
    if not isinstance(op, str) or op not in BY_NAME:
        raise DeepGemmError(f"op: {op!r} is no operation of this library; expected one of {', '.join(sorted(BY_NAME))}")
    name = BY_NAME[op].name
    if not name.startswith(COMPILABLE):
        raise DeepGemmError(f"op: only (m_grouped_)fp8_gemm_*, k_grouped_fp8_gemm_nt_contiguous, (m_grouped_)bf16_gemm_* and (fp8_)einsum can be compiled ahead of time, got {op!r}")
    return name


def extents(value: Extent, name: str) -> List[int]:
    """The positive extents in `value`, an integer or a sequence of them."""
    values = [value] if isinstance(value, int) else list(value) if isinstance(value, Sequence) else []
    if not values or not all(isinstance(x, int) and 0 < x <= MAX_EXTENT for x in values):
        raise DeepGemmError(f"{name}: expected an integer in 1...2^31 - 1 or a sequence of them, got {value!r}; correct it")
    return values


def m_range(m: Union[int, Tuple[int, int]]) -> Tuple[int, int]:
    """(first, last) of an M, or of a pair."""
    pair = (m, m) if isinstance(m, int) else m
    if is_integers(pair, 2) and 1 <= pair[0] <= pair[1] <= MAX_EXTENT:
        return pair[0], pair[1]
    raise DeepGemmError(f"m: expected an integer or (first, last) with 1 <= first <= last < 2^31, got {m!r}; correct it")


def head_options(op: str, head_splits: Optional[Sequence[int]]) -> Dict[str, Any]:
    """The planner's keyword for D's heads, which one operation has."""
    skips = op_name(op) == "fp8_gemm_nt_skip_head_mid"
    if skips and not is_integers(head_splits, 3):
        raise DeepGemmError(f"head_splits: expected (left, mid, right) as of the call, got {head_splits!r}; pass them")
    if not skips and head_splits is not None:
        raise DeepGemmError(f"head_splits: only fp8_gemm_nt_skip_head_mid has heads, got {op!r}; leave them out")
    return {"head_splits": tuple(head_splits)} if skips and head_splits is not None else {}


def expression_options(op: str, expr: Optional[str]) -> Dict[str, Any]:
    """The planner's keywords for an expression, which contractions have."""
    known = EXPRESSIONS.get(op_name(op))
    if known is None and expr is not None:
        raise DeepGemmError(f"expr: only einsum and fp8_einsum have one, got {op!r}; leave it out")
    if known is not None and expr not in known:
        raise DeepGemmError(f"expr: expected one of {', '.join(map(repr, known))} for {op}, got {expr!r}; pass that of the call")
    return {} if known is None else known[expr]


def break_points(m: Union[int, Tuple[int, int]], n: Extent, k: Extent, options: Dict[str, Any]) -> List[BreakPoint]:
    """The M at which the choice of kernel changes, for every N and K; `options` from `planning_options`."""
    first, last = m_range(m)
    points, family = [], family_of(options)
    find, plan_with = getattr(_C, f"{family}_break_points"), getattr(_C, f"plan_{family}")
    for one_n, one_k in product(extents(n, "n"), extents(k, "k")):
        for point in find(one_n, one_k, first, last, **options):
            plan = plan_with(point["m"], one_n, one_k, config=point["config"], **options)
            points.append(BreakPoint(point["m"], one_n, one_k, point["config"], plan["config_text"], plan["text"]))
    return points


def build(
    target: Target, points: Sequence[BreakPoint], jobs: int, report: Callable[[int, int, BuiltKernel], None]
) -> List[BuiltKernel]:
    """Builds the distinct kernels of `points` on `jobs` threads; calls `report(done, total, kernel)` after each."""
    sources: Dict[Tuple[str, str], str] = {}
    for point in points:
        source = getattr(_C, f"print_{family_of(point.config)}_source")(point.config, target.planning())
        sources.setdefault((source["entry"], source["text"]), point.config_text)

    def build_one(entry: str, text: str) -> BuiltKernel:
        start = time.perf_counter()
        _, digest, _ = _C.jit_build(entry, text, target.major, target.minor, target.image)
        return BuiltKernel(entry, digest, time.perf_counter() - start, sources[entry, text])

    built = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(build_one, *source) for source in sources]
        try:
            for future in as_completed(futures):
                built.append(future.result())
                report(len(built), len(sources), built[-1])
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return built


def compile(
    op: str = "fp8_gemm_nt",
    *,
    m: Union[int, Tuple[int, int]],
    n: Extent,
    k: Extent,
    arch: Union[str, int, Tuple[int, int]] = "sm_90a",
    recipe: Optional[Sequence[int]] = None,
    out: Any = torch.bfloat16,
    accumulate: bool = False,
    num_groups: int = 1,
    expected_m: Extent = 0,
    alignment: Optional[int] = None,
    use_psum_layout: bool = False,
    head_splits: Optional[Sequence[int]] = None,
    expr: Optional[str] = None,
    sm_count: int = 0,
    image: str = "cubin",
    jobs: Optional[int] = None,
    report: Optional[Callable[[int, int, BuiltKernel], None]] = None,
) -> List[BuiltKernel]:
    """Builds every kernel that calls in a range of shapes will use. Needs no GPU, no driver and no tensor.

    The kernels land in the cache that calls read, under the same digests, so a later first call only loads. The cache
    folder can be copied to another machine.

    Args:
        op: the operation, e.g. "fp8_gemm_nt", "bf16_gemm_nn" or "m_grouped_fp8_gemm_nt_masked". FP8 layouts share their
            kernels; BF16 ones differ by the majors that contiguous operands have in them, so operands in other strides
            are compiled for by the layout whose majors are theirs.
        m: rows of A (of one group where they are masked), as one M or (first, last); the M at which the planner changes its choice are found, not enumerated.
        n, k: an extent, or several; every pair of them is built. k: the mean of a group's, where groups divide K.
        arch: "sm_90a", "sm_90", 90 or (9, 0).
        recipe: (gran_m, gran_n, gran_k), as of the call, None for (1, 128, 128); BF16 has none.
        out: dtype of D, torch.bfloat16 or torch.float32, or its name.
        accumulate: for calls with `c`.
        num_groups: G of a grouped operation; of a contraction what its batches count, h or the b of "bmk,bnk->mn".
        expected_m: of a masked one, or with `use_psum_layout`, as of the call (0 for None); one value or several.
        alignment: of a contiguous one; None for `get_mk_alignment_for_contiguous_layout()`.
        use_psum_layout: for calls of a contiguous one that pass it.
        expr: of einsum and fp8_einsum, as of the call: m and n count the letters of D that A and B have alone, k the summed one.
        head_splits: of fp8_gemm_nt_skip_head_mid, as of the call; n counts the columns of the product.
        sm_count: SMs of the target device; 0 takes the count the planner knows for the architecture.
        image: "cubin", or "ptx" for an emulated driver.
        jobs: threads; None for one a processor.
        report: called as report(done, total, kernel) after each kernel.

    Returns:
        What was built or found in the cache, one entry a distinct kernel.

    Raises:
        DeepGemmError: an argument, an architecture without a kernel, or a failed compilation (with its log).
    """
    if jobs is not None and not (isinstance(jobs, int) and jobs > 0):
        raise DeepGemmError(f"jobs: expected a positive number of threads or None, got {jobs!r}; leave it out for one a processor")
    groups = Groups(num_groups, expected_m, alignment, use_psum_layout).planning(op)
    target = target_of(arch, sm_count, image)
    options = planning_options(target, Kind(op, recipe, out, accumulate))
    if groups[0].get("grouping") == "k_grouped":
        if options["d_dtype"] != "f32" or options["recipe"] != (1, 1, 128):
            raise DeepGemmError(f"out: {op} writes float32 under recipe (1, 1, 128), got out={out}, recipe={options['recipe']}")
        k = [_C.k_grouped_planning_k(one) for one in extents(k, "k")]
    elif "grouping" in groups[0] and (options["d_dtype"] != "bf16" or accumulate):
        raise DeepGemmError(f"out: {op} writes bfloat16 and takes no c, got out={out}, accumulate={accumulate}")
    options.update(head_options(op, head_splits), **expression_options(op, expr))
    # C in a tensor of its own, and C that is D, run different kernels where D is FP32.
    two_places = accumulate and options["d_dtype"] == "f32"
    places: List[Dict[str, Any]] = [{"c_is_d": place} for place in (False, True)] if two_places else [{}]
    points = [point for group in groups for place in places for point in break_points(m, n, k, {**options, **group, **place})]
    return build(target, points, jobs or os.cpu_count() or 1, report or (lambda done, total, kernel: None))
