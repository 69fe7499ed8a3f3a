// The process-wide options.
#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "launch/launch.h"
#include "support/error.h"
#include "support/runtime_options.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

Switch switch_of(bool on) {
    return on ? Switch::kOn : Switch::kOff;
}

// Without a driver there is no total to hold the count against; each call takes no more than its device has.
void set_sms(int64_t count) {
    const bool bounded = count > 0 && launch::driver_available();
    set_num_sms(count, bounded ? launch::device_info(launch::current_device()).sm_count : 0);
}

// Asks the driver only when no count is set.
int usable_sms() {
    const int wanted = runtime_options().num_sms;
    return wanted > 0 ? wanted : launch::device_info(launch::current_device()).sm_count;
}

void set_block_size_multiple(const py::object& value) {
    if (PyLong_Check(value.ptr())) {
        const int64_t both = py::cast<int64_t>(value);
        return set_block_size_multiple_of(both, both);
    }
    DG_CHECK(PySequence_Check(value.ptr()) && py::len(value) == 2,
             "block_size_multiple_of takes an integer or a pair (m, n), got {}",
             Py_TYPE(value.ptr())->tp_name);
    set_block_size_multiple_of(py::cast<int64_t>(value[py::int_(0)]), py::cast<int64_t>(value[py::int_(1)]));
}

}  // namespace

void register_runtime(py::module_& m) {
    m.def("set_num_sms", &set_sms, py::arg("count"));
    m.def("get_num_sms", &usable_sms);
    m.def("driver_available", &launch::driver_available);
    m.def("set_tc_util", [](int64_t percent) { set_tc_util(percent); }, py::arg("percent"));
    m.def("get_tc_util",
          [] { return runtime_options().tc_util == 0 ? 100 : int{runtime_options().tc_util}; });
    m.def("set_pdl", [](bool on) { set_pdl(switch_of(on)); }, py::arg("on"));
    m.def("get_pdl", [] { return bool{runtime_options().pdl}; });
    m.def("set_ignore_compile_dims", [](bool on) { set_ignore_compile_dims(switch_of(on)); }, py::arg("on"));
    m.def("set_block_size_multiple_of", &set_block_size_multiple, py::arg("value"));
    m.def("set_compile_mode", [](int64_t mode) { set_compile_mode(mode); }, py::arg("mode"));
    m.def("get_compile_mode", [] { return runtime_options().compile_only ? 1 : 0; });
}

}  // namespace deep_gemm::bindings
