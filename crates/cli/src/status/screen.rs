//! The live screen.

use super::page::Page;
use super::rates::Seen;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use srdma_node::daemon::{Snapshot, StatusError, read_status};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Maximum delay of a key, or of a signal.
const STEP: Duration = Duration::from_millis(50);

/// Shows a node until a key or a signal ends it; the terminal is as before then, also after a panic.
///
/// # Errors
///
/// If the terminal cannot be used.
pub(super) fn show(path: PathBuf, interval: Duration) -> io::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let mut screen = Screen::new(&path);
    let answers = ask(path, interval);
    let mut terminal = ratatui::try_init()?;
    let mut run = || {
        while !ended.load(Ordering::Relaxed) {
            answers.try_iter().for_each(|answer| screen.take(answer));
            terminal.draw(|frame| screen.draw(frame))?;
            if event::poll(STEP)? && screen.event(&event::read()?) == Next::End {
                break;
            }
        }
        Ok(())
    };
    let result = run();
    ratatui::restore();
    result
}

type Answer = Result<Snapshot, StatusError>;

/// Asks the node again and again. A node that does not answer must not keep keys waiting, so it has a thread.
fn ask(path: PathBuf, interval: Duration) -> Receiver<Answer> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        while sender.send(read_status(&path)).is_ok() {
            thread::sleep(interval);
        }
    });
    receiver
}

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

/// Contents of the screen.
struct Screen {
    socket: String,
    seen: Option<Seen>,
    /// The error of the last request to the node.
    error: Option<String>,
    /// Lines of the body above the screen.
    scrolled: usize,
    /// Lines of the body on the screen.
    height: usize,
    /// Positions of sections.
    sections: Vec<usize>,
}

impl Screen {
    fn new(socket: &Path) -> Self {
        let socket = socket.display().to_string();
        Screen { socket, seen: None, error: None, scrolled: 0, height: 0, sections: Vec::new() }
    }

    fn take(&mut self, answer: Answer) {
        match answer {
            Ok(snapshot) => {
                self.error = None;
                self.seen = Some(match self.seen.take() {
                    None => Seen::first(snapshot),
                    Some(seen) => seen.next(snapshot),
                });
            }
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    fn event(&mut self, event: &Event) -> Next {
        let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
            return Next::GoOn;
        };
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return Next::End,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return Next::End,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += self.height.max(1),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(self.height.max(1)),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::End => self.scrolled = usize::MAX,
            KeyCode::Tab => {
                self.scrolled = self.sections.iter().copied().find(|at| *at > self.scrolled).unwrap_or(0);
            }
            KeyCode::BackTab => {
                let before = self.sections.iter().rev().copied().find(|at| *at < self.scrolled);
                self.scrolled = before.or(self.sections.last().copied()).unwrap_or(0);
            }
            _ => {}
        }
        Next::GoOn
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let page = self.seen.as_ref().map(|seen| Page::new(seen, usize::from(area.width)));
        let Page { head, body, sections } = page.unwrap_or_else(|| Page {
            head: vec![Line::raw(format!("asking {}", self.socket))],
            body: Vec::new(),
            sections: Vec::new(),
        });
        let rows = [Constraint::Length(head.len() as u16 + 1), Constraint::Min(1), Constraint::Length(1)];
        let [head_area, body_area, foot_area] = Layout::vertical(rows).areas(area);
        self.height = usize::from(body_area.height);
        self.sections = sections;
        // The last lines of the body fill the screen, and a section can be brought to its top with Tab.
        let last_section = self.sections.last().copied().unwrap_or(0);
        let most = body.len().saturating_sub(self.height).max(if body.len() > self.height { last_section } else { 0 });
        self.scrolled = self.scrolled.min(most);
        let end = body.len().min(self.scrolled + self.height);
        let below = body.len() - end;
        frame.render_widget(Text::from(head), head_area);
        frame.render_widget(Text::from(body[self.scrolled..end].to_vec()), body_area);
        frame.render_widget(self.foot(below), foot_area);
    }

    fn foot(&self, below: usize) -> Line<'static> {
        if let Some(error) = &self.error {
            return Line::styled(error.clone(), Style::new().fg(Color::White).bg(Color::Red));
        }
        let more = match (self.scrolled, below) {
            (0, 0) => String::new(),
            (above, below) => format!("   {above} lines above, {below} below"),
        };
        Line::styled(format!("q end   ↑↓ scroll   Tab next section{more}"), Style::new().dim())
    }
}

#[cfg(test)]
mod tests;
