//! The decisions of a run, pure: which file of a group stays and which names are acted on, in which
//! order ([`GroupPlan`]); what has to be known of each before it is, and what follows from that
//! ([`next`]). Nothing here opens a file.

mod group;
mod keep;
mod next;

pub use self::keep::{Inode, Keep, KeepError, KeepRules, Pattern, Roots};

pub(crate) use self::group::{Acted, CopyProof, GroupPlan, TargetName};
pub(crate) use self::keep::fleeting;
pub(crate) use self::next::{Fact, Facts, Need, Opened, StepDecision, StepRules, next};
