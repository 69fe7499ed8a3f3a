#include "jit/jit.h"

#include <atomic>
#include <utility>

#include "jit/compiler.h"
#include "jit/disk_cache.h"
#include "jit/dump.h"
#include "jit/memory_cache.h"
#include "jit/nvrtc.h"
#include "jit/source_closure.h"
#include "support/error.h"
#include "support/files.h"
#include "support/log.h"
#include "support/settings.h"
#include "support/stopwatch.h"

namespace deep_gemm::jit {
namespace {

using ImagePtr = std::shared_ptr<const Image>;

struct AtomicCounters {
    std::atomic<long> compiled{0}, loaded{0}, dropped{0}, published{0};
};
AtomicCounters counters;
std::atomic<uint64_t> headers_set{0};

void check_resources(const Image& image) {
    if (!settings().ptxas_check) return;
    const std::string complaints = resource_complaints(image.log);
    DG_CHECK(complaints.empty(),
             "kernel '{}' ({}) uses local memory, spills or serialises wgmma, which DG_JIT_PTXAS_CHECK "
             "refuses:\n{}",
             image.entry, image.digest, complaints);
}

ImagePtr load_from_disk(const std::string& folder, const Job& job) {
    if (wants_ptx_dump(folder, job.digest)) return nullptr;
    disk_cache::LoadResult result = disk_cache::load(folder, job.digest);
    if (result.dropped) ++counters.dropped;
    if (!result.image) return nullptr;
    ++counters.loaded;
    log::line(log::Topic::kJit, "{} {}: from '{}'", job.source.entry, job.digest, folder);
    return std::make_shared<const Image>(std::move(*result.image));
}

ImagePtr compile_and_publish(const std::string& folder, const Job& job) {
    const std::string source_path = dump_source(folder, job);
    const Stopwatch compiling;
    Compiled compiled = compile(job, source_path);
    ++counters.compiled;
    log::line(log::Topic::kJit, "{} {}: compiled in {:.0f} ms\n{}", job.source.entry, job.digest,
              compiling.milliseconds(), compiled.log);
    auto image = std::make_shared<Image>();
    image->bytes = std::move(compiled.image);
    image->digest = job.digest;
    image->entry = job.source.entry;
    image->kind = job.target.kind;
    image->log = std::move(compiled.log);
    const Stopwatch publishing;
    if (disk_cache::store(folder, *image)) ++counters.published;
    log::line(log::Topic::kJit, "{} {}: published in {:.1f} ms", image->entry, image->digest,
              publishing.milliseconds());
    dump_ptx(folder, job.digest, compiled.ptx);
    return image;
}

// Looks at the disk before and after waiting for whoever else builds this kernel. Without the lock (no such
// folder, a file system without locks, its holder stopped) the kernel is built all the same: publishing twice
// is harmless.
ImagePtr load_or_compile(const Job& job) {
    const std::string& folder = settings().cache_dir;
    ImagePtr image = load_from_disk(folder, job);
    if (image == nullptr) {
        const bool lockable = !folder.empty() && make_folders(folder) == 0;
        const std::string entry_path = disk_cache::path_of(folder, job.digest, disk_cache::kEntrySuffix);
        const std::string lock_path =
            lockable ? disk_cache::path_of(folder, job.digest, disk_cache::kLockSuffix) : std::string();
        const FileLock lock(lock_path, settings().lock_limit, [&] { return file_exists(entry_path); });
        image = load_from_disk(folder, job);
        if (image == nullptr) image = compile_and_publish(folder, job);
    }
    log::line(log::Topic::kPtxas, "{} {}\n{}", image->entry, image->digest, image->log);
    dump_sass(folder, *image);
    return image;
}

}  // namespace

Target target_for(int major, int minor) {
    return {major, minor, settings().emulate.empty() ? ImageKind::kCubin : ImageKind::kPtx};
}

void set_include_root(std::string path) {
    set_header_root(std::move(path));
    ++headers_set;
}

uint64_t header_generation() {
    return headers_set;
}

std::shared_ptr<const Image> build(const Source& source, const Target& target) {
    const Job job = make_job(source, target);
    ImagePtr image = memory_cache::find_or_make(job.digest, [&] { return load_or_compile(job); });
    check_resources(*image);
    return image;
}

void invalidate(const Image& image) {
    log::line(log::Topic::kJit, "{} {}: reported as not loadable, dropped", image.entry, image.digest);
    memory_cache::drop(image.digest);
    disk_cache::remove(settings().cache_dir, image.digest);
}

std::string digest_of(const Source& source, const Target& target) {
    return make_job(source, target).digest;
}

void clear_memory() {
    memory_cache::clear();
}

void reload() {
    reload_settings();
    reload_nvrtc();
}

Report report() {
    Report r;
    const NvrtcSearch found = find_nvrtc();
    r.nvrtc_places_tried = found.places_tried;
    if (found.library != nullptr) {
        r.nvrtc_found = true;
        r.nvrtc_major = found.library->version.major;
        r.nvrtc_minor = found.library->version.minor;
        r.nvrtc_path = found.library->path;
    }
    r.cache_dir = settings().cache_dir;
    r.cache_state = disk_cache::state_of(r.cache_dir);
    r.include_root = header_root();
    r.counters = {counters.compiled, counters.loaded, counters.dropped, counters.published};
    return r;
}

}  // namespace deep_gemm::jit
