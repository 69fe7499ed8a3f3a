#include "async/engine.h"

#include "scheduler/scheduler.h"

namespace emu {
namespace {

// A fault in a deferred operation names the instruction that issued it.
std::function<void()> located(Exec& x, std::function<void()> operation) {
    return [&launch = x.launch, &warp = x.warp, instr = x.instr, lanes = x.group,
            operation = std::move(operation)] {
        ++launch.progress;
        try {
            operation();
        } catch (const LocatedFault&) {
            throw;
        } catch (const Fault& error) {
            throw LocatedFault(std::string(error.what()) + "\n" +
                               describe_place(launch, warp, *instr, lanes));
        }
    };
}

}  // namespace

void submit_bulk(Exec& x, std::function<void()> operation) {
    if (!x.launch.options.is_async) return operation();
    x.cluster.bulk_queue.push_back(located(x, std::move(operation)));
}

void submit_tensor(Exec& x, std::function<void()> operation) {
    if (!x.launch.options.is_async) return operation();
    x.cluster.tensor_queues[x.cta.rank / 2].push_back(located(x, std::move(operation)));
}

bool drain_one(Cluster& cluster, std::mt19937_64& random) {
    const size_t bulk = cluster.bulk_queue.size();
    size_t busy = 0;
    for (const auto& queue : cluster.tensor_queues) busy += !queue.empty();
    if (bulk + busy == 0) return false;
    size_t choice = random() % (bulk + busy);
    if (choice < bulk) {
        auto operation = std::move(cluster.bulk_queue[choice]);
        cluster.bulk_queue.erase(cluster.bulk_queue.begin() + std::ptrdiff_t(choice));
        operation();
        return true;
    }
    choice -= bulk;
    for (auto& queue : cluster.tensor_queues) {
        if (queue.empty() || choice-- > 0) continue;
        auto operation = std::move(queue.front());
        queue.pop_front();
        operation();
        return true;
    }
    return false;
}

}  // namespace emu
