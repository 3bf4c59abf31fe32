//! `midflight top`: live view of a process in the terminal.

mod head;
mod lists;
mod rows;
mod screen;
mod state;
mod view;

use crate::commands::status;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_HTTP_PORT;
use midflight_terminal::columns::aligned;
use midflight_terminal::views::Views;
use midflight_terminal::{stdout, usage};
use rows::{Table, table};
use std::io::IsTerminal;
use std::process::ExitCode;
use view::{Of, View};

const EXAMPLES: &str = "\
EXAMPLES
  midflight top                                the switch of this machine
  midflight top --http switch.example:7701
  midflight top --http 10.0.0.250:7790         a controller, and so a replica or operator
  midflight top --once                         one view as text, and the end
  midflight top --json | jq .detail.executors  the same as JSON (docs/watching.md)

KEYS
  q, Esc, Ctrl-C  end            Tab, Shift-Tab  the next list, the one before
  s               sort by the next column        r  the other way round
  Up, Down, PgUp, PgDn, Home, End  in the list   ?  keys

EXIT CODES
  0 ended by a key or a signal, 1 no answer, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// HTTP address of a switch, an operator, a replica of a store or a controller
    #[arg(long, value_name = "HOST:PORT", default_value_t = format!("127.0.0.1:{DEFAULT_HTTP_PORT}"))]
    http: String,
    /// Print one view and end; the default where stdout is no terminal
    #[arg(long)]
    once: bool,
    /// Print one view as a JSON object and end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let address = usage::resolve(args.http.trim_start_matches("http://").trim_end_matches('/'))?;
    let views = Views::open(address)?;
    if !args.once && !args.json && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        screen::run(&views)?;
        return Ok(ExitCode::SUCCESS);
    }
    // The first view may have no rates.
    let mut text = views.next()?;
    if View::parse(&text)?.period_ms.is_none() {
        text = views.next()?;
    }
    if args.json {
        stdout::print(&format!("{text}\n"))?;
    } else {
        stdout::print(&as_text(&View::parse(&text)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(view: &View) -> String {
    let mut text = match &view.of {
        Of::Switch(status, _) => status::for_people(status),
        Of::Replica(_) | Of::Controller(..) => head::head(view).iter().map(|line| format!("{line}\n")).collect(),
    };
    for &which in Table::of(view) {
        let rows = table(view, which);
        if rows.lines.is_empty() {
            continue;
        }
        let titles = rows.titles.iter().map(|title| (*title).to_owned()).collect();
        let cells = rows.lines.into_iter().map(|line| line.cells);
        let lines: Vec<Vec<String>> = std::iter::once(titles).chain(cells).collect();
        text += &format!("\n{}\n{}", which.title(), in_columns(&lines, rows.sides));
        if rows.more > 0 {
            text += &format!("and {} more\n", rows.more);
        }
    }
    text
}

/// As `aligned`, for any width.
fn in_columns(lines: &[Vec<String>], sides: &str) -> String {
    let padded: Vec<[String; rows::COLUMNS_MAX]> =
        lines.iter().map(|line| std::array::from_fn(|column| line.get(column).cloned().unwrap_or_default())).collect();
    let sides: String = sides.chars().chain(std::iter::repeat('l')).take(rows::COLUMNS_MAX).collect();
    aligned(&padded, &sides)
}
