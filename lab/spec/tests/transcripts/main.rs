//! Runs the transcripts in `transcripts/` against the engines of their programs: the answers must be those in the files.
//! `UPDATE_TRANSCRIPTS=1 cargo test -p midflight-spec --test transcripts` writes the model's answers into the files, and those of
//! the asic engine below them where it may differ; read the difference before you commit it.

mod files;
mod reads;
mod replicas;
mod tasks;
