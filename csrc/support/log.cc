#include "support/log.h"

#include <unistd.h>

#include <mutex>
#include <set>
#include <string>

#include "support/settings.h"

namespace deep_gemm::log {
namespace {

std::string_view name_of(Topic topic) {
    switch (topic) {
        case Topic::kJit:
            return "jit";
        case Topic::kCommand:
            return "command";
        case Topic::kPtxas:
            return "ptxas";
        case Topic::kLoad:
            return "load";
        case Topic::kPlan:
            return "plan";
    }
    return "?";
}

// A single write(2): lines of several processes on one terminal stay whole. What cannot be written is
// dropped.
void write_to_stderr(const std::string& text) {
    [[maybe_unused]] const auto n = ::write(2, text.data(), text.size());
}

}  // namespace

bool enabled(Topic topic) {
    const Settings& s = settings();
    switch (topic) {
        case Topic::kJit:
            return s.jit_debug;
        case Topic::kCommand:
            return s.print_compiler_command;
        case Topic::kPtxas:
            return s.ptxas_verbose;
        case Topic::kLoad:
            return s.print_load_time;
        case Topic::kPlan:
            return s.print_configs;
    }
    return false;
}

void write_line(Topic topic, std::string_view text) {
    write_to_stderr(fmt::format("deep_gemm {}: {}\n", name_of(topic), text));
}

void warn_once(std::string_view key, std::string_view text) {
    static std::mutex mutex;
    static auto& said = *new std::set<std::string, std::less<>>;  // outlives threads that warn at exit
    {
        const std::lock_guard lock(mutex);
        if (!said.emplace(key).second) return;
    }
    write_to_stderr(fmt::format("deep_gemm warning: {}\n", text));
}

}  // namespace deep_gemm::log
