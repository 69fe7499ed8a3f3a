// Decoding of TMA tensor copies.
#pragma once

#include "parser/decode.h"

namespace emu {

// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, after "tensor" has been taken.
enum class CopyForm : uint8_t { kPlain, kReduce };
void decode_tensor_copy(Decoder& d, CopyForm form);

}  // namespace emu
