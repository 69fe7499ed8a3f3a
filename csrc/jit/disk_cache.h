// Compiled kernels in a folder, one file each, named by digest. Shared by processes, users and machines;
// trusted by nobody: what does not verify is removed and built again. No failure here is an error of the
// caller.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jit/jit.h"

namespace deep_gemm::jit::disk_cache {

// The bytes of an entry file: header, entry name, image, log, SHA-256 of all before.
std::string encode(const Image& image);

// The image in `bytes`, if they verify and hold `digest`.
std::optional<Image> decode(std::string_view bytes, std::string_view digest);

struct LoadResult {
    std::optional<Image> image;
    bool dropped = false;  // an entry was there, did not verify and was removed
};
LoadResult load(const std::string& folder, const std::string& digest);

// Publishes the image in one step. False, after one warning per process, where the folder cannot be written.
bool store(const std::string& folder, const Image& image);

void remove(const std::string& folder, const std::string& digest);

inline constexpr std::string_view kEntrySuffix = ".kernel";
inline constexpr std::string_view kLockSuffix = ".lock";

// The path of a file that belongs to an entry: one of the suffixes above, or of a copy for people (".cu",
// ".ptx").
std::string path_of(const std::string& folder, const std::string& digest, std::string_view suffix);

// "writable, 12 kernels", "read-only, ...", "not there yet", ... for `doctor`.
std::string state_of(const std::string& folder);

}  // namespace deep_gemm::jit::disk_cache
