use super::rows::{Line, Rows, Table};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::cmp::Ordering;

/// PgUp and PgDn move by this.
const PAGE: usize = 10;

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    table: usize,
    /// `None` for the switch's order.
    column: Option<usize>,
    is_reversed: bool,
    /// First visible row.
    pub(super) top: usize,
    pub(super) shows_help: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Redraw,
    Quit,
}

impl State {
    pub(super) fn table(&self, tables: &[Table]) -> Table {
        tables[self.table % tables.len()]
    }

    /// The sort column, and whether the order is reversed.
    pub(super) fn sorted_by(&self) -> Option<(usize, bool)> {
        self.column.map(|column| (column, self.is_reversed))
    }

    /// `columns` and `rows` are the current list's.
    pub(super) fn key(&mut self, key: KeyEvent, tables: usize, columns: usize, rows: usize) -> Option<Asked> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if self.shows_help {
            self.shows_help = false;
            return Some(Asked::Redraw);
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Some(Asked::Quit),
            KeyCode::Char('q') | KeyCode::Esc => return Some(Asked::Quit),
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Tab | KeyCode::Right => self.choose(self.table + 1, tables),
            KeyCode::BackTab | KeyCode::Left => self.choose(self.table + tables.max(1) - 1, tables),
            KeyCode::Char('s') => {
                self.column = Some(self.column.map_or(0, |column| (column + 1) % columns.max(1)));
            }
            KeyCode::Char('r') => self.is_reversed ^= true,
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += PAGE,
            KeyCode::PageUp => self.top = self.top.saturating_sub(PAGE),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = rows,
            _ => return None,
        }
        self.top = self.top.min(rows.saturating_sub(1));
        Some(Asked::Redraw)
    }

    fn choose(&mut self, table: usize, tables: usize) {
        let is_reversed = false;
        *self = Self { table: table % tables.max(1), column: None, is_reversed, top: 0, shows_help: false };
    }

    pub(super) fn sort(&self, rows: &mut Rows) {
        if let Some(column) = self.column {
            let by = |a: &Line, b: &Line| a.keys[column].partial_cmp(&b.keys[column]).unwrap_or(Ordering::Equal);
            rows.lines.sort_by(by);
        }
        if self.is_reversed {
            rows.lines.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Key, Tone};
    use super::*;

    fn press(state: &mut State, code: KeyCode) -> Option<Asked> {
        state.key(KeyEvent::new(code, KeyModifiers::NONE), 3, 2, 30)
    }

    fn sorted(state: &State) -> Vec<String> {
        let line = |name: &str, n: f64| Line {
            cells: vec![name.into(), n.to_string()],
            keys: vec![Key::Text(name.into()), Key::Number(n)],
            tone: Tone::Plain,
        };
        let lines = vec![line("b", 1.0), line("a", 10.0), line("c", 9.0)];
        let mut rows = Rows { titles: &["name", "n"], sides: "lr", lines, more: 0 };
        state.sort(&mut rows);
        rows.lines.into_iter().map(|line| line.cells[0].clone()).collect()
    }

    #[test]
    fn keys_choose_the_list_and_its_order() {
        let mut state = State::default();
        assert_eq!(sorted(&state), ["b", "a", "c"]);
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(sorted(&state), ["a", "b", "c"]);
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(sorted(&state), ["b", "c", "a"], "numbers, not text");
        press(&mut state, KeyCode::Char('r'));
        assert_eq!(sorted(&state), ["a", "c", "b"]);
        press(&mut state, KeyCode::Tab);
        assert_eq!((state.table, state.sorted_by()), (1, None));
        press(&mut state, KeyCode::BackTab);
        press(&mut state, KeyCode::BackTab);
        assert_eq!(state.table, 2);
    }

    #[test]
    fn no_key_leaves_the_list() {
        let mut state = State::default();
        press(&mut state, KeyCode::Up);
        assert_eq!(state.top, 0);
        press(&mut state, KeyCode::End);
        press(&mut state, KeyCode::PageDown);
        assert_eq!(state.top, 29);
        press(&mut state, KeyCode::Home);
        assert_eq!(state.top, 0);
    }

    #[test]
    fn any_key_closes_the_help_and_two_end_it() {
        let mut state = State::default();
        press(&mut state, KeyCode::Char('?'));
        assert!(state.shows_help);
        assert_eq!(press(&mut state, KeyCode::Char('q')), Some(Asked::Redraw));
        assert!(!state.shows_help);
        assert_eq!(press(&mut state, KeyCode::Char('q')), Some(Asked::Quit));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(control_c, 3, 2, 30), Some(Asked::Quit));
        assert_eq!(press(&mut state, KeyCode::Char('x')), None);
    }
}
