//! The copy that a move made, or took for made, once it has its new name: what
//! it must be for the original to go, and for itself to be taken back.

use std::cell::{Cell, RefCell};
use std::ffi::CString;

use super::guard::{Held, identity_at};
use super::meta::Metadata;
use super::standing::{self, Origin};
use super::step::Skip;
use super::sys;
use super::temp::sibling;

/// The copy under its new name.
pub(super) struct Arrival {
    pub(super) held: Held,
    pub(super) metadata: Metadata,
    pub(super) origin: Origin,
    /// Whether it was there before.
    stood: bool,
    /// Whether the state that it is held in is that after it was named.
    settled: Cell<bool>,
    /// The temporary name that it has as well.
    stage: RefCell<Option<CString>>,
    /// Whether somebody did something to it before it lost that.
    touched: Cell<bool>,
}

impl Arrival {
    /// One of our own making, which may have the name `stage` too.
    pub(super) fn made(held: Held, metadata: Metadata, stage: Option<CString>) -> Arrival {
        Arrival {
            held,
            metadata,
            origin: Origin::Made,
            stood: false,
            settled: Cell::new(false),
            stage: RefCell::new(stage),
            touched: Cell::new(false),
        }
    }

    /// One that was there before.
    pub(super) fn stood(held: Held, metadata: Metadata, origin: Origin) -> Arrival {
        Arrival {
            held,
            metadata,
            origin,
            stood: true,
            settled: Cell::new(true),
            stage: RefCell::default(),
            touched: Cell::new(false),
        }
    }

    /// Takes the state that giving it its name left it in.
    pub(super) fn settle(&mut self) -> Result<(), Skip> {
        if !self.settled.get() {
            self.held.refresh()?;
            self.settled.set(true);
        }
        Ok(())
    }

    /// Proves, now that `target` was set aside, that the copy has its name and
    /// what was written to it.
    pub(super) fn replaces(&self, target: &Held) -> Result<(), Skip> {
        if self.stood {
            standing::outlives(&self.held, target)?;
        }
        match identity_at(&self.held.dir, &self.held.name)? {
            Some(found) if found == self.held.stat.id => self.held.check_content(),
            _ => Err(Skip::Changed),
        }
    }

    /// The copy in the state that it was left in, to be taken back.
    pub(super) fn as_left(&mut self) -> Result<&Held, Skip> {
        if self.touched.get() {
            return Err(Skip::Changed);
        }
        self.settle()?;
        Ok(&self.held)
    }

    /// Says that the temporary name could not be removed, if it is there still.
    pub(super) fn left(&self, errno: i32) -> Result<(), Skip> {
        let stage = self.stage.borrow();
        let Some(stage) = stage.as_ref() else {
            return Ok(());
        };
        let path = sibling(&self.held, stage);
        Err(Skip::Left { path, errno })
    }

    /// Takes the temporary name away.
    pub(super) fn drop_stage(&self) -> Result<(), Skip> {
        let dir = &self.held.dir;
        let Some(stage) = self.stage.borrow().clone() else {
            return Ok(());
        };
        if identity_at(dir, &stage)? == Some(self.held.stat.id) {
            let touched = self.settled.get() && self.held.check().is_err();
            self.touched.set(touched || self.touched.get());
            sys::unlink(dir, &stage)?;
            self.settled.set(false);
        }
        *self.stage.borrow_mut() = None;
        Ok(())
    }
}
