"""The environment: read once, typed, refused by name."""

import pytest
from jit_support import load_extension, run

_C = load_extension()

FLAGS = {
    "DG_JIT_DEBUG": "jit_debug",
    "DG_JIT_DUMP_PTX": "dump_ptx",
    "DG_JIT_DUMP_SASS": "dump_sass",
    "DG_JIT_PTXAS_VERBOSE": "ptxas_verbose",
    "DG_JIT_PTXAS_CHECK": "ptxas_check",
    "DG_JIT_WITH_LINEINFO": "with_lineinfo",
    "DG_JIT_FOR_RACECHECK": "for_racecheck",
    "DG_JIT_PRINT_COMPILER_COMMAND": "print_compiler_command",
    "DG_JIT_PRINT_LOAD_TIME": "print_load_time",
    "DG_PRINT_CONFIGS": "print_configs",
}


@pytest.fixture
def setting(monkeypatch):
    """setting(NAME=value, ...) puts variables in force and returns the settings; all is undone afterwards."""

    def apply(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _C.reload_settings()
        return _C.settings()

    yield apply
    monkeypatch.undo()
    _C.reload_settings()


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["1", "TRUE", "on", "Yes"])
def test_flags_on(setting, name, value):
    assert setting(**{name: value})[FLAGS[name]] is True


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["0", "", "false", "OFF", "no"])
def test_flags_off(setting, name, value):
    assert setting(**{name: value})[FLAGS[name]] is False


@pytest.mark.parametrize("name", [*FLAGS, "DG_JIT_DUMP_ASM"])
@pytest.mark.parametrize("value", ["2", "-1", "y", "1 ", "0x1", "yess"])
def test_bad_flags_are_refused_by_name(setting, name, value):
    with pytest.raises(RuntimeError, match=f"environment variable {name}: expected 0 or 1.*got '{value}'"):
        setting(**{name: value})


def test_asm_means_ptx_and_sass(setting):
    s = setting(DG_JIT_DUMP_ASM="1")
    assert s["dump_ptx"] and s["dump_sass"]


@pytest.mark.parametrize("value", ["sm90", "SM90A", "sm_100a", "1"])
def test_bad_emulation_is_refused_by_name(setting, value):
    with pytest.raises(RuntimeError, match=f"DG_EMULATE: .*one of sm90a, sm100a, got '{value}'"):
        setting(DG_EMULATE=value)


@pytest.mark.parametrize("value", ["-1", "1.5", "1,5", "x", "3601", "99999999999999999999", " 1"])
def test_bad_seconds_are_refused_by_name(setting, value):
    with pytest.raises(RuntimeError, match="DG_JIT_LOCK_SECONDS: expected whole seconds from 0 to 3600"):
        setting(DG_JIT_LOCK_SECONDS=value)


def test_values(setting):
    s = setting(DG_EMULATE="sm100a", DG_DRIVER_LIBRARY="/x/libfake.so")
    s = setting(DG_JIT_LOCK_SECONDS="7", DG_JIT_CACHE_DIR="/x y")
    assert (s["emulate"], s["driver_library"]) == ("sm100a", "/x/libfake.so")
    assert (s["lock_limit_seconds"], s["cache_dir"]) == (7, "/x y")


def test_a_refused_reload_changes_nothing(setting):
    setting(DG_EMULATE="sm90a")
    with pytest.raises(RuntimeError):
        setting(DG_JIT_DEBUG="maybe", DG_EMULATE="sm100a")
    assert _C.settings()["emulate"] == "sm90a"


def test_defaults_when_nothing_is_set():
    s = run("answer(**_C.settings())", XDG_CACHE_HOME=None, HOME="/someone").answer
    assert not any(s[field] for field in FLAGS.values())
    assert (s["driver_library"], s["emulate"], s["lock_limit_seconds"]) == ("libcuda.so.1", "", 60)
    assert s["cache_dir"] == "/someone/.cache/deep_gemm"


def test_read_at_first_use_not_at_import_and_then_kept():
    script = """
    os.environ["DG_EMULATE"] = "sm90a"
    first = _C.settings()["emulate"]
    os.environ["DG_EMULATE"] = "sm100a"
    kept = _C.settings()["emulate"]
    _C.reload_settings()
    answer(first=first, kept=kept, reloaded=_C.settings()["emulate"])
    """
    done = run(script).answer
    assert (done["first"], done["kept"], done["reloaded"]) == ("sm90a", "sm90a", "sm100a")


def test_a_bad_value_is_refused_at_every_use_until_corrected():
    script = """
    refusals = 0
    for _ in range(2):
        try: _C.jit_build(ENTRY, kernel(), 9, 0)
        except RuntimeError as error: refusals += "DG_JIT_DEBUG" in str(error)
    del os.environ["DG_JIT_DEBUG"]
    answer(refusals=refusals, corrected=_C.settings()["jit_debug"])
    """
    done = run(script, DG_JIT_DEBUG="perhaps").answer
    assert (done["refusals"], done["corrected"]) == (2, False)
