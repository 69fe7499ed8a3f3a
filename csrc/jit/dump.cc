#include "jit/dump.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "jit/disk_cache.h"
#include "jit/nvrtc.h"
#include "support/files.h"
#include "support/log.h"
#include "support/settings.h"

extern char** environ;

namespace deep_gemm::jit {
namespace {

// False, after one warning per kind of dump, where it cannot be written.
bool write_dump(const std::string& folder, const std::string& path, const std::string& bytes) {
    int error = folder.empty() ? ENOENT : make_folders(folder);
    if (error == 0) error = publish_file(path, bytes);
    if (error == 0) {
        log::line(log::Topic::kJit, "wrote {}", path);
        return true;
    }
    log::warn_once("jit dump", fmt::format("'{}' was not written: {}", path, describe_errno(error)));
    return false;
}

std::string find_disassembler() {
    std::vector<std::string> folders;
    for (const std::string& library_folder : nvrtc_search_path()) {
        folders.push_back(join_path(library_folder, "../bin"));               // nvidia/cu13/{lib,bin}
        folders.push_back(join_path(library_folder, "../../cuda_nvcc/bin"));  // nvidia/cuda_*/...
    }
    for (const std::string& root : settings().toolkit_roots) folders.push_back(join_path(root, "bin"));
    for (const std::string& folder : settings().tool_folders) folders.push_back(folder);
    for (const std::string& folder : folders) {
        const std::string path = join_path(folder, "nvdisasm");
        if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
}

// Runs `tool` on `input` with its output in `output`; false if it could not run or failed.
bool run_to_file(const std::string& tool, const std::string& input, const std::string& output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const char* argv[] = {tool.c_str(), input.c_str(), nullptr};
    pid_t child = 0;
    const int error =
        ::posix_spawn(&child, tool.c_str(), &actions, nullptr, const_cast<char**>(argv), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return false;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string dump_source(const std::string& folder, const Job& job) {
    if (!settings().jit_debug) return "";
    const std::string path = disk_cache::path_of(folder, job.digest, ".cu");
    return write_dump(folder, path, job.source.text) ? path : "";
}

bool wants_ptx_dump(const std::string& folder, const std::string& digest) {
    return settings().dump_ptx && !file_exists(disk_cache::path_of(folder, digest, ".ptx"));
}

void dump_ptx(const std::string& folder, const std::string& digest, const std::string& ptx) {
    if (settings().dump_ptx) write_dump(folder, disk_cache::path_of(folder, digest, ".ptx"), ptx);
}

void dump_sass(const std::string& folder, const Image& image) {
    if (!settings().dump_sass || image.kind != ImageKind::kCubin) return;
    const std::string path = disk_cache::path_of(folder, image.digest, ".sass");
    if (file_exists(path)) return;
    const std::string tool = find_disassembler();
    if (tool.empty()) {
        log::warn_once("jit sass",
                       "DG_JIT_DUMP_SASS: no nvdisasm beside NVRTC, in a CUDA toolkit or in PATH; install "
                       "the pip package nvidia-cuda-nvdisasm or a toolkit");
        return;
    }
    const std::string cubin = disk_cache::path_of(folder, image.digest, ".cubin");
    if (!write_dump(folder, cubin, image.bytes)) return;
    const std::string partial = temporary_name(path);
    if (run_to_file(tool, cubin, partial) && ::rename(partial.c_str(), path.c_str()) == 0) {
        log::line(log::Topic::kJit, "wrote {}", path);
        return;
    }
    ::unlink(partial.c_str());
    log::warn_once("jit sass", fmt::format("'{}' did not disassemble '{}'", tool, cubin));
}

}  // namespace deep_gemm::jit
