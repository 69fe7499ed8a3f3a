"""Parser, driver front and diagnostics: what a program sees that is not arithmetic."""
from __future__ import annotations

import ctypes
import json
import re
import struct
import threading

import pytest

from cases import gemm_cases, tma_cases
from harness.case import Case, Pointer, i32, run_case
from harness.cuda_driver import CudaDriver, CudaError, TensorMapSpec

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def ptx(body: str, registers: str = ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<4>;") -> bytes:
    return (HEADER + ".visible .entry kernel_main(.param .u64 out) {\n" + registers + "\n" + body + "\nret;\n}\n").encode() + b"\0"


def run_ptx(emulator: CudaDriver, text: bytes, words: int = 4, block: int = 1) -> list[int]:
    """Runs a kernel with one output pointer; returns the words it left."""
    module = emulator.load(text)
    out = emulator.alloc(bytes(4 * words))
    emulator.launch(emulator.function(module, "kernel_main"), (1,), (block,), [struct.pack("<Q", out)])
    data = emulator.read(out, 4 * words)
    emulator.free(out)
    return list(struct.unpack(f"<{words}I", data))


LOAD_OUT = "ld.param.u64 %rd1, [out];\n"


@pytest.mark.parametrize(("line", "message"), [
    ("frobnicate.b32 %r1, %r2;", "PTX line 6: unknown opcode 'frobnicate.b32'"),
    ("add.wibble.s32 %r1, %r2, %r3;", "PTX line 6: unknown qualifier .wibble"),
    ("add.s32 %r1, %r2, %r99;", "PTX line 6: unknown name '%r99'"),
    ("bra NOWHERE;", "PTX line 6: unknown name 'NOWHERE'"),
    ("add.s32 %r1, %r2, 12junk;", "malformed number '12junk'"),
    ("tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "PTX line 6: cannot decode"),
    ("call.uni some_function, ();", "PTX line 6: cannot decode"),
    ("@%p9 mov.u32 %r1, 0;", "PTX line 6: unknown guard predicate"),
    (".unheard_of 3;", "PTX line 6: unknown directive '.unheard_of'"),
])
def test_unknown_text_is_refused_by_line(emulator: CudaDriver, line: str, message: str) -> None:
    with pytest.raises(CudaError) as caught:
        emulator.load(ptx(line))
    assert message in caught.value.report


def test_scopes_have_their_own_labels_and_registers(emulator: CudaDriver) -> None:
    once = "{ .reg .b32 t; .reg .pred q; mov.u32 t, %s; L: add.u32 t, t, 1; setp.lt.u32 q, t, %s; @q bra L; st.global.u32 [%%rd1+%d], t; }\n"
    body = LOAD_OUT + once % (0, 5, 0) + once % (100, 7, 4)
    assert run_ptx(emulator, ptx(body))[:2] == [5, 101]


def test_vectors_negative_offsets_and_immediates(emulator: CudaDriver) -> None:
    body = LOAD_OUT + ("mov.b64 %rd2, {%r1, %r2}; mov.u32 %r1, 0x11; mov.s32 %r2, -2; mov.f32 %f1, 0f40490FDB; mov.b32 %r3, %f1; mov.b64 %rd2, {%r1, %r2};\n"
                       "mov.b64 {_, %r4}, %rd2; add.u64 %rd3, %rd1, 16; st.global.v4.u32 [%rd3+-16], {%r1, %r2, %r3, %r4};")
    assert run_ptx(emulator, ptx(body)) == [0x11, 0xFFFFFFFE, 0x40490FDB, 0xFFFFFFFE]


def test_branch_table(emulator: CudaDriver) -> None:
    body = LOAD_OUT + ("mov.u32 %r1, %tid.x; mov.u32 %r2, 7; T: .branchtargets A, B, C;\nbrx.idx %r1, T;\nA: mov.u32 %r2, 10; bra E;\nB: mov.u32 %r2, 20; bra E;\n"
                       "C: mov.u32 %r2, 30;\nE: mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r2;")
    assert run_ptx(emulator, ptx(body), 3, 3) == [10, 20, 30]


def test_initialised_global_table(emulator: CudaDriver) -> None:
    text = HEADER + (".global .align 4 .u32 table[3] = {5, 6, 7};\n.visible .entry kernel_main(.param .u64 out) {\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
                     "ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [table+8]; st.global.u32 [%rd1], %r1; ret;\n}\n")
    assert run_ptx(emulator, text.encode() + b"\0", 1) == [7]


def test_several_entries(emulator: CudaDriver) -> None:
    entry = ".visible .entry %s(.param .u64 out) { .reg .b64 %%rd<2>; ld.param.u64 %%rd1, [out]; st.global.u32 [%%rd1], %d; ret; }\n"
    module = emulator.load((HEADER + entry % ("first", 1) + entry % ("second", 2)).encode() + b"\0")
    out = emulator.alloc(bytes(4))
    emulator.launch(emulator.function(module, "second"), (1,), (1,), [struct.pack("<Q", out)])
    assert emulator.read(out, 4) == struct.pack("<I", 2)
    with pytest.raises(CudaError):
        emulator.function(module, "third")


def test_divergent_lanes_that_spin_on_each_other_make_progress(emulator: CudaDriver) -> None:
    source = """extern "C" __global__ void kernel_main(volatile u32* out) {
        if (threadIdx.x == 0) { while (out[1] == 0) {} out[0] = 5; } else if (threadIdx.x == 31) { out[1] = 1; } }"""
    case = Case(name="spin", source=source, block=(32,), buffers={"out": bytes(8)}, params=(Pointer("out"),), outputs=("out",))
    assert struct.unpack("<2I", run_case(emulator, case)["out"]) == (5, 1)


def test_clusters_that_wait_for_each_other_run_together(emulator: CudaDriver) -> None:
    source = """extern "C" __global__ void kernel_main(u32* out) {
        if (threadIdx.x == 0) { atomicAdd(out, 1); while (atomicAdd(out, 0) < gridDim.x) {} } }"""
    case = Case(name="grid_barrier", source=source, grid=(5,), block=(32,), buffers={"out": bytes(4)}, params=(Pointer("out"),), outputs=("out",))
    assert struct.unpack("<I", run_case(emulator, case)["out"]) == (5,)


def encode(emulator: CudaDriver, **changes: object) -> None:
    base = dict(buffer="x", dtype=0, dims=(256, 64), strides=(256,), box=(128, 8), swizzle=3)
    buffer = emulator.alloc(bytes(256 * 64))
    emulator.tensor_map(TensorMapSpec(**{**base, **changes}), buffer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("changes", "message"), [
    ({"dtype": 99}, "data type 99"), ({"box": (256, 8)}, "more than the swizzle span"), ({"box": (8, 8), "swizzle": 0}, "no multiple of 16"),
    ({"strides": (250,)}, "no multiple of 16"), ({"box": (128, 300)}, "not in 1..256"), ({"offset": 8}, "16-byte aligned"), ({"dims": (256, 0)}, "dimension 1 is 0"),
    ({"dtype": 14}, "sub-byte types need sm_100"),
])
def test_tensor_maps_are_validated(emulator: CudaDriver, changes: dict[str, object], message: str) -> None:
    encode(emulator)
    with pytest.raises(CudaError) as caught:
        encode(emulator, **changes)
    assert message in caught.value.report


def test_a_thread_without_a_context_cannot_encode(emulator: CudaDriver) -> None:
    """As the driver: this call too wants a current context."""
    failures = []

    def run() -> None:
        try:
            encode(emulator)
        except CudaError as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(failures) == 1 and "cuTensorMapEncodeTiled failed with code 201" in failures[0]


def misuse(emulator: CudaDriver, source: str, **changes: object) -> str:
    spec = TensorMapSpec("tensor", 0, (256, 64), (256,), (128, 8), 3)
    text = ('extern "C" __global__ void kernel_main(const __grid_constant__ TensorMap map, int x) {\nextern __shared__ __align__(1024) u8 s[];\n__shared__ u64 barrier;\n'
            "const u32 b = smem_address(&barrier);\nif (threadIdx.x == 0) { mbarrier_init(b, 1); fence_mbarrier_init(); mbarrier_expect(b, 1024);" + source +
            "}\n__syncthreads(); mbarrier_wait(b, 0); }")
    case = Case(name="misuse", source=text, shared=8192, buffers={"tensor": bytes(256 * 64)}, params=(spec, i32(0)), outputs=("tensor",), **changes)  # type: ignore[arg-type]
    with pytest.raises(CudaError) as caught:
        run_case(emulator, case)
    return caught.value.report


def test_tma_misuse(emulator: CudaDriver) -> None:
    assert "128-byte aligned" in misuse(emulator, "tma_load_2d(smem_address(s) + 64, &map, x, 0, b);")
    assert "no multiple of 16 bytes" in misuse(emulator, "tma_load_2d(smem_address(s), &map, x + 8, 0, b);")
    assert "3d instruction with a tensor map of rank 2" in misuse(emulator, "tma_load_3d(smem_address(s), &map, x, 0, 0, b);")
    assert "out of bounds" in misuse(emulator, "tma_load_2d(smem_address(s) + 16384, &map, x, 0, b);")
    assert re.search(r"mbarrier 0x[0-9a-f]+ .*tx 1024", misuse(emulator, ""))


def test_a_map_beyond_its_buffer_is_refused(emulator: CudaDriver) -> None:
    source = "#define LOAD(to, map) tma_load_2d(to, map, c[0], c[1], full)\n" + tma_cases._LOAD
    spec = TensorMapSpec("tensor", 0, (256, 64), (256,), (128, 8), 3)
    case = Case(name="beyond", source=source, shared=tma_cases.WINDOW, buffers={"tensor": bytes(256 * 60), "where": struct.pack("<4i", 0, 56, 0, 0), "out": bytes(tma_cases.WINDOW)},
                params=(spec, Pointer("where"), Pointer("out"), i32(1024)), outputs=("out",))
    with pytest.raises(CudaError) as caught:
        run_case(emulator, case)
    assert "TMA load of 128 bytes" in caught.value.report and "out of bounds" in caught.value.report


def test_launch_limits(emulator: CudaDriver) -> None:
    module = emulator.load(ptx(""))
    function = emulator.function(module, "kernel_main")
    pointer = [struct.pack("<Q", 0)]
    with pytest.raises(CudaError, match="set the attribute first"):
        emulator.launch(function, (1,), (32,), pointer, shared=100_000)
    with pytest.raises(CudaError, match="227 KiB"):
        emulator.function(module, "kernel_main", shared=240_000)
    with pytest.raises(CudaError, match="non-portable"):
        emulator.launch(function, (16,), (32,), pointer, cluster=(16, 1, 1))
    with pytest.raises(CudaError, match="does not divide"):
        emulator.launch(function, (3,), (32,), pointer, cluster=(2, 1, 1))
    with pytest.raises(CudaError, match="PTX text only"):
        emulator.load(b"\x7fELF....")
    with pytest.raises(CudaError, match="the PTX is for sm_90a"):
        emulator.set("arch", "sm100a")
        emulator.load(ptx(""))


def test_proc_addresses_and_names(emulator: CudaDriver) -> None:
    found, status = ctypes.c_void_p(), ctypes.c_int()
    for name in ("cuLaunchKernelEx", "cuMemAlloc", "cuCtxPushCurrent", "cuTensorMapEncodeTiled"):
        emulator.call("cuGetProcAddress_v2", name.encode(), ctypes.byref(found), 12030, ctypes.c_uint64(0), ctypes.byref(status))
        assert found.value and status.value == 0
    text = ctypes.c_char_p()
    emulator.call("cuGetErrorName", 719, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_LAUNCH_FAILED"
    for arch, expected in (("sm90a", (9, 0)), ("sm100a", (10, 0))):
        emulator.set("arch", arch)
        assert emulator.compute_capability() == expected


def test_diagnostics(emulator: CudaDriver) -> None:
    emulator.set("trace", "1")
    case = gemm_cases.gemm_case("stats", 128, 128, 256)
    run_case(emulator, case)
    statistics = json.loads(emulator.text("statistics"))
    assert statistics["mma_macs"] == 128 * 128 * 256
    assert statistics["mma_instructions"] == 8 * 2 * 4  # 8 warps, 2 blocks of K, 4 instructions each
    assert statistics["bulk_load_bytes"] == 2 * 2 * 128 * 128
    timeline = emulator.text("timeline")
    assert re.search(r"mbarrier 0x\w+: complete_tx \(phase 0, pending 0 of 1, tx 16384\)", timeline)
    assert timeline.count("phase complete") == 4


def test_bank_conflicts_and_last_writer(emulator: CudaDriver) -> None:
    source = 'extern "C" __global__ void kernel_main(u32* out) { __shared__ u32 s[1024]; s[threadIdx.x * STRIDE] = 1; __syncwarp(); out[threadIdx.x] = s[threadIdx.x * STRIDE]; }'
    for stride, conflicts in ((1, 0), (2, 1), (8, 7)):
        case = Case(name="banks", source=source, block=(32,), defines=(f"STRIDE={stride}",), buffers={"out": bytes(128)}, params=(Pointer("out"),), outputs=("out",))
        run_case(emulator, case)
        assert json.loads(emulator.text("statistics"))["shared_bank_conflicts"] == 2 * conflicts
    module, out = emulator.load(ptx(LOAD_OUT + "st.global.u32 [%rd1+4], 9;")), emulator.alloc(bytes(16))
    emulator.set("watch", str(out + 4))
    emulator.launch(emulator.function(module, "kernel_main"), (1,), (1,), [struct.pack("<Q", out)])
    assert re.search(r"writer of 0x\w+: CTA \(0,0,0\) warp 0 lane 0, PTX line \d+", emulator.text("timeline"))
