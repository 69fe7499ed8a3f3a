#include "jit/compiler.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "jit/yields.h"
#include "support/error.h"
#include "support/log.h"
#include "support/settings.h"
#include "support/sha256.h"

namespace deep_gemm::jit {
namespace {

// Part of every digest: raise it when the meaning of a digest or of an entry changes.
constexpr std::string_view kDigestVersion = "deep_gemm jit 3";

struct OptionRow {
    const char* option;
    NvrtcVersion since;
};

// Spare work, and leave the code as it is. Tried with NVRTC 12.0, 12.4, 12.6, 12.8, 12.9 and 13.0.
constexpr OptionRow kSparingOptions[] = {
    {"--minimal", {12, 4}},   // no declarations of textures and of the runtime's functions
    {"--no-cache", {12, 9}},  // else images are kept a second time, by the driver, which is opened for that
};

std::vector<std::string> make_options(const Target& target, const Nvrtc& compiler) {
    std::vector<std::string> options = {
        "--std=c++20",
        "--gpu-architecture=" + architecture_option(target, compiler.version),
        "-default-device",      // constexpr functions shared with the host carry no annotation
        "--no-source-include",  // else headers in the current folder would be seen
    };
    for (const OptionRow& row : kSparingOptions)
        if (compiler.version >= row.since) options.emplace_back(row.option);
    // Always: the report travels with the cached image, so that asking for it later compiles nothing again.
    // The kernels are written as they shall run: a higher level takes twice the time to find the same code.
    if (target.kind == ImageKind::kCubin) {
        options.push_back("--ptxas-options=-O2");
        options.push_back("--ptxas-options=-v");
    }
    if (settings().with_lineinfo) options.push_back("--generate-line-info");
    if (settings().for_racecheck) options.push_back("--define-macro=DG_FOR_RACECHECK");
    return options;
}

std::string digest_job(const Job& job) {
    Sha256 hash;
    hash.update_field(kDigestVersion);
    hash.update_field(job.compiler->build);
    hash.update_field(
        fmt::format("{}.{} {}", job.target.major, job.target.minor, static_cast<int>(job.target.kind)));
    hash.update_field(fmt::format("{}", job.options.size()));
    for (const std::string& option : job.options) hash.update_field(option);
    hash.update_field(job.source.entry);
    hash.update_field(job.source.text);
    for (const auto& header : job.headers) {
        hash.update_field(header->name);
        hash.update_field(header->hash);
    }
    return to_hex(hash.finish());
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

// Calls visit(line) for each line of `text`, without its end.
template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        visit(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

// Timings would make equal builds differ.
std::string without_timings(std::string_view log) {
    std::string kept;
    for_each_line(log, [&](std::string_view line) {
        if (!line.empty() && line.find("Compile time =") == std::string_view::npos)
            kept.append(line).append("\n");
    });
    return kept;
}

class Program {
  public:
    explicit Program(const Job& job) : nvrtc_(*job.compiler) {
        std::vector<const char*> texts, names;
        for (const auto& header : job.headers) {
            texts.push_back(header->text.c_str());
            names.push_back(header->name.c_str());
        }
        const std::string name = job.source.entry + ".cu";
        check(nvrtc_.create_program(&program_, job.source.text.c_str(), name.c_str(),
                                    static_cast<int>(texts.size()), texts.data(), names.data()),
              "nvrtcCreateProgram");
    }
    ~Program() { nvrtc_.destroy_program(&program_); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    nvrtcResult compile(const std::vector<std::string>& options) {
        std::vector<const char*> words;
        for (const std::string& option : options) words.push_back(option.c_str());
        return nvrtc_.compile_program(program_, static_cast<int>(words.size()), words.data());
    }
    std::string log() const { return output(nvrtc_.log_size, nvrtc_.log, "nvrtcGetProgramLog"); }
    std::string ptx() const { return without_end(output(nvrtc_.ptx_size, nvrtc_.ptx, "nvrtcGetPTX")); }
    std::string cubin() const { return output(nvrtc_.cubin_size, nvrtc_.cubin, "nvrtcGetCUBIN"); }

  private:
    void check(nvrtcResult result, std::string_view call) const {
        DG_CHECK(result == NVRTC_SUCCESS, "{} failed: {} ({})", call, nvrtc_.error_string(result),
                 static_cast<int>(result));
    }
    template <typename Size, typename Read>
    std::string output(Size size_of, Read read, std::string_view call) const {
        std::size_t size = 0;
        check(size_of(program_, &size), call);
        std::string bytes(size, '\0');
        if (size > 0) check(read(program_, bytes.data()), call);
        return bytes;
    }
    // NVRTC counts the final NUL of texts.
    static std::string without_end(std::string text) {
        text.resize(text.find_last_not_of('\0') + 1);
        return text;
    }

    const Nvrtc& nvrtc_;
    nvrtcProgram program_ = nullptr;
};

[[noreturn]] void throw_compile_error(const Job& job, std::string_view result, std::string_view log,
                                      const std::string& source_path) {
    const std::string source = source_path.empty()
                                   ? fmt::format("source (DG_JIT_DEBUG=1 keeps a copy):\n{}", job.source.text)
                                   : fmt::format("source: {}", source_path);
    throw_error(fmt::format("kernel '{}' did not compile: {} by NVRTC {} ({})\n{}options: {}\n{}",
                            job.source.entry, result, job.compiler->build, job.compiler->path, log,
                            join(job.options), source));
}

// "N bytes <what>" in `line`, 0 if not there.
long long bytes_of(std::string_view line, std::string_view what) {
    const std::string phrase = fmt::format(" bytes {}", what);
    const std::size_t at = line.find(phrase);
    if (at == std::string_view::npos) return 0;
    std::size_t first = at;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    long long value = 0;
    for (; first < at; ++first) value = value * 10 + (line[first] - '0');
    return value;
}

void apply_yields(const Job& job, std::string& cubin) {
    const std::optional<YieldRule> rule = yield_rule_of(job.source.text);
    if (!rule) return;
    const std::string& entry = job.source.entry;
    const int concerned = set_yields(cubin, entry, *rule);
    log::line(log::Topic::kJit, "{} {}: {} instructions told when to yield", entry, job.digest, concerned);
    if (concerned == 0)
        log::warn_once(
            entry + " yields",
            fmt::format("kernel '{}': its source says which instructions yield, and no such instruction was "
                        "found in the image of NVRTC {}; results are right, and it may be a few percent "
                        "slower. Another version of NVRTC may do (DG_JIT_NVRTC_LIBRARY)",
                        entry, job.compiler->build));
}

}  // namespace

Job make_job(const Source& source, const Target& target) {
    Job job{source, target, {}, {}, &nvrtc(), {}};
    job.options = make_options(target, *job.compiler);
    job.headers = source_closure(source.text);
    job.digest = digest_job(job);
    return job;
}

Compiled compile(const Job& job, const std::string& source_path) {
    log::line(log::Topic::kCommand, "nvrtc {} {}.cu  # {}", join(job.options), job.source.entry,
              job.compiler->path);
    Program program(job);
    const nvrtcResult result = program.compile(job.options);
    const std::string messages = without_timings(program.log().c_str());
    if (result != NVRTC_SUCCESS)
        throw_compile_error(job, job.compiler->error_string(result), messages, source_path);
    Compiled out;
    out.ptx = program.ptx();
    out.image = job.target.kind == ImageKind::kPtx ? out.ptx : program.cubin();
    out.log = messages;
    const std::string reason = reject_image(out.image, job.source.entry, job.target.kind);
    if (!reason.empty()) throw_compile_error(job, reason, messages, source_path);
    if (job.target.kind == ImageKind::kCubin && job.target.major == 9) apply_yields(job, out.image);
    return out;
}

std::string reject_image(const std::string& image, const std::string& entry, ImageKind kind) {
    if (image.empty()) return "the image is empty";
    if (kind == ImageKind::kPtx) {
        const bool has_entry = image.find(fmt::format(".entry {}(", entry)) != std::string::npos;
        return has_entry ? ""
                         : fmt::format("the PTX has no entry '{}'; is it extern \"C\" __global__?", entry);
    }
    if (!image.starts_with("\177ELF")) return "the image is not an ELF file";
    // The name of the entry's code section, in the section name table.
    const std::string section = fmt::format(".text.{}", entry) + '\0';
    const bool has_entry = image.find(section) != std::string::npos;
    return has_entry ? "" : fmt::format("the image has no entry '{}'; is it extern \"C\" __global__?", entry);
}

std::string resource_complaints(const std::string& log) {
    std::string complaints;
    for_each_line(log, [&](std::string_view line) {
        const bool spills = bytes_of(line, "spill stores") + bytes_of(line, "spill loads") > 0;
        const bool local = bytes_of(line, "stack frame") + bytes_of(line, "lmem") > 0;
        const bool serialised =
            line.find("wgmma") != std::string_view::npos && line.find("serialized") != std::string_view::npos;
        if (spills || local || serialised) complaints.append(line).append("\n");
    });
    return complaints;
}

}  // namespace deep_gemm::jit
