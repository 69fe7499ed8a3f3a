"""The scripts around the planner: how picks are judged, how machine code is compared, what a compiler's report says."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deep_gemm import _C

SCRIPTS = Path(__file__).parents[2] / "scripts"
SHAPE = (128, 4096, 7168)


def load(name):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def measured_rows(us_of):
    """A measurement of every feasible config of one shape, as made up by `us_of(index, plan)`."""
    choice = _C.explain_fp8_gemm(*SHAPE)
    plans = sorted([choice["best"], *choice["runners_up"]], key=lambda plan: plan["estimate_us"])
    m, n, k = SHAPE
    return [{"m": m, "n": n, "k": k, "us": us_of(i, plan), "config": plan["config"]} for i, plan in enumerate(plans)]


def judge(fit, rows):
    """(loss of the pick, rank correlation) for rows of one shape."""
    (group,) = fit.evaluate(rows, {}).values()
    pick, best = min(group, key=lambda row: row.estimate), min(group, key=lambda row: row.measured)
    return pick.measured / best.measured, fit.rank_correlation(group)


def test_a_model_that_is_right_loses_nothing():
    fit = load("fit_cost_model")
    loss, rank = judge(fit, measured_rows(lambda i, plan: 2 * plan["estimate_us"]))
    assert loss == 1 and rank > 0.99


def test_a_model_that_is_wrong_is_told_so():
    fit = load("fit_cost_model")
    loss, rank = judge(fit, measured_rows(lambda i, plan: 1000 / plan["estimate_us"]))
    assert loss > 1.5 and rank < -0.99


def test_rows_come_from_json_and_csv(tmp_path):
    fit = load("fit_cost_model")
    rows = measured_rows(lambda i, plan: plan["estimate_us"])[:5]
    (tmp_path / "rows.json").write_text(json.dumps({"rows": rows}))
    flat = [{**{key: row[key] for key in ("m", "n", "k", "us")}, **row["config"]} for row in rows]
    lines = [",".join(flat[0])] + [",".join(map(str, row.values())) for row in flat]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    from_json, from_csv = (fit.evaluate(fit.read_rows(tmp_path / name), {}) for name in ("rows.json", "rows.csv"))
    assert from_json == from_csv and len(from_json) == 1


def test_the_report_is_printed(tmp_path):
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps(measured_rows(lambda i, plan: plan["estimate_us"])))
    command = [sys.executable, str(SCRIPTS / "fit_cost_model.py"), str(rows), "--limits", "--set", "l2_tb_per_s=6"]
    environment = {**os.environ, "PYTHONPATH": str(Path(_C.__file__).parents[1])}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0 and "1 shapes: the pick is" in ran.stdout and "dram=" in ran.stdout, ran.stderr


def key_of(shape):
    """A shape without the ways to write its recipe."""
    names = ("a_major", "b_major", "d_dtype", "has_c", "grouping", "num_groups")
    majors = {"a_major": "k", "b_major": "k"} if shape.family == "bf16" else {}
    options = {**majors, "has_c": False, "grouping": "dense", "num_groups": 1, **shape.options()}
    return (shape.family, shape.m, shape.n, shape.k, *(options.get(name) for name in names))


def test_measurements_of_every_family_are_judged(tmp_path):
    """What tune.py writes, fit_cost_model.py reads: shapes and configs come back as they were."""
    tune, fit = load("tune"), load("fit_cost_model")
    planners, file = tune.planners, (tmp_path / "rows.csv").open("w", newline="")
    writer = csv.DictWriter(file, tune.COLUMNS, extrasaction="ignore", restval="")
    writer.writeheader()
    subjects = tune.wanted(tune.parse_arguments(["--shapes", str(SCRIPTS / "shapes" / "tune.json")]))
    assert {subject.kind for subject in subjects} == {"dense", "contiguous", "masked", "psum"}
    expected = {}
    for subject, plans in tune.planned(subjects[::3], 3, {}):
        shape = subject.shape()
        expected[key_of(shape)] = [plan["estimate_us"] for plan in plans]
        for plan in plans:
            row = {"family": shape.family, "m": shape.m, "n": shape.n, "k": shape.k, **shape.options(), **plan["config"]}
            tune.write_row(writer, {**row, "us": plan["estimate_us"]})
    file.close()
    measured = fit.evaluate(fit.read_rows(tmp_path / "rows.csv"), {})
    found = {key_of(shape): rows for shape, rows in measured.items()}
    assert len(found) == len(measured)
    assert found.keys() == expected.keys()
    for key, rows in found.items():
        assert [row.estimate for row in rows] == pytest.approx(expected[key]) == [row.measured for row in rows]
    assert planners.default_jobs() >= 1


def test_tiles_of_all_heights_are_tuned_for_masked_groups():
    tune = load("tune")
    arguments = tune.parse_arguments(["--shapes", str(SCRIPTS / "shapes" / "tune.json"), "--family", "fp8", "--kind", "masked"])
    for _, plans in tune.planned(tune.wanted(arguments), 0, {}):
        assert {plan["config"]["block_m"] for plan in plans} == {64, 128, 192, 256}


def test_candidates_are_timed_and_wrong_ones_are_not(monkeypatch, capsys):
    """Without a GPU: pins do nothing, one candidate's call writes other bits."""
    import torch

    tune = load("tune")
    case = tune.dense_problems.Case("bf16_gemm_nt", "bfloat16", False, 8, 16, 32)
    subject = tune.Subject(case, "dense")
    plans = tune.planned([subject], 3, {})[0][1]
    d = torch.zeros(4)

    def pinned(shape, config, device, call):
        return lambda: d.copy_(torch.ones(4) * (2 if config is plans[1]["config"] else 1))

    monkeypatch.setattr(tune.planners, "pinned", pinned)
    monkeypatch.setattr(tune.torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(tune, "arms_of", lambda subject: tune.Arms(lambda: None, d, lambda: None))
    monkeypatch.setattr(tune, "kernel_times", lambda calls, *rest: {name: [float(name) + 1 if name != "reference" else 9.0] for name in calls})
    rows = list(tune.measure(subject, plans, 5))
    assert [row["us"] for row in rows] == [1.0, 3.0] and rows[0]["is_pick"] and rows[0]["reference_us"] == "9.00"
    assert "WRONG BITS" in capsys.readouterr().err and "pick 1.000x" in tune.summary(subject, rows)


OLD = ["MOV R1, c[0x0][0x28]", "@P0 LDG.E R2, [R4]", "FFMA R3, R2, R2, R3", "EXIT"]


@pytest.mark.parametrize(
    "new, expected",
    [
        (OLD + ["FFMA R3, R2, R2, R3", "@!P1 LDG.E.128 R8, [R4]", "FFMA R1, R1, R1, R1"], "FFMA+2 LDG+1"),
        (OLD[1:], "MOV-1"),
        ([OLD[1], OLD[0], *OLD[2:]], "same counts, other order or operands"),
    ],
)
def test_changed_opcodes_are_counted(new, expected):
    assert load("sass_diff").summary_of(OLD, new) == expected


def test_golden_kernels_are_distinct_jobs_with_a_source_each():
    compile_all = load("compile_all")
    jobs = [compile_all.job_of(plan) for plan in compile_all.golden_plans()]
    assert len(jobs) == 108 + 50 + 100 + 50 and len({(job.entry, job.source) for job in jobs}) > 30
    assert all(job.entry in job.source and 0 < job.smem_bytes <= 232448 for job in jobs)


def test_a_kernel_that_does_not_compile_is_a_problem(tmp_path, monkeypatch):
    compile_all = load("compile_all")
    monkeypatch.setenv("DG_JIT_CACHE_DIR", str(tmp_path))
    _C.reload_settings()
    job = compile_all.Job("bad", "f", 'extern "C" __global__ void f() { nonsense; }', 0, 9, 0)
    assert "nonsense" in compile_all.compile_job(job).problem
    good = compile_all.compile_job(compile_all.Job("good", "f", 'extern "C" __global__ void f() {}', 0, 9, 0))
    assert good.problem == "" and good.registers > 0 and good.image.startswith(b"\x7fELF")
    monkeypatch.undo()
    _C.reload_settings()


def test_spills_are_a_problem(tmp_path, monkeypatch):
    compile_all = load("compile_all")
    monkeypatch.setenv("DG_JIT_CACHE_DIR", str(tmp_path))
    _C.reload_settings()
    text = ('extern "C" __global__ void f(int* p, int n) { int a[64]; for (int i = 0; i < n; ++i) a[i % 64] = p[i]; '
            "for (int i = 0; i < n; ++i) p[i] = a[(i * 7) % 64]; }")  # fmt: skip
    assert "stack frame" in compile_all.compile_job(compile_all.Job("local", "f", text, 0, 9, 0)).problem
    monkeypatch.undo()
    _C.reload_settings()


def test_the_problems_for_memory_checkers_keep_the_contract(monkeypatch, restored_settings):
    """On the CPU the same validation and the references: what is refused here would be refused there."""
    script = load("small_problems")
    monkeypatch.setattr(script, "DEVICE", "cpu")
    script.main()
