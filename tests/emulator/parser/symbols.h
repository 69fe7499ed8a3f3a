// Slots, scopes and symbols of one function while its body is parsed.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/program.h"

namespace emu {

struct RegisterFamily {  // .reg .b32 %r<100>;
    int first_slot;
    int count;
};

struct Symbol {
    int slot;
    ScalarType type;
    bool is_wide;
};

class FunctionSymbols {
  public:
    explicit FunctionSymbols(Kernel& kernel) : kernel_(kernel) { scopes_.push_back({-1, {}, {}}); }

    void open_scope() {
        scopes_.push_back({current_, {}, {}});
        current_ = static_cast<int>(scopes_.size()) - 1;
    }
    void close_scope() { current_ = scopes_[current_].parent; }
    int scope() const { return current_; }

    int new_slot(int count = 1) {
        const int slot = kernel_.num_slots;
        kernel_.num_slots += count;
        return slot;
    }
    void declare(const std::string& name, ScalarType type);
    void bind(const std::string& name, int slot, ScalarType type) {
        scopes_[current_].names[name] = {slot, type, false};
    }
    const Symbol* find(const std::string& name) const;

    int constant(uint64_t value);
    int symbol_slot(SlotInit::Kind kind, uint64_t value);
    int special(const std::string& name);  // -1 when the name is no special register

    void define_label(const std::string& name, int index) { scopes_[current_].labels[name] = index; }
    int find_label(const std::string& name, int scope) const;  // -1 when unknown

  private:
    struct Scope {
        int parent;
        std::unordered_map<std::string, Symbol> names;
        std::unordered_map<std::string, int> labels;
    };
    Kernel& kernel_;
    std::vector<Scope> scopes_;
    int current_ = 0;
    std::map<std::pair<int, uint64_t>, int> inits_;
};

}  // namespace emu
