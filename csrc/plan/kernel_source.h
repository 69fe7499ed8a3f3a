// Kernel source text: what jit compiles, printed from a config's fields.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "plan/config_text.h"

namespace deep_gemm::plan {

// `entry` is the extern "C" symbol.
struct KernelSource {
    std::string entry;
    std::string text;
};

// The parts of a kernel's source that do not come from its config.
struct KernelTemplate {
    const char* header;    // as in #include <...>
    const char* function;  // a template over the config, in namespace deep_gemm
    const char* entry;
    const char* config_type;
    const char* args_type;
};

// `fields` are lines of designated initialisers.
KernelSource source_of(const KernelTemplate& kernel, const std::string& fields, int threads);

template <typename Config>
KernelSource source_of(const KernelTemplate& kernel, const Config& config) {
    std::string fields;
    visit_fields(config, [&](const char* name, const auto& value) {
        if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>)
            fields += fmt::format("    .{} = deep_gemm::{},\n", name, source_word(value));
        else
            fields += fmt::format("    .{} = {},\n", name, value);
    });
    return source_of(kernel, fields, num_threads(config));
}

}  // namespace deep_gemm::plan
