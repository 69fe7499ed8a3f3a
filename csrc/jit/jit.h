// source text -> digest -> memory, disk, NVRTC. Knows nothing of GEMMs, devices or Python.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace deep_gemm::jit {

enum class ImageKind : unsigned char { kCubin, kPtx };  // PTX for an emulated driver

// What a kernel is compiled for, e.g. {9, 0, kCubin} -> sm_90a.
struct Target {
    int major = 9, minor = 0;
    ImageKind kind = ImageKind::kCubin;
    bool operator==(const Target&) const = default;
};

// One translation unit: device headers it includes (`<deep_gemm/...>`) come from the include root. Its first
// line may say which instructions of the cubin yield (yields.h).
struct Source {
    std::string entry;  // extern "C" symbol of the kernel
    std::string text;
};

struct Image {
    std::string bytes;   // data() ends in a NUL that size() does not count, as the driver wants PTX
    std::string digest;  // 64 hex digits: source closure, options, compiler build, target; no path
    std::string entry;
    ImageKind kind = ImageKind::kCubin;
    std::string log;  // compiler messages and, for a cubin, ptxas' report: registers, spills
};

// cubin for a device of this compute capability, or PTX where DG_EMULATE puts an emulated driver in its
// place.
Target target_for(int major, int minor);

// Where device headers are read from (the folder holding `deep_gemm/`). Set once at import; headers are read
// at first use.
void set_include_root(std::string path);

// How often that was set: kernels of one config, built of different headers, differ in it.
uint64_t header_generation();

// The image of `source` for `target`: from memory, else disk, else NVRTC. Thread-safe; concurrent requests
// for one kernel build it once. Throws Error with the compiler's log. Never touches the GPU.
std::shared_ptr<const Image> build(const Source& source, const Target& target);

// Forgets the images in memory; the disk keeps its own.
void clear_memory();

// Reads the environment again and searches NVRTC again at the next use.
void reload();

// Reports that `image` did not load: it is dropped from memory and disk, so that the next build compiles
// afresh.
void invalidate(const Image& image);

// The digest build() would use, without building.
std::string digest_of(const Source& source, const Target& target);

// What build() has done in this process so far.
struct Counters {
    long compiled = 0;   // by NVRTC, with success
    long loaded = 0;     // from disk
    long dropped = 0;    // entries on disk that did not verify
    long published = 0;  // to disk
};

// For `doctor`: version and path of NVRTC, places tried, cache directory and its state.
struct Report {
    bool nvrtc_found = false;
    int nvrtc_major = 0, nvrtc_minor = 0;
    std::string nvrtc_path, nvrtc_places_tried, cache_dir, cache_state, include_root;
    Counters counters;
};
Report report();

}  // namespace deep_gemm::jit
