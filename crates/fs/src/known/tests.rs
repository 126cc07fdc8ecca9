//! Cases of judgements, by the steps of file systems and the clocks of machines.

use super::*;

const S: i64 = SECOND_NS;
const MS: i64 = 1_000_000;

/// Traits as the table has them.
fn traits(inodes: Inodes, ctime: CtimeTrust, step: i64) -> Traits {
    let mut traits = crate::mount::traits_or_unknown(std::io::stdin(), 0);
    (traits.inodes, traits.ctime, traits.inodes_below) = (inodes, ctime, u64::MAX);
    traits.mtime_step_ns = step as u64;
    traits
}

fn xfs() -> Traits {
    traits(Inodes::Stable, CtimeTrust::Real, 1)
}

fn ext4() -> Traits {
    traits(Inodes::Stable, CtimeTrust::Real, S)
}

fn fat() -> Traits {
    traits(Inodes::Moving, CtimeTrust::MadeUp, 2 * S)
}

fn nfs() -> Traits {
    traits(Inodes::Unknown, CtimeTrust::Unknown, 2 * S)
}

fn known(dev: u64, ino: u64, mtime_ns: i64, ctime_ns: i64) -> Known<'static> {
    let stamp = Stamp {
        size: 5,
        mtime_ns,
        ctime_ns,
    };
    Known::of(Identity { dev, ino }, stamp)
}

#[test]
fn a_time_is_racy_until_its_step_and_a_tick_are_over() {
    let (exfat, ns) = (10 * MS, 1);
    for (time, step, over) in [
        (100 * S + 7, ns, 1),
        (100 * S, ns, 1),
        (100 * S + 300, 100, 100),
        // A whole second may be of an inode of 128 bytes; anything else is not.
        (100 * S, S, S),
        (101 * S, S, S),
        (100 * S + 7, S, 1),
        (100 * S, 2 * S, 2 * S),
        // Odd seconds: the coarsest step of what is not known, and no step of FAT's.
        (101 * S, 2 * S, 2 * S),
        (100 * S + 40 * MS, exfat, exfat),
        (100 * S + 40 * MS, 2 * S, exfat),
        (100 * S + 3 * MS, 2 * S, MS),
        (-7 * S, 2 * S, 2 * S),
    ] {
        let step = step as u64;
        assert_eq!(possible_step(time, step), over, "{time} {step}");
        assert!(is_racy(time, time, step), "{time} {step}");
        assert!(is_racy(time, time + over + TICK_NS, step), "{time} {step}");
        assert!(!is_racy(time, time + over + TICK_NS + 1, step));
        // The clock was set back, or the time comes from another clock.
        assert!(is_racy(time, time - 3600 * S, step));
        assert!(!is_racy(time, time + 2 * S + TICK_NS + 1, COARSEST_STEP_NS));
        assert!(time < settled_before(time + 2 * S + TICK_NS + 1));
    }
    assert!(is_racy(i64::MAX, i64::MAX, 1) && !is_racy(i64::MIN, 0, 1));
    // What is so large in no table.
    assert_eq!(possible_step(100 * S, u64::MAX), 2 * S);
}

#[test]
fn either_time_makes_a_stamp_racy() {
    let now = 100 * S + 7;
    let old = now - 60 * S;
    for (times, expected) in [
        ((old, old), false),
        ((now, old), true),
        ((old, now), true),
        ((now + 3600 * S, old), true),
    ] {
        let stamp = known(1, 1, times.0, times.1).stamp;
        assert_eq!(is_stamp_racy(&stamp, now, 1), expected, "{times:?}");
    }
}

#[test]
fn the_clock_of_files_is_no_later_than_the_time_of_day() {
    let before = file_clock();
    let day = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let day = day.unwrap().as_nanos() as i64;
    assert!(before <= day && day - before < 60 * S);
}

#[test]
fn clocks_have_steps_and_ends() {
    assert!(at_one_time(5 * S + 7, 5 * S));
    assert!(at_one_time(5 * S + 7, 4 * S));
    assert!(!at_one_time(5 * S + 7, 5 * S + 8));
    assert!(at_one_time(5 * S + 70_000_007, 5 * S + 70_000_000));
    assert!(!at_one_time(5 * S + 90_000_007, 5 * S + 70_000_000));
    assert!(at_one_time(5 * S + 1_300_000, 5 * S + MS));
    // Before 1970 and after 2106.
    assert!(at_one_time(-S, ((1 << 32) - 1) * S));
    assert!(at_one_time(5 * S, ((1 << 32) + 5) * S));
}

#[test]
fn a_coarser_file_system_rounds_down() {
    let step = COARSEST_STEP_NS;
    assert!(is_kept_as(7 * S + 5, 7 * S + 5, 1));
    assert!(!is_kept_as(7 * S + 5, 7 * S, 1));
    assert!(is_kept_as(7 * S + 5, 6 * S, step));
    assert!(is_kept_as(-5, -2 * S, step));
    assert!(!is_kept_as(9 * S, 6 * S, step));
    assert!(!is_kept_as(7 * S + 5, 7 * S + 4, S as u64));
}

#[test]
fn a_copy_whose_time_was_cut_off_is_no_older() {
    for (time, than, step, expected) in [
        (7 * S, 7 * S, 1, false),
        (6 * S, 7 * S, 1, false),
        (7 * S + 1, 7 * S, 1, false),
        (7 * S + 100, 7 * S, 1, true),
        (7 * S + 1, 7 * S + 7, 1, false),
        (7 * S + 8, 7 * S + 7, 1, true),
        (7 * S + 999 * MS, 7 * S, S, false),
        (8 * S, 7 * S, S, true),
        // A step of two seconds begins at an even one.
        (8 * S, 7 * S, 2 * S, true),
        (8 * S - 1, 6 * S, 2 * S, false),
        (7 * S + 9 * MS, 7 * S + 10 * MS, 10 * MS, false),
        (7 * S + 19 * MS, 7 * S + 10 * MS, 10 * MS, false),
        (7 * S + 20 * MS, 7 * S + 10 * MS, 10 * MS, true),
    ] {
        assert_eq!(
            is_later(time, than, || step as u64),
            expected,
            "{time} {than} {step}"
        );
    }
    assert!(is_later(9 * S, 7 * S, || panic!("decides nothing")));
    assert!(is_later(i64::MAX, i64::MIN, || panic!("decides nothing")));
}

#[test]
fn rounded_times_may_be_of_the_end_of_their_step() {
    assert!(is_before(7 * S + 5, 7 * S + 6) && !is_before(7 * S + 5, 7 * S + 5));
    assert!(is_before(6 * S, 8 * S) && !is_before(6 * S, 8 * S - 1));
    assert!(!is_before(i64::MAX, i64::MAX));
}

#[test]
fn equal_numbers_and_times_prove_what_their_file_system_promises() {
    use Doubt::{ChangeTime, Clipped, Numbers, Racy};
    let old = known(1, 7, 90 * S + 5, 95 * S + 5);
    let far = Known {
        stamp: known(1, 7, i64::MAX, i64::MAX).stamp,
        ..old
    };
    let exfat = traits(Inodes::Moving, CtimeTrust::MadeUp, 10 * MS);
    let image = traits(Inodes::Stable, CtimeTrust::MadeUp, S);
    let mut mixed = xfs();
    mixed.inodes_below = 7;
    let second = known(1, 7, 90 * S, 95 * S);
    for (file, looked, traits, expected) in [
        (old, 100 * S, xfs(), None),
        (old, 95 * S + 6, xfs(), Some(Racy)),
        (old, 95 * S + 5 + TICK_NS + 1, xfs(), Some(Racy)),
        (old, 95 * S + 5 + TICK_NS + 2, xfs(), None),
        // Inodes of 128 bytes keep whole seconds.
        (second, 95 * S + 999 * MS, ext4(), Some(Racy)),
        (second, 95 * S + 999 * MS, xfs(), None),
        (second, 97 * S, ext4(), None),
        // The clock was set back since it was changed.
        (old, 50 * S, xfs(), Some(Racy)),
        (far, 100 * S, xfs(), Some(Clipped)),
        (old, 100 * S, mixed, Some(Numbers)),
        (old, 100 * S, fat(), Some(Numbers)),
        (old, 100 * S, exfat, Some(Numbers)),
        (old, 100 * S, nfs(), Some(Numbers)),
        (old, 100 * S, image, Some(ChangeTime)),
    ] {
        assert_eq!(file.doubt(looked, &traits), expected, "{looked} {traits:?}");
    }
}

#[test]
fn another_number_state_birth_or_volume_is_another_file() {
    use Judgement::{Other, Same, Unproven};
    let file = Known {
        born_ns: Some(80 * S),
        volume: "v",
        ..known(1, 7, 90 * S + 5, 95 * S + 5)
    };
    let nameless = Known { volume: "", ..file };
    let renumbered = Known {
        id: Identity { dev: 9, ino: 7 },
        ..file
    };
    let (moved, edited) = (
        known(1, 8, 90 * S + 5, 95 * S + 5),
        known(1, 7, 96 * S, 96 * S),
    );
    let born = |born_ns| Known { born_ns, ..file };
    for (then, now, expected) in [
        (file, file, Same),
        (file, nameless, Same),
        // The disk was plugged in again.
        (file, renumbered, Same),
        (nameless, renumbered, Unproven(Doubt::Device)),
        (
            file,
            Known {
                volume: "w",
                ..file
            },
            Other,
        ),
        (
            file,
            Known {
                volume: "w",
                ..renumbered
            },
            Other,
        ),
        (
            file,
            Known {
                id: moved.id,
                ..file
            },
            Other,
        ),
        (
            file,
            Known {
                stamp: edited.stamp,
                ..file
            },
            Other,
        ),
        (file, born(Some(96 * S)), Other),
        (file, born(None), Unproven(Doubt::Birth)),
        (born(None), file, Unproven(Doubt::Birth)),
        (born(None), born(None), Same),
    ] {
        assert_eq!(then.judge(&now), expected, "{then:?} {now:?}");
    }
}

#[test]
fn an_edit_of_the_same_moment_shows_in_the_other_time() {
    for (mtime, ctime, expected) in [
        (50 * S, 95 * S + 5, true),
        (95 * S + 5, 95 * S + 5, false),
        (95 * S + 5 - TICK_NS, 95 * S + 5, false),
        (95 * S + 4 - TICK_NS, 95 * S + 5, true),
        (99 * S, 95 * S + 5, true),
        (50 * S, 95 * S, false),
    ] {
        let found = known(1, 7, mtime, ctime).shows_edits_of_its_moment();
        assert_eq!(found, expected, "{mtime} {ctime}");
    }
}

#[test]
fn born_after_the_record_is_another_file() {
    use Doubt::{Birth, Clock};
    use Judgement::{Other, Same, Unproven};
    let later = Some(20);
    for (born_ns, ctime, recorded, expected) in [
        (Some(5), Some(7), Some(9), Same),
        // Written at once: both times are one tick of the kernel's clock.
        (Some(7), Some(7), Some(9), Same),
        (Some(10), Some(7), Some(9), Other),
        (Some(10), Some(7), None, Other),
        (Some(10), None, Some(9), Other),
        // A server's clock is behind, or this one's was set.
        (Some(8), Some(7), Some(9), Unproven(Clock)),
        (Some(8), None, None, Unproven(Clock)),
        (None, Some(7), Some(9), Unproven(Birth)),
        // Times that cannot be held.
        (Some(i64::MAX), Some(7), Some(9), Unproven(Birth)),
        (Some(5), Some(i64::MIN), Some(9), Unproven(Clock)),
        (Some(10), Some(i64::MAX), Some(9), Other),
    ] {
        let now = InodeTimes {
            born_ns,
            ctime_ns: later,
        };
        assert_eq!(
            now.judge(ctime, recorded),
            expected,
            "{born_ns:?} {ctime:?}"
        );
    }
}

#[test]
fn a_clock_that_was_set_proves_nothing() {
    use Doubt::{Birth, Clock};
    use Judgement::{Same, Unproven};
    for (born_ns, ctime_ns, recorded, expected) in [
        // It was changed last when the record says so, whenever it was born.
        (Some(50), Some(7), Some(7), Same),
        (None, Some(7), Some(7), Same),
        // The record is of a time that was not yet.
        (Some(9), Some(9), Some(30), Unproven(Clock)),
        (Some(5), Some(9), Some(30), Unproven(Clock)),
        // Born later than it was changed.
        (Some(50), Some(8), Some(7), Unproven(Clock)),
        (Some(50), Some(8), None, Unproven(Clock)),
        (Some(5), None, Some(7), Same),
        // Times that cannot be held are not equal.
        (None, Some(i64::MAX), Some(i64::MAX), Unproven(Birth)),
        // Whole seconds, which many changes have: without a birth they prove nothing.
        (None, Some(7 * S), Some(7 * S), Unproven(Birth)),
    ] {
        let now = InodeTimes { born_ns, ctime_ns };
        assert_eq!(now.judge(recorded, Some(9)), expected, "{now:?}");
    }
}

#[test]
fn sessions_that_are_not_known_are_never_one() {
    let session = |boot: u8, mount| MountSession {
        boot: [boot; 16],
        mount,
    };
    assert!(session(1, 2).is(&session(1, 2)));
    for other in [session(2, 2), session(1, 3), session(0, 2), session(1, 0)] {
        assert!(!session(1, 2).is(&other) && !other.is(&session(1, 2)));
    }
    assert!(!session(0, 2).is(&session(0, 2)) && !session(1, 0).is(&session(1, 0)));
    assert_eq!(boot_id(), boot_id());
    let here = MountSession::of(std::fs::File::open(".").unwrap());
    assert_eq!(here.is(&here), here.is_known());
}
