#pragma once

#include "parser/decode.h"

namespace emu {

// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, after "tensor" has been taken.
void decode_tensor_copy(Decoder& d, bool reduces);

}  // namespace emu
