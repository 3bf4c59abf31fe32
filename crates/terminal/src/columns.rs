//! Text in columns, for a terminal.

use std::fmt::Write;

/// The first `left` columns to the left, the others, which are numbers, to the right.
pub fn aligned<const N: usize>(lines: &[[String; N]], left: usize) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // A String takes everything that is written.
            let _ =
                if column < left { write!(shown, "{gap}{cell:width$}") } else { write!(shown, "{gap}{cell:>width$}") };
        }
        let _ = writeln!(text, "{}", shown.trim_end());
    }
    text
}
