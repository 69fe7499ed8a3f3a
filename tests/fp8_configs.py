"""Configs of the FP8 GEMM of every kind the kernel has, as the planner's binding takes them."""

BASE = {"sfb_granularity": "per_block", "grouping": "dense", "d_dtype": "bf16", "has_c": False, "head_unit": 0, "block_m": 64, "block_n": 64,
        "num_math_warpgroups": 1, "num_stages": 4, "num_accumulators": 2, "n_parts": 1, "k_blocks": 1, "store_boxes": 1,
        "cluster_m": 1, "cluster_n": 1, "ragged_n": False, "c_is_d": False}  # fmt: skip
CHANGES = (
    {},
    {"k_blocks": 2},
    {"block_n": 16, "k_blocks": 4, "num_stages": 3},
    {"block_n": 48, "num_accumulators": 1, "cluster_n": 2},
    {"block_n": 32, "k_blocks": 2, "cluster_n": 4},
    {"block_m": 128, "block_n": 128, "num_math_warpgroups": 2, "cluster_m": 2},
    {"block_m": 128, "block_n": 144, "num_math_warpgroups": 2, "n_parts": 2, "store_boxes": 3},
    {"block_m": 128, "block_n": 64, "num_math_warpgroups": 2, "cluster_m": 2, "cluster_n": 2, "num_stages": 3},
    {"block_m": 192, "block_n": 96, "num_math_warpgroups": 3, "num_accumulators": 1, "cluster_n": 2},
    {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "num_accumulators": 1, "num_stages": 3, "store_boxes": 2},
    {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "n_parts": 2, "num_stages": 3, "cluster_n": 2},
)

CONFIGS = tuple({**BASE, **change} for change in CHANGES)
# With a factor a row of B, which tiles of two waves hold in registers, and D in FP32.
PER_ROW_CONFIGS = tuple({**c, "sfb_granularity": "per_row", "d_dtype": "f32"} for c in CONFIGS
                        if c["n_parts"] == 1 and c["block_n"] != 16)  # fmt: skip
