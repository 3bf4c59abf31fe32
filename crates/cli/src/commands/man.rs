//! `midflight man`: the help texts of all subcommands as manual pages.

use crate::Cli;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use midflight_terminal::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight man ~/.local/share/man/man1     then `man midflight` and `man midflight-submit`
  midflight man pages && man -l pages/midflight-map.1

The Debian package brings them.

EXIT CODES
  0 written, 1 a file cannot be written, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to write them; made if there is none
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let pages = write(&command, directory)?;
    stdout::print(&format!("{pages} pages in {}\n", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the number of pages.
fn write(command: &Command, directory: &Path) -> Result<usize> {
    let man = Man::new(command.clone()).source(concat!("Midflight ", env!("CARGO_PKG_VERSION"))).manual("Midflight");
    let file = directory.join(man.get_filename());
    let page = page(&man, command).context("cannot make a page")?;
    std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    command.get_subcommands().try_fold(1, |pages, command| Ok(pages + write(command, directory)?))
}

fn page(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    sections(&more).to_writer(&mut page)?;
    Ok(page)
}

/// The text below a help's options: headings in capitals, literal indented lines, and paragraphs.
fn sections(help: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_block = false;
    for line in help.lines() {
        let is_indented = line.starts_with(' ');
        match (is_block, is_indented) {
            (false, true) => roff.control("nf", []),
            (true, false) => roff.control("fi", []),
            _ => &mut roff,
        };
        is_block = is_indented;
        if line.is_empty() {
            roff.control("PP", []);
        } else if is_heading(line) {
            roff.control("SH", [line]);
        } else {
            roff.text([roman(line)]);
        }
    }
    if is_block {
        roff.control("fi", []);
    }
    roff
}

fn is_heading(line: &str) -> bool {
    line.chars().all(|letter| letter.is_ascii_uppercase() || letter == ' ') && !line.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_keeps_its_headings_blocks_and_paragraphs() {
        let help = "EXAMPLES\n  midflight up        all\n  midflight map -- x\n\nSome words,\nand more.\n\nEXIT CODES\n  0 done";
        let expected = ".SH EXAMPLES\n.nf\n  midflight up        all\n  midflight map \\-\\- x\n.fi\n.PP\nSome words,\nand more.\n\
                        .PP\n.SH \"EXIT CODES\"\n.nf\n  0 done\n.fi\n";
        let written = sections(help).to_roff();
        assert!(written.ends_with(expected), "{written}");
    }
}
