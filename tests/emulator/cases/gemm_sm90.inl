// D[M,N] = sum over 128-blocks of K: sfa[kb][m] * sfb[kb][n/128] * (A[m,kb] . B[n,kb]), FP8 E4M3, K-major, bf16 or f32 out.
//
//   warp 8 (producer) --TMA--> smem stages --full[s]--> warps 0-7 (two warpgroups, 64 rows each, wgmma)
//                     <--------- free[s] ------------- one arrival per consumer warp of every CTA in the cluster
//
// CLUSTER CTAs along M share the B tile: each loads its part and multicasts it. BUG_* defines plant one mistake each.
#ifndef CLUSTER
#define CLUSTER 1
#endif
constexpr int kM = 128, kN = 128, kK = 128, kStages = 3, kConsumerWarps = 8;
constexpr u32 kTileBytes = 128 * 128;

struct Shared {
    u8 a[kStages][kTileBytes];
    u8 b[kStages][kTileBytes];
    u16 d[kM * kN];
    u64 full[kStages], free[kStages];
};

DEV void produce(Shared& s, const TensorMap* map_a, const TensorMap* map_b, int m, int n, int blocks) {
    for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
#ifdef BUG_WRONG_PHASE
        mbarrier_wait(smem_address(&s.free[stage]), (i / kStages) & 1);
#elif defined(BUG_NO_FREE_WAIT)
#else
        mbarrier_wait(smem_address(&s.free[stage]), ((i / kStages) & 1) ^ 1);
#endif
        const u32 full = smem_address(&s.full[stage]);
#ifdef BUG_EXPECT_BYTES
        mbarrier_expect(full, 2 * kTileBytes - 128);
#else
        mbarrier_expect(full, 2 * kTileBytes);
#endif
        tma_load_2d(smem_address(s.a[stage]), map_a, i * kK, m, full);
#if CLUSTER == 1
        tma_load_2d(smem_address(s.b[stage]), map_b, i * kK, n, full);
#else
        const u32 part = cluster_rank() * (kN / CLUSTER);
        tma_load_2d_multicast(smem_address(s.b[stage]) + part * kK, map_b, i * kK, n + part, full, (1 << CLUSTER) - 1);
#endif
    }
    // Nobody may exit while peers still signal this CTA's barriers or read its stages.
#ifndef BUG_EARLY_EXIT
    for (int i = blocks; i < blocks + kStages; ++i)
        if (i >= kStages) mbarrier_wait(smem_address(&s.free[i % kStages]), ((i / kStages) & 1) ^ 1);
#endif
}

DEV void release_stage(Shared& s, int stage) {
    const u32 free = smem_address(&s.free[stage]);
#if CLUSTER == 1
    if (lane_id() == 0) mbarrier_arrive(free);
#else
    if (lane_id() < CLUSTER) mbarrier_arrive_remote(free, lane_id());
#endif
}

DEV void consume(Shared& s, float* total, const float* sfa, const float* sfb, int m_size, int n_blocks, int m, int n, int blocks) {
    const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32;
    const int row = m + group * 64 + warp % 4 * 16 + lane_id() / 4;
    for (int i = 0; i < blocks; ++i) {
        const int stage = i % kStages;
        const float scale_b = sfb[i * n_blocks + n / 128];
        const float scale0 = row < m_size ? sfa[i * m_size + row] * scale_b : 0.f;
        const float scale1 = row + 8 < m_size ? sfa[i * m_size + row + 8] * scale_b : 0.f;
#ifndef BUG_NO_FULL_WAIT
        mbarrier_wait(smem_address(&s.full[stage]), (i / kStages) & 1);
#endif
        const u64 a = matrix_descriptor(smem_address(s.a[stage]) + group * 64 * 128, 16, 1024, 1);
        const u64 b = matrix_descriptor(smem_address(s.b[stage]), 16, 1024, 1);
        float d[64];
#ifndef BUG_NO_WGMMA_FENCE
        wgmma_fence();
#endif
        for (int k = 0; k < 4; ++k) wgmma(d, a + 2 * k, b + 2 * k, k != 0);
        wgmma_commit();
#ifdef BUG_EARLY_RELEASE
        release_stage(s, stage);
        wgmma_wait<0>();
#else
#ifndef BUG_NO_WGMMA_WAIT
        wgmma_wait<0>();
#endif
#ifdef BUG_ONE_ARRIVAL_SHORT
        if (warp != 3) release_stage(s, stage);
#else
        release_stage(s, stage);
#endif
#endif
        for (int r = 0; r < 64; ++r) total[r] += d[r] * ((r & 2) ? scale1 : scale0);
    }
}

DEV void store_f32(const float* total, float* out, int m_size, int n_size, int m, int n) {
    const int row = m + threadIdx.x / 32 * 16 + lane_id() / 4;
    for (int r = 0; r < 64; ++r) {
        const int y = row + 8 * ((r >> 1) & 1), x = n + 2 * (lane_id() % 4) + (r & 1) + 8 * (r >> 2);
        if (y < m_size && x < n_size) out[size_t(y) * n_size + x] = total[r];
    }
}

DEV u32 pack_bf16(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// Two halves of 64 columns, each 128 rows of 128 bytes with the 128-byte swizzle.
DEV void store_bf16(Shared& s, const float* total, const TensorMap* map_d, int m, int n) {
    const u32 row = threadIdx.x / 32 * 16 + lane_id() % 16;
    for (int j = 0; j < 8; ++j) {
        const u32 column = 16 * j + lane_id() / 16 * 8;
        u32 address = smem_address(s.d) + column / 64 * (kM * 128) + row * 128 + column % 64 * 2;
        address ^= (address >> 3) & 0x70;
        const float* t = total + 8 * j;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(pack_bf16(t[0], t[1])),
                     "r"(pack_bf16(t[2], t[3])), "r"(pack_bf16(t[4], t[5])), "r"(pack_bf16(t[6], t[7]))
                     : "memory");
    }
#ifndef BUG_NO_PROXY_FENCE
    fence_proxy_async();
#endif
#ifndef BUG_NO_EPILOGUE_BARRIER
    named_sync(1, 256);
#endif
    if (threadIdx.x == 0) {
        tma_store_2d(map_d, smem_address(s.d), n, m);
        tma_store_2d(map_d, smem_address(s.d) + kM * 128, n + 64, m);
        bulk_commit();
#ifndef BUG_NO_STORE_WAIT
        bulk_wait_read<0>();
#endif
    }
}

extern "C" __global__ void __launch_bounds__(288) kernel_main(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                                                               const __grid_constant__ TensorMap map_d, const float* sfa, const float* sfb, float* out,
                                                               int m_size, int n_size, int k_size) {
    extern __shared__ __align__(1024) u8 raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int m = blockIdx.x * kM, n = blockIdx.y * kN, blocks = (k_size + kK - 1) / kK;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) {
            mbarrier_init(smem_address(&s.full[i]), 1);
            mbarrier_init(smem_address(&s.free[i]), kConsumerWarps * CLUSTER);
        }
#ifndef BUG_NO_INIT_FENCE
        fence_mbarrier_init();
#endif
    }
#if CLUSTER > 1
#ifdef BUG_NO_CLUSTER_SYNC
    __syncthreads();
#else
    cluster_sync();
#endif
#elif defined(BUG_NO_INIT_BARRIER)
#else
    __syncthreads();
#endif
    if (threadIdx.x >= 256) {
        if (threadIdx.x == 256) produce(s, &map_a, &map_b, m, n, blocks);
    } else {
        float total[64] = {};
        consume(s, total, sfa, sfb, m_size, (n_size + 127) / 128, m, n, blocks);
#ifdef OUT_BF16
        store_bf16(s, total, &map_d, m, n);
#else
        store_f32(total, out, m_size, n_size, m, n);
#endif
    }
}
