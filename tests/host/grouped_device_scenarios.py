"""What the grouped FP8 GEMMs do with tensors of a CUDA device, seen from the recording driver. Run as a program, as
device_scenarios.py is."""

import ctypes
import json
import sys
import traceback

import torch

import deep_gemm
import device_scenarios as base
from deep_gemm import _C
from device_scenarios import Delta
from fp8_calls import LookAlike, cuda, stream_of  # noqa: F401 (the stream of look-alikes is asked of their module)
from fp8_operands import ceil_div
from grouped_cases import PER_ROW, contiguous, guarded_like, make_grouped, masked, psum, storage_of
from k_grouped_cases import FP8_NT, KGroupedCase, make_k_grouped

FIELDS = ("a", "sfa", "b", "sfb", "d", "layout")
RAGGED = contiguous(3, ((0, 100), (2, 128), (-1, 128), (1, 7)), 264, 400, cut=20)
ENDS = psum((100, 0, 30, 7), 264, 400, m=600, expected_m=30)
COUNTED = masked((3, 0, 70), 96, 264, 400, arrangement="gaps")


def on_device(case, device="cuda:0"):
    """The problem of a case with its operands claiming to be on `device`, and the tensors themselves."""
    host = make_grouped(case)
    call = make_grouped(case)
    for name in FIELDS:
        t = getattr(host, name)
        setattr(call, name, GroupedLookAlike(t, device))
    return host, call


class GroupedLookAlike(LookAlike):
    """A look-alike that can be viewed as the calls of a problem view its operands."""

    def _like(self, tensor):
        return GroupedLookAlike(tensor, str(self.device))

    def __getitem__(self, index):
        return self._like(self.tensor[index])

    def transpose(self, i, j):
        return self._like(self.tensor.transpose(i, j))


def plan_of(case, m, **arch):
    return _C.plan_fp8_gemm(
        m, case.n, max(case.k, 1), recipe=case.recipe, grouping=case.kind, num_groups=case.groups,
        expected_m=case.expected_m, alignment=case.alignment, arch=arch,
    )  # fmt: skip


def expect_map(got, tensor, box_inner, box_outer):
    """A three-dimensional map covers `tensor` exactly, in boxes of this size."""
    groups, rows, columns = tensor.shape
    item = tensor.element_size()
    want = {
        "address": tensor.data_ptr(), "inner": columns, "outer": rows, "stride": tensor.stride(1) * item, "groups": groups,
        "box_inner": box_inner, "box_outer": box_outer, "bytes": item, "swizzle": 3,
    }  # fmt: skip
    assert {name: got[name] for name in want} == want, (got, want)
    # The stride of a single group means nothing: it only has to be addressable.
    assert got["group_stride"] == tensor.stride(0) * item if groups > 1 else got["group_stride"] % 16 == 0


def expect_launch(launch, host, plan):
    case, config = host.case, plan["config"]
    for name in ("grid", "threads", "smem_bytes", "cluster", "raster"):
        assert launch[name] == plan[name], (name, launch[name], plan[name])
    rows = min(config["block_m"], host.a.shape[1])
    slice_rows = min(rows, ceil_div(ceil_div(rows, config["cluster_n"]), 8) * 8)
    if case.kind != "contiguous":  # waves that no row needs are not loaded
        slice_rows = min(slice_rows, 64)
    columns = max(c for c in range(8, 65, 8) if config["block_n"] % c == 0)
    expect_map(launch["a"], host.a, 128, slice_rows)
    expect_map(launch["b"], host.b, 128, config["block_n"])
    expect_map(launch["d"], host.d, columns, 64)
    assert [launch["layout"], launch["groups"]] == [host.layout.data_ptr(), case.groups]
    assert [launch["m"], launch["n"], launch["k"]] == [host.a.shape[1], case.n, case.k]
    assert launch["sfb"]["stride_g"] == host.sfb.stride(0)
    if case.kind == "masked":
        assert launch["sfa"]["stride_g"] == host.sfa.stride(0)
        want = {"address": host.d.data_ptr(), "stride_m": host.d.stride(1), "stride_g": host.d.stride(0)}
        assert launch["output"] == want
    else:
        assert launch["sfa"]["stride_g"] == 0
    if case.kind == "psum":
        alignment = min(case.alignment, -(-host.a.shape[1] // 64) * 64)
        want = [alignment, alignment if case.zero_padding else 1]
        assert [launch["alignment"], launch["stored_alignment"]] == want


def scenario_one_launch_with_the_planned_shape():
    for case in (RAGGED, COUNTED, ENDS):
        host, call = on_device(case)
        with Delta() as happened:
            call.run()
        assert (happened.launches, happened.fills, happened.copies) == (1, 0, 0)
        expect_launch(happened.last, host, plan_of(case, host.a.shape[1]))
        assert happened.last["stream"] == stream_of(0)


def scenario_clusters_per_row_scales_and_wide_tiles():
    cases = (  # case, CTAs of a cluster, columns of a tile at least
        (masked((3, 0), 128, 3072, 1024, expected_m=128, recipe=PER_ROW), 2, 48),
        (contiguous(2, ((0, 128),), 2048, 1024), 2, 32),
        (contiguous(2, ((0, 1024), (1, 1024)), 4096, 1024), 1, 128),
    )
    for case, cluster_n, columns in cases:
        host, call = on_device(case)
        with Delta() as happened:
            call.run()
        plan = plan_of(case, host.a.shape[1])
        config = plan["config"]
        assert (config["cluster_m"], config["cluster_n"]) == (1, cluster_n) and config["block_n"] >= columns, plan["config_text"]
        expect_launch(happened.last, host, plan)


def scenario_nn_is_a_view():
    launches = []
    for letters in ("nt", "nn"):
        _, call = on_device(contiguous(2, ((0, 100), (1, 7)), 136, 256, letters=letters))
        with Delta() as happened:
            call.run()
        launch = happened.last
        shape = [{key: value for key, value in launch[name].items() if key != "address"} for name in ("a", "b", "d", "sfa", "sfb")]
        launches.append((shape, launch["grid"], launch["m"], launch["n"], launch["k"]))
    assert launches[0] == launches[1]


def scenario_expected_m_is_the_planners_alone():
    host, call = on_device(masked((3, 0, 70), 512, 264, 400))
    for hint in (0, 1, 64, 512, 10**9):
        with Delta() as happened:
            call.run(expected_m=hint)
        plan = _C.plan_fp8_gemm(512, 264, 400, grouping="masked", num_groups=3, expected_m=hint)
        expect_launch(happened.last, host, plan)


def scenario_fewer_sms_and_another_device():
    case = masked((3,) * 8, 256, 4096, 512)
    for device, total in base.SMS.items():
        for count in (0, 33):
            host, call = on_device(case, device)
            deep_gemm.set_num_sms(count)
            try:
                with Delta() as happened:
                    call.run()
            finally:
                deep_gemm.set_num_sms(0)
            assert happened.last["device"] == int(device[-1])
            expect_launch(happened.last, host, plan_of(case, 256, sm_count=total, usable_sms=count or total))


def scenario_empty_problems_launch_nothing():
    for case in (
        masked((), 64, 136, 256), masked((0, 0), 0, 136, 256), masked((3, 4), 16, 0, 256), contiguous(1, (), 136, 256),
        contiguous(1, ((0, 128),), 0, 256), psum((), 136, 256, m=64), psum((64,), 0, 256),
    ):  # fmt: skip
        _, call = on_device(case)
        with Delta() as happened:
            call.run()
        assert (happened.launches, happened.loads, happened.fills, happened.copies) == (0, 0, 0, 0), case


def scenario_contiguous_without_a_product_fills_zeros():
    for case in (contiguous(3, ((0, 100), (2, 30)), 136, 0, arrangement="gaps"), contiguous(0, ((-1, 200),), 136, 256)):
        host, call = on_device(case)
        with Delta() as happened:
            call.run()
        assert (happened.launches, happened.fills, happened.copies) == (0, 1, 0), case
        want = guarded_like(host.d)
        want.zero_()
        assert torch.equal(storage_of(host.d), storage_of(want))


def scenario_alignments_of_ends_fit_32_bits():
    beyond = psum((100, 64 - 2**40), 136, 256, m=130, alignment=2**40)  # the second group ends in the first's block
    for case in (psum((100, 30), 264, 400, alignment=256, zero_padding=False), beyond):
        host, call = on_device(case)
        with Delta() as happened:
            call.run()
        expect_launch(happened.last, host, plan_of(case, host.a.shape[1]))


def scenario_ends_without_k_ask_the_device():
    host, call = on_device(psum((100, 0, 30), 264, 0))
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.fills) == (1, 0)
    assert happened.last["k"] == 0 and happened.last["d"]["address"] == host.d.data_ptr()


def scenario_masked_without_k_asks_the_device():
    """Which rows become zeros is known there alone. No map describes operands without K: the kernel never reads them."""
    host, call = on_device(masked((3, 0, 70), 96, 136, 0))
    with Delta() as happened:
        call.run()
    assert (happened.launches, happened.fills) == (1, 0)
    assert happened.last["k"] == 0 and happened.last["a"] == happened.last["b"] == happened.last["d"]
    assert happened.last["d"]["address"] == host.d.data_ptr()


def scenario_compile_only_builds_and_does_not_launch():
    _, call = on_device(masked((3, 0), 72, 520, 400, expected_m=70, recipe=PER_ROW))
    deep_gemm.set_compile_mode(1)
    try:
        with Delta() as happened:
            call.run()
    finally:
        deep_gemm.set_compile_mode(0)
    assert (happened.launches, happened.loads) == (0, 1)


def scenario_a_refused_call_launches_nothing():
    _, call = on_device(RAGGED)
    call.case = contiguous(3, RAGGED.rows, 264, 400, cut=20, alignment=16)
    with Delta() as happened:
        try:
            call.run()
        except RuntimeError as refusal:
            assert "alignment" in str(refusal)
        else:
            raise AssertionError("accepted")
    assert (happened.launches, happened.loads, happened.fills, happened.copies) == (0, 0, 0, 0)


class RoomGiver(GroupedLookAlike):
    """D of a K-grouped call, whose `new_empty` gives what `room` makes of the number of elements."""

    def __init__(self, tensor, device, room):
        super().__init__(tensor, device)
        self.new_empty = lambda shape: room(shape[0])


def scenario_room_for_maps_is_as_large_as_asked():
    """The kernel writes its tensor maps there: too little of it, or elsewhere, is refused before anything is launched."""
    rooms = {
        "all": lambda n: GroupedLookAlike(torch.empty(n), "cuda:0"),
        "less": lambda n: GroupedLookAlike(torch.empty(n - 1), "cuda:0"),
        "bytes": lambda n: GroupedLookAlike(torch.empty(n, dtype=torch.int8), "cuda:0"),
        "apart": lambda n: GroupedLookAlike(torch.empty(2 * n)[::2], "cuda:0"),
        "elsewhere": lambda n: GroupedLookAlike(torch.empty(n), "cuda:1"),
    }
    for name, room in rooms.items():
        call = make_k_grouped(KGroupedCase(FP8_NT, 128, 136, (128, 256)))
        call.a, call.b = (tuple(GroupedLookAlike(t, "cuda:0") for t in pair) for pair in (call.a, call.b))
        call.layout = GroupedLookAlike(call.layout, "cuda:0")
        call.d = RoomGiver(call.d, "cuda:0", room)
        with Delta() as happened:
            try:
                call.run()
            except RuntimeError as refusal:
                assert name != "all" and "new_empty" in str(refusal), refusal
            else:
                assert name == "all", name
        assert happened.launches == (name == "all")


SCENARIOS = {name[len("scenario_") :]: f for name, f in list(globals().items()) if name.startswith("scenario_")}


def main(path: str) -> None:
    base.driver = ctypes.CDLL(path)
    base.driver.recorded.restype = ctypes.c_char_p
    outcomes = {}
    for name, scenario in SCENARIOS.items():
        try:
            scenario()
            outcomes[name] = "ok"
        except BaseException:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
