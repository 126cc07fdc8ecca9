//! Behaviour of the binary, as a user meets it: one file per applet.

#![forbid(unsafe_code)]
#![allow(missing_docs, unreachable_pub)]

mod budget;
mod caches;
mod closed_streams;
mod commands;
mod common;
mod denied;
mod depth;
mod dup;
mod dup_destination;
mod dup_question;
mod dup_recipes;
mod dup_reference;
mod dup_saved;
mod endless;
mod every_option;
mod examples;
mod foreign_files;
mod fresh;
mod hash;
mod hash_check;
mod hash_check_guess;
mod hash_diff;
mod help;
mod hostile;
mod hostile_terminal;
mod html;
mod html_browser;
mod html_integrity;
mod integrity;
mod integrity_foreign;
mod integrity_update;
mod layers;
mod mounts;
mod multicall;
mod options;
mod outputs;
mod own_output;
mod prune_journals;
mod readme_integrity;
mod signals;
mod terminal;
mod tour;
