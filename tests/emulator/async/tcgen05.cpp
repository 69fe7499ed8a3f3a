#include "simt/families.h"

namespace emu {
FamilyTable tcgen05_families() { return {}; }
}  // namespace emu
