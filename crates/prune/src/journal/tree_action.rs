//! Actions on whole directories, as journals name them.

/// Action on a directory, or on a link in one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TreeAction {
    /// Names in a directory are about to go: records its state before that. With a destination, the
    /// directory is made there.
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

    /// Returns the action's name in journals.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TreeAction::Empty => "empty-directory",
            TreeAction::RemoveDirectory => "remove-directory",
            TreeAction::RemoveLink => "remove-link",
            TreeAction::MoveDirectory => "move-directory",
        }
    }
}
