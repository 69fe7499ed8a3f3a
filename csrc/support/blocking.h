// A scope in which the calling thread may wait for long (compiling, loading, files). The embedding language
// installs hooks that let its other threads run meanwhile; without hooks the scope does nothing.
#pragma once

namespace deep_gemm {

// `enter` returns a token that `leave` gets back; both run on the thread that opened the scope and must not
// throw. A null token means that there was nothing to release (also in a nested scope), and `leave` is not
// called.
struct BlockingHooks {
    void* (*enter)() = nullptr;
    void (*leave)(void* token) = nullptr;
};

// Installed once, before other threads use the library.
void set_blocking_hooks(BlockingHooks hooks);

// Hold no mutex across the end of the scope: leaving it may wait for other threads (the GIL).
class BlockingScope {
  public:
    BlockingScope();
    ~BlockingScope();
    BlockingScope(const BlockingScope&) = delete;
    BlockingScope& operator=(const BlockingScope&) = delete;

  private:
    void* token_;
};

}  // namespace deep_gemm
