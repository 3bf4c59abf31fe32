//! Runs the transcripts in `transcripts/` against the engines of their programs and compares the answers.
//! `UPDATE_TRANSCRIPTS=1 cargo test -p midflight-spec --test transcripts` rewrites the files with the answers of the
//! model and, where they may differ, of the asic engine; review the diff before you commit it.

mod cache;
mod files;
mod store;
mod tasks;
