// The one logger: topics by name, lines to stderr, free when a topic is off.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace deep_gemm::log {

enum class Topic : unsigned char {
    kJit,      // DG_JIT_DEBUG: cache decisions, compiler messages
    kCommand,  // DG_JIT_PRINT_COMPILER_COMMAND
    kPtxas,    // DG_JIT_PTXAS_VERBOSE
    kLoad,     // DG_JIT_PRINT_LOAD_TIME
    kPlan,     // DG_PRINT_CONFIGS
};

bool enabled(Topic topic);

// One line, written in one piece, "deep_gemm <topic>: <text>".
void write_line(Topic topic, std::string_view text);

template <typename... Args>
void line(Topic topic, fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(topic)) [[unlikely]]
        write_line(topic, fmt::format(format, std::forward<Args>(args)...));
}

// One line to stderr whatever the topics, the first time in this process that `key` is given.
void warn_once(std::string_view key, std::string_view text);

}  // namespace deep_gemm::log
