#include "jit/nvrtc.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "support/files.h"
#include "support/log.h"
#include "support/settings.h"
#include "support/sha256.h"
#include "support/stopwatch.h"

namespace deep_gemm::jit {
namespace {

constexpr std::string_view kSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};  // newest first

struct SearchState {
    std::mutex mutex;
    std::vector<std::string> folders;
    std::optional<NvrtcSearch> result;
    std::map<std::string, std::unique_ptr<const Nvrtc>> loaded;  // by path; never unloaded
};
SearchState& state() {
    static SearchState& s = *new SearchState;
    return s;
}

// The wheel's libnvrtc has no run path, and looks for its builtins by bare name only while compiling: they
// must be in the process before that, or compiling fails with NVRTC_ERROR_BUILTIN_OPERATION_FAILURE.
void preload_builtins(const std::string& folder, std::string_view soname) {
    const std::string_view major = soname.substr(soname.rfind('.') + 1);
    const std::string prefix = fmt::format("libnvrtc-builtins.so.{}", major);
    for (const std::string& name : list_folder(folder)) {
        if (name.starts_with(prefix)) ::dlopen(join_path(folder, name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

// The GNU build id among the ELF notes of one segment, in hex; empty if it is not there.
std::string find_build_id(std::string_view notes) {
    const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
    ElfW(Nhdr) header;
    while (notes.size() >= sizeof header) {
        std::memcpy(&header, notes.data(), sizeof header);
        notes.remove_prefix(sizeof header);
        const std::size_t name_size = padded(header.n_namesz);
        if (name_size > notes.size() || header.n_descsz > notes.size() - name_size) break;
        if (header.n_type == NT_GNU_BUILD_ID && notes.starts_with("GNU"))
            return to_hex(notes.substr(name_size, header.n_descsz));
        notes.remove_prefix(std::min(name_size + padded(header.n_descsz), notes.size()));
    }
    return "";
}

struct BuildIdQuery {
    ElfW(Addr) address;
    std::string id;
};

// For dl_iterate_phdr: ends the walk at the object that holds the address.
int visit_object(dl_phdr_info* info, std::size_t, void* data) {
    auto& query = *static_cast<BuildIdQuery*>(data);
    const std::span segments(info->dlpi_phdr, info->dlpi_phnum);
    const bool holds_address = std::any_of(segments.begin(), segments.end(), [&](const auto& s) {
        return s.p_type == PT_LOAD && query.address - info->dlpi_addr - s.p_vaddr < s.p_memsz;
    });
    if (!holds_address) return 0;
    for (const auto& segment : segments) {
        if (segment.p_type != PT_NOTE || !query.id.empty()) continue;
        const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
        query.id = find_build_id({notes, segment.p_memsz});
    }
    return 1;
}

// What tells builds of one version apart: the build id of the library that holds `address`, else its file's
// size.
std::string identify_build(const void* address, const std::string& path) {
    BuildIdQuery query{reinterpret_cast<ElfW(Addr)>(address), {}};
    ::dl_iterate_phdr(visit_object, &query);
    return query.id.empty() ? fmt::format("{} bytes", file_size(path)) : query.id;
}

template <typename Function>
bool bind(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

// The functions of an opened library, or null with a reason.
std::unique_ptr<const Nvrtc> bind_library(void* handle, std::string& reason) {
    auto n = std::make_unique<Nvrtc>();
    const bool complete =
        bind(handle, "nvrtcVersion", n->version_of) && bind(handle, "nvrtcGetErrorString", n->error_string) &&
        bind(handle, "nvrtcCreateProgram", n->create_program) &&
        bind(handle, "nvrtcDestroyProgram", n->destroy_program) &&
        bind(handle, "nvrtcCompileProgram", n->compile_program) &&
        bind(handle, "nvrtcGetProgramLogSize", n->log_size) && bind(handle, "nvrtcGetProgramLog", n->log) &&
        bind(handle, "nvrtcGetPTXSize", n->ptx_size) && bind(handle, "nvrtcGetPTX", n->ptx) &&
        bind(handle, "nvrtcGetCUBINSize", n->cubin_size) && bind(handle, "nvrtcGetCUBIN", n->cubin);
    if (!complete || n->version_of(&n->version.major, &n->version.minor) != NVRTC_SUCCESS) {
        reason = "it is not a usable NVRTC";
        return nullptr;
    }
    const void* address = reinterpret_cast<const void*>(n->version_of);
    Dl_info info{};
    if (::dladdr(address, &info) != 0 && info.dli_fname != nullptr) n->path = info.dli_fname;
    n->build = fmt::format("{}.{} {}", n->version.major, n->version.minor, identify_build(address, n->path));
    return n;
}

class Search {
  public:
    explicit Search(SearchState& s) : state_(s) {}

    // True when the search has ended.
    bool try_folder(const std::string& folder) {
        bool found_any = false;
        for (const std::string_view soname : kSonames) {
            const std::string path = join_path(folder, soname);
            if (!file_exists(path)) continue;
            found_any = true;
            preload_builtins(folder, soname);
            if (try_library(path)) return true;
        }
        if (!found_any) note(folder, "no libnvrtc.so.13 or .12");
        return false;
    }

    bool try_library(const std::string& name) {
        void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            const char* reason = ::dlerror();
            note(name, reason == nullptr ? "not found" : reason);
            return false;
        }
        std::string reason;
        std::unique_ptr<const Nvrtc> library = bind_library(handle, reason);
        if (library == nullptr) {
            note(name, reason);
            return false;
        }
        note(name, "found");
        auto& slot = state_.loaded[library->path];
        if (slot == nullptr) slot = std::move(library);
        result_.library = slot.get();
        return true;
    }

    NvrtcSearch result() const { return result_; }

  private:
    void note(std::string_view place, std::string_view outcome) {
        result_.places_tried += fmt::format("  {}: {}\n", place, outcome);
    }

    SearchState& state_;
    NvrtcSearch result_;
};

NvrtcSearch search(SearchState& s) {
    Search search(s);
    const Settings& env = settings();
    if (!env.nvrtc_library.empty()) {
        const std::size_t slash = env.nvrtc_library.rfind('/');
        if (slash != std::string::npos) {
            for (const auto soname : kSonames) preload_builtins(env.nvrtc_library.substr(0, slash), soname);
        }
        search.try_library(env.nvrtc_library);
        return search.result();
    }
    for (const std::string& folder : s.folders) {
        if (search.try_folder(folder)) return search.result();
    }
    for (const std::string& root : env.toolkit_roots) {
        if (search.try_folder(join_path(root, "lib64"))) return search.result();
    }
    for (const std::string_view soname : kSonames) {
        if (search.try_library(std::string(soname))) break;
    }
    return search.result();
}

}  // namespace

void set_nvrtc_search_path(std::vector<std::string> folders) {
    const std::lock_guard lock(state().mutex);
    state().folders = std::move(folders);
    state().result.reset();
}

std::vector<std::string> nvrtc_search_path() {
    const std::lock_guard lock(state().mutex);
    return state().folders;
}

NvrtcSearch find_nvrtc() {
    SearchState& s = state();
    const std::lock_guard lock(s.mutex);
    if (s.result) return *s.result;
    const Stopwatch stopwatch;
    s.result = search(s);
    if (s.result->library != nullptr)
        log::line(log::Topic::kLoad, "NVRTC '{}': found and opened in {:.1f} ms", s.result->library->path,
                  stopwatch.milliseconds());
    return *s.result;
}

void reload_nvrtc() {
    const std::lock_guard lock(state().mutex);
    state().result.reset();
}

const Nvrtc& nvrtc() {
    const NvrtcSearch found = find_nvrtc();
    DG_CHECK(found.library != nullptr,
             "no NVRTC (libnvrtc.so.13 or .12), which compiles the kernels; install the pip package "
             "nvidia-cuda-nvrtc (13 or newer), a CUDA build of PyTorch, or a CUDA toolkit, or name the "
             "library in DG_JIT_NVRTC_LIBRARY. Places tried:\n{}",
             found.places_tried);
    return *found.library;
}

}  // namespace deep_gemm::jit
