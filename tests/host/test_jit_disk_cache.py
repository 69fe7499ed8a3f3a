"""The cache folder in every state it can be found in."""

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pytest
from jit_support import BUILD, Finished, build, load_extension, run, start


def entries(folder):
    return sorted(p for p in folder.iterdir() if p.name.endswith(".kernel"))


def only_entry(folder):
    (entry,) = entries(folder)
    return entry


def warnings(done):
    return [line for line in done.err.splitlines() if "warning" in line]


def test_second_process_loads_what_the_first_built(tmp_path):
    first = build(DG_JIT_CACHE_DIR=tmp_path)
    second = build(DG_JIT_CACHE_DIR=tmp_path)
    assert (first.answer["compiled"], first.answer["published"], first.answer["loaded"]) == (1, 1, 0)
    assert (second.answer["compiled"], second.answer["published"], second.answer["loaded"]) == (0, 0, 1)
    assert first.answer["image"] == second.answer["image"]
    assert [p.name for p in tmp_path.iterdir()] == [first.answer["digest"] + ".kernel"]
    assert warnings(first) == warnings(second) == []


def test_memory_comes_before_disk(tmp_path):
    done = run(
        """
        for _ in range(3): _C.jit_build(ENTRY, kernel(), 9, 0)
        once = _C.jit_report()
        _C.jit_clear_memory()
        _C.jit_build(ENTRY, kernel(), 9, 0)
        answer(once=once, after=_C.jit_report())
        """,
        DG_JIT_CACHE_DIR=tmp_path,
    )
    assert (done.answer["once"]["compiled"], done.answer["once"]["loaded"]) == (1, 0)
    assert (done.answer["after"]["compiled"], done.answer["after"]["loaded"]) == (1, 1)


def test_cache_works_at_another_path(tmp_path):
    build(DG_JIT_CACHE_DIR=tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "moved here")
    assert build(DG_JIT_CACHE_DIR=tmp_path / "moved here").answer["loaded"] == 1


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(tmp_path):
    build(DG_JIT_CACHE_DIR=tmp_path)
    entry = only_entry(tmp_path)
    entry.unlink()
    os.mkfifo(entry)
    assert build(DG_JIT_CACHE_DIR=tmp_path).answer["compiled"] == 1


# -- where the cache is ----------------------------------------------------------------------------


def test_default_is_under_xdg_cache_home_else_home(tmp_path):
    xdg = build(DG_JIT_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path / "xdg", HOME=tmp_path / "home")
    assert xdg.answer["cache_dir"] == str(tmp_path / "xdg/deep_gemm")
    assert only_entry(tmp_path / "xdg/deep_gemm")
    home = build(DG_JIT_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=tmp_path / "home")
    assert home.answer["cache_dir"] == str(tmp_path / "home/.cache/deep_gemm")
    assert only_entry(tmp_path / "home/.cache/deep_gemm")


def test_relative_folder_stays_where_it_was_first_used(tmp_path):
    (tmp_path / "other").mkdir()
    done = run(
        """
        _C.jit_build(ENTRY, kernel(1), 9, 0)
        os.chdir("other")
        _C.jit_build(ENTRY, kernel(2), 9, 0)
        answer(**_C.jit_report())
        """,
        cwd=tmp_path,
        DG_JIT_CACHE_DIR="some/relative dir",
    )
    assert len(entries(tmp_path / "some/relative dir")) == 2
    assert done.answer["cache_dir"] == str(tmp_path / "some/relative dir")


@pytest.mark.parametrize("name", ["with space", "quo'te\"s", "üñí", "-dash", "per%cent{}", "a" * 200])
def test_odd_folder_names(tmp_path, name):
    done = build(DG_JIT_CACHE_DIR=tmp_path / name)
    assert warnings(done) == [] and only_entry(tmp_path / name)
    assert build(DG_JIT_CACHE_DIR=tmp_path / name).answer["loaded"] == 1


# -- folders that cannot be written ----------------------------------------------------------------

TWO_KERNELS = """
for factor in (1, 2, 1, 2): _C.jit_build(ENTRY, kernel(factor), 9, 0)
answer(**_C.jit_report())
"""


def assert_worked_in_memory(done, reason):
    assert (done.answer["compiled"], done.answer["published"]) == (2, 0)
    (warning,) = warnings(done)
    assert "in memory only" in warning and reason in warning and "DG_JIT_CACHE_DIR" in warning


def test_no_home_at_all():
    done = run(TWO_KERNELS, DG_JIT_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=None)
    assert_worked_in_memory(done, "HOME")
    assert done.answer["cache_dir"] == "" and "in memory only" in done.answer["cache_state"]


def test_home_that_cannot_exist():
    assert_worked_in_memory(run(TWO_KERNELS, XDG_CACHE_HOME=None, HOME="/proc/nobody"), "/proc/nobody")


def test_folder_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(TWO_KERNELS, DG_JIT_CACHE_DIR=tmp_path / "file")
    assert_worked_in_memory(done, "Not a directory")
    assert_worked_in_memory(run(TWO_KERNELS, DG_JIT_CACHE_DIR=tmp_path / "file/below"), "Not a directory")


def test_existing_folder_on_a_read_only_file_system():
    assert_worked_in_memory(run(TWO_KERNELS, DG_JIT_CACHE_DIR="/proc"), "/proc")


def test_read_only_folder_is_read():
    """As root, who may write everywhere, the child becomes nobody once it has its headers and compiler."""
    script = """
    _C.jit_digest(ENTRY, kernel(), 9, 0)
    if os.geteuid() == 0: os.seteuid(65534)
    _C.jit_build(ENTRY, kernel(1), 9, 0)
    _C.jit_build(ENTRY, kernel(2), 9, 0)
    answer(**_C.jit_report())
    """
    with tempfile.TemporaryDirectory() as parent:  # pytest's own folders are closed to others
        os.chmod(parent, 0o755)
        folder = Path(parent) / "cache"
        folder.mkdir()
        run("_C.jit_build(ENTRY, kernel(1), 9, 0)", DG_JIT_CACHE_DIR=folder)
        folder.chmod(0o555)
        done = run(script, DG_JIT_CACHE_DIR=folder)
        folder.chmod(0o755)
        assert (done.answer["loaded"], done.answer["compiled"], done.answer["published"]) == (1, 1, 0)
        assert done.answer["cache_state"].startswith("read-only")
        (warning,) = warnings(done)
        assert "Permission denied" in warning


LIMIT_FILE_SIZE = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.{action})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
"""


def test_disk_full(tmp_path):
    """Writes fail in the middle: nothing is published, nothing is left."""
    done = run(LIMIT_FILE_SIZE.format(action="SIG_IGN") + TWO_KERNELS, DG_JIT_CACHE_DIR=tmp_path)
    assert_worked_in_memory(done, "File too large")
    assert list(tmp_path.iterdir()) == []


# -- damaged entries -------------------------------------------------------------------------------


def truncate_to(size):
    return lambda data: data[:size]


def flip(position):
    def damage(data):
        at = position if position >= 0 else len(data) + position
        return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]

    return damage


DAMAGES = {
    "empty": truncate_to(0),
    "one byte": truncate_to(1),
    "only a checksum": truncate_to(32),
    "header only": truncate_to(104),
    "half": lambda data: data[: len(data) // 2],
    "one byte short": truncate_to(-1),
    "one byte long": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "magic": flip(0),
    "digest": flip(20),
    "kind": flip(72),
    "size": flip(95),
    "payload": flip(1000),
    "log": flip(-40),
    "checksum": flip(-1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_entry_is_rebuilt(tmp_path, damage):
    good = build(DG_JIT_CACHE_DIR=tmp_path).answer["image"]
    entry = only_entry(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    done = build(DG_JIT_CACHE_DIR=tmp_path)
    assert (done.answer["dropped"], done.answer["compiled"], done.answer["loaded"]) == (1, 1, 0)
    assert done.answer["image"] == good
    assert entry.read_bytes() == whole


def test_every_byte_of_an_entry_is_verified(tmp_path):
    """One flipped bit at a random place of each 1/40 of the file: none is ever loaded."""
    build(DG_JIT_CACHE_DIR=tmp_path)
    entry = only_entry(tmp_path)
    whole = entry.read_bytes()
    script = """
    from pathlib import Path
    import random
    entry = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(os.environ["ENTRY_FILE"])
    whole = entry.read_bytes()
    step = len(whole) // 40
    for begin in range(0, len(whole), step):
        at = min(begin + random.randrange(step), len(whole) - 1)
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << random.randrange(8))]) + whole[at + 1:])
        _C.jit_clear_memory()
        _C.jit_build(ENTRY, kernel(), 9, 0)
        assert entry.read_bytes() == whole, at
    answer(**_C.jit_report())
    """
    done = run(script, DG_JIT_CACHE_DIR=tmp_path, ENTRY_FILE=entry)
    assert done.answer["dropped"] == done.answer["compiled"] >= 40 and done.answer["loaded"] == 0
    assert entry.read_bytes() == whole


def test_an_entry_under_a_wrong_name_is_not_believed(tmp_path):
    build(DG_JIT_CACHE_DIR=tmp_path)
    other = run("answer(d=_C.jit_digest(ENTRY, kernel(2), 9, 0))").answer["d"]
    only_entry(tmp_path).rename(tmp_path / f"{other}.kernel")
    done = run("_C.jit_build(ENTRY, kernel(2), 9, 0); answer(**_C.jit_report())", DG_JIT_CACHE_DIR=tmp_path)
    assert (done.answer["dropped"], done.answer["compiled"]) == (1, 1)


def test_invalidate_drops_memory_and_disk(tmp_path):
    done = run(
        """
        _, digest, _ = _C.jit_build(ENTRY, kernel(), 9, 0)
        _C.jit_invalidate(digest)
        gone = not os.path.exists(os.path.join(os.environ["DG_JIT_CACHE_DIR"], digest + ".kernel"))
        _C.jit_build(ENTRY, kernel(), 9, 0)
        answer(gone=gone, **_C.jit_report())
        """,
        DG_JIT_CACHE_DIR=tmp_path,
    )
    assert done.answer["gone"] and done.answer["compiled"] == 2 and only_entry(tmp_path)


# -- death in the middle ---------------------------------------------------------------------------


def test_killed_while_writing_an_entry(tmp_path):
    """SIGXFSZ ends the process inside write(2) of the temporary file."""
    done = Finished(start(LIMIT_FILE_SIZE.format(action="SIG_DFL") + BUILD, DG_JIT_CACHE_DIR=tmp_path))
    assert done.code == -signal.SIGXFSZ
    assert entries(tmp_path) == [] and any(p.name.endswith(".tmp") for p in tmp_path.iterdir())
    after = build(DG_JIT_CACHE_DIR=tmp_path)
    assert (after.answer["compiled"], after.answer["published"], after.answer["dropped"]) == (1, 1, 0)


def test_kill_9_at_random_moments(tmp_path):
    rng = random.Random(7)
    script = """
    for factor in range(200):
        _C.jit_build(ENTRY, kernel(factor), 9, 0)
        print("built", flush=True)
    """
    for _ in range(12):
        process = start(script, DG_JIT_CACHE_DIR=tmp_path)
        assert process.stdout.readline() == "built\n"
        time.sleep(rng.uniform(0.0, 0.25))
        process.kill()
        Finished(process)
    survivors = len(entries(tmp_path))
    done = run(
        f"""
        for factor in range({survivors} + 2): _C.jit_build(ENTRY, kernel(factor), 9, 0)
        answer(**_C.jit_report())
        """,
        DG_JIT_CACHE_DIR=tmp_path,
    )
    assert (done.answer["loaded"], done.answer["dropped"], done.answer["compiled"]) == (survivors, 0, 2)
    assert survivors > 0


def test_old_leftovers_are_swept_and_files_of_others_kept(tmp_path):
    ours = "0123456789abcdef" * 4
    names = {
        f"{ours}.kernel.77aa.tmp": (10_000, "swept"),
        f"{ours}.lock": (10_000, "swept"),
        f"{ours}.kernel.77ab.tmp": (0, "kept"),
        f"{ours[::-1]}.lock": (0, "kept"),
        f"{ours}.cu": (10_000, "kept"),
        f"{ours}0.lock": (10_000, "kept"),
        "apt.lock": (10_000, "kept"),
        "letter.tmp": (10_000, "kept"),
    }
    for name, (age, _) in names.items():
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    digest = build(DG_JIT_CACHE_DIR=tmp_path).answer["digest"]
    left = {p.name for p in tmp_path.iterdir()} - {f"{digest}.kernel"}
    assert left == {name for name, (_, fate) in names.items() if fate == "kept"}


def test_folder_removed_while_in_use(tmp_path):
    done = run(
        """
        import shutil
        for factor in (1, 2):
            _C.jit_build(ENTRY, kernel(factor), 9, 0)
            if factor == 1: shutil.rmtree(os.environ["DG_JIT_CACHE_DIR"])
        answer(**_C.jit_report())
        """,
        DG_JIT_CACHE_DIR=tmp_path / "cache",
    )
    assert done.answer["published"] == 2 and only_entry(tmp_path / "cache") and warnings(done) == []


@pytest.mark.parametrize("digest", ["", "../../x", "g" * 64, "A" * 64, "0" * 63])
def test_invalidate_takes_digests_only(digest):
    with pytest.raises(RuntimeError, match="digest: expected 64 hex digits"):
        load_extension().jit_invalidate(digest)


def test_failed_compile_publishes_nothing(tmp_path):
    done = run(
        """
        failures = []
        for old, new in (("1.5f", "undefined_name"), ("scale_by", "another_entry")):
            text = kernel().replace(old, new)
            for _ in range(2):
                try: _C.jit_build(ENTRY, text, 9, 0)
                except RuntimeError as error: failures.append(str(error))
        answer(failures=failures, **_C.jit_report())
        """,
        DG_JIT_CACHE_DIR=tmp_path,
    )
    assert len(done.answer["failures"]) == 4 and done.answer["compiled"] == 0
    assert list(tmp_path.iterdir()) == []
