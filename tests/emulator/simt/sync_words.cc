#include "simt/sync_words.h"

namespace emu {

SyncWords& sync_words(Cluster& cluster) {
    if (!cluster.sync_words) cluster.sync_words = std::make_shared<SyncWords>();
    return *static_cast<SyncWords*>(cluster.sync_words.get());
}

}  // namespace emu
