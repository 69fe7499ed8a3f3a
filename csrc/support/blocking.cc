#include "support/blocking.h"

namespace deep_gemm {
namespace {

constinit BlockingHooks installed_hooks;

}  // namespace

void set_blocking_hooks(BlockingHooks hooks) {
    installed_hooks = hooks;
}

BlockingScope::BlockingScope()
    : token_(installed_hooks.enter != nullptr ? installed_hooks.enter() : nullptr) {}

BlockingScope::~BlockingScope() {
    if (token_ != nullptr) installed_hooks.leave(token_);
}

}  // namespace deep_gemm
