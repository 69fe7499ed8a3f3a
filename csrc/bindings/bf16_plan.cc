// Planning BF16 GEMMs from Python: dictionaries in, dictionaries out. Only pinning a config needs a GPU.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/plan_dictionaries.h"
#include "ops/bf16_gemm.h"
#include "plan/bf16_gemm.h"

namespace deep_gemm::bindings {

namespace {

using namespace plan;

// The optional keywords of every planning function.
struct Request {
    Bf16GemmShape shape;
    ArchSpec arch;
    py::object config;
};

Request request_from(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    py::dict all(py::arg("a_major") = "k", py::arg("b_major") = "k", py::arg("d_dtype") = "bf16",
                 py::arg("has_c") = false, py::arg("c_is_d") = false, py::arg("arch") = py::dict(),
                 py::arg("config") = py::none(), **group_defaults());
    refuse_unknown_keys("planning", options, all);
    all.attr("update")(options);
    Request request{{.m = m,
                     .n = n,
                     .k = k,
                     .a_major = Major::kK,
                     .b_major = Major::kK,
                     .d_dtype = Dtype::kBf16,
                     .has_c = py::cast<bool>(all["has_c"]),
                     .c_is_d = py::cast<bool>(all["c_is_d"]),
                     .groups = groups_from(all)},
                    arch_from(py::cast<py::dict>(all["arch"])),
                    all["config"]};
    from_python("a_major", all["a_major"], request.shape.a_major);
    from_python("b_major", all["b_major"], request.shape.b_major);
    from_python("d_dtype", all["d_dtype"], request.shape.d_dtype);
    return request;
}

py::dict plan_one(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    if (request.config.is_none()) return plan_to(plan_bf16_gemm(request.shape, request.arch));
    const auto config = config_from<Bf16GemmConfig>(py::cast<py::dict>(request.config));
    return plan_to(plan_with_config(config, request.shape, request.arch));
}

py::list plan_all(int64_t m, int64_t n, int64_t k, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    py::list plans;
    for (const Bf16GemmPlan& plan : plans_bf16_gemm(request.shape, request.arch))
        plans.append(plan_to(plan));
    return plans;
}

py::list find_break_points(int64_t n, int64_t k, int64_t m_min, int64_t m_max, const py::kwargs& options) {
    const Request request = request_from(m_min, n, k, options);
    return break_points_to(m_break_points(request.shape, m_min, m_max, request.arch));
}

void pin(int64_t m, int64_t n, int64_t k, int device, const py::kwargs& options) {
    const Request request = request_from(m, n, k, options);
    ops::pin_bf16_gemm(device, request.shape, config_from<Bf16GemmConfig>(py::cast<py::dict>(request.config)));
}

py::dict source_of_config(const py::dict& config, const py::dict& arch) {
    const KernelSource source = print_source(config_from<Bf16GemmConfig>(config), arch_from(arch));
    return py::dict(py::arg("entry") = source.entry, py::arg("text") = source.text);
}

}  // namespace

void register_bf16_plan(py::module_& m) {
    m.def("plan_bf16_gemm", &plan_one, py::arg("m"), py::arg("n"), py::arg("k"),
          "The plan for a shape as a dictionary. Keywords: a_major, b_major ('k', 'mn'), d_dtype ('bf16', 'f32'), has_c, "
          "c_is_d (C is D itself), arch (overrides of the H200's numbers), config (run this one instead of the "
          "best); those of groups as for plan_fp8_gemm.");
    m.def("plans_bf16_gemm", &plan_all, py::arg("m"), py::arg("n"), py::arg("k"),
          "The pick, then every other feasible plan by rising estimate. Keywords as for plan_bf16_gemm.");
    m.def("bf16_gemm_break_points", &find_break_points, py::arg("n"), py::arg("k"), py::arg("m_min"), py::arg("m_max"),
          "The configs used for m in [m_min, m_max], each with the first m that uses it.");
    m.def("pin_bf16_gemm_config", &pin, py::arg("m"), py::arg("n"), py::arg("k"), py::arg("device"),
          "For tuning: calls of exactly this shape, on as many SMs as are set now, run with the keyword config from "
          "now on.");
    m.def("forget_bf16_gemm_plans", &ops::forget_bf16_gemm_plans, "Plans afresh from now on: undoes every pin.");
    m.def("print_bf16_gemm_source", &source_of_config, py::arg("config"), py::arg("arch") = py::dict(),
          "Kernel source of a config: its extern \"C\" entry and its text.");
}

}  // namespace deep_gemm::bindings
