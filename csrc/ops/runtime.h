// What process-wide options mean on one device.
#pragma once

namespace deep_gemm::ops {

// SMs that GEMMs may occupy on `device`: set_num_sms, at most all there are.
int num_sms(int device);

}  // namespace deep_gemm::ops
