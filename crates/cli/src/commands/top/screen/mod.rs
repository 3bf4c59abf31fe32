//! The screen of `midflight top`, for 80 columns and 24 lines or more.

use super::head::{head, style};
use super::rows::{Rows, Table, table};
use super::state::{Asked, State};
use super::view::View;
use anyhow::{Context, Result};
use midflight_terminal::columns::plain;
use midflight_terminal::signals::end_flag;
use midflight_terminal::views::Views;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table as Grid};
use ratatui::{DefaultTerminal, Frame};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const KEY_WITHIN: Duration = Duration::from_millis(50);
const DRAWN: usize = 240;

const HELP: &str = "\
q, Esc, Ctrl-C     end
Tab, Shift-Tab     the next list, the one before
s                  sort by the next column
r                  the other way round
Up, Down           move in the list
PgUp, PgDn         ten lines
Home, End          its ends

Any key closes this.";

/// Restores the terminal, also after a panic.
pub(super) fn run(views: &Views) -> Result<()> {
    let ended = end_flag()?;
    let mut terminal = ratatui::try_init().context("cannot use this terminal: --once prints one view")?;
    let shown = show(&mut terminal, views, &ended);
    ratatui::restore();
    shown
}

fn show(terminal: &mut DefaultTerminal, views: &Views, ended: &AtomicBool) -> Result<()> {
    let (mut screen, mut state) = (Screen::default(), State::default());
    while !ended.load(Relaxed) {
        let mut is_new = false;
        while let Some(text) = views.next_within(Duration::ZERO)? {
            screen.take(View::parse(&text)?);
            is_new = true;
        }
        let mut asked = None;
        if event::poll(KEY_WITHIN)? {
            match event::read()? {
                Event::Key(key) => {
                    let (tables, columns, rows) = screen.shape(&state);
                    asked = state.key(key, tables, columns, rows);
                }
                Event::Resize(..) => asked = Some(Asked::Redraw),
                _ => {}
            }
        }
        match asked {
            Some(Asked::Quit) => return Ok(()),
            None if !is_new && screen.is_drawn => {}
            _ => {
                terminal.draw(|frame| screen.draw(frame, &state))?;
                screen.is_drawn = true;
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Screen {
    view: Option<View>,
    /// The newest last.
    rates: VecDeque<u64>,
    is_drawn: bool,
}

impl Screen {
    fn take(&mut self, view: View) {
        if view.period_ms.is_some() {
            self.rates.push_back(view.rate(view.drawn()).round() as u64);
            while self.rates.len() > DRAWN {
                self.rates.pop_front();
            }
        }
        self.view = Some(view);
    }

    fn shape(&self, state: &State) -> (usize, usize, usize) {
        let Some(view) = &self.view else { return (1, 1, 0) };
        let tables = Table::of(view);
        let rows = table(view, state.table(tables));
        (tables.len(), rows.titles.len(), rows.lines.len())
    }

    fn draw(&self, frame: &mut Frame<'_>, state: &State) {
        let Some(view) = &self.view else {
            return frame.render_widget("waiting for the first view", frame.area());
        };
        let numbers = head(view);
        let heights = [
            Constraint::Length(numbers.len() as u16),
            Constraint::Length(3),
            Constraint::Fill(1),
            Constraint::Length(1),
        ];
        let [head, rate, list, keys] = Layout::vertical(heights).areas(frame.area());
        frame.render_widget(Paragraph::new(numbers), head);
        self.draw_rates(frame, rate);
        draw_list(frame, list, view, state);
        let tables: Vec<_> = Table::of(view).iter().map(|table| table.title()).collect();
        let hint = format!("q end  Tab {}  s sort  r reverse  ? keys", tables.join(", "));
        frame.render_widget(Paragraph::new(hint).style(Style::new().add_modifier(Modifier::DIM)), keys);
        if state.shows_help {
            draw_help(frame);
        }
    }

    fn draw_rates(&self, frame: &mut Frame<'_>, area: Rect) {
        let newest: Vec<u64> = {
            let skip = self.rates.len().saturating_sub(usize::from(area.width));
            self.rates.iter().skip(skip).copied().collect()
        };
        frame.render_widget(Sparkline::default().data(&newest).style(Style::new().fg(Color::Cyan)), area);
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, view: &View, state: &State) {
    let which = state.table(Table::of(view));
    let mut rows = table(view, which);
    state.sort(&mut rows);
    let (all, more) = (rows.lines.len(), rows.more);
    let height = usize::from(area.height.saturating_sub(2));
    let top = state.top.min(all.saturating_sub(height));
    let title = match (all, more) {
        (0, _) => format!(" {}: none ", which.title()),
        (_, 0) => format!(" {} {}-{} of {all} ", which.title(), top + 1, (top + height).min(all)),
        _ => format!(" {} {}-{} of {} ", which.title(), top + 1, (top + height).min(all), all as u64 + more),
    };
    let head = Row::new(rows.titles.iter().enumerate().map(|(column, title)| {
        let mark = match state.sorted_by() {
            Some((by, is_reversed)) if by == column => {
                if is_reversed {
                    "↓"
                } else {
                    "↑"
                }
            }
            _ => "",
        };
        aligned(format!("{title}{mark}"), column, &rows)
    }));
    let lines = rows.lines.iter().skip(top).take(height).map(|line| {
        let cells = line.cells.iter().enumerate().map(|(column, cell)| aligned(plain(cell), column, &rows));
        Row::new(cells).style(style(line.tone))
    });
    let grid = Grid::new(lines.collect::<Vec<_>>(), widths(&rows))
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::new().borders(ratatui::widgets::Borders::TOP).title(title));
    frame.render_widget(grid, area);
}

fn aligned(text: String, column: usize, rows: &Rows) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if rows.sides.as_bytes().get(column) == Some(&b'r') { line.right_aligned() } else { line })
}

fn widths(rows: &Rows) -> Vec<Constraint> {
    let widest = |column: usize| {
        let cells = rows.lines.iter().map(|line| line.cells[column].chars().count());
        cells.chain([rows.titles[column].chars().count() + 1]).max().unwrap_or(0)
    };
    (0..rows.titles.len()).map(|column| Constraint::Length(widest(column).min(48) as u16)).collect()
}

fn draw_help(frame: &mut Frame<'_>) {
    let (width, height) = (52, HELP.lines().count() as u16 + 2);
    let area = frame.area();
    let (width, height) = (area.width.min(width), area.height.min(height));
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" Keys ")), place);
}

#[cfg(test)]
mod tests;
