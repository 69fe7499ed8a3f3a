// D[M,N] = (A . SFA) @ (B . SFB)^T for SM100: FP8 E4M3, one UE8M0 scale per 32 of K, f32 out. GROUP is 1 or 2 CTAs per MMA.
//
//   warp 0  TMA of A, B and the raw scale words              waits free[s]      signals full[s] (leader's), landed[s] (own)
//   warp 2  transposes scale words 4x32 -> 32x4              waits landed[s]    signals scaled[s] (leader's)
//   warp 1  tcgen05.cp of scales, tcgen05.mma (leader only)  waits full, scaled commits to free[s] and done, in all CTAs
//   warps 4-7  tcgen05.ld, store                             wait done
//
// Scales are words of four bytes, [K/128][rows padded to 128]. BUG_* defines plant one mistake each.
#ifndef GROUP
#define GROUP 1
#endif
constexpr int kM = 128, kN = 128, kK = 128, kStages = 3;  // of one CTA; the pair computes 2 kM x kN
constexpr u32 kABytes = kM * kK, kBBytes = kN / GROUP * kK;

struct Shared {
    u8 a[kStages][kABytes];
    u8 b[kStages][kBBytes];
    u32 raw[kStages][kM + kN];   // SFA words, SFB words as loaded
    u32 sf[kStages][kM + kN];    // as tcgen05.cp wants them
    u64 full[kStages], free[kStages], landed[kStages], scaled[kStages], done;
    u32 tmem;
};

DEV void load_pair(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
#if GROUP == 1
    tma_load_2d(to, map, x, y, barrier);
#else
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier & 0xFEFFFFFF) : "memory");
#endif
}

DEV void produce(Shared& s, const TensorMap* map_a, const TensorMap* map_b, const u32* sfa, const u32* sfb, int m, int n, int m_pad, int n_pad, int blocks, u32 rank) {
    for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
#ifndef BUG_NO_FREE_WAIT
        mbarrier_wait(smem_address(&s.free[stage]), ((i / kStages) & 1) ^ 1);
#endif
        const u32 full = smem_address(&s.full[stage]), landed = smem_address(&s.landed[stage]);
        if (rank == 0) mbarrier_expect(full, GROUP * (kABytes + kBBytes));
        load_pair(smem_address(s.a[stage]), map_a, i * kK, m, full);
        load_pair(smem_address(s.b[stage]), map_b, i * kK, n + rank * (kN / GROUP), full);
        mbarrier_expect(landed, (kM + kN) * 4);
        bulk_load(smem_address(s.raw[stage]), sfa + i * m_pad + m, kM * 4, landed);
        bulk_load(smem_address(s.raw[stage] + kM), sfb + i * n_pad + n, kN * 4, landed);
    }
}

DEV void transpose(Shared& s, int blocks) {
    const u32 l = lane_id();
    for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
        mbarrier_wait(smem_address(&s.landed[stage]), (i / kStages) & 1);
        for (int half = 0; half < 2; ++half)
            for (int j = 0; j < 4; ++j) s.sf[stage][half * 128 + l * 4 + j] = s.raw[stage][half * 128 + j * 32 + l];
#ifndef BUG_NO_PROXY_FENCE
        fence_proxy_async();
#endif
        __syncwarp();
        if (l == 0) mbarrier_arrive_remote(smem_address(&s.scaled[stage]), 0);
    }
}

DEV u32 instruction(u32 sf_id) {
    return 0u << 7 | 0u << 10 | (kN >> 3) << 17 | 1u << 23 | u32(GROUP * kM >> 4) << 24 | sf_id << 29 | sf_id << 4;
}

DEV void mma(u32 d, u64 a, u64 b, u32 idesc, u32 sfa, u32 sfb, u32 accumulate) {
#if GROUP == 1
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\ntcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(sfa), "r"(sfb), "r"(accumulate) : "memory");
#else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\ntcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(sfa), "r"(sfb), "r"(accumulate) : "memory");
#endif
}
DEV void copy_scales(u32 tmem, u64 descriptor) {
#if GROUP == 1
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(descriptor) : "memory");
#else
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(descriptor) : "memory");
#endif
}
DEV void commit(u32 barrier) {
#if GROUP == 1
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
#else
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(barrier), "h"(u16(3)) : "memory");
#endif
}

DEV void multiply(Shared& s, u32 tmem, int blocks) {
    const u32 sfa = tmem + kN, sfb = tmem + kN + 4;
    for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
#ifdef BUG_WRONG_PHASE
        mbarrier_wait(smem_address(&s.full[stage]), ((i / kStages) & 1) ^ (i == 1));
#else
        mbarrier_wait(smem_address(&s.full[stage]), (i / kStages) & 1);
#endif
#ifndef BUG_NO_SCALE_WAIT
        mbarrier_wait(smem_address(&s.scaled[stage]), (i / kStages) & 1);
#endif
        tcgen05_fence_after();
        copy_scales(sfa, umma_descriptor(smem_address(s.sf[stage]), 16, 128, 0));
        copy_scales(sfb, umma_descriptor(smem_address(s.sf[stage] + 128), 16, 128, 0));
        const u64 a = umma_descriptor(smem_address(s.a[stage]), 16, 1024, 2), b = umma_descriptor(smem_address(s.b[stage]), 16, 1024, 2);
        for (u32 k = 0; k < 4; ++k)
#ifdef BUG_ACCUMULATE_FIRST
            mma(tmem, a + 2 * k, b + 2 * k, instruction(k), sfa, sfb, 1);
#else
            mma(tmem, a + 2 * k, b + 2 * k, instruction(k), sfa, sfb, i + k != 0);
#endif
        commit(smem_address(&s.free[stage]));
    }
    commit(smem_address(&s.done));
}

DEV void store(Shared& s, u32 tmem, float* out, int m_size, int n_size, int m, int n) {
#ifndef BUG_NO_DONE_WAIT
    mbarrier_wait(smem_address(&s.done), 0);
#endif
#ifndef BUG_NO_FENCE_AFTER
    tcgen05_fence_after();
#endif
    const int row = m + threadIdx.x % 128;
    for (int column = 0; column < kN; column += 8) {
        u32 r[8];
        tcgen05_ld_x8(r, tmem + (threadIdx.x / 32 % 4 * 32 << 16) + column);
#ifndef BUG_NO_WAIT_LD
        tcgen05_wait_ld();
#endif
        for (int j = 0; j < 8; ++j)
            if (row < m_size && n + column + j < n_size) out[size_t(row) * n_size + n + column + j] = __uint_as_float(r[j]);
    }
    tcgen05_fence_before();
}

extern "C" __global__ void __launch_bounds__(256) kernel_main(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const u32* sfa,
                                                               const u32* sfb, float* out, int m_size, int n_size, int k_size) {
    extern __shared__ __align__(1024) u8 bytes[];
    Shared& s = *reinterpret_cast<Shared*>(bytes);
    const u32 warp = threadIdx.x / 32, rank = GROUP == 1 ? 0 : cluster_rank();
    const int m = blockIdx.x * kM, n = blockIdx.y * kN, blocks = (k_size + kK - 1) / kK;
    const int m_pad = (m_size + 255) / 256 * 256, n_pad = (n_size + 127) / 128 * 128;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) {
            mbarrier_init(smem_address(&s.full[i]), 1);
            mbarrier_init(smem_address(&s.free[i]), 1);
            mbarrier_init(smem_address(&s.landed[i]), 1);
            mbarrier_init(smem_address(&s.scaled[i]), GROUP);
        }
        mbarrier_init(smem_address(&s.done), 1);
        fence_mbarrier_init();
    }
    if (warp == 3) {
#if GROUP == 1
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 256;" ::"r"(smem_address(&s.tmem)) : "memory");
#else
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 256;" ::"r"(smem_address(&s.tmem)) : "memory");
#endif
    }
    tcgen05_fence_before();
    __syncthreads();
    if (GROUP == 2) cluster_sync();
    tcgen05_fence_after();
    const u32 tmem = s.tmem;
    if (warp == 0) {
        if (elect_one()) produce(s, &map_a, &map_b, sfa, sfb, m, n, m_pad, n_pad, blocks, rank);
    } else if (warp == 1) {
        if (rank == 0 && elect_one()) multiply(s, tmem, blocks);
    } else if (warp == 2) {
        transpose(s, blocks);
    } else if (warp >= 4) {
        store(s, tmem, out, m_size, n_size, m, n);
    }
    __syncthreads();
#ifndef BUG_EARLY_EXIT
    if (GROUP == 2) cluster_sync();
#endif
#ifndef BUG_NO_DEALLOC
    if (warp == 3) {
        tcgen05_fence_after();
#if GROUP == 1
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 256;" ::"r"(tmem) : "memory");
#else
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\ntcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 256;" ::"r"(tmem) : "memory");
#endif
    }
#endif
}
