// Planning from Python: dictionaries in, dictionaries out. Only pinning a config needs a GPU.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/plan_dictionaries.h"
#include "contract/skip_head_mid.h"
#include "ops/fp8_gemm_kernels.h"
#include "plan/config_text.h"
#include "plan/cost_model.h"
#include "plan/fp8_gemm.h"
#include "plan/kernel_table.h"
#include "support/error.h"

namespace deep_gemm::bindings {

namespace {

namespace py = pybind11;
using namespace plan;

py::dict arch_to(const ArchSpec& arch) {
    py::dict out;
    visit_arch(arch, [&](const char* name, const auto& field) { out[name] = to_python(field); });
    return out;
}

ScaleGranularity granularity_from(const py::handle& recipe) {
    if (py::isinstance<py::str>(recipe)) {
        const auto word = py::cast<std::string>(recipe);
        if (word == "1d2d") return ScaleGranularity::kPerBlock;
        if (word == "1d1d") return ScaleGranularity::kPerRow;
    } else if (recipe.equal(py::make_tuple(1, 128, 128))) {
        return ScaleGranularity::kPerBlock;
    } else if (recipe.equal(py::make_tuple(1, 1, 128))) {
        return ScaleGranularity::kPerRow;
    }
    throw_error(fmt::format("recipe: expected (1, 128, 128) or '1d2d', (1, 1, 128) or '1d1d', got {}",
                            std::string(py::repr(recipe))));
}

// (left, mid, right) of D's heads, or None.
int head_unit_from(const py::handle& splits) {
    if (splits.is_none()) return 0;
    const HeadSplits heads = read_head_splits(splits.ptr());
    contract::check_head_splits(heads);
    return head_unit_of(heads.left, heads.right);
}

// The optional keywords of every planning function.
struct Request {
    Fp8GemmShape shape;
    ArchSpec arch;
    py::object config = py::none();
};

Request request_from(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    py::dict all(py::arg("recipe") = py::make_tuple(1, 128, 128), py::arg("d_dtype") = "bf16",
                 py::arg("has_c") = false, py::arg("c_is_d") = false, py::arg("arch") = py::dict(),
                 py::arg("config") = py::none(), py::arg("head_splits") = py::none(), **group_defaults());
    refuse_unknown_keys("planning", options, all);
    all.attr("update")(options);
    Request request{{m, n, k, granularity_from(all["recipe"]), Dtype::kBf16, py::cast<bool>(all["has_c"]),
                     py::cast<bool>(all["c_is_d"]), head_unit_from(all["head_splits"]), groups_from(all)},
                    arch_from(py::cast<py::dict>(all["arch"])),
                    all["config"]};
    parse("d_dtype", py::cast<std::string>(all["d_dtype"]), request.shape.d_dtype);
    return request;
}

py::dict plan_one(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    if (request.config.is_none()) return plan_to(plan::plan_fp8_gemm(request.shape, request.arch));
    const Fp8GemmConfig config = config_from<Fp8GemmConfig>(py::cast<py::dict>(request.config));
    return plan_to(plan_with_config(config, request.shape, request.arch));
}

py::dict explain_one(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    const Fp8GemmChoice choice = plan::explain_fp8_gemm(request.shape, request.arch);
    py::list runners_up, rejected;
    for (const Fp8GemmPlan& plan : choice.runners_up) runners_up.append(plan_to(plan));
    for (const Rejection& rejection : choice.rejected)
        rejected.append(
            py::dict(py::arg("config") = config_to(rejection.config), py::arg("reason") = rejection.reason));
    return py::dict(py::arg("best") = plan_to(choice.best), py::arg("runners_up") = runners_up,
                    py::arg("rejected") = rejected, py::arg("text") = describe(choice));
}

py::list find_break_points(int64_t n, int64_t k, int64_t m_min, int64_t m_max, const py::kwargs& options) {
    const Request request = request_from(m_min, n, k, options);
    return break_points_to(m_break_points(request.shape, m_min, m_max, request.arch));
}

py::dict cost_parts(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    const Fp8GemmConfig config = config_from<Fp8GemmConfig>(py::cast<py::dict>(request.config));
    const auto& kernel = kernel_for(config.sfb_granularity, config.d_dtype, request.arch);
    const CostParts parts = cost_of(*kernel.cost, config, request.shape, request.arch);
    return py::dict(py::arg("math") = parts.math, py::arg("dram") = parts.dram, py::arg("l2") = parts.l2,
                    py::arg("outside") = parts.outside, py::arg("overhead") = parts.overhead,
                    py::arg("total") = parts.total);
}

void pin(int64_t m, int64_t n, int64_t k, int device, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    ops::pin_fp8_gemm(device, request.shape, config_from<Fp8GemmConfig>(py::cast<py::dict>(request.config)));
}

py::dict source_of(const py::dict& config, const py::dict& arch) {
    const KernelSource source = print_source(config_from<Fp8GemmConfig>(config), arch_from(arch));
    return py::dict(py::arg("entry") = source.entry, py::arg("text") = source.text);
}

}  // namespace

void register_plan(py::module_& m) {
    m.def("plan_fp8_gemm", &plan_one, py::arg("m"), py::arg("n"), py::arg("k"),
          "The plan for a shape as a dictionary. Keywords: recipe, d_dtype ('bf16', 'f32'), has_c, "
          "c_is_d (C is D itself), arch (overrides of the H200's numbers), config (run this one instead of the "
          "best); grouping ('dense', 'contiguous', 'masked', 'psum', 'batched', 'k_grouped': k is then a group's) with "
          "num_groups, expected_m (masked, psum) and alignment (contiguous, psum); head_splits (left, mid, right) of D.");
    m.def("explain_fp8_gemm", &explain_one, py::arg("m"), py::arg("n"), py::arg("k"),
          "The pick with every runner-up and every refusal, and all of it as text. Keywords as for "
          "plan_fp8_gemm.");
    m.def("fp8_gemm_break_points", &find_break_points, py::arg("n"), py::arg("k"), py::arg("m_min"),
          py::arg("m_max"), "The configs used for m in [m_min, m_max], each with the first m that uses it.");
    m.def("fp8_gemm_cost", &cost_parts, py::arg("m"), py::arg("n"), py::arg("k"),
          "The estimate of a config (keyword config) split by what limits it, in microseconds.");
    m.def("pin_fp8_gemm_config", &pin, py::arg("m"), py::arg("n"), py::arg("k"), py::arg("device"),
          "For tuning: calls of exactly this shape, on as many SMs as are set now, run with the keyword config from "
          "now on. Other keywords as for plan_fp8_gemm.");
    m.def("forget_fp8_gemm_plans", &ops::forget_fp8_gemm_plans, "Plans afresh from now on: undoes every pin.");
    m.def("print_fp8_gemm_source", &source_of, py::arg("config"), py::arg("arch") = py::dict(),
          "Kernel source of a config: its extern \"C\" entry and its text.");
    m.def(
        "planning_arch", [] { return arch_to(kH200); },
        "The device numbers that plans use unless told otherwise.");
    m.def("k_grouped_planning_k", &planning_k, py::arg("k"), py::arg("count") = 1,
          "The K that stands for the mean of `count` groups, `k` in all, in plans of GEMMs grouped along K.");
    m.def("supported_fp8_gemms", &supported_fp8_gemms, "The kernels there are, as text.");
}

}  // namespace deep_gemm::bindings
