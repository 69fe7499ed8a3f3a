#include "jit/memory_cache.h"

#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace deep_gemm::jit::memory_cache {
namespace {

// A build in progress; ends with an image or an error.
struct Pending {
    bool done = false;
    ImagePtr image;
    std::exception_ptr error;
};

struct Cache {
    std::mutex mutex;
    std::condition_variable finished;
    std::map<std::string, ImagePtr> images;
    std::map<std::string, std::shared_ptr<Pending>> pending;
};

Cache& cache();

// The child of a fork has none of the threads that were building: it forgets their builds, and makes its own.
void lock_before_fork() {
    cache().mutex.lock();
}
void unlock_in_parent() {
    cache().mutex.unlock();
}
void restart_in_child() {
    Cache& c = cache();
    c.pending.clear();
    new (&c.finished) std::condition_variable;  // the old one may count waiters that do not exist here
    c.mutex.unlock();
}

Cache& cache() {
    static Cache& c = [&]() -> Cache& {
        auto* fresh = new Cache;
        ::pthread_atfork(lock_before_fork, unlock_in_parent, restart_in_child);
        return *fresh;
    }();
    return c;
}

ImagePtr wait_for(Cache& c, const std::shared_ptr<Pending>& pending, std::unique_lock<std::mutex>& lock) {
    c.finished.wait(lock, [&] { return pending->done; });
    if (pending->error) std::rethrow_exception(pending->error);
    return pending->image;
}

}  // namespace

ImagePtr find_or_make(const std::string& digest, const std::function<ImagePtr()>& make) {
    Cache& c = cache();
    std::unique_lock lock(c.mutex);
    if (const auto found = c.images.find(digest); found != c.images.end()) return found->second;
    if (const auto found = c.pending.find(digest); found != c.pending.end()) {
        return wait_for(c, std::shared_ptr(found->second), lock);
    }
    const auto own = std::make_shared<Pending>();
    c.pending.emplace(digest, own);
    lock.unlock();
    try {
        own->image = make();
    } catch (...) {
        own->error = std::current_exception();
    }
    lock.lock();
    own->done = true;
    c.pending.erase(digest);
    if (own->image != nullptr) c.images[digest] = own->image;
    c.finished.notify_all();
    if (own->error) std::rethrow_exception(own->error);
    return own->image;
}

void drop(const std::string& digest) {
    const std::lock_guard lock(cache().mutex);
    cache().images.erase(digest);
}

void clear() {
    const std::lock_guard lock(cache().mutex);
    cache().images.clear();
}

}  // namespace deep_gemm::jit::memory_cache
