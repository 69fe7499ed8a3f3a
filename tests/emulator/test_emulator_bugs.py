"""Planted bugs: each is found, synchronously and under seeds, with a report that says what is wrong and names PTX lines."""
from __future__ import annotations

import re

import pytest

from cases import gemm_cases, gemm_sm100_cases
from harness.case import Case, Pointer, run_case
from harness.cuda_driver import CudaDriver, CudaError

SM90_BUGS = {
    "WRONG_PHASE": "deadlock.*|data race",
    "NO_FREE_WAIT": "data race: shared memory .* written at PTX line \\d+ and again at PTX line \\d+|which expects 0 more",
    "EXPECT_BYTES": "deadlock",
    "NO_FULL_WAIT": "data race: shared memory .* written at PTX line \\d+ and read at PTX line \\d+",
    "EARLY_RELEASE": "data race: shared memory .* read at PTX line \\d+ and overwritten at PTX line \\d+",
    "NO_WGMMA_WAIT": "a wgmma result is read before wgmma.wait_group",
    "NO_WGMMA_FENCE": "without a wgmma.fence",
    "ONE_ARRIVAL_SHORT": "deadlock",
    "NO_PROXY_FENCE": "missing fence.proxy.async.*PTX line \\d+ by thread \\d+.*PTX line \\d+",
    "NO_EPILOGUE_BARRIER": "data race|uninitialised shared memory",
    "NO_STORE_WAIT": "exits while bulk stores may still read shared memory",
    "NO_INIT_FENCE": "missing fence.mbarrier_init.*initialised at PTX line \\d+",
    "NO_INIT_BARRIER": "was initialised at PTX line \\d+, and is used at PTX line \\d+ without a barrier|no initialised mbarrier",
    "NO_CLUSTER_SYNC": "no initialised mbarrier|was initialised at PTX line",
    "EARLY_EXIT": "exits without having waited for the access of another CTA at PTX line \\d+",
}
SM100_BUGS = {
    "NO_FREE_WAIT": "data race|which expects 0 more",
    "NO_PROXY_FENCE": "missing fence.proxy.async",
    "WRONG_PHASE": "data race|deadlock",
    "NO_SCALE_WAIT": "data race|uninitialised",
    "NO_DONE_WAIT": "data race: tensor memory|read before it was written",
    "NO_FENCE_AFTER": "data race: tensor memory",
    "NO_WAIT_LD": "a register is read before tcgen05.wait::ld",
    "ACCUMULATE_FIRST": "read before it was written",
    "NO_DEALLOC": "still allocated",
}
NEEDS_TMA_STORE = {"NO_PROXY_FENCE", "NO_EPILOGUE_BARRIER", "NO_STORE_WAIT"}
NEEDS_CLUSTER = {"NO_CLUSTER_SYNC", "EARLY_EXIT"}


def report_of(emulator: CudaDriver, case: Case) -> str:
    with pytest.raises(CudaError) as caught:
        run_case(emulator, case)
    return caught.value.report


@pytest.mark.parametrize("seed", ["", "3"])
@pytest.mark.parametrize("bug", SM90_BUGS)
def test_sm90_bug_is_found(emulator: CudaDriver, bug: str, seed: str) -> None:
    emulator.set("seed", seed)
    case = gemm_cases.gemm_case(bug, 200, 128, 640, bug=bug, bf16=bug in NEEDS_TMA_STORE, cluster=2 if bug in NEEDS_CLUSTER else 1)
    report = report_of(emulator, case)
    assert re.search(SM90_BUGS[bug], report), report
    assert re.search(r"PTX line \d+: .*<- .*kernel\.cu:\d+", report), report  # the instruction and its source line


@pytest.mark.parametrize("seed", ["", "3"])
@pytest.mark.parametrize("bug", SM100_BUGS)
@pytest.mark.parametrize("group", [1, 2])
def test_sm100_bug_is_found(emulator: CudaDriver, bug: str, seed: str, group: int) -> None:
    emulator.set("arch", "sm100a")
    emulator.set("seed", seed)
    report = report_of(emulator, gemm_sm100_cases.gemm_case(bug, 200, 128, 640, bug=bug, group=group))
    assert re.search(SM100_BUGS[bug], report), report
    assert re.search(r"PTX line \d+: .*<- .*kernel\.cu:\d+", report), report


def kernel(body: str, *, block: int = 128, size: int = 4096) -> Case:
    source = 'extern "C" __global__ void kernel_main(u32* out) {\n__shared__ __align__(128) u32 s[256];\n__shared__ u64 barrier;\n' + body + "\n}"
    return Case(name="bug", source=source, block=(block,), buffers={"out": bytes(size)}, params=(Pointer("out"),), outputs=("out",))


SMALL_BUGS = {
    "two warps race on shared memory": ("s[threadIdx.x % 32] = threadIdx.x; __syncwarp(); out[threadIdx.x] = s[5];", "data race: shared memory"),
    "a lane reads what another has written": ("const u32 t = threadIdx.x; if (t < 32) { s[t] = t; out[t] = s[t ^ 1]; }",
                                              "lanes of a warp race: shared memory .* written at PTX line \\d+ by thread \\d+ and read at PTX line \\d+"),
    "a lane writes what another has read": ("const u32 t = threadIdx.x; s[t] = t; __syncthreads(); out[t] = s[t ^ 1]; if (t == 0) s[0] = 7;",
                                            "lanes of a warp race: shared memory .* read at PTX line \\d+ by thread 1 and overwritten at PTX line \\d+ by thread 0"),
    "a lane writes what several have read": ("const u32 t = threadIdx.x; s[t] = t; __syncthreads(); if (t < 32) { out[t] = s[5]; if (t == 31) s[5] = 7; }",
                                             "lanes of a warp race: shared memory .* by several threads and overwritten at PTX line \\d+ by thread 31"),
    "two lanes write one place": ("const u32 t = threadIdx.x; if (t < 32) s[t / 2] = t; __syncthreads(); out[t] = s[0];",
                                  "lanes of a warp race: shared memory .* written at PTX line \\d+ by thread \\d+ and written again"),
    "other lanes meet": ("const u32 t = threadIdx.x; s[t] = t; if (t % 32 >= 16) __syncwarp(0xffff0000); out[t] = s[t ^ 1];", "lanes of a warp race"),
    "a relaxed cluster barrier": ("const u32 t = threadIdx.x; s[t] = t; asm volatile(\"barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\" ::: \"memory\");"
                                  "out[t] = s[t ^ 1];", "lanes of a warp race"),
    "missing __syncthreads": ("s[threadIdx.x] = threadIdx.x; out[threadIdx.x] = s[threadIdx.x ^ 64];", "data race|uninitialised"),
    "two warps race on global memory": ("out[threadIdx.x % 32] = threadIdx.x;", "data race: global memory"),
    "global store out of bounds": ("out[threadIdx.x + 1000] = 1;", "store of 4 bytes .* is out of bounds"),
    "shared load out of bounds": ("int i = out[0] + 100000; out[threadIdx.x] = s[i];", "out of bounds"),
    "misaligned vector": ("reinterpret_cast<uint4*>(out + 1)[threadIdx.x] = uint4{};", "misaligned store"),
    "arrive on an uninitialised mbarrier": ("if (threadIdx.x == 0) mbarrier_arrive(smem_address(&barrier));", "no initialised mbarrier"),
    "one arrival too many": ("if (threadIdx.x == 0) { mbarrier_init(smem_address(&barrier), 2);"
                             'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" ::"r"(smem_address(&barrier))); }', "which expects 2 more"),
    "barrier that nobody completes": ("if (threadIdx.x == 0) mbarrier_init(smem_address(&barrier), 2); __syncthreads();"
                                      "mbarrier_wait(smem_address(&barrier), 0);", "deadlock.*\n[^$]*mbarrier 0x[0-9a-f]+, parity 0"),
    "bar.sync with too few warps": ("if (threadIdx.x < 64) named_sync(1, 128);", "deadlock[^$]*named barrier 1"),
    "bar.arrive that nobody waits for": ("if (threadIdx.x < 32) asm volatile(\"bar.arrive 3, 64;\");", "exits with named barrier 3 left at 32 of 64 threads"),
    "shuffle from a lane that does not take part": ("if (threadIdx.x % 32 < 16) { u32 r; asm volatile(\"shfl.sync.idx.b32 %0, %1, 20, 31, 0xffff;\" : \"=r\"(r) : "
                                                    "\"r\"(threadIdx.x)); out[threadIdx.x] = r; }", "shfl: lane \\d+ reads lane 20"),
    "trap": ('asm volatile("trap;");', "trap was executed"),
}


@pytest.mark.parametrize("bug", SMALL_BUGS)
def test_small_bug_is_found(emulator: CudaDriver, bug: str) -> None:
    body, pattern = SMALL_BUGS[bug]
    report = report_of(emulator, kernel(body))
    assert re.search(pattern, report), report
    assert re.search(r"PTX line \d+", report), report


def test_a_right_kernel_passes(emulator: CudaDriver) -> None:
    body = "s[threadIdx.x] = threadIdx.x * 3; __syncthreads(); out[threadIdx.x] = s[threadIdx.x ^ 64];"
    out = run_case(emulator, kernel(body))["out"]
    assert out[:512] == b"".join(((t ^ 64) * 3).to_bytes(4, "little") for t in range(128))


def test_lanes_that_meet_do_not_race(emulator: CudaDriver) -> None:
    body = """const u32 t = threadIdx.x;
        s[t] = t; s[t + 128] = 0; __syncwarp(); out[t] = s[t ^ 1]; __syncwarp(); if (t % 32 == 0) s[t + 1] = 7;
        __syncthreads(); out[t] += s[t ^ 32]; atomicAdd(s + 200, 1u);
        cluster_sync(); out[t] += 1000 * s[200]; cluster_sync(); s[t ^ 1] = t;"""
    out = run_case(emulator, kernel(body))["out"]
    assert int.from_bytes(out[:4], "little") == 1 + 32 + 128000 and int.from_bytes(out[33 * 4 : 34 * 4], "little") == 32 + 7 + 128000


def test_a_thread_may_write_what_its_own_copy_has_read(emulator: CudaDriver) -> None:
    body = """if (threadIdx.x != 33) return;
        const u32 b = smem_address(&barrier), from = smem_address(s), to = smem_address(s + 128);
        mbarrier_init(b, 1); fence_mbarrier_init();
        for (int i = 0; i < 16; ++i) s[i] = i;
        fence_proxy_async(); mbarrier_expect(b, 64);
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];" ::"r"(to), "r"(from), "r"(b) : "memory");
        mbarrier_wait(b, 0); s[15] = 7; out[0] = s[128 + 15];"""
    assert run_case(emulator, kernel(body))["out"][:4] == (15).to_bytes(4, "little")


def test_uninitialised_reads_are_counted_and_can_be_refused(emulator: CudaDriver) -> None:
    case = kernel("out[threadIdx.x] = s[threadIdx.x];")
    assert run_case(emulator, case)["out"][:4] == b"\xff" * 4
    assert '"uninitialised_reads": 128' in emulator.text("statistics")
    emulator.set("uninitialised", "1")
    assert "uninitialised shared memory" in report_of(emulator, case)


def test_a_try_wait_without_a_loop_is_found_by_a_seed(emulator: CudaDriver) -> None:
    """try_wait may return false for no reason: only a schedule that does so shows who relies on it."""
    case = kernel("""
        const u32 b = smem_address(&barrier);
        if (threadIdx.x == 0) { mbarrier_init(b, 1); fence_mbarrier_init(); }
        __syncthreads();
        if (threadIdx.x == 64) { s[7 + out[1]] = 1; mbarrier_arrive(b); }
        if (threadIdx.x == 0) {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;}" ::"r"(b) : "memory");
            out[0] = s[7 + out[2]];
        }""")
    run_case(emulator, case)
    reports = []
    for seed in range(64):
        emulator.set("seed", str(seed))
        try:
            run_case(emulator, case)
        except CudaError as error:
            reports.append(error.report)
    assert any("data race: shared memory" in report for report in reports)
