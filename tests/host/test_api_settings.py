"""Process-wide settings: what is set is read back, a bad value is refused by the setter and changes nothing."""

from __future__ import annotations

import pytest

import deep_gemm

pytestmark = pytest.mark.usefixtures("restored_settings")


def test_first_values():
    assert deep_gemm.get_pdl() is False
    assert deep_gemm.get_tc_util() == 100
    assert deep_gemm.get_compile_mode() == 0


def test_tc_util():
    deep_gemm.set_tc_util(40)
    assert deep_gemm.get_tc_util() == 40
    deep_gemm.set_tc_util(0)
    assert deep_gemm.get_tc_util() == 100


@pytest.mark.parametrize("bad", [-1, 101])
def test_bad_tc_util_changes_nothing(bad):
    deep_gemm.set_tc_util(40)
    with pytest.raises(deep_gemm.DeepGemmError, match="tc_util"):
        deep_gemm.set_tc_util(bad)
    assert deep_gemm.get_tc_util() == 40


def test_pdl():
    deep_gemm.set_pdl(True)
    assert deep_gemm.get_pdl() is True


def test_compile_mode():
    deep_gemm.set_compile_mode(1)
    assert deep_gemm.get_compile_mode() == 1
    with pytest.raises(deep_gemm.DeepGemmError, match="compile.mode"):
        deep_gemm.set_compile_mode(7)
    assert deep_gemm.get_compile_mode() == 1


def test_hints_are_accepted():
    deep_gemm.set_ignore_compile_dims(True)
    deep_gemm.set_block_size_multiple_of(16)
    deep_gemm.set_block_size_multiple_of((16, 32))
    with pytest.raises(deep_gemm.DeepGemmError, match="block_size_multiple_of"):
        deep_gemm.set_block_size_multiple_of(0)


@pytest.mark.parametrize("bad", [None, "x", 1.5, 2**70, []])
@pytest.mark.parametrize(
    ("setter", "name"),
    [
        (deep_gemm.set_num_sms, "num_sms"),
        (deep_gemm.set_tc_util, "tc_util"),
        (deep_gemm.set_pdl, "pdl"),
        (deep_gemm.set_ignore_compile_dims, "ignore_compile_dims"),
        (deep_gemm.set_block_size_multiple_of, "block_size_multiple_of"),
        (lambda bad: deep_gemm.set_block_size_multiple_of((16, bad)), "block_size_multiple_of"),
        (deep_gemm.set_compile_mode, "compile_mode"),
    ],
)
def test_a_value_of_another_kind_is_refused(setter, name, bad):
    with pytest.raises(deep_gemm.DeepGemmError, match=f"^{name}: expected"):
        setter(bad)


def test_num_sms_is_refused_below_zero():
    with pytest.raises(deep_gemm.DeepGemmError, match="num_sms"):
        deep_gemm.set_num_sms(-1)


@pytest.mark.gpu
def test_num_sms():
    total = deep_gemm.get_num_sms()
    deep_gemm.set_num_sms(total - 1)
    assert deep_gemm.get_num_sms() == total - 1
    with pytest.raises(deep_gemm.DeepGemmError, match="num_sms"):
        deep_gemm.set_num_sms(total + 1)
    assert deep_gemm.get_num_sms() == total - 1
    deep_gemm.set_num_sms(0)
    assert deep_gemm.get_num_sms() == total
