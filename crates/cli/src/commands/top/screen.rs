//! The screen of `midflight top`: numbers at the top, a list below them. Made for 80 columns and 24 lines, or more.

use super::rows::{Rows, Table, Tone, per_second, table};
use super::state::{Asked, State};
use super::{View, parse};
use crate::commands::status::OfProgram;
use anyhow::{Context, Result};
use midflight_control::TasksStatus;
use midflight_control::tasks::quantile_us;
use midflight_control::watch::{ExecutorState, TasksDetail};
use midflight_terminal::columns::plain;
use midflight_terminal::signals::end_flag;
use midflight_terminal::units::{short_time, thousands};
use midflight_terminal::views::Views;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table as Grid};
use ratatui::{DefaultTerminal, Frame};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How soon a key is taken.
const KEY_WITHIN: Duration = Duration::from_millis(50);
/// Views of which the rate is drawn.
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

/// Shows views until a key or a signal ends it. The terminal is as before then, also after a panic.
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
            screen.take(parse(&text)?);
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

/// What is drawn.
#[derive(Default)]
struct Screen {
    view: Option<View>,
    /// Tasks completed a second, or the packets taken, the newest last.
    rates: VecDeque<u64>,
    is_drawn: bool,
}

impl Screen {
    fn take(&mut self, view: View) {
        if view.period_ms.is_some() {
            let name = if matches!(view.status.program, OfProgram::Tasks(_)) { "tasks.completed" } else { "taken" };
            self.rates.push_back(view.rates.get(name).map_or(0, |rate| rate.round() as u64));
            while self.rates.len() > DRAWN {
                self.rates.pop_front();
            }
        }
        self.view = Some(view);
    }

    /// How many lists there are, and the columns and rows of the one that is shown.
    fn shape(&self, state: &State) -> (usize, usize, usize) {
        let Some(view) = &self.view else { return (1, 1, 0) };
        let tables = Table::of(view);
        let rows = table(view, state.table(tables));
        (tables.len(), rows.titles.len(), rows.lines.len())
    }

    fn draw(&self, frame: &mut Frame<'_>, state: &State) {
        let Some(view) = &self.view else {
            return frame.render_widget("waiting for the switch", frame.area());
        };
        let numbers = numbers(view);
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

/// A line of the head: a name, then values; those that need a look are coloured.
fn named(name: &'static str, values: Vec<Span<'static>>) -> Line<'static> {
    let name = Span::styled(format!("{name:9}"), Style::new().add_modifier(Modifier::DIM));
    Line::from_iter(std::iter::once(name).chain(values))
}

fn numbers(view: &View) -> Vec<Line<'static>> {
    let status = &view.status;
    let uptime = humantime::format_duration(Duration::from_secs(status.uptime_ms / 1000));
    let about = format!("{}, {}, {} engine, up {uptime}", status.listen, view.program, plain(&status.engine.kind));
    let mut lines = vec![named("switch", vec![about.into()])];
    if let OfProgram::Tasks(tasks) = &status.program {
        lines.extend(of_tasks(view, tasks));
    } else {
        let taken = view.rates.get("taken").copied().unwrap_or(0.0);
        lines.push(named("packets", vec![format!("{} a second", per_second(taken)).into()]));
    }
    lines.push(named("failures", failures(view)));
    lines
}

fn of_tasks(view: &View, tasks: &TasksStatus) -> Vec<Line<'static>> {
    let rate = |name: &str| per_second(view.rates.get(name).copied().unwrap_or(0.0));
    let rates = format!(
        "{} a second completed, {} submitted, {} assigned",
        rate("tasks.completed"),
        rate("tasks.submitted"),
        rate("tasks.assigned")
    );
    let queued: u64 = tasks.queued.iter().map(|&n| u64::from(n)).sum();
    let levels = tasks.queued.iter().enumerate().filter(|&(_, &n)| n > 0);
    let levels: Vec<_> = levels.map(|(level, n)| format!("level {}: {}", level + 1, thousands((*n).into()))).collect();
    let queue = format!("{}  {}", thousands(queued), levels.join("  "));
    let slots = format!(
        "{} busy, {} parked, of {}",
        thousands(tasks.busy.into()),
        thousands(tasks.parked.into()),
        thousands(tasks.slots.into())
    );
    let mut lines = vec![
        named("tasks", vec![rates.into()]),
        named("queue", vec![queue.into()]),
        named("slots", vec![slots.into()]),
    ];
    if let Some(detail) = &view.detail {
        lines.push(named("executors", states(detail)));
        lines.push(named("wait", vec![quantiles(&detail.wait_us, &tasks.wait_us).into()]));
        lines.push(named("run", vec![quantiles(&detail.run_us, &tasks.run_us).into()]));
    }
    lines
}

/// Of the last period, and since the start.
fn quantiles(now: &[u64], all: &[u64]) -> String {
    let of = |buckets: &[u64]| {
        let quantile = |q| quantile_us(buckets, q).map(|us| short_time(us as f64 * 1e3));
        match (quantile(0.5), quantile(0.99)) {
            (Some(half), Some(most)) => format!("half < {half}, 99 % < {most}"),
            _ => "no tasks".into(),
        }
    };
    format!("{} (all: {})", of(now), of(all))
}

fn states(detail: &TasksDetail) -> Vec<Span<'static>> {
    let shown = [
        (ExecutorState::Alive, "alive", Tone::Plain),
        (ExecutorState::Silent, "silent", Tone::Warn),
        (ExecutorState::Lost, "lost", Tone::Bad),
        (ExecutorState::Left, "left", Tone::Plain),
    ];
    let each = shown.into_iter().filter_map(|(state, name, tone)| {
        let count = detail.states.get(&state).copied().unwrap_or(0);
        (count > 0 || state == ExecutorState::Alive)
            .then(|| Span::styled(format!("{} {name}  ", thousands(count)), style(tone)))
    });
    each.collect()
}

/// Rates of what should be 0.
fn failures(view: &View) -> Vec<Span<'static>> {
    let rate = |name: &str| view.rates.get(name).copied().unwrap_or(0.0);
    let drops: f64 = view.rates.iter().filter(|(name, _)| name.starts_with("drops.")).map(|(_, rate)| rate).sum();
    let tasks = [("tasks.expired", "expired"), ("tasks.returned", "returned"), ("tasks.dropped", "dropped")];
    let tasks = tasks.map(|(name, what)| (rate(name), what));
    let all: Vec<_> = tasks.into_iter().chain([(drops, "drops")]).filter(|(rate, _)| *rate > 0.0).collect();
    if all.is_empty() {
        return vec!["none".into()];
    }
    let text = |(rate, what): &(f64, &str)| Span::styled(format!("{} {what}  ", per_second(*rate)), style(Tone::Warn));
    all.iter().map(text).chain([Span::raw("a second")]).collect()
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
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

/// As wide as the widest cell.
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
