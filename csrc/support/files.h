// Small POSIX file helpers. Failures are values (errno): the caller decides whether they matter.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deep_gemm {

std::string join_path(std::string_view folder, std::string_view name);
std::string absolute_path(const std::string& path);  // against the current folder; no links resolved
bool file_exists(const std::string& path);
long long file_size(const std::string& path);  // bytes, -1 if there is no such file
std::string describe_errno(int error);         // "Permission denied (errno 13)"

// The whole file, or nothing if it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);

// Names in a folder (no order, without . and ..); empty if it cannot be read.
std::vector<std::string> list_folder(const std::string& folder);

// Creates the folder and its parents. 0, or an errno.
[[nodiscard]] int make_folders(const std::string& folder);

// Makes `path` hold `bytes` in one step: a temporary file beside it, fsync, rename. Readers see the old file,
// the new one or none, never a part; a crash leaves at most a file ending in kTemporarySuffix. 0, or an
// errno.
[[nodiscard]] int publish_file(const std::string& path, std::string_view bytes);

inline constexpr std::string_view kTemporarySuffix = ".tmp";

// A name beside `path` that no other thread, process or machine uses: "<path>.<random>.tmp".
std::string temporary_name(const std::string& path);

// Removes the file if it was last written more than `age` ago.
void remove_if_older(const std::string& path, std::chrono::seconds age);

// An advisory lock between processes that see the same file. Nothing may depend on it being exclusive.
class FileLock {
  public:
    // Waits for the lock until it is granted, `give_up` says so, or `limit` has passed.
    FileLock(std::string path, std::chrono::milliseconds limit, const std::function<bool()>& give_up);
    ~FileLock();  // removes the lock file, if held
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

    bool held() const { return held_; }

  private:
    std::string path_;
    int fd_ = -1;
    bool held_ = false;
};

}  // namespace deep_gemm
