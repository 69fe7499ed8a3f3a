// Vector clocks: who knows of whose work. A component ("actor") is a warp, a barrier's incoming bulk data,
// or a warp's asynchronous reads (wgmma, tcgen05, bulk stores).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace emu {

class Clock {
  public:
    uint32_t operator[](size_t actor) const { return actor < time_.size() ? time_[actor] : 0; }
    void raise(size_t actor, uint32_t time) {
        if (actor >= time_.size()) time_.resize(actor + 1);
        time_[actor] = std::max(time_[actor], time);
    }
    void join(const Clock& other) {
        if (other.time_.size() > time_.size()) time_.resize(other.time_.size());
        for (size_t i = 0; i < other.time_.size(); ++i) time_[i] = std::max(time_[i], other.time_[i]);
    }
    void clear() { time_.clear(); }

  private:
    std::vector<uint32_t> time_;
};

}  // namespace emu
