// Asynchronous operations. In synchronous mode they complete at issue; in seeded mode they wait in queues and
// complete at random moments: bulk operations in any order, tcgen05 operations in order per CTA pair.
#pragma once

#include <functional>

#include "machine/state.h"

namespace emu {

void submit_bulk(Exec& x, std::function<void()> operation);
void submit_tensor(Exec& x, std::function<void()> operation);
// Completes one pending operation of the cluster; false when there is none.
bool drain_one(Cluster& cluster, std::mt19937_64& random);

}  // namespace emu
