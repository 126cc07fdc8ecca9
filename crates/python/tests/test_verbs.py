"""What each function answers, beside tools that are known to be right."""

import hashlib
import hmac
import os
import pathlib
import shutil
import subprocess
import threading

import bit_crafts
import pytest


def digest_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def test_hash_agrees_with_hashlib(many: pathlib.Path, hostile: pathlib.Path) -> None:
    hashed = bit_crafts.hash([many, hostile], algorithm=["sha256", "md5", "blake2b"]).complete()
    walked = [
        os.path.join(directory, name)
        for root in (many, hostile)
        for directory, _, names in os.walk(root)
        for name in names
    ]
    assert sorted(file.path for file in hashed) == sorted(walked)
    assert [os.fsencode(file.path) for file in hashed] == sorted(
        os.fsencode(file.path) for file in hashed
    )
    for file in hashed:
        with open(file, "rb") as opened:
            data = opened.read()
        expected = [hashlib.new(name, data).digest() for name in ("sha256", "md5", "blake2b")]
        assert (file.size, list(file.digests)) == (len(data), expected)
        assert file.hexdigest == expected[0].hex()


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="no sha256sum here")
def test_check_reads_what_sha256sum_writes(hostile: pathlib.Path) -> None:
    names = [name for name in os.listdir(os.fsencode(hostile))]
    listed = subprocess.run(
        ["sha256sum", "--", *names], cwd=hostile, stdout=subprocess.PIPE, check=True
    )
    (hostile.parent / "SUMS").write_bytes(listed.stdout)
    checked = bit_crafts.check("SUMS", base=hostile, algorithm="sha256")
    assert checked.is_ok and len(checked.files) == len(names)
    (hostile / "-rf").write_text("changed")
    os.remove(hostile / " ")
    verdicts = {os.path.basename(file.path): file for file in bit_crafts.check("SUMS", base=hostile).failed}
    assert verdicts["-rf"].verdict == "mismatch"
    assert verdicts[" "].verdict == "unread"
    assert isinstance(verdicts[" "].error, FileNotFoundError)
    assert len(verdicts) == 2


def test_check_refuses_what_is_no_list() -> None:
    with pytest.raises(bit_crafts.ManifestError):
        bit_crafts.check("photos/a.jpg")
    with open("cut", "w") as out:
        out.write("no checksum\n" + "0" * 64 + "  photos/a.jpg\n")
    checked = bit_crafts.check("cut")
    assert checked.improper_lines == 1 and not checked.is_ok
    with pytest.raises(bit_crafts.IncompleteError):
        checked.complete()


def test_hasher_has_the_interface_of_hashlib() -> None:
    data = os.urandom(3 << 20)
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sha3-256"):
        expected = hashlib.new(name.replace("-", "_"), data)
        for piece in (data, bytearray(data), memoryview(data)):
            assert bit_crafts.Hasher(name, piece).digest() == expected.digest()
        hasher = bit_crafts.Hasher(name)
        for at in range(0, len(data), 77777):
            hasher.update(data[at : at + 77777])
        assert hasher.hexdigest() == expected.hexdigest()
        assert (hasher.name, hasher.digest_size) == (name, expected.digest_size)
    hasher = bit_crafts.Hasher("sha256", b"a")
    other = hasher.copy()
    other.update(b"b")
    assert hasher.hexdigest() == hashlib.sha256(b"a").hexdigest()
    assert other.hexdigest() == hashlib.sha256(b"ab").hexdigest()
    with pytest.raises(TypeError):
        hasher.update("text")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        hasher.name = "md5"  # type: ignore[misc]
    assert {"blake3", "sha256", "xxh128"} <= bit_crafts.algorithms_available


def test_hasher_counts_bytes_and_not_items() -> None:
    import array

    numbers = array.array("q", range(100))
    expected = hashlib.sha256(numbers.tobytes()).digest()
    assert bit_crafts.Hasher("sha256", numbers).digest() == expected


@pytest.mark.skipif(not hasattr(hashlib, "file_digest"), reason="hashlib.file_digest is of 3.11")
def test_hashlib_reads_files_with_it() -> None:
    with open("photos/a.jpg", "rb") as file:
        digest = hashlib.file_digest(file, lambda: bit_crafts.Hasher("sha256"))  # type: ignore
    assert digest.digest() == digest_of("photos/a.jpg")


def test_one_hasher_of_many_threads() -> None:
    hasher = bit_crafts.Hasher("sha256")
    piece = b"x" * 100_000

    def work() -> None:
        for _ in range(50):
            hasher.update(piece)
            hasher.digest()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hasher.digest() == hashlib.sha256(piece * 200).digest()


def test_duplicates_are_groups_of_equal_files(many: pathlib.Path) -> None:
    found = bit_crafts.duplicates(many, algorithm="sha256").complete()
    by_digest: dict[bytes, set[str]] = {}
    for directory, _, names in os.walk(many):
        for name in names:
            path = os.path.join(directory, name)
            by_digest.setdefault(digest_of(path), set()).add(path)
    expected = {digest: paths for digest, paths in by_digest.items() if len(paths) > 1}
    assert {group.digest: set(group.paths) for group in found} == expected
    assert (found.files, len(found)) == (10000, 1000)
    sizes = {group.size for group in found}
    assert sizes == {os.path.getsize(next(iter(paths))) for paths in expected.values()} | sizes


def test_duplicates_know_references_and_hard_links() -> None:
    os.link("photos/a.jpg", "photos/z.jpg")
    shutil.copy("photos/a.jpg", "backup/kept.jpg")
    [group] = bit_crafts.duplicates("photos", references="backup", compare_bytes=True)
    assert [(file.path, file.is_reference) for file in group.files] == [
        ("backup/kept.jpg", True),
        ("photos/a.jpg", False),
        ("photos/b.jpg", False),
    ]
    assert group.files[1].other_names == ("photos/z.jpg",)
    assert not bit_crafts.duplicates("photos", include=["a.jpg", "z.jpg"])
    [group] = bit_crafts.duplicates("photos", include=["a.jpg", "z.jpg"], count_hard_links=True)
    assert group.paths == ("photos/a.jpg",)
    assert len(bit_crafts.duplicates("photos", cache="digests")) == 1
    with pytest.raises(bit_crafts.Error, match="photos/a.jpg"):
        bit_crafts.duplicates("photos", cache="photos/a.jpg")


def test_filters_choose_among_files() -> None:
    os.symlink("a.jpg", "photos/link.jpg")
    pathlib.Path("photos/.hidden").write_text("hidden")
    pathlib.Path("photos/deep/er").mkdir(parents=True)
    pathlib.Path("photos/deep/er/d.jpg").write_text("d")

    def paths(**filter: object) -> list[str]:
        return [file.path[7:] for file in bit_crafts.hash("photos", **filter)]  # type: ignore

    assert paths(include="*.jpg") == ["a.jpg", "b.jpg", "deep/er/d.jpg"]
    assert paths(include=[b"*.jpg", "*.raw"], exclude="deep") == ["a.jpg", "b.jpg", "c.raw"]
    assert ".hidden" in paths() and ".hidden" not in paths(hidden=False)
    assert paths(max_depth=1, hidden=False) == ["a.jpg", "b.jpg", "c.raw"]
    assert paths(min_size=7) == ["a.jpg", "b.jpg"]
    assert paths(max_size=1) == ["deep/er/d.jpg"]
    assert "link.jpg" in paths(follow_symlinks=True) and "link.jpg" not in paths()
    os.utime("photos/c.raw", ns=(10**18, 10**18))
    assert paths(older=10**18 + 1) == ["c.raw"] and "c.raw" not in paths(newer=10**18)
    assert paths(one_file_system=True, include=None) == paths()


def test_directories_and_unique() -> None:
    shutil.copytree("photos", "old")
    found = bit_crafts.directories(["photos", "old"]).complete()
    assert [group.paths for group in found.groups] == [("old", "photos")]
    pathlib.Path("old/more").write_text("more")
    [within] = bit_crafts.directories(["photos", "old"]).contained
    assert (within.path, within.within, within.files) == ("photos", "old", 3)
    unique = bit_crafts.unique("photos", "old").complete()
    assert unique.all_is_elsewhere and not list(unique.nowhere)
    assert {content.archive for content in unique.contents} == {"old"}
    os.remove("old/c.raw")
    os.mkfifo("photos/fifo")
    unique = bit_crafts.unique("photos", "old")
    assert [content.paths for content in unique.nowhere] == [("photos/c.raw",)]
    assert [(other.path, other.kind) for other in unique.not_files] == [("photos/fifo", "fifo")]
    with pytest.raises(bit_crafts.RefusedError) as caught:
        bit_crafts.unique("backup", "old")
    assert caught.value.setting == "force"
    own = bit_crafts.unique(".", "old")
    assert own.own_archives == ("old",) and not own.is_complete


def test_a_record_is_verified_updated_and_compared(hostile: pathlib.Path) -> None:
    written = bit_crafts.manifest(hostile, "record", xattrs=True).complete()
    assert (written.files, written.entries) == (8, 9)
    assert bit_crafts.verify(hostile, "record").complete().is_same
    shutil.copy("record", "before")
    # Damage: other content, the same size and times.
    file = os.path.join(os.fsencode(hostile), b"\xff\xfe")
    stat = os.stat(file)
    with open(file, "wb") as out:
        out.write(b"??")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    verified = bit_crafts.verify(hostile, "record")
    assert verified.is_damaged and verified.counts["damaged"] == 1
    [change] = [change for change in verified if change.status == "damaged"]
    assert os.fsencode(change.path) == b"\xff\xfe"
    assert "digest" in {difference.field for difference in change.differences}
    (hostile / "-rf").write_text("edited")
    (hostile / "new").write_text("new")
    refused = bit_crafts.update(hostile, "record", max_changed="1")
    assert refused.refused and not refused.is_written and not refused.is_complete
    with pytest.raises(bit_crafts.IncompleteError, match="at most 1 may"):
        refused.complete()
    updated = bit_crafts.update(hostile, "record", reread="100%")
    assert updated.is_written and updated.counts["added"] == 1
    compared = bit_crafts.diff("before", "record", ignore=["ctime"])
    statuses = {change.path: change.status for change in compared}
    assert (statuses["new"], statuses["-rf"]) == ("added", "modified")
    with pytest.raises(bit_crafts.ManifestError):
        bit_crafts.verify(hostile, "photos/a.jpg")
    with pytest.raises(bit_crafts.RefusedError):
        bit_crafts.verify("backup", "record")


def test_single_entries_are_accepted(hostile: pathlib.Path) -> None:
    bit_crafts.manifest(hostile, "record")
    before = pathlib.Path("record").read_bytes()
    file = os.path.join(os.fsencode(hostile), b"\xff\xfe")
    stat = os.stat(file)
    with open(file, "wb") as out:
        out.write(b"??")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (hostile / "-rf").write_text("edited")
    name = os.fsdecode(b"\xff\xfe")
    tried = bit_crafts.accept(hostile, "record", [name], dry_run=True).complete()
    assert not tried.is_written and pathlib.Path("record").read_bytes() == before
    accepted = bit_crafts.accept(hostile, "record", [name, "gone"])
    assert accepted.is_written and [change.path for change in accepted] == [name]
    [error] = accepted.errors
    assert error.path == "gone" and not accepted.is_complete
    assert accepted.read == (1, 2)
    statuses = {change.path: change.status for change in bit_crafts.verify(hostile, "record")}
    assert name not in statuses and statuses["-rf"] == "modified"
    with pytest.raises(bit_crafts.UsageError):
        bit_crafts.accept(hostile, "record", [])
    with pytest.raises(bit_crafts.RefusedError):
        bit_crafts.accept("photos", "record", [name])


def test_a_sample_is_verified() -> None:
    bit_crafts.manifest("photos", "record")
    for sample, files in [("1%", (0, 1)), ("100%", (3,))]:
        verified = bit_crafts.verify("photos", "record", sample=sample)
        assert verified.is_same and verified.read[0] in files
    with bit_crafts.iter_verify("photos", "record", sample="1%") as changes:
        assert list(changes) == []
    for sample in ["0%", "5", "101%", "much"]:
        with pytest.raises(bit_crafts.UsageError):
            bit_crafts.verify("photos", "record", sample=sample)
    with pytest.raises(bit_crafts.UsageError):
        bit_crafts.verify("photos", "record", mode="meta", sample="5%")


def test_a_damaged_file_is_restored() -> None:
    bit_crafts.manifest("photos", "record")
    bit_crafts.copy("photos", "backup").complete()
    os.remove("photos/a.jpg")
    os.remove("photos/c.raw")
    os.remove("backup/photos/c.raw")
    planned = bit_crafts.restore("photos", "record", "backup", dry_run=True)
    assert planned.dry_run and not os.path.exists("photos/a.jpg")
    restored = bit_crafts.restore("photos", "record", ["backup"], only=["removed"])
    [repaired] = restored.repaired
    assert (repaired.path, repaired.loss) == ("photos/a.jpg", "removed")
    [missing] = restored.missing
    assert missing.path == "photos/c.raw"
    with pytest.raises(bit_crafts.IncompleteError, match="c.raw"):
        restored.complete()
    assert pathlib.Path("photos/a.jpg").read_text() == "picture"


def test_prune_and_undo() -> None:
    planned = bit_crafts.prune("photos", action="hardlink")
    assert planned.dry_run and planned.journal is None
    [step] = planned.steps
    assert (step.action, step.outcome, step.path) == ("hardlink", "planned", "photos/b.jpg")
    assert not os.path.samefile("photos/a.jpg", "photos/b.jpg")
    pruned = bit_crafts.prune(
        "photos", action="hardlink", keep=["name:b*"], dry_run=False, journal="steps"
    ).complete()
    assert pruned.changed == 1 and os.path.samefile("photos/a.jpg", "photos/b.jpg")
    assert pruned.steps[0].kept == "photos/b.jpg"
    assert bit_crafts.undo("steps", dry_run=True).restored == 1
    undone = bit_crafts.undo("steps").complete()
    assert undone.restored == 1 and not os.path.samefile("photos/a.jpg", "photos/b.jpg")
    moved = bit_crafts.prune(
        "photos", action="move", into="backup", dry_run=False, journal="moves"
    ).complete()
    [step] = moved.steps
    assert step.to is not None and os.path.exists(step.to) and not os.path.exists(step.path)


def test_prune_streams_its_steps(many: pathlib.Path) -> None:
    whole = bit_crafts.prune(many, action="delete")
    steps = bit_crafts.iter_prune(many, action="delete")
    assert list(steps) == list(whole.steps) and len(whole.steps) == 9000
    planned = steps.result()
    assert len(planned.steps) == 0
    assert (planned.changed, planned.freed) == (whole.changed, whole.freed)
    # Left early, it has done some steps; all of them can be undone.
    bit_crafts.copy(many, "copy", exactly=True, manifest=False).complete()
    with bit_crafts.iter_prune(
        "copy", action="delete", dry_run=False, journal="steps", threads=1
    ) as steps:
        assert next(steps).outcome == "done"
    left = sum(len(names) for _, _, names in os.walk("copy"))
    assert 1000 < left < 10000
    undone = bit_crafts.undo("steps").complete()
    assert undone.restored == 10000 - left
    assert bit_crafts.hash("copy").files[-1].digest == bit_crafts.hash(many).files[-1].digest


def test_copy_copies(hostile: pathlib.Path) -> None:
    os.link(hostile / " ", hostile / "other name")
    copied = bit_crafts.copy(hostile, "copy", exactly=True, manifest="record").complete()
    assert (copied.files, copied.manifest) == (9, "record")
    assert bit_crafts.verify("copy", "record", ignore=["ino", "ctime"]).is_same
    assert os.path.samefile("copy/ ", "copy/other name")
    again = bit_crafts.copy(hostile, "copy", exactly=True, on_conflict="verify", manifest=False)
    assert (again.copied, again.skipped > 0) == (1, True) or again.is_complete
    failed = bit_crafts.copy(hostile, "copy", exactly=True, manifest=False)
    assert failed.failed and not failed.is_complete
    some = bit_crafts.copy("photos", "some", paths=["c.raw"], algorithm=None, manifest=False)
    assert some.files == 1 and os.listdir("some") == ["c.raw"]
    planned = bit_crafts.copy("photos", "planned", dry_run=True)
    assert planned.files == 3 and not os.path.exists("planned")


def test_copy_streams_what_becomes_of_each_file(many: pathlib.Path) -> None:
    with bit_crafts.iter_copy(many, "copy", exactly=True, manifest=False) as files:
        paths = [file.path for file in files]
        report = files.result()
    assert len(paths) == report.files == 10000
    assert paths == sorted(paths)
    with bit_crafts.iter_copy(many, "copy", exactly=True, on_conflict="skip") as files:
        assert next(files).outcome == "skipped"
        assert files.result().skipped == 10000


def test_a_stream_that_is_left_ends_its_job(many: pathlib.Path) -> None:
    with bit_crafts.iter_copy(many, "copy", manifest=False) as files:
        next(files)
    copied = sum(len(names) for _, _, names in os.walk("copy"))
    # It waits while thousands are not taken.
    assert 0 < copied < 10000
    with pytest.raises(bit_crafts.UsageError):
        files.result()
    assert list(files) == []
    with pytest.raises(FileNotFoundError):
        list(bit_crafts.iter_copy("gone", "copy"))


def test_move_moves(hostile: pathlib.Path) -> None:
    names = sorted(os.listdir(os.fsencode(hostile)))
    moved = bit_crafts.move(hostile, "moved", dry_run=True)
    assert os.path.exists(hostile)
    moved = bit_crafts.move(hostile, "moved").complete()
    assert (moved.renamed, moved.kept) == (1, 0)
    assert not os.path.exists(hostile) and sorted(os.listdir(b"moved")) == names
    with pytest.raises(FileNotFoundError):
        bit_crafts.move(hostile, "moved")


def test_changes_and_groups_stream(many: pathlib.Path) -> None:
    files = bit_crafts.iter_hash(many, algorithm="sha256")
    assert list(files) == list(bit_crafts.hash(many, algorithm="sha256"))
    assert len(files.result()) == 0 and files.result().bytes > 0
    with bit_crafts.iter_duplicates(many) as groups:
        first = next(groups)
        found = [first, *groups]
        report = groups.result()
    whole = bit_crafts.duplicates(many)
    assert found == list(whole) and len(report) == 0
    assert (report.files, report.wasted) == (whole.files, whole.wasted)
    bit_crafts.copy(many, "changed", manifest="record").complete()
    shutil.rmtree("changed/3")
    whole_changes = bit_crafts.verify("changed", "record", mode="content")
    changes = bit_crafts.iter_verify("changed", "record", mode="content")
    assert list(changes) == list(whole_changes.changes)
    assert changes.result().counts == whole_changes.counts
    # What was not taken is passed over, and the record is written all the same.
    assert bit_crafts.iter_update("changed", "record").result().is_written
    assert bit_crafts.verify("changed", "record").is_same
