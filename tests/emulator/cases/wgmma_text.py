"""Text of wgmma wrappers: an instruction with N/2 accumulator registers cannot be written by hand."""
from __future__ import annotations


def wgmma_function(n: int, k: int, types: str, *, a_registers: bool = False, half: bool = False, tail: str = "1, 1") -> str:
    """A device function ``wgmma(d, a, b, accumulate)``. ``types`` is like ``f32.e4m3.e4m3``, ``tail`` the immediates
    behind scale-d. ``a`` is a descriptor, or ``const u32*`` to four registers."""
    count = n // 4 if half else n // 2
    kind, constraint = ("u32", "r") if half else ("float", "f")
    accumulators = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"+{constraint}"(d[{i}])' for i in range(count))
    if a_registers:
        a_text = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}"
        a_inputs, a_kind, used = ", ".join(f'"r"(a[{i}])' for i in range(4)), "const u32*", 4
    else:
        a_text, a_inputs, a_kind, used = f"%{count}", '"l"(a)', "u64", 1
    return f"""
DEV void wgmma({kind}* d, {a_kind} a, u64 b, int accumulate) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + used + 1}, 0;\\n"
                 "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{accumulators}}}, {a_text}, %{count + used}, p, {tail};\\n}}"
                 : {outputs} : {a_inputs}, "l"(b), "r"(accumulate));
}}
"""
