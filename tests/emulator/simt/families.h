// The tables of opcode families, one per file.
#pragma once

#include "parser/decode.h"

namespace emu {

FamilyTable integer_families();
FamilyTable bit_families();
FamilyTable float_families();
FamilyTable sign_families();
FamilyTable convert_families();
FamilyTable data_families();
FamilyTable memory_families();
FamilyTable control_families();
FamilyTable collective_families();
FamilyTable barrier_families();
FamilyTable atomic_families();
FamilyTable matrix_families();
FamilyTable bulk_families();
FamilyTable tensor_map_families();
FamilyTable wgmma_families();
FamilyTable tcgen05_families();

}  // namespace emu
