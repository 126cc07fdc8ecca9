//! Actions on whole directories, as journals name them.

/// Action on a directory, or on a link in one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TreeAction {
    /// Names in a directory are about to go: what it was before that. With a destination, it is made
    /// there.
    Empty,
    /// An empty directory is removed.
    RemoveDirectory,
    /// A symbolic link is removed, or made at the destination and removed.
    RemoveLink,
    /// A directory is renamed with all that is in it.
    MoveDirectory,
}

impl TreeAction {
    pub(super) const ALL: [TreeAction; 4] = [
        TreeAction::Empty,
        TreeAction::RemoveDirectory,
        TreeAction::RemoveLink,
        TreeAction::MoveDirectory,
    ];

    /// As journals name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TreeAction::Empty => "empty-directory",
            TreeAction::RemoveDirectory => "remove-directory",
            TreeAction::RemoveLink => "remove-link",
            TreeAction::MoveDirectory => "move-directory",
        }
    }
}
