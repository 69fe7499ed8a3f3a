"""Every operation of the public contract, one row each: its signature, its older names, and where it runs.

The stubs of operations that run nowhere yet, the sentence a refused call answers with, `is_supported` and the tests are
all made from these rows. A new operation is its function in `ops/` and the `archs` of its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RECIPES = "recipe=None, recipe_a=None, recipe_b=None"
DENSE_ENDS = {"nt": "nk", "nn": "nk", "tn": "mn", "tt": "mn"}  # the default of compiled_dims


@dataclass(frozen=True)
class Op:
    """One operation.

    `signature`: the argument list as the contract writes it. `archs`: architectures with a kernel, plus "cpu" for the
    reference; empty while it runs nowhere. `formats`: the operand formats those serve. `aliases`: other names of the same
    function. `older_keywords`: keyword of an older release -> the argument it is now. `module`: where the name lives.
    """

    name: str
    signature: str
    summary: str
    archs: tuple[str, ...] = ()
    formats: str = ""
    aliases: tuple[str, ...] = ()
    older_keywords: dict[str, str] = field(default_factory=dict)
    module: str = ""


def dense_fp8() -> list[Op]:
    """Rows of the dense FP8 GEMMs, one for each operand layout."""
    return [
        Op(
            f"fp8_gemm_{layout}",
            f"a, b, d, c=None, {RECIPES}, compiled_dims={dims!r}, disable_ue8m0_cast=False",
            "D = C + A @ B with scaled FP8 operands",
            archs=("sm_90", "cpu"),
            formats="E4M3 x E4M3 with FP32 factors, recipe (1,128,128) or (1,1,128), D in BF16 or FP32",
            aliases=(f"fp8_fp4_gemm_{layout}",),
        )
        for layout, dims in DENSE_ENDS.items()
    ]


GROUPED_FORMATS = "E4M3 x E4M3 with FP32 factors, recipe (1,128,128) or (1,1,128), D in BF16"
GROUPED_BF16_FORMATS = "BF16 x BF16, A K-major, B K-major or N-major, D in BF16"


def m_grouped() -> list[Op]:
    """Rows of the GEMMs over experts, grouped along M: contiguous and masked, FP8 and BF16."""
    psum = "use_psum_layout=False, ensure_zero_padding=True"
    hint = ", expected_m_for_psum_layout=None"
    fp8 = f'{RECIPES}, compiled_dims="nk", disable_ue8m0_cast=False'
    rows = []
    for layout, tail in (("nt", hint), ("nn", "")):
        rows.append(
            Op(
                f"m_grouped_fp8_gemm_{layout}_contiguous",
                f"a, b, d, grouped_layout, {fp8}, {psum}{tail}",
                "one FP8 GEMM over experts whose rows follow each other",
                archs=("sm_90", "cpu"),
                formats=f"{GROUPED_FORMATS}, layouts of row ids and of ends (psum)",
                aliases=(f"m_grouped_fp8_fp4_gemm_{layout}_contiguous",),
                older_keywords={"m_indices": "grouped_layout"},
            )
        )
        rows.append(
            Op(
                f"m_grouped_bf16_gemm_{layout}_contiguous",
                f'a, b, d, grouped_layout, compiled_dims="nk", {psum}{tail}',
                "one BF16 GEMM over experts whose rows follow each other",
                archs=("sm_90", "cpu"),
                formats=f"{GROUPED_BF16_FORMATS}, layouts of row ids and of ends (psum)",
                older_keywords={"m_indices": "grouped_layout"},
            )
        )
    masked = "a, b, d, masked_m, expected_m"
    return rows + [
        Op(
            "m_grouped_fp8_gemm_nt_masked",
            f"{masked}, {fp8}",
            "one FP8 GEMM an expert, row counts read on the device",
            archs=("sm_90", "cpu"),
            formats=GROUPED_FORMATS,
            aliases=("m_grouped_fp8_fp4_gemm_nt_masked", "fp8_m_grouped_gemm_nt_masked"),
        ),
        Op(
            "m_grouped_bf16_gemm_nt_masked",
            f'{masked}, compiled_dims="nk"',
            "one BF16 GEMM an expert, row counts read on the device",
            archs=("sm_90", "cpu"),
            formats=GROUPED_BF16_FORMATS,
            aliases=("bf16_m_grouped_gemm_nt_masked",),
        ),
    ]


def dense_bf16() -> list[Op]:
    """Rows of the dense BF16 GEMMs, ours and the vendor library's."""
    rows = []
    for layout, dims in DENSE_ENDS.items():
        rows.append(
            Op(
                f"bf16_gemm_{layout}",
                f"a, b, d, c=None, compiled_dims={dims!r}",
                "D = C + A @ B in BF16",
                archs=("sm_90", "cpu"),
                formats="BF16 x BF16, K-major or MN-major, D in BF16 or FP32",
            )
        )
        rows.append(
            Op(
                f"cublaslt_gemm_{layout}",
                "a, b, d, c=None",
                "the same product by the vendor's library",
                archs=("sm_90", "cpu"),
                formats="BF16 x BF16 of either major, unscaled E4M3 x E4M3, D in BF16 or FP32",
            )
        )
    return rows


def logits() -> list[Op]:
    """Rows of the indexer logits over contiguous and paged keys."""
    dense = "q, kv, weights, cu_seq_len_k_start, cu_seq_len_k_end, clean_logits=True, max_seqlen_k=0"
    paged = "q, kv_cache, weights, context_lens, block_table, schedule_meta, max_context_len, clean_logits=False"
    dtype = "logits_dtype=torch.float32"
    return [
        Op("fp8_fp4_mqa_logits", f"{dense}, {dtype}", "indexer logits over contiguous keys"),
        Op("fp8_mqa_logits", dense, "indexer logits over contiguous keys, bare FP8 queries"),
        Op("get_paged_mqa_logits_metadata", "context_lens, block_kv, num_sms, indices=None", "the paged schedule"),
        Op("fp8_fp4_paged_mqa_logits", f"{paged}, {dtype}, indices=None", "indexer logits over a paged cache"),
        Op("fp8_paged_mqa_logits", f"{paged}, indices=None", "indexer logits over a paged cache, bare FP8 queries"),
    ]


def k_grouped() -> list[Op]:
    """Rows of the GEMMs grouped along K, for weight gradients."""
    head, tail = "a, b, d, ks_cpu, grouped_layout, c=None", 'compiled_dims="mn", use_psum_layout=False'
    older = {"ks": "ks_cpu", "ks_tensor": "grouped_layout"}
    sizes, both = "D in FP32, sizes from the host or the device alone", ("sm_90", "cpu")
    rows = {
        "k_grouped_fp8_gemm_nt_contiguous": (both, f"E4M3 x E4M3 with FP32 factors, recipe (1,1,128), {sizes}"),
        "k_grouped_fp8_gemm_tn_contiguous": (("cpu",), f"E4M3 x E4M3 with FP32 factors, recipe (1,1,128) or (1,1,32), {sizes}"),
        "k_grouped_bf16_gemm_tn_contiguous": (both, f"BF16 x BF16, layouts of sizes and of ends (psum), {sizes}"),
    }
    return [
        Op(
            name,
            f"{head}, recipe=(1, 1, 128), {tail}" if "fp8" in name else f"{head}, {tail}",
            "one GEMM a group of K, for weight gradients",
            archs=archs,
            formats=formats,
            older_keywords=older,
        )
        for name, (archs, formats) in rows.items()
    ]


def other() -> list[Op]:
    """Rows of the contractions and GEMM variants that have no family."""
    return [
        Op(
            "fp8_einsum",
            "expr, a, b, d, c=None, recipe=(1, 128, 128)",
            "batched FP8 contractions",
            archs=("sm_90", "cpu"),
            formats="E4M3 x E4M3 with FP32 factors, 'bhr,hdr->bhd', D in BF16 or FP32; 'bhd,hdr->bhr', 'bhd,bhr->hdr' on cpu alone",
        ),
        Op(
            "einsum",
            "expr, a, b, d, c=None, use_cublaslt=False",
            "batched BF16 contractions",
            archs=("sm_90", "cpu"),
            formats="BF16 x BF16, 'bmk,bnk->mn', 'bhr,hdr->bhd', 'bhd,hdr->bhr', D in BF16 or FP32",
        ),
        Op("tf32_hc_prenorm_gemm", "a, b, d, sqr_sum, num_splits=None", "TF32 GEMM beside the sum of squares of A"),
        Op(
            "fp8_gemm_nt_skip_head_mid",
            'a, b, d, head_splits, recipe=None, compiled_dims="nk", disable_ue8m0_cast=False',
            "FP8 GEMM whose output skips the middle columns of each head",
            archs=("sm_90", "cpu"),
            formats="E4M3 x E4M3 with FP32 factors, recipe (1,128,128) or (1,1,128), D in BF16 or FP32, parts of 8 columns",
        ),
    ]


def mega_moe() -> list[Op]:
    """Rows of the MoE that is fused across GPUs."""
    ends = "activation='swiglu', activation_clamp=None, fast_math=True"
    call = "y, l1_weights, l2_weights, sym_buffer, cumulative_local_expert_recv_stats=None"
    buffer = (
        "group, num_experts, num_max_tokens_per_rank, num_topk, hidden, intermediate_hidden, "
        "use_fp8_dispatch=None, mma_type='fp8xfp4', activation='swiglu'"
    )
    return [
        Op("SymmBuffer", "*args, **kwargs", "the symmetric buffer of the fused MoE"),
        Op("get_symm_buffer_for_mega_moe", buffer, "the symmetric buffer of the fused MoE"),
        Op("transform_weights_for_mega_moe", "l1_weights, l2_weights, activation='swiglu'", "weights as it reads them"),
        Op("fp8_fp4_mega_moe", f"{call}, recipe=(1, 1, 32), {ends}", "fused MoE across GPUs"),
        Op("bf16_mega_moe", f"{call}, {ends}", "fused MoE across GPUs"),
    ]


def names_1x() -> list[Op]:
    """Rows of the grouped GEMMs under their 1.x names; `ops/names_1x.py` has them, and the dense one."""
    name, summary = "m_grouped_gemm_fp8_fp8_bf16_nt", "the 1.x name of the grouped FP8 GEMM"
    arguments = {"contiguous": "lhs, rhs, out, m_indices", "masked": "lhs, rhs, out, masked_m, expected_m"}
    return [
        Op(f"{name}_{grouping}", signature, summary, archs=("sm_90", "cpu"), formats=GROUPED_FORMATS)
        for grouping, signature in arguments.items()
    ]


def legacy() -> list[Op]:
    """Rows of `deep_gemm.legacy`: BF16 grouped GEMMs that gather rows."""
    fused_m, fused_k = "a, b, d, mappings", "a, b, d, mappings, acc"
    plain = "a, b, d, m_indices"
    names = {
        "m_grouped_bf16_gemm_nt_contiguous_tl": plain,
        "m_grouped_bf16_gemm_nn_contiguous_tl": plain,
        "a_fused_m_grouped_bf16_gemm_nt_contiguous_tl": fused_m,
        "a_fused_m_grouped_bf16_gemm_nn_contiguous_tl": fused_m,
        "a_fused_k_grouped_bf16_gemm_tn_contiguous_tl": fused_k,
        "b_fused_k_grouped_bf16_gemm_tn_contiguous_tl": fused_k,
    }
    runs = {"archs": ("sm_90", "cpu"), "formats": "BF16 x BF16, D in BF16"}
    summary = "BF16 grouped GEMM of the Triton releases"
    return [
        Op(name, args, summary, module="legacy", **({} if "k_grouped" in name else runs)) for name, args in names.items()
    ]


_FAMILIES = (dense_fp8, m_grouped, dense_bf16, logits, k_grouped, other, mega_moe, names_1x, legacy)
OPS: tuple[Op, ...] = tuple(op for family in _FAMILIES for op in family())
BY_NAME: dict[str, Op] = {name: op for op in OPS for name in (op.name, *op.aliases)}


def supported_sentence() -> str:
    """What runs today, one clause for each distinct support, made from the rows."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for op in OPS:
        if op.archs:
            groups.setdefault((op.archs, op.formats), []).append(op.name)
    return "; ".join(f"{', '.join(names)} on {' and '.join(archs)} ({formats})" for (archs, formats), names in groups.items())
