//! The map of the space wasted in each directory.

use bc_find::groups::FileGroup;
use bc_find::scan;
use bc_prune::Inode;

use crate::html::dirs::{Amount, Dirs, What, parent};
use crate::html::{Page, map};
use crate::session::progress::{counted, size};

/// Directories that have a colour of their own in the map; the others share one.
const OTHERS: usize = 7;

/// Adds the map of the space wasted in each directory to a page.
pub fn waste_map(page: &mut Page, dirs: &Dirs) {
    let words = map::Words {
        heading: "Where the waste is",
        caption: "An area is the disk space of redundant files in a directory; of each group \
                  the file that would be kept is not counted.",
        value: Some("Wasted"),
        count: "Redundant files",
        full: &|amount| {
            let files = counted(amount.count, "file", "files");
            format!("{} in {files}", size(amount.value))
        },
        short: &|amount| size(amount.value),
        class: &|cell| match cell.what {
            What::Smaller(_) => "rest".to_owned(),
            _ => format!("h{}", cell.group.min(OTHERS)),
        },
        meaning: &|cells| match cells {
            [first, ..] if matches!(first.what, What::Smaller(_)) => {
                "several smaller directories".to_owned()
            }
            [first, rest @ ..]
                if first.group >= OTHERS && rest.iter().any(|cell| cell.group != first.group) =>
            {
                "other directories".to_owned()
            }
            _ => map::common(cells),
        },
    };
    page.map(dirs, &words);
}

/// Adds the bytes that each file that would go frees to its directory. The sum is the group's
/// waste, whichever file stays.
pub fn waste_by_directory(
    dirs: &mut Dirs,
    found: scan::Group<'_>,
    group: &FileGroup,
    files: &[Inode],
) {
    // Bytes that removing a file would free, by index into the group.
    let own: Vec<u64> = found
        .files()
        .flat_map(|file| file.names.iter().map(move |_| file.own))
        .collect();
    let mut left = found.wasted;
    let Some((kept, others)) = files.split_first() else {
        return;
    };
    for file in others {
        let value = own[file.names[0]].min(left);
        left -= value;
        let amount = Amount {
            value,
            count: 1,
            mark: 0,
        };
        dirs.add(parent(&group.files[file.names[0]].path), amount);
    }
    // Kept is a file that frees something, though another frees nothing.
    if left > 0 {
        let amount = Amount {
            value: left,
            ..Amount::default()
        };
        dirs.add(parent(&group.files[kept.names[0]].path), amount);
    }
}
