"""Which FP32 instructions of a cubin yield: what a source says, and nothing else, is what the image does."""

import struct

import pytest
from jit_support import ENTRY, kernel, load_extension

_C = load_extension()

FMUL, FFMA = 0x220, 0x223
COUNTED = {"FFMA": [FFMA], "FMUL": [FMUL], "FP32": [FMUL, FFMA]}
SCHEDULING = ((1 << 4) - 1) << 122 | 1 << 109  # bits of an instruction: operands to reuse, does not yield

SHAPES = [
    ("FFMA", (4096, 4096, 7168), {}),
    ("FFMA", (4096, 576, 7168), {}),
    ("FFMA", (1, 4096, 7168), {}),
    ("FMUL", (4096, 4096, 7168), {"recipe": (1, 1, 128)}),
]


def printed(shape, arguments):
    choice = _C.plan_fp8_gemm(*shape, **arguments)
    return _C.print_fp8_gemm_source(choice["config"])


def code_of(image, entry):
    """(offset, size) of an entry's code, by the section table."""
    table, size, count, names = struct.unpack_from("<Q10xHHH", image, 0x28)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    for name, _, _, _, offset, length, *_ in sections:
        start = sections[names][4] + name
        if image[start : image.index(b"\0", start)] == f".text.{entry}".encode():
            return offset, length
    raise AssertionError(f"no code of {entry}")


def instructions(image, entry):
    offset, length = code_of(image, entry)
    return [int.from_bytes(image[i : i + 16], "little") for i in range(offset, offset + length, 16)]


def unconditional(word, *opcodes):
    return word & 0xFFF in opcodes and word >> 12 & 15 == 7


@pytest.mark.parametrize("kind, shape, arguments", SHAPES)
def test_every_nth_yields_and_only_scheduling_changes(kind, shape, arguments):
    source = printed(shape, arguments)
    line, plain = source["text"].split("\n", 1)
    assert line.startswith(f"//! yields: {kind} ") and "//!" not in plain
    every = int(line.rsplit(" ", 1)[1])
    assert every > 1
    entry = source["entry"]
    told, _, _ = _C.jit_build(entry, source["text"], 9, 0)
    untold, _, _ = _C.jit_build(entry, plain, 9, 0)
    offset, length = code_of(untold, entry)
    assert (told[:offset], told[offset + length :]) == (untold[:offset], untold[offset + length :])
    counted = 0
    for after, before in zip(instructions(told, entry), instructions(untold, entry)):
        if not unconditional(after, FMUL, FFMA):
            assert after == before
            continue
        assert after & ~SCHEDULING == before & ~SCHEDULING
        is_counted = unconditional(after, *COUNTED[kind])
        counted += is_counted
        assert (after >> 109 & 1 == 0) == (is_counted and counted % every == 0)
    assert counted > every


def registers(word):
    """The registers of an FMUL or FFMA: destination, sources by slot."""
    sources = [word >> bit & 255 for bit in ((24, 32, 64) if word & 0xFFF == FFMA else (24, 32))]
    return word >> 16 & 255, sources


@pytest.mark.parametrize("kind, shape, arguments", SHAPES)
def test_reuse_is_promised_only_where_the_next_instruction_reads_the_same_register(kind, shape, arguments):
    source = printed(shape, arguments)
    words = instructions(_C.jit_build(source["entry"], source["text"], 9, 0)[0], source["entry"])
    promised = 0
    for word, following in zip(words, words[1:]):
        reuse = word >> 122 & 15
        if not unconditional(word, FMUL, FFMA) or reuse == 0:
            continue
        assert word >> 109 & 1 == 1 and unconditional(following, FMUL, FFMA)
        (written, sources), (_, next_sources) = registers(word), registers(following)
        for slot in range(4):
            if reuse >> slot & 1:
                promised += 1
                assert sources[slot] == next_sources[slot] and sources[slot] not in (written, 255)
    assert promised > 0


def test_a_source_that_says_nothing_keeps_what_the_assembler_chose():
    image, _, _ = _C.jit_build(ENTRY, kernel(), 9, 0)
    assert _C.jit_apply_yields(image, ENTRY, kernel()) == (image, 0)


def test_kernels_as_fast_without_a_rule_have_none():
    for shape, arguments in (((4096, 6144, 7168), {"grouping": "contiguous", "num_groups": 4}), ((64, 24576, 1536), {})):
        assert "//!" not in printed(shape, arguments)["text"]


def test_ptx_stays_what_the_compiler_wrote():
    source = printed((4096, 4096, 7168), {})
    plain = source["text"].split("\n", 1)[1]
    assert _C.jit_build(source["entry"], source["text"], 9, 0, "ptx")[0] == _C.jit_build(source["entry"], plain, 9, 0, "ptx")[0]


def test_the_rule_is_in_the_digest():
    assert _C.jit_digest(ENTRY, "//! yields: FFMA 6\n" + kernel(), 9, 0) != _C.jit_digest(ENTRY, "//! yields: FFMA 5\n" + kernel(), 9, 0)


@pytest.mark.parametrize("said", ["FFMA", "FFMA ", "FFMA 0", "FFMA -1", "FFMA 2 x", "FADD 2", "", "FFMA 65537", "FMUL 2.5", "ffma 2"])
def test_a_rule_said_wrongly_is_refused(said):
    with pytest.raises(RuntimeError, match="source: expected '//! yields: FFMA n', FMUL or FP32, with n from 1 to 65536, got"):
        _C.jit_build(ENTRY, f"//! yields: {said}\n{kernel()}", 9, 0)


def test_only_a_line_of_its_own_says_it():
    quoted = kernel() + 'const char* kText = "//! yields: nonsense";\n'
    image, _, _ = _C.jit_build(ENTRY, quoted, 9, 0)
    assert _C.jit_apply_yields(image, ENTRY, quoted)[1] == 0


def test_what_is_no_cubin_of_the_entry_stays_as_it_is():
    rule = "//! yields: FFMA 2\n"
    source = printed((4096, 576, 7168), {})
    image, _, _ = _C.jit_build(source["entry"], source["text"], 9, 0)
    assert _C.jit_apply_yields(image, source["entry"], rule)[1] > 100
    assert _C.jit_apply_yields(image, "other", rule) == (image, 0)
    for junk in (b"", b"\x7fELF", image[:64], b"x" * 5000, b"\x7fELF" + b"\xff" * 5000):
        assert _C.jit_apply_yields(junk, source["entry"], rule) == (junk, 0)


def test_damaged_cubins_are_survived():
    """Each field of header and section table full of ones, and files cut off anywhere: nothing is read beyond the end."""
    source = printed((1, 576, 7168), {})
    image, _, _ = _C.jit_build(source["entry"], source["text"], 9, 0)
    table, size, count, _ = struct.unpack_from("<Q10xHHH", image, 0x28)
    places = [*range(4, 64, 2), *range(table, table + size * count, 4)]
    for place in places:
        damaged = image[:place] + b"\xff\xff\xff\xff" + image[place + 4 :]
        changed, _ = _C.jit_apply_yields(damaged, source["entry"], "//! yields: FFMA 2\n")
        assert len(changed) == len(damaged)
    for length in range(0, len(image), 97):
        assert len(_C.jit_apply_yields(image[:length], source["entry"], "//! yields: FFMA 2\n")[0]) == length
