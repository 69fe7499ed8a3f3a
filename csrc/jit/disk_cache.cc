#include "jit/disk_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "jit/compiler.h"
#include "support/files.h"
#include "support/log.h"
#include "support/sha256.h"

namespace deep_gemm::jit::disk_cache {
namespace {

// docs/jit-cache.md draws the layout. The magic's last digit is the format's version.
constexpr std::string_view kMagic = "DGKERN\n1";
constexpr std::size_t kDigestChars = 2 * kSha256Bytes;

void append_length(std::string& out, uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

// Takes fields off the front; `ok` turns false for good when one is longer than what is left.
struct Reader {
    std::string_view rest;
    bool ok = true;

    std::string_view take(uint64_t count) {
        ok = ok && count <= rest.size();
        if (!ok) return {};
        const std::string_view field = rest.substr(0, count);
        rest.remove_prefix(count);
        return field;
    }
    uint64_t take_length() {
        uint64_t value = 0;
        int shift = 0;
        for (const char c : take(8)) value |= uint64_t{static_cast<unsigned char>(c)} << shift, shift += 8;
        return value;
    }
};

void warn_unwritable(const std::string& folder, const std::string& reason) {
    log::warn_once(
        "jit cache",
        fmt::format("kernels are kept in memory only: the cache folder '{}' cannot be written: {}; "
                    "set DG_JIT_CACHE_DIR to a writable folder",
                    folder, reason));
}

// The folder may hold files of others: only names that begin with a digest are ours.
bool is_leftover(std::string_view name) {
    const bool ours = name.find_first_not_of("0123456789abcdef") == kDigestChars && name[kDigestChars] == '.';
    return ours && (name.ends_with(kTemporarySuffix) || name.ends_with(kLockSuffix));
}

// Processes killed in the middle leave files behind: harmless, but they would pile up.
void sweep_once(const std::string& folder) {
    static std::atomic<bool> swept{false};
    if (swept.exchange(true)) return;
    constexpr auto kAge = std::chrono::hours(2);  // beyond any publication, and the longest wait for a lock
    for (const std::string& name : list_folder(folder))
        if (is_leftover(name)) remove_if_older(join_path(folder, name), kAge);
}

// Once more if the folder vanished in between, or a network file system shows it late.
int publish_entry(const std::string& folder, const Image& image) {
    const std::string path = path_of(folder, image.digest, kEntrySuffix);
    const std::string bytes = encode(image);
    int error = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
        error = make_folders(folder);
        if (error == 0) error = publish_file(path, bytes);
        if (error != ENOENT) break;
    }
    return error;
}

}  // namespace

std::string encode(const Image& image) {
    std::string bytes(kMagic);
    bytes += image.digest;
    append_length(bytes, static_cast<uint64_t>(image.kind));
    append_length(bytes, image.entry.size());
    append_length(bytes, image.bytes.size());
    append_length(bytes, image.log.size());
    bytes += image.entry;
    bytes += image.bytes;
    bytes += image.log;
    bytes += sha256(bytes);
    return bytes;
}

std::optional<Image> decode(std::string_view bytes, std::string_view digest) {
    if (bytes.size() < kSha256Bytes) return std::nullopt;
    const std::string_view checksum = bytes.substr(bytes.size() - kSha256Bytes);
    Reader reader{bytes.substr(0, bytes.size() - kSha256Bytes)};
    if (sha256(reader.rest) != checksum) return std::nullopt;
    if (reader.take(kMagic.size()) != kMagic || reader.take(kDigestChars) != digest) return std::nullopt;
    const uint64_t kind = reader.take_length();
    const uint64_t entry_size = reader.take_length();
    const uint64_t image_size = reader.take_length();
    const uint64_t log_size = reader.take_length();
    Image image;
    image.kind = static_cast<ImageKind>(kind);
    image.digest = digest;
    image.entry = reader.take(entry_size);
    image.bytes = reader.take(image_size);
    image.log = reader.take(log_size);
    const bool whole = reader.ok && reader.rest.empty() && kind <= static_cast<uint64_t>(ImageKind::kPtx);
    if (!whole || !reject_image(image.bytes, image.entry, image.kind).empty()) return std::nullopt;
    return image;
}

std::string path_of(const std::string& folder, const std::string& digest, std::string_view suffix) {
    return join_path(folder, digest).append(suffix);
}

LoadResult load(const std::string& folder, const std::string& digest) {
    if (folder.empty()) return {};
    const std::optional<std::string> bytes = read_file(path_of(folder, digest, kEntrySuffix));
    if (!bytes) return {};
    LoadResult result{decode(*bytes, digest)};
    if (!result.image) {
        log::line(log::Topic::kJit, "{} in '{}' does not verify: removed", digest, folder);
        remove(folder, digest);
        result.dropped = true;
    }
    return result;
}

bool store(const std::string& folder, const Image& image) {
    if (folder.empty()) {
        warn_unwritable(folder, "none of DG_JIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
        return false;
    }
    const int error = publish_entry(folder, image);
    if (error != 0) {
        warn_unwritable(folder, describe_errno(error));
        return false;
    }
    sweep_once(folder);
    return true;
}

void remove(const std::string& folder, const std::string& digest) {
    if (!folder.empty()) ::unlink(path_of(folder, digest, kEntrySuffix).c_str());
}

std::string state_of(const std::string& folder) {
    if (folder.empty()) return "none: set DG_JIT_CACHE_DIR or HOME; kernels are kept in memory only";
    struct stat status{};
    if (::stat(folder.c_str(), &status) != 0) return "not there yet";
    if (!S_ISDIR(status.st_mode)) return "not a folder; kernels are kept in memory only";
    const std::vector<std::string> names = list_folder(folder);
    const auto kernels = std::count_if(names.begin(), names.end(),
                                       [](const std::string& name) { return name.ends_with(kEntrySuffix); });
    return fmt::format("{}, {} kernels", ::eaccess(folder.c_str(), W_OK) == 0 ? "writable" : "read-only",
                       kernels);
}

}  // namespace deep_gemm::jit::disk_cache
