//! Images that the kernel decompresses as they are read, mounted in a private name space.

use bc_testkit::{TestTree, left_out};

use crate::file_systems::{missing, script};

/// A part of a file costs what the whole block does that it is in, which holds other files' ends
/// too: so what may have an equal is read once, and not by a sample and then again.
#[test]
fn duplicates_on_a_compressed_image_are_found_in_one_reading() {
    if let Some(reason) = missing(&["mksquashfs", "losetup"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    for index in 0..400_u32 {
        // One in ten has an equal, of a size that all share.
        let mut content = vec![b'x'; 30_000];
        let number = if index % 20 == 10 { index - 10 } else { index };
        content[..4].copy_from_slice(&number.to_le_bytes());
        tree.write(format!("files/{:02}/{index:03}", index % 7), content);
    }
    let text = "mksquashfs files img -quiet -no-progress -noappend >/dev/null
        mount -o loop,ro img $M 2>err.txt || { echo cannot mount: $(cat err.txt) >&2; exit 77; }
        status=0; $BC dup -vv --format=fdupes $M >found || status=$?
        $BC dup files --format=fdupes >plain || status=$?
        $BC hash -vv $M >sums || status=$?
        umount $M
        sed 's,.*mnt/,,' found >a; sed 's,.*files/,,' plain >b
        cmp a b; test -s a; exit $status";
    let Some(outcome) = script(&tree, text) else {
        return;
    };
    outcome.code(0).stdout_is("");
    let said = outcome.error_text();
    assert!(
        said.contains("400 read first, 0 read whole afterwards, 12000000 bytes read"),
        "{said}"
    );
    // Threads of the kernel would do no more than plain calls, at a higher price.
    assert!(said.contains("reader sync"), "{said}");
    assert!(!said.contains("went through io_uring"), "{said}");
}
