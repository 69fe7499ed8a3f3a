#include "support/settings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "support/files.h"

namespace deep_gemm {
namespace {

// Unset and empty mean the same.
std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// ASCII only: std::tolower follows the locale.
std::string lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

bool flag(const char* name) {
    constexpr std::array<std::string_view, 4> kOn = {"1", "true", "on", "yes"};
    constexpr std::array<std::string_view, 4> kOff = {"0", "false", "off", "no"};
    const std::string came = variable(name);
    const std::string value = lower(came);
    if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) return true;
    DG_CHECK(value.empty() || std::find(kOff.begin(), kOff.end(), value) != kOff.end(),
             "environment variable {}: expected 0 or 1 (or true/false, on/off, yes/no), got '{}'; correct or "
             "unset it",
             name, came);
    return false;
}

int seconds(const char* name, int otherwise) {
    constexpr int kMost = 3600;
    const std::string value = variable(name);
    if (value.empty()) return otherwise;
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    DG_CHECK(error == std::errc() && end == value.data() + value.size() && number >= 0 && number <= kMost,
             "environment variable {}: expected whole seconds from 0 to {}, got '{}'; correct or unset it",
             name, kMost, value);
    return number;
}

std::string word(const char* name, std::initializer_list<std::string_view> allowed) {
    const std::string value = variable(name);
    if (value.empty()) return value;
    std::string expected;
    for (const std::string_view candidate : allowed) {
        if (value == candidate) return value;
        expected += expected.empty() ? "" : ", ";
        expected += candidate;
    }
    throw_error(
        fmt::format("environment variable {}: expected nothing or one of {}, got '{}'; correct or unset it",
                    name, expected, value));
}

// Relative folders are fixed at first use, so that a later chdir does not move the cache.
std::string cache_folder() {
    if (const std::string chosen = variable("DG_JIT_CACHE_DIR"); !chosen.empty())
        return absolute_path(chosen);
    if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty() && xdg.front() == '/') {
        return join_path(xdg, "deep_gemm");
    }
    if (const std::string home = variable("HOME"); !home.empty()) {
        return absolute_path(join_path(home, ".cache/deep_gemm"));
    }
    return "";
}

std::vector<std::string> toolkit_folders() {
    std::vector<std::string> roots;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const std::string root = variable(name); !root.empty()) roots.push_back(root);
    }
    roots.push_back("/usr/local/cuda");
    return roots;
}

std::vector<std::string> path_folders() {
    std::vector<std::string> folders;
    std::string path = variable("PATH");
    while (!path.empty()) {
        const std::size_t end = std::min(path.find(':'), path.size());
        if (end > 0) folders.push_back(path.substr(0, end));
        path.erase(0, end + 1);
    }
    return folders;
}

Settings parse_environment() {
    Settings s;
    s.cache_dir = cache_folder();
    s.jit_debug = flag("DG_JIT_DEBUG");
    const bool dump_asm = flag("DG_JIT_DUMP_ASM");
    s.dump_ptx = flag("DG_JIT_DUMP_PTX") || dump_asm;
    s.dump_sass = flag("DG_JIT_DUMP_SASS") || dump_asm;
    s.ptxas_verbose = flag("DG_JIT_PTXAS_VERBOSE");
    s.ptxas_check = flag("DG_JIT_PTXAS_CHECK");
    s.with_lineinfo = flag("DG_JIT_WITH_LINEINFO");
    s.for_racecheck = flag("DG_JIT_FOR_RACECHECK");
    s.print_compiler_command = flag("DG_JIT_PRINT_COMPILER_COMMAND");
    s.print_load_time = flag("DG_JIT_PRINT_LOAD_TIME");
    s.print_configs = flag("DG_PRINT_CONFIGS");
    s.validate = flag("DG_VALIDATE");
    s.lock_limit = std::chrono::seconds(seconds("DG_JIT_LOCK_SECONDS", 60));
    s.nvrtc_library = variable("DG_JIT_NVRTC_LIBRARY");
    if (const std::string library = variable("DG_DRIVER_LIBRARY"); !library.empty())
        s.driver_library = library;
    s.emulate = word("DG_EMULATE", {"sm90a", "sm100a"});
    s.toolkit_roots = toolkit_folders();
    s.tool_folders = path_folders();
    return s;
}

std::atomic<const Settings*> current_settings{nullptr};

// Replaced settings are kept for good: references to them may be in use, and only tests replace them.
const Settings* keep(Settings fresh) {
    static std::mutex mutex;
    static auto& kept = *new std::deque<Settings>;
    const std::lock_guard lock(mutex);
    return &kept.emplace_back(std::move(fresh));
}

}  // namespace

const Settings& settings() {
    if (const Settings* s = current_settings.load(std::memory_order_acquire)) [[likely]]
        return *s;
    const Settings* fresh = keep(parse_environment());
    const Settings* first = nullptr;
    return current_settings.compare_exchange_strong(first, fresh) ? *fresh : *first;
}

void reload_settings() {
    current_settings.store(keep(parse_environment()), std::memory_order_release);
}

}  // namespace deep_gemm
