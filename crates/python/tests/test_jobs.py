"""What all jobs have in common: paths, errors, progress, cancellation, threads, processes."""

import collections.abc
import errno
import gc
import importlib.metadata
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import bit_crafts
import pytest
from conftest import HOSTILE


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "path", ["photos", b"photos", pathlib.Path("photos"), ["photos"], iter([b"photos"])]
)
def test_paths_are_str_bytes_or_pathlike(path: object) -> None:
    found = [file.path for file in bit_crafts.hash(path)]
    assert found == ["photos/a.jpg", "photos/b.jpg", "photos/c.raw"]


@pytest.mark.parametrize("path", [1, None, [1], [None]])
def test_what_is_no_path_is_a_type_error(path: object) -> None:
    with pytest.raises(TypeError):
        bit_crafts.hash(path)


def test_hostile_names_come_back_byte_by_byte(hostile: pathlib.Path) -> None:
    for root in (hostile, os.fsencode(hostile)):
        files = bit_crafts.hash(root).complete().files
        assert sorted(os.path.basename(bytes(file)) for file in files) == sorted(HOSTILE)
        for file in files:
            # Each is a path that opens the file.
            with open(file, "rb") as opened:
                assert opened.read() == os.path.basename(bytes(file))
    named = bit_crafts.hash([file.path for file in files])
    assert [file.path for file in named] == [file.path for file in files]


def test_names_of_an_ascii_locale_keep_their_bytes(hostile: pathlib.Path) -> None:
    done = run(
        f"""
        import os, sys, bit_crafts
        assert sys.getfilesystemencoding() == "ascii", sys.getfilesystemencoding()
        root = os.fsencode({os.fspath(hostile)!r})
        names = [bytes(file) for file in bit_crafts.hash(root)]
        assert sorted(names) == sorted(os.path.join(root, name) for name in os.listdir(root))
        for file in bit_crafts.hash(root):
            assert os.path.exists(file)
        """,
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    assert done.returncode == 0, done.stderr


def test_the_system_spoke() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        bit_crafts.hash("gone")
    error = caught.value
    assert isinstance(error, bit_crafts.NotFoundError) and isinstance(error, bit_crafts.Error)
    assert (error.errno, error.filename, error.path) == (errno.ENOENT, "gone", "gone")
    assert error.operation == "stat"
    assert str(error) == "gone: stat: No such file or directory (os error 2)"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_stops_no_other() -> None:
    os.chmod("photos/b.jpg", 0)
    check_unread(PermissionError)


def check_unread(kind: type) -> None:
    hashed = bit_crafts.hash("photos")
    assert len(hashed) == 2 and not hashed.is_complete
    [error] = hashed.errors
    assert isinstance(error, kind) and error.filename == "photos/b.jpg"
    with pytest.raises(bit_crafts.IncompleteError) as caught:
        hashed.complete()
    assert caught.value.__cause__ == hashed.errors[0] or str(hashed.errors[0]) in str(caught.value)


def test_the_version_is_that_of_the_wheel() -> None:
    assert bit_crafts.__version__ == importlib.metadata.version("bit-crafts")


def test_a_mistake_of_the_caller_is_a_value_error() -> None:
    for mistake in (
        lambda: bit_crafts.hash([]),
        lambda: bit_crafts.hash("photos", algorithm="sha257"),
        lambda: bit_crafts.hash("photos", algorithm=[]),
        lambda: bit_crafts.hash("photos", min_size=2, max_size=1),
        lambda: bit_crafts.hash("photos", include="["),
        lambda: bit_crafts.hash("a\0b"),
        lambda: bit_crafts.hash("photos", threads=0),
        lambda: bit_crafts.verify("photos", "x", mode="fast"),
        lambda: bit_crafts.verify("photos", "x", ignore=["colour"]),
        lambda: bit_crafts.update("photos", "x", reread="much"),
        lambda: bit_crafts.prune("photos", action="shred"),
        lambda: bit_crafts.prune("photos", action="move"),
        lambda: bit_crafts.prune("photos", action="delete", into="x"),
        lambda: bit_crafts.prune("photos", action="delete", keep="best"),
        lambda: bit_crafts.prune("photos", action="delete", dry_run=False),
        lambda: bit_crafts.copy("photos", "x", on_conflict="ask"),
        lambda: bit_crafts.copy("photos", "x", preserve="colour"),
        lambda: bit_crafts.Hasher("sha257"),
    ):
        with pytest.raises(ValueError) as caught:
            mistake()
        assert isinstance(caught.value, bit_crafts.UsageError), caught.value
    with pytest.raises(TypeError):
        bit_crafts.hash("photos", colour="red")
    with pytest.raises(TypeError):
        bit_crafts.hash("photos", progress=1)
    with pytest.raises(TypeError):
        bit_crafts.hash("photos", cancel=threading.Event())
    with pytest.raises(OverflowError):
        bit_crafts.hash("photos", min_size=-1)


def test_a_wrong_type_names_its_argument() -> None:
    for mistake, name in (
        (lambda: bit_crafts.hash("photos", min_size="1K"), "min_size"),
        (lambda: bit_crafts.copy("photos", "x", strict="no"), "strict"),
        (lambda: bit_crafts.copy("photos", "x", newer=1.5), "newer"),
    ):
        with pytest.raises(TypeError, match=f"^{name}: "):
            mistake()


def test_one_word_is_a_list_of_one() -> None:
    bit_crafts.manifest("photos", "record")
    os.utime("photos/a.jpg", ns=(1, 1))

    def fields(**options: object) -> set[str]:
        verified = bit_crafts.verify("photos", "record", mode="meta", **options)
        return {difference.field for change in verified for difference in change.differences}

    assert "mtime" in fields()
    assert fields(ignore="mtime") == fields(ignore=["mtime"]) == fields() - {"mtime"}
    restored = bit_crafts.restore("photos", "record", only="removed", dry_run=True)
    assert len(restored.repaired) == len(restored.missing) == 0
    copied = bit_crafts.copy("photos", "copy", preserve=["mode", "owner"], manifest=False)
    assert copied.complete() and os.stat("copy/a.jpg").st_mtime_ns != 1
    os.remove("photos/c.raw")
    refused = bit_crafts.update("photos", "record", max_changed=0)
    assert refused.refused and "at most 0 may" in refused.refused


def test_what_is_refused_names_the_way_out() -> None:
    bit_crafts.manifest("photos", "record")
    with pytest.raises(bit_crafts.RefusedError) as caught:
        bit_crafts.manifest("photos", "record")
    assert (caught.value.setting, caught.value.path) == ("overwrite", "record")
    bit_crafts.manifest("photos", "record", overwrite=True)


def test_errors_and_results_are_pickled() -> None:
    try:
        bit_crafts.hash("gone")
    except bit_crafts.Error as error:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert (again.errno, again.filename) == (error.errno, error.filename)
    try:
        bit_crafts.hash([])
    except bit_crafts.Error as error:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
    hashed = bit_crafts.hash("photos")
    again = pickle.loads(pickle.dumps(hashed))
    assert list(again) == list(hashed) and again.bytes == hashed.bytes
    found = bit_crafts.duplicates("photos")
    assert pickle.loads(pickle.dumps(found)).groups == tuple(found.groups)


def test_sequences_of_results() -> None:
    files = bit_crafts.hash("photos").files
    assert len(files) == 3 and files[-1].path == "photos/c.raw"
    assert files[0:2] == (files[0], files[1]) and files[::-1][0] == files[2]
    assert files == bit_crafts.hash("photos").files and files != ()
    assert files.index(files[1]) == 1 and files.count(files[1]) == 1 and files[2] in files
    assert [file.size for file in files] == [7, 7, 5]
    assert isinstance(files, collections.abc.Sequence)
    with pytest.raises(IndexError):
        files[3]
    with pytest.raises(TypeError):
        files["a"]
    assert repr(files).startswith("[HashedFile(path='photos/a.jpg', size=7, digests=(b")
    match_path, size, _ = files[0]
    assert (match_path, size) == ("photos/a.jpg", 7)


def test_progress_is_reported_by_the_caller(many: pathlib.Path) -> None:
    heard = []
    thread = threading.get_ident()

    def progress(now: bit_crafts.Progress) -> None:
        assert threading.get_ident() == thread
        heard.append(now)

    bit_crafts.hash(many, progress=progress)
    assert heard[-1].files == heard[-1].files_total == 10000
    assert [now.files for now in heard] == sorted(now.files for now in heard)


@pytest.mark.parametrize("unit, count", [("file", 10000), ("B", None)])
def test_progress_takes_a_bar(many: pathlib.Path, unit: str, count: int) -> None:
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    with open(os.devnull, "w") as out, tqdm.tqdm(unit=unit, file=out) as bar:
        hashed = bit_crafts.hash(many, progress=bar)
        assert bar.n == (count or hashed.bytes)
        assert bar.total == count


def test_a_bar_counts_one_job_after_the_other(many: pathlib.Path) -> None:
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    with open(os.devnull, "w") as out:
        with tqdm.tqdm(file=out) as bar:
            for tree in (many, "photos"):
                bit_crafts.hash(tree, progress=bar)
            assert bar.n == bar.total == 10003
        with tqdm.tqdm(file=out, total=20000) as bar:
            bit_crafts.hash(many, progress=bar)
            assert (bar.n, bar.total) == (10000, 20000)
    with pytest.raises(TypeError, match="the class tqdm itself"):
        bit_crafts.hash("photos", progress=tqdm.tqdm)


@pytest.mark.parametrize("verb", ["manifest", "verify", "content", "update", "restore", "undo"])
def test_progress_ends_at_its_totals(verb: str) -> None:
    heard: list[bit_crafts.Progress] = []
    os.symlink("a.jpg", "photos/link")
    bit_crafts.manifest("photos", "record")
    if verb == "manifest":
        bit_crafts.manifest("photos", "other", progress=heard.append)
    elif verb == "verify":
        bit_crafts.verify("photos", "record", progress=heard.append)
    elif verb == "content":
        bit_crafts.verify("photos", "record", mode="content", progress=heard.append)
    elif verb == "update":
        bit_crafts.update("photos", "record", reread="100%", progress=heard.append)
    elif verb == "restore":
        bit_crafts.restore("photos", "record", "backup", progress=heard.append)
    else:
        bit_crafts.prune("photos", action="delete", dry_run=False, journal="steps")
        bit_crafts.undo("steps", progress=heard.append)
        assert heard[-1].files_total == 1
    now = heard[-1]
    assert now.files == now.files_total
    # Directories and links have sizes, too, and nothing that is read.
    assert now.bytes_total in (None, now.bytes)


def test_a_comparison_of_records_counts_entries() -> None:
    for name in ("old", "new"):
        bit_crafts.manifest("photos", name)
    heard: list[bit_crafts.Progress] = []
    bit_crafts.diff("old", "new", progress=heard.append)
    # The directory, too.
    assert (heard[-1].files, heard[-1].files_total) == (4, 4)


def test_an_exception_of_progress_ends_the_job(many: pathlib.Path) -> None:
    def progress(now: bit_crafts.Progress) -> None:
        raise LookupError("of a test")

    with pytest.raises(LookupError, match="of a test"):
        bit_crafts.hash(many, progress=progress)


def test_a_cancelled_job_says_so(many: pathlib.Path) -> None:
    cancel = bit_crafts.Cancel()
    with pytest.raises(bit_crafts.CancelledError):
        bit_crafts.hash(many, cancel=cancel, progress=lambda now: cancel.stop(), threads=1) and (
            # It may have been done before the first report: the next one is not begun.
            bit_crafts.hash(many, cancel=cancel)
        )
    assert cancel.is_cancelled()
    with pytest.raises(bit_crafts.CancelledError) as caught:
        bit_crafts.hash(many, cancel=cancel)
    partial = caught.value.partial
    assert partial.cancelled and not partial.is_complete
    with pytest.raises(bit_crafts.IncompleteError):
        partial.complete()


@pytest.fixture
def endless(here: pathlib.Path) -> pathlib.Path:
    """A checksum file that a job waits for until it is cancelled."""
    fifo = here / "endless"
    os.mkfifo(fifo)
    return fifo


def test_another_thread_cancels(endless: pathlib.Path) -> None:
    cancel = bit_crafts.Cancel()
    # The interpreter is free, or this thread would never come round.
    timer = threading.Timer(0.05, cancel.stop)
    timer.start()
    with pytest.raises(bit_crafts.CancelledError):
        bit_crafts.check(endless, cancel=cancel)
    timer.join()


def test_ctrl_c_ends_a_job(endless: pathlib.Path) -> None:
    code = f"""
        import signal, bit_crafts
        # A shell has it ignored in what it starts in the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        try:
            bit_crafts.check({os.fspath(endless)!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    # It may not have begun yet; then it is interrupted before, and says so as well.
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert child.wait() == 0


def test_handlers_of_signals_run_and_fail_no_file(many: pathlib.Path) -> None:
    heard = []
    old = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(5):
            bit_crafts.hash(many, algorithm="sha256").complete()
            bit_crafts.duplicates(many).complete()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert heard


def test_jobs_of_many_threads(many: pathlib.Path) -> None:
    expected = list(bit_crafts.hash(many))
    results: list[list[bit_crafts.HashedFile]] = []

    def work() -> None:
        results.append(list(bit_crafts.hash(many, threads=2)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_a_forked_process_has_jobs_of_its_own(many: pathlib.Path) -> None:
    """It may be forked while a job is at work in its parent."""
    done = run(
        f"""
        import os, threading, warnings, bit_crafts
        warnings.simplefilter("ignore")
        many = {os.fspath(many)!r}
        expected = len(bit_crafts.hash(many))
        working = threading.Thread(target=lambda: [bit_crafts.hash(many) for _ in range(5)])
        working.start()
        stream = bit_crafts.iter_copy(many, "copy", manifest=False)
        children = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    next(stream)
                    os._exit(2)
                except RuntimeError:
                    os._exit(0 if len(bit_crafts.hash(many)) == expected else 1)
            children.append(child)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        stream.close()
        working.join()
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_subinterpreter_is_refused() -> None:
    done = run(
        """
        import textwrap
        try:
            import _interpreters
            run = _interpreters.run_string
            interpreter = _interpreters.create("legacy")
        except ImportError:
            import _xxsubinterpreters as _interpreters
            run = _interpreters.run_string
            interpreter = _interpreters.create()
        import bit_crafts
        code = '''
        try:
            import bit_crafts
            print("imported")
        except ImportError as error:
            print("refused:", error)
        '''
        run(interpreter, textwrap.dedent(code))
        """
    )
    assert done.stdout.startswith("refused:"), done.stdout + done.stderr


def test_a_panic_is_an_exception() -> None:
    panic = getattr(bit_crafts._native, "panic", None)
    if panic is None:
        pytest.skip("only a debug build can be made to panic")
    with pytest.raises(bit_crafts.InternalError, match="of a test"):
        panic((None, None, False, False)).result(None)


def test_the_interpreter_ends_while_a_job_is_at_work(endless: pathlib.Path) -> None:
    done = run(
        f"""
        import threading, bit_crafts
        threading.Thread(
            target=lambda: bit_crafts.check({os.fspath(endless)!r}), daemon=True
        ).start()
        """
    )
    assert done.returncode == 0, done.stderr


def threads_of_jobs() -> set[str]:
    """Returns the threads of this process that do jobs."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            name = pathlib.Path("/proc/self/task", task, "comm").read_text()
        except OSError:
            continue  # It has ended meanwhile.
        if name == "bit-crafts\n":
            found.add(task)
    return found


def wait_for(threads: set[str]) -> None:
    """Waits for the end of these threads."""
    while threads & threads_of_jobs():
        time.sleep(0.01)


def test_an_abandoned_stream_ends_its_job(many: pathlib.Path) -> None:
    gc.disable()
    try:
        others = threads_of_jobs()
        stream = bit_crafts.iter_copy(many, "copy", manifest=False)
        next(stream)
        threads = threads_of_jobs() - others
        assert threads
        gone = weakref.ref(stream)
        del stream
        assert gone() is None
        wait_for(threads)
        # It lasts as long as its iterator.
        items = iter(bit_crafts.iter_copy(many, "other", manifest=False))
        assert next(items).outcome == "copied"
        threads = threads_of_jobs() - others
        assert threads
        del items
        wait_for(threads)
    finally:
        gc.enable()


def test_an_exception_in_the_iteration_ends_the_job(many: pathlib.Path) -> None:
    others = threads_of_jobs()
    stream = bit_crafts.iter_copy(many, "copy", manifest=False)
    next(stream)
    threads = threads_of_jobs() - others
    assert threads
    # As a signal's handler raises it there.
    with pytest.raises(KeyboardInterrupt):
        stream._items.throw(KeyboardInterrupt())
    wait_for(threads)


def test_a_stop_ends_a_job_whose_items_are_not_taken(many: pathlib.Path) -> None:
    for start in (
        lambda cancel: bit_crafts.iter_hash(many, cancel=cancel),
        lambda cancel: bit_crafts.iter_copy(many, "copy", manifest=False, cancel=cancel),
    ):
        cancel, others = bit_crafts.Cancel(), threads_of_jobs()
        stream = start(cancel)
        taken = [next(stream)]
        threads = threads_of_jobs() - others
        cancel.stop()
        wait_for(threads)
        try:
            taken.extend(stream)
        except bit_crafts.CancelledError:
            assert len(taken) < 10000
        else:
            # Hashing reads ahead of what is taken: it may have been through.
            assert len(taken) == 10000


def test_a_stream_has_ended_after_an_exception() -> None:
    stream = bit_crafts.iter_hash("gone")
    with pytest.raises(FileNotFoundError) as first:
        next(stream)
    with pytest.raises(StopIteration):
        next(stream)
    assert list(stream) == []
    for _ in range(2):
        with pytest.raises(FileNotFoundError) as again:
            stream.result()
        assert again.value.filename == "gone" and str(again.value) == str(first.value)
        assert again.value is not first.value
    # Nothing of it is held by what it raised.
    gc.disable()
    try:
        gone = weakref.ref(stream)
        del stream, first, again
        assert gone() is None
    finally:
        gc.enable()


def test_an_exception_of_progress_ends_a_stream(many: pathlib.Path) -> None:
    def progress(now: bit_crafts.Progress) -> None:
        raise LookupError("of a test")

    stream = bit_crafts.iter_copy(many, "copy", manifest=False, progress=progress)
    with pytest.raises(LookupError, match="of a test"):
        list(stream)
    assert list(stream) == []
    with pytest.raises(bit_crafts.UsageError, match="ended early"):
        stream.result()


def test_a_loop_ends_where_it_closes_its_stream(many: pathlib.Path) -> None:
    taken = []
    stream = bit_crafts.iter_hash(many)
    for file in stream:
        taken.append(file)
        stream.close()
    assert len(taken) == 1
    stream.close()


def test_another_thread_closes_a_stream(endless: pathlib.Path) -> None:
    changes = bit_crafts.iter_verify("photos", endless)
    timer = threading.Timer(0.05, changes.close)
    timer.start()
    # Either may be first.
    with pytest.raises((bit_crafts.CancelledError, StopIteration)):
        next(changes)
    timer.join()
    assert list(changes) == []


@pytest.fixture
def deaf(here: pathlib.Path) -> pathlib.Path:
    """A FIFO for a job that no cancellation ends, only a writer."""
    if not hasattr(bit_crafts._native, "deaf"):
        pytest.skip("only a debug build has a job that is deaf to cancellation")
    fifo = here / "deaf"
    os.mkfifo(fifo)
    return fifo


@pytest.mark.parametrize("way", ["close", "with", "progress"])
def test_ctrl_c_ends_the_wait_for_the_end_of_a_job(deaf: pathlib.Path, way: str) -> None:
    call = (None, None, True, way == "progress")
    told = threading.Event()

    def interrupt() -> None:
        told.wait()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    def progress(now: bit_crafts.Progress) -> None:
        told.set()
        raise LookupError("of a test")

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    report = progress if way == "progress" else None
    stream = bit_crafts._jobs.Stream(bit_crafts._native.deaf(deaf, call), report)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            if way == "close":
                told.set()
                stream.close()
            elif way == "with":
                with stream:
                    told.set()
                    raise LookupError("of a test")
            else:
                list(stream)
        if way != "close":
            assert isinstance(caught.value.__context__, LookupError)
    finally:
        told.set()
        thread.join()
        signal.signal(signal.SIGINT, old)
        # Its writer comes, and goes.
        os.close(os.open(deaf, os.O_WRONLY))
