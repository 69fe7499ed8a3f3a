"""Threads, processes, forks: a kernel is built once where builders see each other, and always right."""

import fcntl
import os

from jit_support import Finished, build, run, start

# Waits for a line on stdin, so that all children build at the same moment.
BUILD_ON_SIGNAL = """
_C.jit_report()
print("ready", flush=True)
sys.stdin.readline()
image, digest, _ = _C.jit_build(ENTRY, kernel(), 9, 0)
answer(digest=digest, image=image.hex(), **_C.jit_report())
"""


def build_together(count, **variables):
    children = [start(BUILD_ON_SIGNAL, **variables) for _ in range(count)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    done = [Finished(child) for child in children]
    assert [d.code for d in done] == [0] * count, done[0].err
    assert len({d.answer["image"] for d in done}) == 1
    return [d.answer for d in done]


def test_8_processes_build_once(tmp_path):
    answers = build_together(8, DG_JIT_CACHE_DIR=tmp_path)
    assert sum(a["compiled"] for a in answers) == 1
    assert sum(a["loaded"] for a in answers) == 7
    assert [p.suffix for p in tmp_path.iterdir()] == [".kernel"]


def test_8_processes_without_a_usable_lock_are_right(tmp_path):
    """The lock file is a folder: nobody can lock, everybody still gets the kernel."""
    digest = run("answer(d=_C.jit_digest(ENTRY, kernel(), 9, 0))").answer["d"]
    (tmp_path / f"{digest}.lock").mkdir()
    answers = build_together(8, DG_JIT_CACHE_DIR=tmp_path)
    assert sum(a["compiled"] for a in answers) >= 1
    assert sum(a["dropped"] for a in answers) == 0
    assert build(DG_JIT_CACHE_DIR=tmp_path).answer["loaded"] == 1


def test_8_processes_rebuild_a_damaged_entry(tmp_path):
    digest = build(DG_JIT_CACHE_DIR=tmp_path).answer["digest"]
    (tmp_path / f"{digest}.kernel").write_bytes(b"damaged")
    answers = build_together(8, DG_JIT_CACHE_DIR=tmp_path)
    assert sum(a["dropped"] for a in answers) >= 1
    assert build(DG_JIT_CACHE_DIR=tmp_path).answer["loaded"] == 1


def hold_lock(folder, digest):
    lock = open(folder / f"{digest}.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def test_a_stuck_lock_is_waited_for_no_longer_than_its_limit(tmp_path):
    digest = run("answer(d=_C.jit_digest(ENTRY, kernel(), 9, 0))").answer["d"]
    with hold_lock(tmp_path, digest):  # a stopped process, say
        answer = build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_LOCK_SECONDS=0).answer
        assert (answer["compiled"], answer["published"]) == (1, 1)


def test_waiting_ends_when_the_entry_appears(tmp_path):
    """The lock is never released, but another machine (that does not see it) publishes."""
    digest = build(DG_JIT_CACHE_DIR=tmp_path / "other").answer["digest"]
    (tmp_path / "cache").mkdir()
    with hold_lock(tmp_path / "cache", digest):
        child = start(BUILD_ON_SIGNAL, DG_JIT_CACHE_DIR=tmp_path / "cache", DG_JIT_LOCK_SECONDS=3600)
        assert child.stdout.readline() == "ready\n"
        child.stdin.write("go\n")
        child.stdin.flush()
        os.rename(tmp_path / f"other/{digest}.kernel", tmp_path / f"cache/{digest}.kernel")
        answer = Finished(child).answer
        assert (answer["compiled"], answer["loaded"]) == (0, 1)


def test_a_leftover_lock_file_is_no_lock(tmp_path):
    digest = run("answer(d=_C.jit_digest(ENTRY, kernel(), 9, 0))").answer["d"]
    (tmp_path / f"{digest}.lock").write_text("")
    assert build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_LOCK_SECONDS=3600).answer["published"] == 1
    assert [p.suffix for p in tmp_path.iterdir()] == [".kernel"]


THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
gate = threading.Barrier({count})
def work(factor):
    gate.wait()
    try: return _C.jit_build(ENTRY, {text}, 9, 0)[1]
    except RuntimeError as error: return str(error)
with ThreadPoolExecutor({count}) as pool: results = list(pool.map(work, range({count})))
answer(results=results, **_C.jit_report())
"""


def test_8_threads_build_once(tmp_path):
    answer = run(THREADS.format(count=8, text="kernel()"), DG_JIT_CACHE_DIR=tmp_path).answer
    assert answer["compiled"] == 1 and len(set(answer["results"])) == 1


def test_8_threads_build_once_in_memory_too():
    answer = run(THREADS.format(count=8, text="kernel()"), XDG_CACHE_HOME=None, HOME=None).answer
    assert answer["compiled"] == 1 and len(set(answer["results"])) == 1


def test_threads_with_different_kernels_each_build_their_own(tmp_path):
    answer = run(THREADS.format(count=6, text="kernel(factor)"), DG_JIT_CACHE_DIR=tmp_path).answer
    assert answer["compiled"] == 6 and len(set(answer["results"])) == 6


def test_threads_share_one_failure_and_a_later_build_is_free_to_succeed(tmp_path):
    script = THREADS.format(count=4, text="kernel().replace('1.5f', 'oops')")
    answer = run(script, DG_JIT_CACHE_DIR=tmp_path).answer
    assert answer["compiled"] == 0 and all("oops" in text for text in answer["results"])


def test_other_python_threads_run_while_a_kernel_compiles(tmp_path):
    """The ticker can only move during the one call that compiles if that call lets the interpreter go."""
    script = """
    import threading, time
    ticks = 0
    def tick():
        global ticks
        while True:
            ticks += 1
            time.sleep(0.0005)
    _C.jit_report()  # NVRTC is found before
    threading.Thread(target=tick, daemon=True).start()
    sys.setswitchinterval(1000)  # a thread that holds the interpreter keeps it
    before = ticks
    _C.jit_build(ENTRY, kernel(), 9, 0)
    answer(moved=ticks - before)
    """
    assert run(script, DG_JIT_CACHE_DIR=tmp_path).answer["moved"] >= 3


def test_fork_after_a_build(tmp_path):
    script = """
    _C.jit_build(ENTRY, kernel(1), 9, 0)
    child = os.fork()
    if child == 0:
        _C.jit_build(ENTRY, kernel(1), 9, 0)
        _C.jit_build(ENTRY, kernel(2), 9, 0)
        os._exit(40 + _C.jit_report()["compiled"])
    answer(status=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(script, DG_JIT_CACHE_DIR=tmp_path).answer["status"] == 42


def test_fork_while_another_thread_waits_for_the_same_kernel(tmp_path):
    """The child has no thread that could finish the parent's build: it makes its own."""
    digest = run("answer(d=_C.jit_digest(ENTRY, kernel(), 9, 0))").answer["d"]
    script = """
    import threading, time
    _C.jit_digest(ENTRY, kernel(), 9, 0)
    builder = threading.Thread(target=lambda: _C.jit_build(ENTRY, kernel(), 9, 0))
    builder.start()
    time.sleep(0.2)  # it has begun, and waits for the lock of another process
    child = os.fork()
    if child == 0:
        os.environ["DG_JIT_LOCK_SECONDS"] = "0"
        _C.reload_settings()
        _C.jit_build(ENTRY, kernel(), 9, 0)
        os._exit(40 + _C.jit_report()["compiled"])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    builder.join()
    answer(status=status, **_C.jit_report())
    """
    with hold_lock(tmp_path, digest):
        answer = run(script, DG_JIT_CACHE_DIR=tmp_path, DG_JIT_LOCK_SECONDS=60).answer
    assert answer["status"] == 41
    assert (answer["compiled"], answer["loaded"]) == (0, 1)
