//! Text in columns, for a terminal.

use std::fmt::Write;

/// Replaces characters that could move the cursor, change colours or the direction of text, so that foreign text is safe on a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    let turns =
        |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { ' ' } else { c }).collect()
}

/// One line for each of `lines`, each cell made [`plain`]. `sides` aligns columns: `l` left (text), `r` right (numbers).
#[must_use]
pub fn aligned<const N: usize>(lines: &[[String; N]], sides: &str) -> String {
    let lines: Vec<[String; N]> = lines.iter().map(|line| line.each_ref().map(|cell| plain(cell))).collect();
    let widths: [usize; N] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for ((cell, width), (column, side)) in line.iter().zip(widths).zip(sides.chars().enumerate()) {
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _ =
                if side == 'l' { write!(shown, "{gap}{cell:width$}") } else { write!(shown, "{gap}{cell:>width$}") };
        }
        let _ = writeln!(text, "{}", shown.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn each_column_stands_on_its_side() {
        let lines = [["µs", "1", "one"], ["a", "100", ""]].map(|line| line.map(str::to_owned));
        assert_eq!(aligned(&lines, "lrl"), "µs    1  one\na   100\n");
        assert_eq!(aligned(&[["a\x1b[2Jb".to_owned(), "c\n\u{202e}d".to_owned()]], "ll"), "a [2Jb  c  d\n");
    }
}
