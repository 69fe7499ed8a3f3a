// Plans, configs and devices as Python dictionaries, for every family of kernels.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <type_traits>

#include "plan/arch_spec.h"
#include "plan/bf16_gemm.h"
#include "plan/config_text.h"
#include "plan/fp8_gemm.h"
#include "support/error.h"

namespace deep_gemm::bindings {

namespace py = pybind11;

// Moves one field between a struct and a dictionary; enums travel as words.
template <typename Field>
pybind11::object to_python(const Field& value) {
    if constexpr (std::is_enum_v<Field>)
        return py::str(std::string(plan::text_of(value)));
    else
        return py::cast(value);
}

template <typename Field>
void from_python(const char* name, py::handle object, Field& value) {
    if constexpr (std::is_enum_v<Field>) {
        plan::parse(name, py::cast<std::string>(object), value);
    } else {
        try {
            value = py::cast<Field>(object);
        } catch (const py::cast_error&) {
            throw_error(fmt::format("{}: expected a number, got {}", name, std::string(py::repr(object))));
        }
    }
}

// Calls visit("name", field) for the fields of an ArchSpec that a caller may replace.
template <typename Spec, typename Visitor>
void visit_arch(Spec& arch, Visitor&& visit) {
    auto& [major, minor, sm_count, usable_sms, smem_per_block, clock_ghz, dram_tb_per_s, l2_tb_per_s, l2_mb,
           sustained_ghz] = arch;
    visit("major", major);
    visit("minor", minor);
    visit("sm_count", sm_count);
    visit("usable_sms", usable_sms);
    visit("smem_per_block", smem_per_block);
    visit("clock_ghz", clock_ghz);
    visit("dram_tb_per_s", dram_tb_per_s);
    visit("l2_tb_per_s", l2_tb_per_s);
    visit("l2_mb", l2_mb);
    visit("sustained_ghz", sustained_ghz);
}

// Refuses the keys of `given` that `known` lacks.
inline void refuse_unknown_keys(const char* what, const py::dict& given, const py::dict& known) {
    // Of our own: a key's class may have code that changes the dictionary.
    const auto keys = py::reinterpret_steal<py::list>(PyDict_Keys(given.ptr()));
    for (const py::handle key : keys) {
        if (known.contains(key)) continue;
        throw_error(fmt::format("{}: unknown key {}; known: {}", what, std::string(py::repr(key)),
                                std::string(py::str(py::str(", ").attr("join")(known)))));
    }
}

inline plan::ArchSpec arch_from(const py::dict& given) {
    plan::ArchSpec arch = plan::kH200;
    py::dict known;
    visit_arch(arch, [&](const char* name, auto& field) {
        known[name] = py::none();
        if (given.contains(name)) from_python(name, given[name], field);
    });
    refuse_unknown_keys("arch", given, known);
    if (given.contains("sm_count") && !given.contains("usable_sms")) arch.usable_sms = arch.sm_count;
    return arch;
}

// The keywords that say how rows are grouped, as of a dense problem.
inline py::dict group_defaults() {
    return py::dict(py::arg("grouping") = "dense", py::arg("num_groups") = 1, py::arg("expected_m") = 0,
                    py::arg("alignment") = 128);
}

// Of those keywords, the ones that the grouping has: others leave a shape as it is.
inline plan::GroupShape groups_from(const py::dict& keywords) {
    plan::GroupShape groups;
    from_python("grouping", keywords["grouping"], groups.grouping);
    from_python("num_groups", keywords["num_groups"], groups.count);
    if (has_entry_per_group(groups.grouping)) from_python("expected_m", keywords["expected_m"], groups.expected_m);
    if (groups.grouping == Grouping::kContiguous || groups.grouping == Grouping::kPsum)
        from_python("alignment", keywords["alignment"], groups.alignment);
    return groups;
}

template <typename Config>
Config config_from(const py::dict& given) {
    Config config{};
    py::dict known;
    visit_fields(config, [&](const char* name, auto& field) {
        known[name] = py::none();
        if (!given.contains(name)) throw_error(fmt::format("config: key '{}' is missing", name));
        from_python(name, given[name], field);
    });
    refuse_unknown_keys("config", given, known);
    return config;
}

template <typename Config>
py::dict config_to(const Config& config) {
    py::dict out;
    visit_fields(config, [&](const char* name, const auto& field) { out[name] = to_python(field); });
    return out;
}

template <typename Config>
py::list break_points_to(const std::vector<plan::BreakPoint<Config>>& points) {
    py::list out;
    for (const plan::BreakPoint<Config>& point : points)
        out.append(py::dict(py::arg("m") = point.m, py::arg("config") = config_to(point.config)));
    return out;
}

template <typename Plan>
py::dict plan_to(const Plan& plan) {
    py::dict out;
    out["config"] = config_to(plan.config);
    out["cluster"] = plan.cluster;
    out["grid"] = plan.grid;
    out["threads"] = plan.threads;
    out["smem_bytes"] = plan.smem_bytes;
    out["raster"] =
        py::dict(py::arg("group") = plan.raster.group, py::arg("bands_along_n") = plan.raster.bands_along_n);
    out["estimate_us"] = plan.estimate_us;
    out["text"] = plan::describe(plan);
    out["config_text"] = plan::describe(plan.config);
    return out;
}

}  // namespace deep_gemm::bindings
