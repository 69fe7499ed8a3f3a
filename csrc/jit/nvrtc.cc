#include "jit/nvrtc.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "support/files.h"
#include "support/settings.h"
#include "support/sha256.h"

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

// The build id note of the shared object that holds `address`, in hex; empty if it has none.
std::string build_id_at(const void* address) {
    struct Query {
        ElfW(Addr) address;
        std::string id;
    } query{reinterpret_cast<ElfW(Addr)>(address), {}};
    const auto visit = [](dl_phdr_info* info, std::size_t, void* data) -> int {
        auto& q = *static_cast<Query*>(data);
        const auto* headers = info->dlpi_phdr;
        const bool holds = std::any_of(headers, headers + info->dlpi_phnum, [&](const ElfW(Phdr) & h) {
            return h.p_type == PT_LOAD && q.address - info->dlpi_addr - h.p_vaddr < h.p_memsz;
        });
        if (!holds) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (headers[i].p_type != PT_NOTE) continue;
            const char* note = reinterpret_cast<const char*>(info->dlpi_addr + headers[i].p_vaddr);
            const char* end = note + headers[i].p_memsz;
            while (note + sizeof(ElfW(Nhdr)) <= end) {
                ElfW(Nhdr) header;
                std::memcpy(&header, note, sizeof header);
                const char* name = note + sizeof header;
                const char* description = name + (header.n_namesz + 3) / 4 * 4;
                if (description + header.n_descsz > end) break;
                if (header.n_type == NT_GNU_BUILD_ID && std::string_view(name, 3) == "GNU") {
                    q.id = to_hex({description, header.n_descsz});
                    return 1;
                }
                note = description + (header.n_descsz + 3) / 4 * 4;
            }
        }
        return 1;
    };
    ::dl_iterate_phdr(visit, &query);
    return query.id;
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
    n->build = fmt::format("{}.{} {}", n->version.major, n->version.minor, build_id_at(address));
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
    if (!s.result) s.result = search(s);
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
             "nvidia-cuda-nvrtc "
             "(13 or newer), a CUDA build of PyTorch, or a CUDA toolkit, or name the library in "
             "DG_JIT_NVRTC_LIBRARY. "
             "Places tried:\n{}",
             found.places_tried);
    return *found.library;
}

}  // namespace deep_gemm::jit
