"""What fp8_gemm_* does with tensors of a CUDA device, seen from the recording driver. Run as a program with the driver's
path: every `scenario_*` runs in order, and the outcome of each is printed as JSON."""

import ctypes
import json
import os
import sys
import threading
import traceback

import torch

import deep_gemm
from deep_gemm import _C
from fp8_calls import BF16, F32, Call, moved, stream_of
from fp8_operands import aligned_rows, ceil_div, random_fp8, random_scales

FIELDS = ("a", "sfa", "b", "sfb", "d", "c")
SMS = {"cuda:0": 132, "cuda:1": 78}
EMULATED = bool(os.environ.get("DG_EMULATE"))
driver = None


def recorded() -> dict:
    return json.loads(driver.recorded())


class Delta:
    """Counts what happened inside a `with` block."""

    def __enter__(self):
        self.before = recorded()
        return self

    def __exit__(self, *error):
        after = recorded()
        self.last = after["last"]
        for name in ("launches", "loads", "fills", "copies"):
            setattr(self, name, after[name] - self.before[name])


def make_call(m, n, k, gran_n=128, dtype=BF16, with_c=False, device="cuda:0") -> Call:
    """A call whose tensors claim to be on `device`; `call.host` holds the tensors themselves."""
    blocks = ceil_div(k, 128)
    sfa, sfb = random_scales(m, blocks, seed=2), random_scales(ceil_div(n, gran_n), blocks, seed=4)
    call = Call(
        random_fp8(m, k, seed=1), sfa, random_fp8(n, k, seed=3), sfb, aligned_rows(m, n, dtype, fill=5)
    )
    call.c = aligned_rows(m, n, dtype, fill=3) if with_c else None
    call.options = {"recipe": (1, gran_n, 128)}
    return on_device(call, device)


def on_device(call: Call, device: str) -> Call:
    call.host = {name: getattr(call, name) for name in FIELDS}
    if EMULATED:  # the host's memory is the device's
        return call
    for name in FIELDS:
        if getattr(call, name) is not None:
            moved(name, device)(call)
    return call


def plan_of(m, n, k, gran_n=128, dtype="bf16", has_c=False, **arch):
    return _C.plan_fp8_gemm(m, n, k, recipe=(1, gran_n, 128), d_dtype=dtype, has_c=has_c, arch=arch)


def expect_map(got, tensor, box_inner, box_outer, stride=None):
    """A tensor map covers `tensor` exactly, in boxes of this size, swizzled over 128 bytes."""
    want = {
        "address": tensor.data_ptr(),
        "inner": tensor.shape[1],
        "outer": tensor.shape[0],
        "stride": stride or tensor.stride(0) * tensor.element_size(),
        "groups": 0,
        "group_stride": 0,
        "box_inner": box_inner,
        "box_outer": box_outer,
        "bytes": tensor.element_size(),
        "swizzle": 3,
    }
    assert got == want, (got, want)


def expect_launch(launch, call, plan):
    config = plan["config"]
    for name in ("grid", "threads", "smem_bytes", "cluster", "raster"):
        assert launch[name] == plan[name], (name, launch[name], plan[name])
    t = call.host
    rows = min(config["block_m"], t["a"].shape[0])  # of A in a tile, cut into slices of whole swizzle atoms
    slice_rows = min(rows, ceil_div(ceil_div(rows, config["cluster_n"]), 8) * 8)
    assert [launch["slice_rows"], launch["slices"]] == [slice_rows, ceil_div(rows, slice_rows)]
    expect_map(launch["a"], t["a"], 128, slice_rows)
    expect_map(launch["b"], t["b"], 128, config["block_n"] // config["cluster_m"])
    columns = 128 // t["d"].element_size()
    while config["block_n"] % columns:
        columns -= 8
    expect_map(launch["d"], t["d"], columns, 64)
    for name in ("sfa", "sfb"):
        rows, blocks = t[name].shape
        strides = [t[name].stride(0) if rows > 1 else 0, t[name].stride(1) if blocks > 1 else 0]
        assert launch[name]["address"] == t[name].data_ptr()
        assert [launch[name]["stride_mn"], launch[name]["stride_k"]] == strides
    assert [launch["m"], launch["n"], launch["k"]] == [*t["d"].shape, t["a"].shape[1]]
    assert launch["c"] == (0 if t["c"] is None else t["c"].data_ptr())
    assert t["c"] is None or launch["c_stride"] == t["c"].stride(0)


def scenario_one_launch_with_the_planned_shape():
    call = make_call(64, 256, 384)
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.loads, happened.fills, happened.copies) == (1, 1, 0, 0)
    expect_launch(happened.last, call, plan_of(64, 256, 384))
    assert happened.last["pdl"] == 0
    assert happened.last["stream"] == (0 if EMULATED else stream_of(0))
    assert recorded()["is_elf"] != EMULATED  # an emulated driver is given PTX


def scenario_clusters_and_tails():
    for m, n, k in ((4096, 4096, 7168), (513, 776, 1040), (1, 24, 16)):
        call = make_call(m, n, k)
        with Delta() as happened:
            call.run()
        assert happened.launches == 1
        if m > 1:
            expect_launch(happened.last, call, plan_of(m, n, k))
        else:  # the stride of a single row means nothing: what the map gets only has to be addressable
            assert happened.last["a"]["stride"] % 16 == 0 and happened.last["a"]["outer"] == 1


def scenario_per_row_scales_f32_and_c():
    call = make_call(200, 136, 256, gran_n=1, dtype=F32, with_c=True)
    with Delta() as happened:
        call.run()
    expect_launch(happened.last, call, plan_of(200, 136, 256, gran_n=1, dtype="f32", has_c=True))


def scenario_every_scale_form_is_read_in_place():
    for form in (lambda s: s, lambda s: s.t().contiguous().t(), lambda s: s.repeat(1, 2)[:, : s.shape[1]]):
        call = make_call(33, 256, 384)
        call.sfa, call.sfb = form(call.host["sfa"]), form(call.host["sfb"])
        for name in ("a", "b", "d"):
            setattr(call, name, call.host[name])
        on_device(call, "cuda:0")
        with Delta() as happened:
            call.run()
        assert (happened.launches, happened.fills, happened.copies) == (1, 0, 0)
        expect_launch(happened.last, call, plan_of(33, 256, 384))


def scenario_other_layouts_are_views():
    call = make_call(40, 128, 256)
    want = None
    for layout in ("nt", "nn", "tn", "tt"):
        other = Call(*(call.host[name] for name in FIELDS), layout=layout, options=call.options)
        if layout[0] == "t":
            other.a, other.sfa = other.a.t(), other.sfa.t()
        if layout[1] == "n":
            other.b, other.sfb = other.b.t(), other.sfb.t()
        with Delta() as happened:
            on_device(other, "cuda:0").run()
        want = want or happened.last
        assert happened.last == want


def scenario_plans_know_no_address():
    first, second = make_call(64, 256, 384), make_call(64, 256, 384)
    with Delta() as happened:
        first.run()
        second.run()
    assert happened.launches == 2 and happened.loads == 0
    expect_launch(happened.last, second, plan_of(64, 256, 384))


def scenario_headers_that_were_set_anew_are_loaded_anew():
    """A comparison of headers in one process would else time one kernel against itself."""
    call = make_call(64, 256, 384)
    call.run()
    for is_set, loads in ((False, 0), (True, 1)):
        if is_set:
            _C.set_include_root(_C.jit_report()["include_root"])
        _C.forget_fp8_gemm_plans()
        with Delta() as happened:
            call.run()
            call.run()
        assert (happened.launches, happened.loads) == (2, loads)


def scenario_maps_of_one_address_differ_with_the_view():
    wide = make_call(64, 256, 768, device="cpu").host
    rows = lambda t, step: t[::step] if t is not None else None
    views = (
        lambda t: t,
        lambda t: dict(t, a=rows(t["a"], 2), sfa=rows(t["sfa"], 2), d=rows(t["d"], 2)),  # other pitches, fewer rows
        lambda t: dict(t, a=t["a"][:, :384], sfa=t["sfa"][:, :3], b=t["b"][:, :384], sfb=t["sfb"][:, :3]),
        lambda t: dict(t, b=t["b"][:128], sfb=t["sfb"][:1], d=t["d"][:, :128]),
        lambda t: dict(t, a=t["a"][:8], sfa=t["sfa"][:8], d=t["d"][:8]),
    )
    for view in views * 3:
        call = on_device(Call(**view(wide), options={"recipe": (1, 128, 128)}), "cuda:0")
        with Delta() as happened:
            call.run()
        m, n = call.host["d"].shape
        assert happened.launches == 1
        expect_launch(happened.last, call, plan_of(m, n, call.host["a"].shape[1]))


def scenario_each_device_has_its_own_kernel_and_size():
    call = make_call(64, 256, 384, device="cuda:1")
    with Delta() as happened:
        call.run()
        call.run()
    assert happened.loads == 1 and happened.last["device"] == 1 and happened.last["stream"] == stream_of(1)
    large = make_call(4096, 4096, 512, device="cuda:1")
    with Delta() as happened:
        large.run()
    assert happened.last["grid"] <= SMS["cuda:1"]


def scenario_fewer_sms():
    call = make_call(2048, 4096, 512)
    for count in (101, 64, 0):
        deep_gemm.set_num_sms(count)
        try:
            with Delta() as happened:
                call.run()
        finally:
            deep_gemm.set_num_sms(0)
        assert happened.last["grid"] <= (count or SMS["cuda:0"])
        expect_launch(happened.last, call, plan_of(2048, 4096, 512, usable_sms=count or SMS["cuda:0"]))


def scenario_pdl():
    call = make_call(64, 256, 384)
    deep_gemm.set_pdl(True)
    try:
        with Delta() as happened:
            call.run()
    finally:
        deep_gemm.set_pdl(False)
    assert happened.last["pdl"] == 1 and happened.loads == 0


def scenario_compile_only_builds_and_does_not_launch():
    call = make_call(48, 512, 384, with_c=True)
    deep_gemm.set_compile_mode(1)
    try:
        with Delta() as happened:
            call.run()
    finally:
        deep_gemm.set_compile_mode(0)
    assert (happened.launches, happened.loads) == (0, 1)
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.loads) == (1, 0)


def scenario_empty_outputs_do_nothing():
    for m, n in ((0, 256), (64, 0), (0, 0)):
        with Delta() as happened:
            make_call(m, n, 384, with_c=True).run()
        assert (happened.launches, happened.loads, happened.fills, happened.copies) == (0, 0, 0, 0)


def scenario_no_k_fills_or_copies():
    for dtype in (BF16, F32):
        for with_c, counts in ((False, (1, 0)), (True, (0, 1))):
            for m in (1, 6):
                call = make_call(m, 12, 0, dtype=dtype, with_c=with_c)
                with Delta() as happened:
                    call.run()
                assert (happened.launches, happened.fills, happened.copies) == (0, *counts)
                d = call.host["d"]
                assert (d == (3 if with_c else 0)).all()
                row = d.as_strided((m, d.stride(0)), d.stride())
                assert (row[:, 12:] == 5).all()  # the gap between rows


def scenario_no_k_in_place_does_nothing():
    call = make_call(6, 16, 0)
    call.c = call.d
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.fills, happened.copies) == (0, 0, 0)
    assert (call.host["d"] == 5).all()


def scenario_a_refused_call_launches_nothing():
    call = make_call(64, 256, 384)
    call.options = {"recipe": (1, 64, 128)}
    with Delta() as happened:
        try:
            call.run()
        except RuntimeError as refusal:
            assert "(1, 64, 128)" in str(refusal)
        else:
            raise AssertionError("accepted")
    assert (happened.launches, happened.loads, happened.fills, happened.copies) == (0, 0, 0, 0)


def scenario_an_image_that_does_not_load_is_built_again():
    driver.fail_loads(1)
    with Delta() as happened:
        make_call(100, 1000, 512, dtype=F32).run()
    assert (happened.launches, happened.loads) == (1, 1)


def scenario_a_kernel_that_never_loads_is_an_error_and_no_verdict():
    driver.fail_loads(2)
    call = make_call(100, 1000, 512, dtype=F32, with_c=True)
    with Delta() as happened:
        try:
            call.run()
        except RuntimeError as error:
            assert "cuLibraryLoadData" in str(error)
        else:
            raise AssertionError("accepted")
    assert (happened.launches, happened.loads) == (0, 0)
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.loads) == (1, 1)


def scenario_threads_share_kernels():
    calls = [make_call(16 * (1 + i % 4), 640, 384) for i in range(16)]
    errors = []

    def run(call):
        try:
            for _ in range(20):
                call.run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    with Delta() as happened:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors and happened.launches == 320


SCENARIOS = {
    name[len("scenario_") :]: f for name, f in list(globals().items()) if name.startswith("scenario_")
}
EMULATED_TOO = ["one_launch_with_the_planned_shape", "per_row_scales_f32_and_c", "no_k_fills_or_copies"]


def main(path: str) -> None:
    global driver
    driver = ctypes.CDLL(path)
    driver.recorded.restype = ctypes.c_char_p
    outcomes = {}
    for name in EMULATED_TOO if EMULATED else SCENARIOS:
        try:
            SCENARIOS[name]()
            outcomes[name] = "ok"
        except BaseException:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
