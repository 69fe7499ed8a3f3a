// The JIT for Python: `doctor`, `compile` and tests. Every call that may compile or search lets other threads
// run.
#include "jit/jit.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "jit/compiler.h"
#include "jit/nvrtc.h"
#include "jit/target.h"
#include "jit/yields.h"
#include "support/error.h"
#include "support/settings.h"
#include "support/sha256.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

// Compiler logs quote source, and paths are bytes: neither need be UTF-8.
py::str to_text(const std::string& bytes) {
    PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
    if (decoded == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(decoded);
}

jit::Target target_from(std::pair<int, int> capability, const std::string& kind) {
    DG_CHECK(kind == "cubin" || kind == "ptx", "kind: expected 'cubin' or 'ptx', got '{}'", kind);
    return {capability.first, capability.second,
            kind == "ptx" ? jit::ImageKind::kPtx : jit::ImageKind::kCubin};
}

py::tuple jit_build(std::string entry, std::string text, int major, int minor, const std::string& kind) {
    const jit::Source source{std::move(entry), std::move(text)};
    const jit::Target target = target_from({major, minor}, kind);
    std::shared_ptr<const jit::Image> image;
    {
        const py::gil_scoped_release release;
        image = jit::build(source, target);
    }
    return py::make_tuple(py::bytes(image->bytes), image->digest, to_text(image->log));
}

std::string jit_digest(std::string entry, std::string text, int major, int minor, const std::string& kind) {
    const py::gil_scoped_release release;
    return jit::digest_of({std::move(entry), std::move(text)}, target_from({major, minor}, kind));
}

py::tuple jit_apply_yields(std::string image, const std::string& entry, const std::string& text) {
    const std::optional<jit::YieldRule> rule = jit::yield_rule_of(text);
    const int concerned = rule ? jit::set_yields(image, entry, *rule) : 0;
    return py::make_tuple(py::bytes(image), concerned);
}

void jit_invalidate(std::string digest) {
    DG_CHECK(digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos,
             "digest: expected 64 hex digits as jit_digest gives them, got '{}'", digest);
    const py::gil_scoped_release release;
    jit::Image image;
    image.digest = std::move(digest);
    jit::invalidate(image);
}

std::string jit_target_name(int major, int minor, const std::string& kind,
                            std::pair<int, int> nvrtc_version) {
    return jit::architecture_option(target_from({major, minor}, kind),
                                    {nvrtc_version.first, nvrtc_version.second});
}

py::dict jit_report() {
    jit::Report r;
    {
        const py::gil_scoped_release release;
        r = jit::report();
    }
    py::dict d;
    d["nvrtc_found"] = r.nvrtc_found;
    d["nvrtc_version"] = py::make_tuple(r.nvrtc_major, r.nvrtc_minor);
    d["nvrtc_path"] = to_text(r.nvrtc_path);
    d["nvrtc_places_tried"] = to_text(r.nvrtc_places_tried);
    d["cache_dir"] = to_text(r.cache_dir);
    d["cache_state"] = r.cache_state;
    d["include_root"] = to_text(r.include_root);
    d["compiled"] = r.counters.compiled;
    d["loaded"] = r.counters.loaded;
    d["dropped"] = r.counters.dropped;
    d["published"] = r.counters.published;
    return d;
}

py::dict settings_dict() {
    const Settings& s = settings();
    py::dict d;
    d["cache_dir"] = to_text(s.cache_dir);
    d["jit_debug"] = s.jit_debug;
    d["dump_ptx"] = s.dump_ptx;
    d["dump_sass"] = s.dump_sass;
    d["ptxas_verbose"] = s.ptxas_verbose;
    d["ptxas_check"] = s.ptxas_check;
    d["with_lineinfo"] = s.with_lineinfo;
    d["for_racecheck"] = s.for_racecheck;
    d["print_compiler_command"] = s.print_compiler_command;
    d["print_load_time"] = s.print_load_time;
    d["print_configs"] = s.print_configs;
    d["lock_limit_seconds"] = s.lock_limit.count();
    d["nvrtc_library"] = s.nvrtc_library;
    d["driver_library"] = s.driver_library;
    d["emulate"] = s.emulate;
    return d;
}

}  // namespace

void register_jit(py::module_& m) {
    m.def("jit_build", jit_build, py::arg("entry"), py::arg("text"), py::arg("major"), py::arg("minor"),
          py::arg("kind") = "cubin",
          "Builds the kernel `entry` (extern \"C\") of a CUDA source for compute capability major.minor.\n\n"
          "kind: 'cubin' or 'ptx'. Returns (image bytes, digest, compiler log). Raises DeepGemmError with "
          "the log.");
    m.def("jit_digest", jit_digest, py::arg("entry"), py::arg("text"), py::arg("major"), py::arg("minor"),
          py::arg("kind") = "cubin", "The digest (64 hex digits) jit_build would use, without building.");
    m.def("jit_apply_yields", jit_apply_yields, py::arg("image"), py::arg("entry"), py::arg("text"),
          "What jit_build does to a cubin whose source `text` says which instructions yield. Returns (image bytes, "
          "instructions concerned).");
    m.def("jit_invalidate", jit_invalidate, py::arg("digest"), "Drops a kernel from memory and disk.");
    m.def("jit_clear_memory", jit::clear_memory, "Forgets the kernels in memory; the disk keeps its own.");
    m.def("jit_report", jit_report, "State of the JIT: NVRTC, cache, and counts of this process.");
    m.def("jit_target_name", jit_target_name, py::arg("major"), py::arg("minor"), py::arg("kind"),
          py::arg("nvrtc_version"),
          "The compiler's name of a target, e.g. 'sm_90a', for an NVRTC version (major, minor).");
    m.def("jit_resource_complaints", jit::resource_complaints, py::arg("log"),
          "Lines of a compiler log that report spills, local memory or serialised wgmma; '' if none.");
    m.def("set_include_root", jit::set_include_root, py::arg("path"),
          "The folder that holds deep_gemm/ with device headers. Plans made before keep their kernels until they are forgotten.");
    m.def("set_nvrtc_search_path", jit::set_nvrtc_search_path, py::arg("folders"),
          "Folders that may hold libnvrtc, in order, tried before toolkits.");
    m.def("reload_settings", jit::reload,
          "Reads the environment again. Raises DeepGemmError on a bad value.");
    m.def(
        "sha256", [](const py::bytes& data) { return to_hex(sha256(std::string_view(data))); },
        py::arg("data"), "SHA-256 in hex, as digests and checksums of the cache use it.");
    m.def("settings", settings_dict, "The settings in force, by name.");
}

}  // namespace deep_gemm::bindings
