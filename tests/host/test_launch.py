"""The launcher against a driver that is strict about contexts, attributes and capture, and counts calls. No GPU."""

import os
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
lines = first[-4:]
assert [line.split()[0] for line in lines] == ["cuTensorMapEncodeTiled"] * 3 + ["cuLaunchKernelEx"], lines
assert "data=0x100000000 bytes=1 extents=1024,256 stride=1024" in lines[0]
assert "data=0x300000000 bytes=1 extents=1024,512 stride=1024" in lines[1]
assert "data=0x500000000 bytes=2 extents=512,256 stride=1024" in lines[2]
assert "stream=0x1000 " in lines[3] and "pdl=0" in lines[3]
assert "torch" not in sys.modules
""",
        environment,
    )


STEADY = """
fake.fake_set_current(0)
A, SFA, B, SFB, D = 0x100000000, 0x200000000, 0x300000000, 0x400000000, 0x500000000

def encoded(a, b, d):
    "Addresses whose maps a call had the driver encode; it launches once."
    gemm(a, b, d)
    lines = log()
    assert sum("cuLaunchKernelEx" in line for line in lines) == 1, lines
    return [int(line.split("data=")[1].split()[0], 16) for line in lines if "Encode" in line]

call = operands(64, 512, 1024)
assert encoded(*call) == [A, B, D]
"""


def test_a_steady_call_encodes_no_map(environment):
    fake_device.run(
        STEADY
        + """
gemm(*call)
assert [line.split()[0] for line in log()] == ["cuLaunchKernelEx"]
assert encoded(*operands(32, 512, 1024)) == [A, D]  # B is cut into boxes of the same rows, or this says so
assert encoded(*call) == [] and encoded(*operands(32, 512, 1024)) == []
""",
        environment,
    )


@pytest.mark.parametrize(
    "change, maps",
    [
        ("((Tensor(0x700000000, 'float8_e4m3fn', (64, 1024)), a[1]), b, d)", "[0x700000000]"),
        ("(a, (Tensor(0x700000000, 'float8_e4m3fn', (512, 1024)), b[1]), d)", "[0x700000000]"),
        ("(a, b, Tensor(0x700000000, 'bfloat16', (64, 512)))", "[0x700000000]"),
        ("((Tensor(A, 'float8_e4m3fn', (64, 1024), (2048, 1)), a[1]), b, d)", "[A]"),
        ("(a, (Tensor(B, 'float8_e4m3fn', (512, 1024), (1040, 1)), b[1]), d)", "[B]"),
        ("(a, b, Tensor(D, 'bfloat16', (64, 512), (520, 1)))", "[D]"),
        ("operands(64, 512, 1024, device=1)", "[A, B, D]"),
        ("((a[0], Tensor(0x700000000, 'float32', (64, 8))), (b[0], Tensor(0x800000000, 'float32', (4, 8))), d)", "[]"),
    ],
    ids="address_of_a address_of_b address_of_d pitch_of_a pitch_of_b pitch_of_d device scales".split(),
)
def test_what_changes_gets_a_new_map(environment, change, maps):
    fake_device.run(
        STEADY
        + f"""
a, b, d = call
changed = {change}
assert encoded(*changed) == {maps}
assert encoded(*call) == [] and encoded(*changed) == []
""",
        environment,
    )


def test_other_extents_get_new_maps(environment):
    fake_device.run(
        STEADY
        + """
assert encoded(*operands(64, 512, 896)) == [A, B]
assert set(encoded(*operands(64, 520, 1024))) >= {B, D}
assert set(encoded(*operands(60, 512, 1024))) >= {A, D}
assert D in encoded(*operands(64, 512, 1024, d_dtype="float32"))
assert encoded(*call) == []
""",
        environment,
    )


def test_a_map_that_was_refused_is_not_remembered(environment):
    fake_device.run(
        """
fake.fake_set_current(0)
call = operands(64, 512, 1024)
fake.fake_fail(b"cuTensorMapEncodeTiled", 999, 1)
assert "cuTensorMapEncodeTiled" in refusal(gemm, *call)
log()
gemm(*call)
assert [line.split()[0] for line in log()] == ["cuTensorMapEncodeTiled"] * 3 + ["cuLaunchKernelEx"]
""",
        environment,
    )


def test_many_maps_drive_each_other_out_and_stay_right(environment):
    fake_device.run(
        STEADY
        + """
row = 1024
for i in range(8192):  # more than are remembered
    a = (Tensor(A + row * i, "float8_e4m3fn", (64, 1024)), call[0][1])
    assert A + row * i in encoded(a, *call[1:]) or i == 0
assert set(encoded(*call)) <= {A, B, D}
assert encoded(*call) == []
""",
        environment,
    )


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
assert names == ["cuCtxPushCurrent", "cuLaunchKernelEx", "cuCtxPopCurrent"], lines
assert "device=1" in lines[0] and "device=1" in lines[1] and "stream=0x1001 " in lines[1]
gemm(*operands(256, 512, 1152, device=1))
lines = log("cu")
pushed = max(i for i, line in enumerate(lines) if "cuCtxPushCurrent" in line)
names = [line.split()[0] for line in lines[pushed + 1 :]]
assert names == [*["cuTensorMapEncodeTiled"] * 2, "cuLaunchKernelEx", "cuCtxPopCurrent"], lines
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
