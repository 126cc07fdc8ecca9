//! Behaviour of the binary, as a user meets it: one file per applet.

#![forbid(unsafe_code)]
#![allow(missing_docs, unreachable_pub)]

mod common;
mod denied;
mod dup;
mod every_option;
mod examples;
mod hash;
mod hash_check;
mod hash_diff;
mod help;
mod hostile;
mod html;
mod html_browser;
mod html_integrity;
mod integrity;
mod integrity_foreign;
mod integrity_update;
mod multicall;
mod options;
mod outputs;
mod readme_integrity;
mod shapes;
mod signals;
mod terminal;
mod tour;
