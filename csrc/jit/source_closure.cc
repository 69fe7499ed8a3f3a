#include "jit/source_closure.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "support/error.h"
#include "support/files.h"
#include "support/sha256.h"

namespace deep_gemm::jit {
namespace {

using HeaderPtr = std::shared_ptr<const Header>;

constexpr std::string_view kOwnPrefix = "deep_gemm/";

struct HeaderStore {
    std::mutex mutex;
    std::string root;
    std::map<std::string, HeaderPtr, std::less<>> headers;
};
HeaderStore& store() {
    static HeaderStore& s = *new HeaderStore;
    return s;
}

void skip_blanks(std::string_view& line) {
    const std::size_t start = line.find_first_not_of(" \t");
    line.remove_prefix(start == std::string_view::npos ? line.size() : start);
}

bool take(std::string_view& line, std::string_view word) {
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    skip_blanks(line);
    return true;
}

// The header named by one line of source, empty if it includes none of ours. `where` is for messages.
std::string_view included_header(std::string_view line, std::string_view where) {
    const std::string_view whole = line;
    skip_blanks(line);
    if (!take(line, "#") || !take(line, "include")) return {};
    const std::size_t end = line.find('>');
    const bool angled = line.starts_with('<') && end != std::string_view::npos;
    const std::string_view name = angled ? line.substr(1, end - 1) : std::string_view{};
    // Quoted, absolute and computed names could be read from folders that the digest does not see.
    DG_CHECK(angled && !name.starts_with('/') && name.find("..") == std::string_view::npos,
             "{}: device code includes headers as <deep_gemm/...> only, got: {}", where, whole);
    return name.starts_with(kOwnPrefix) ? name : std::string_view{};
}

std::vector<std::string> scan_includes(std::string_view text, std::string_view where) {
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view name = included_header(text.substr(0, end), where);
        if (!name.empty()) names.emplace_back(name);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return names;
}

// Needs the store's mutex.
HeaderPtr load_header(HeaderStore& s, const std::string& name, std::string_view includer) {
    HeaderPtr& slot = s.headers[name];
    if (slot == nullptr) {
        std::optional<std::string> text = read_file(join_path(s.root, name));
        DG_CHECK(text.has_value(),
                 "device header <{}>, included by {}, is missing under '{}'; reinstall the package", name,
                 includer, s.root);
        auto header = std::make_shared<Header>();
        header->name = name;
        header->hash = sha256(*text);
        header->includes = scan_includes(*text, name);
        header->text = std::move(*text);
        slot = std::move(header);
    }
    return slot;
}

void collect(HeaderStore& s, const std::vector<std::string>& names, std::string_view includer,
             std::map<std::string, HeaderPtr>& closure) {
    for (const std::string& name : names) {
        if (closure.contains(name)) continue;
        const HeaderPtr header = load_header(s, name, includer);
        closure.emplace(name, header);
        collect(s, header->includes, name, closure);
    }
}

}  // namespace

void set_header_root(std::string path) {
    HeaderStore& s = store();
    const std::lock_guard lock(s.mutex);
    s.root = std::move(path);
    s.headers.clear();
}

std::string header_root() {
    const std::lock_guard lock(store().mutex);
    return store().root;
}

Closure source_closure(std::string_view text) {
    constexpr std::string_view kSourceName = "the kernel source";
    HeaderStore& s = store();
    const std::lock_guard lock(s.mutex);
    std::map<std::string, HeaderPtr> found;
    collect(s, scan_includes(text, kSourceName), kSourceName, found);
    Closure closure;
    for (auto& [name, header] : found) closure.push_back(std::move(header));
    return closure;
}

}  // namespace deep_gemm::jit
