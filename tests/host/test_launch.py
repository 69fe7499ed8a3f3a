"""The launcher against a driver that is strict about contexts, attributes and capture, and counts calls. No GPU."""

import os
import re
from pathlib import Path

import fake_device
import pytest


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    import deep_gemm
    from deep_gemm.nvrtc_paths import nvrtc_folders

    folder = tmp_path_factory.mktemp("launch")
    library = fake_device.build_driver(folder)
    if library is None:
        pytest.skip("no C++ compiler to build the fake driver with")
    home = Path(deep_gemm.__file__).resolve().parent
    include = home / "include" if (home / "include").is_dir() else home.parent / "include"
    return {
        "DG_DRIVER_LIBRARY": str(library),
        "DG_JIT_CACHE_DIR": str(folder / "cache"),
        "DG_TEST_INCLUDE": str(include),
        "DG_TEST_NVRTC": os.pathsep.join(nvrtc_folders()),
        "PYTHONPATH": str(fake_device.lone_extension(folder)),
        "FAKE_DEVICES": "2",
    }


def test_a_call_is_three_maps_and_one_launch(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
a, b, d = operands(256, 512, 1024)
gemm(a, b, d)
first = log()
assert sum("cuInit" in line for line in first) == 1
assert sum("cuDevicePrimaryCtxRetain" in line for line in first) == 1
gemm(a, b, d)
lines = log()
assert [line.split()[0] for line in lines] == ["cuTensorMapEncodeTiled"] * 3 + ["cuLaunchKernelEx"], lines
assert "data=0x100000000 bytes=1 extents=1024,256 stride=1024" in lines[0]
assert "data=0x300000000 bytes=1 extents=1024,512 stride=1024" in lines[1]
assert "data=0x500000000 bytes=2 extents=512,256 stride=1024" in lines[2]
assert "stream=0x1000 " in lines[3] and "pdl=0" in lines[3]
assert "torch" not in sys.modules
""",
        environment,
    )


def test_opening_nvrtc_and_loading_print_their_times(environment):
    output = fake_device.run(
        """
fake.fake_set_current(0)
gemm(*operands(256, 512, 1024))
""",
        {**environment, "DG_JIT_PRINT_LOAD_TIME": "1"},
    )
    assert len(re.findall(r"deep_gemm load: NVRTC '.*libnvrtc.*': found and opened in [\d.]+ ms", output)) == 1, output
    assert len(re.findall(r"deep_gemm load: sm90_fp8_gemm_1d2d \w{64}: loaded on device 0 in [\d.]+ ms", output)) == 1, output


def test_strided_rows_reach_the_maps(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
a, b, d = operands(96, 256, 512)
a = (Tensor(0x100000000, "float8_e4m3fn", (96, 512), (2048, 1)), a[1])
d = Tensor(0x500000000, "bfloat16", (96, 256), (1024, 1))
gemm(a, b, d)
maps = log("Encode")
assert "extents=512,96 stride=2048" in maps[0] and "extents=256,96 stride=2048" in maps[2], maps
""",
        environment,
    )


def test_pdl_and_the_sm_count_reach_the_launch(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
a, b, d = operands(4096, 4096, 512)
gemm(a, b, d)
grid = lambda: int(log("cuLaunchKernelEx")[0].split("grid=")[1].split(",")[0])
full = grid()
_C.set_pdl(True)
_C.set_num_sms(100)
assert _C.get_num_sms() == 100
gemm(a, b, d)
line = log("cuLaunchKernelEx")[0]
assert "pdl=1" in line, line
assert int(line.split("grid=")[1].split(",")[0]) <= 100 < full <= 132
_C.set_num_sms(0)
_C.set_pdl(False)
assert _C.get_num_sms() == 132
assert "0...132" in refusal(_C.set_num_sms, 133)
gemm(a, b, d)
assert grid() == full
""",
        environment,
    )


def test_compile_mode_launches_nothing(environment):
    fake_device.run(
        """
_C.set_compile_mode(1)
gemm(*operands(256, 512, 1024))
lines = log()
assert any("cuLibraryLoadData" in line for line in lines) and not any("cuLaunch" in line for line in lines)
""",
        environment,
    )


@pytest.mark.parametrize("current", [-1, 0])
def test_another_devices_context_is_pushed_and_popped(environment, current):
    fake_device.run(
        f"""
current = {current}
fake.fake_set_current(current)
depth = fake.fake_stack_depth()
gemm(*operands(256, 512, 1024, device=1))
log()
gemm(*operands(256, 512, 1024, device=1))
lines = log()
names = [line.split()[0] for line in lines]
assert names == ["cuCtxPushCurrent", *["cuTensorMapEncodeTiled"] * 3, "cuLaunchKernelEx", "cuCtxPopCurrent"], lines
assert "device=1" in lines[0] and "device=1" in lines[4] and "stream=0x1001 " in lines[4]
assert fake.fake_stack_depth() == depth
""",
        environment,
    )


def test_each_device_has_its_own_kernel_and_numbers(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
for round in range(2):
    for device in (0, 1):
        gemm(*operands(4096, 4096, 512, device=device))
lines = log()
assert sum("cuDevicePrimaryCtxRetain" in line for line in lines) == 2
assert sum("cuLibraryLoadData" in line for line in lines) == 2
launches = [line for line in lines if "cuLaunchKernelEx" in line]
assert ["device=0" in line for line in launches] == [True, False] * 2
grids = [int(line.split("grid=")[1].split(",")[0]) for line in launches]
assert grids[0] <= 132 and grids[1] <= 114 and grids[:2] == grids[2:]
fake.fake_set_current(1)
assert _C.get_num_sms() == 114
assert "there is no CUDA device 2: the driver sees 2" in refusal(gemm, *operands(256, 512, 1024, device=2))
""",
        environment,
    )


def test_a_cold_call_inside_capture_loads_in_relaxed_mode(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
fake.fake_capture(1)
gemm(*operands(256, 512, 1024))
assert fake.fake_capture_mode() == 0
lines = log()
assert any("cuFuncGetAttribute" in line for line in lines), "the upload was left to the captured launch"
assert "cuLaunchKernelEx" in lines[-1]
""",
        environment,
    )


def test_an_image_that_fails_once_is_built_again(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
fake.fake_fail(b"cuKernelGetFunction", 209, 1)
gemm(*operands(256, 512, 1024))
lines = log()
assert sum("cuLibraryLoadData" in line for line in lines) == 2
assert sum("cuLibraryUnload" in line for line in lines) == 1, "the library that did not load was leaked"
assert "cuLaunchKernelEx" in lines[-1]
assert fake.fake_capture_mode() == 0
""",
        environment,
    )


@pytest.mark.parametrize(
    "call, words",
    [
        ("cuDevicePrimaryCtxRetain", "nvidia-smi"),
        ("cuLibraryLoadData", "does not load here"),
        ("cuLibraryGetKernel", "the image holds no kernel"),
        ("cuFuncSetAttribute", "MAX_DYNAMIC_SHARED_SIZE_BYTES"),
        ("cuTensorMapEncodeTiled", "multiples of 16 bytes"),
        ("cuLaunchKernelEx", "CUDA_LAUNCH_BLOCKING"),
    ],
)
def test_a_driver_error_names_the_call_and_the_remedy(environment, call, words):
    fake_device.run(
        f"""
fake.fake_set_current(0)
fake.fake_fail(b"{call}", 999, 9)
text = refusal(gemm, *operands(256, 512, 1024))
assert text.startswith("DeepGemmError: {call}"), text
assert "CUDA_ERROR_999 (as planned)" in text and {words!r} in text, text
assert fake.fake_stack_depth() == 1 and fake.fake_capture_mode() == 0
""",
        environment,
    )


def test_no_product_is_a_fill_or_a_copy(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
a, b, _ = operands(8, 64, 0)
d = Tensor(0x500000000, "bfloat16", (8, 64), (96, 1))
gemm(a, b, d)
assert log("cu")[-1] == "cuMemsetD2D8Async device=0 data=0x500000000 pitch=192 value=0 width=128 height=8 stream=0x1000"
c = Tensor(0x600000000, "bfloat16", (8, 64), (64, 1))
gemm(a, b, d, c)
assert log("cu") == [
    "cuMemcpy2DAsync device=0 from=0x600000000 pitch=128 to=0x500000000 pitch=192 width=128 height=8 stream=0x1000"]
gemm(a, b, d, d)
assert log() == []
a, b, d = operands(0, 64, 128)
gemm(a, b, d)
assert log() == []
""",
        environment,
    )


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"DG_DRIVER_LIBRARY": "libnone.so.9"}, "could not be loaded"),
        ({"FAKE_DEVICES": "0"}, "CUDA_VISIBLE_DEVICES"),
        ({"FAKE_VERSION": "12020"}, "12.3 or newer"),
        ({"FAKE_INIT_ERROR": "999"}, "cuInit failed with"),
    ],
)
def test_no_driver_is_a_sentence(environment, changes, words):
    code = f"""
for attempt in range(2):
    text = refusal(gemm, *operands(256, 512, 1024))
    assert text.startswith("DeepGemmError: ") and {words!r} in text, text
assert {words!r} in refusal(_C.get_num_sms)
assert not _C.driver_available()
_C.set_num_sms(64)
assert _C.get_num_sms() == 64
"""
    # The prelude opens the fake driver by the same setting; here it must not.
    code = "os.environ.update(%r)\n" % changes + code
    fake_device.run(code, environment)


def test_other_threads_run_while_a_kernel_loads(environment):
    """The load ends only when another Python thread says so: holding the GIL would be a deadlock, reported as an error."""
    fake_device.run(
        """
import threading, time
fake.fake_set_current(0)
fake.fake_hold_load()
def release():
    while not fake.fake_load_entered():
        time.sleep(0.001)
    fake.fake_release_load()
thread = threading.Thread(target=release)
thread.start()
gemm(*operands(256, 512, 1024))
thread.join()
assert "cuLaunchKernelEx" in log()[-1]
""",
        environment,
    )


def test_threads_that_ask_at_once_all_launch(environment):
    fake_device.run(
        """
import threading
errors = []
barrier = threading.Barrier(8)
def work(device):
    try:
        fake.fake_set_current(device)
        barrier.wait()
        for m in (64, 128, 4096):
            gemm(*operands(m, 512, 1024, device=device))
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert not errors, errors
lines = log()
assert sum("cuInit" in line for line in lines) == 1
assert sum("cuDevicePrimaryCtxRetain" in line for line in lines) == 2
assert sum("cuLaunchKernelEx" in line for line in lines) == 24
""",
        environment,
    )
