#include "support/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "support/sha256.h"

namespace deep_gemm {
namespace {

class FileDescriptor {
  public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    ~FileDescriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;

    int fd() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    // Network file systems report write errors at close.
    int close_checked() { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

  private:
    int fd_;
};

int write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

int write_new_file(const std::string& path, std::string_view bytes) {
    // Plain 0666 under the umask: a cache may be shared between users.
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) return errno;
    if (const int error = write_all(file.fd(), bytes)) return error;
    if (::fsync(file.fd()) != 0) return errno;
    return file.close_checked();
}

}  // namespace

std::string join_path(std::string_view folder, std::string_view name) {
    std::string path(folder);
    if (!path.empty() && path.back() != '/') path += '/';
    return path.append(name);
}

std::string absolute_path(const std::string& path) {
    if (!path.empty() && path.front() == '/') return path;
    std::string folder(256, '\0');
    while (::getcwd(folder.data(), folder.size()) == nullptr) {
        if (errno != ERANGE) return path;  // the current folder is gone
        folder.resize(folder.size() * 2);
    }
    folder.resize(folder.find('\0'));
    return join_path(folder, path);
}

bool file_exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

long long file_size(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<long long>(status.st_size) : -1;
}

std::string describe_errno(int error) {
    return std::system_category().message(error) + " (errno " + std::to_string(error) + ")";
}

std::optional<std::string> read_file(const std::string& path) {
    // Not blocking: a pipe in the place of a file has to be seen for one, not waited for.
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file.is_open()) return std::nullopt;
    struct stat status{};
    if (::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t filled = 0;
    while (filled < bytes.size()) {
        const ssize_t got = ::read(file.fd(), bytes.data() + filled, bytes.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == 0) break;  // shrank meanwhile
        filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
}

std::vector<std::string> list_folder(const std::string& folder) {
    std::vector<std::string> names;
    DIR* stream = ::opendir(folder.c_str());
    if (stream == nullptr) return names;
    while (const dirent* entry = ::readdir(stream)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(stream);
    return names;
}

int make_folders(const std::string& folder) {
    for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
        const std::string part = folder.substr(0, end);
        if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
            const int error = errno;  // an existing parent on a read-only file system gives EROFS, not EEXIST
            if (!file_exists(part)) return error;
        }
        if (end == std::string::npos) break;
    }
    struct stat status{};
    if (::stat(folder.c_str(), &status) != 0) return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

int publish_file(const std::string& path, std::string_view bytes) {
    const std::string temporary = temporary_name(path);
    int error = write_new_file(temporary, bytes);
    if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) ::unlink(temporary.c_str());
    return error;
}

std::string temporary_name(const std::string& path) {
    std::random_device random;
    std::string bits;
    for (int i = 0; i < 4; ++i) {
        const uint32_t word = random();
        bits.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
    return path + "." + to_hex(bits) + std::string(kTemporarySuffix);
}

void remove_if_older(const std::string& path, std::chrono::seconds age) {
    struct stat status{};
    const bool there = ::stat(path.c_str(), &status) == 0;
    if (there && status.st_mtime < ::time(nullptr) - age.count()) ::unlink(path.c_str());
}

FileLock::FileLock(std::string path, std::chrono::milliseconds limit, const std::function<bool()>& give_up)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) return;
    constexpr auto kPollInterval = std::chrono::milliseconds(5);
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
        held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
        const bool busy = !held_ && (errno == EWOULDBLOCK || errno == EINTR);
        if (!busy || std::chrono::steady_clock::now() >= deadline || give_up()) return;
        std::this_thread::sleep_for(kPollInterval);
    }
}

FileLock::~FileLock() {
    if (fd_ < 0) return;
    // Unlinked while held: whoever waits on the old inode looks at the cache again, as does whoever makes a
    // new one.
    if (held_) ::unlink(path_.c_str());
    // Explicitly: a child forked meanwhile shares the open file, and closing ours would leave it locked.
    ::flock(fd_, LOCK_UN);
    ::close(fd_);
}

}  // namespace deep_gemm
