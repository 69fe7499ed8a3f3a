// Decoding of cp.async and createpolicy.
#pragma once

#include "parser/decode.h"

namespace emu {

void decode_cp_async(Decoder& d);      // after "async" has been taken, for everything but bulk copies
void decode_createpolicy(Decoder& d);  // cache hints have no functional meaning

}  // namespace emu
