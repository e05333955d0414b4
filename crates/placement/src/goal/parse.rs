//! The text of a trace: words, lines, and labels. Whether it ends is not known here.

use super::{Dependent, GoalTrace, Kind, MOST_NS, MOST_OCTETS, MOST_RANKS, Operation, Rank};
use srdma_toml_error::LineError;
use std::collections::{BTreeMap, HashMap};

/// A line of the text.
struct Line<'a> {
    number: u32,
    words: Vec<&'a str>,
    /// Position of the next word.
    next: usize,
}

/// The rank that is read.
struct Open<'a> {
    number: u32,
    operations: Vec<Operation>,
    labels: HashMap<&'a str, u32>,
    dependencies: Vec<Dependency<'a>>,
    /// Processors by their number in the text.
    cpus: BTreeMap<u32, u32>,
}

/// `one requires other`
struct Dependency<'a> {
    line: u32,
    one: &'a str,
    other: &'a str,
    for_begin: bool,
}

/// Reads all ranks.
pub(super) fn parse(text: &str) -> Result<GoalTrace, LineError> {
    let mut ranks: Vec<Option<Rank>> = Vec::new();
    let mut open: Option<Open<'_>> = None;
    let mut in_comment = false;
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        let mut line = Line::new(number, line, &mut in_comment);
        last = number;
        while !line.is_at_end() {
            match &mut open {
                Some(rank) if line.peek() == "}" => {
                    line.next += 1;
                    let place = rank.number as usize;
                    ranks[place] = open.take().map(Open::close).transpose()?;
                }
                Some(rank) => rank.read(&mut line, ranks.len() as u32)?,
                None if ranks.is_empty() => {
                    line.expect("num_ranks")?;
                    let count = line.number("a number of ranks", 1..=u64::from(MOST_RANKS))?;
                    ranks = (0..count).map(|_| None).collect();
                }
                None => {
                    line.expect("rank")?;
                    let rank = line.number("the number of a rank", 0..=ranks.len() as u64 - 1)? as usize;
                    line.expect("{")?;
                    if ranks[rank].is_some() {
                        return line.wrong(format!("rank {rank} has a second section: expected one"));
                    }
                    open = Some(Open::new(rank as u32));
                }
            }
        }
    }
    let end = |problem: &str| Err(LineError { line: last as usize, problem: problem.to_owned() });
    match open {
        _ if in_comment => end("the file ends in a comment: expected */"),
        Some(rank) => end(&format!("the file ends in rank {}: expected }}", rank.number)),
        None if ranks.is_empty() => end("nothing is in the file: expected num_ranks N, then rank N { ... }"),
        None => Ok(GoalTrace { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() }),
    }
}

impl<'a> Open<'a> {
    fn new(number: u32) -> Self {
        Open { number, operations: Vec::new(), labels: HashMap::new(), dependencies: Vec::new(), cpus: BTreeMap::new() }
    }

    /// An operation with or without a label, or a dependency.
    fn read(&mut self, line: &mut Line<'a>, ranks: u32) -> Result<(), LineError> {
        let word = line.peek();
        if ["send", "recv", "calc"].contains(&word) && line.words.get(line.next + 1) != Some(&":") {
            return self.operation(line, ranks);
        }
        line.next += 1;
        let is_label = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_label {
            return line.wrong(format!("{word:?}: expected a label, send, recv, calc or }}"));
        }
        let for_begin = match line.take() {
            ":" => {
                if self.labels.insert(word, self.operations.len() as u32).is_some() {
                    return line.wrong(format!("rank {} has a second label {word}", self.number));
                }
                return self.operation(line, ranks);
            }
            "requires" => false,
            "irequires" => true,
            other => return line.wrong(format!("{other:?} after {word}: expected `:`, requires or irequires")),
        };
        let other = line.take();
        if other.is_empty() {
            return line.wrong(format!("expected the label that {word} waits for"));
        }
        self.dependencies.push(Dependency { line: line.number, one: word, other, for_begin });
        Ok(())
    }

    fn operation(&mut self, line: &mut Line<'a>, ranks: u32) -> Result<(), LineError> {
        let rank_of = |line: &mut Line<'a>| line.number("the number of a rank", 0..=u64::from(ranks) - 1);
        let kind = match line.take() {
            "calc" => Kind::Compute { ns: line.number("nanoseconds", 0..=MOST_NS)? },
            "send" => {
                let octets = line.octets()?;
                line.expect("to")?;
                Kind::Send { to: rank_of(line)? as u32, octets, tag: 0 }
            }
            "recv" => {
                line.octets()?;
                line.expect("from")?;
                let from = if line.take_any() { None } else { Some(rank_of(line)? as u32) };
                Kind::Receive { from, tag: Some(0) }
            }
            other => return line.wrong(format!("{other:?}: expected send, recv or calc")),
        };
        let mut operation = Operation { kind, cpu: 0, waits_for: 0, first_dependent: 0, line: line.number };
        let (mut seen, mut cpu) = (Vec::new(), 0);
        while let name @ ("tag" | "cpu" | "nic") = line.peek() {
            line.next += 1;
            if seen.contains(&name) {
                return line.wrong(format!("a second {name}: expected one"));
            }
            seen.push(name);
            match (name, &mut operation.kind) {
                ("tag", Kind::Receive { tag, .. }) if line.take_any() => *tag = None,
                ("tag", Kind::Receive { tag, .. }) => *tag = Some(line.tag()?),
                ("tag", Kind::Send { tag, .. }) => *tag = line.tag()?,
                ("tag", Kind::Compute { .. }) => return line.wrong("a tag of calc: expected cpu, or the next line"),
                (name, _) => {
                    let found = line.number("the number of a processor or NIC", 0..=u64::from(u32::MAX))? as u32;
                    cpu = if name == "cpu" { found } else { cpu };
                }
            }
        }
        let next = self.cpus.len() as u32;
        operation.cpu = *self.cpus.entry(cpu).or_insert(next);
        self.operations.push(operation);
        Ok(())
    }

    /// The rank with all its dependencies.
    fn close(self) -> Result<Rank, LineError> {
        let Open { number, mut operations, labels, dependencies, cpus } = self;
        let mut edges: Vec<(u32, Dependent)> = Vec::with_capacity(dependencies.len());
        for Dependency { line, one, other, for_begin } in dependencies {
            let place = |label: &str| {
                let problem = format!("rank {number} has no label {label}");
                labels.get(label).copied().ok_or(LineError { line: line as usize, problem })
            };
            let (operation, other) = (place(one)?, place(other)?);
            operations[operation as usize].waits_for += 1;
            edges.push((other, Dependent { operation, for_begin }));
        }
        edges.sort_by_key(|(other, dependent)| (*other, dependent.operation));
        let mut next = 0;
        for (place, operation) in (0..).zip(&mut operations) {
            operation.first_dependent = next as u32;
            next += edges[next..].iter().take_while(|(other, _)| *other == place).count();
        }
        let dependents = edges.into_iter().map(|(_, dependent)| dependent).collect();
        Ok(Rank { operations, dependents, cpus: cpus.len() as u32 })
    }
}

impl<'a> Line<'a> {
    /// The words of a line without its comments. Colons and braces are words.
    fn new(number: u32, text: &'a str, in_comment: &mut bool) -> Self {
        let mut words = Vec::new();
        let mut rest = text;
        loop {
            if *in_comment {
                let Some((_, after)) = rest.split_once("*/") else { break };
                (rest, *in_comment) = (after, false);
            }
            let end = [rest.find("//"), rest.find("/*")].into_iter().flatten().min().unwrap_or(rest.len());
            for word in rest[..end].split_whitespace() {
                words.extend(word.split_inclusive([':', '{', '}']).flat_map(|word| {
                    let (head, mark) = word.split_at(word.trim_end_matches([':', '{', '}']).len());
                    [head, mark].into_iter().filter(|word| !word.is_empty())
                }));
            }
            if !rest[end..].starts_with("/*") {
                break;
            }
            (rest, *in_comment) = (&rest[end + 2..], true);
        }
        Line { number, words, next: 0 }
    }

    fn is_at_end(&self) -> bool {
        self.next == self.words.len()
    }

    /// The next word, or nothing at the end of the line.
    fn peek(&self) -> &'a str {
        self.words.get(self.next).copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        let word = self.peek();
        self.next += usize::from(!self.is_at_end());
        word
    }

    fn expect(&mut self, word: &str) -> Result<(), LineError> {
        match self.take() {
            found if found == word => Ok(()),
            "" => self.wrong(format!("the line ends: expected {word}")),
            found => self.wrong(format!("{found:?}: expected {word}")),
        }
    }

    /// Takes -1, if that comes next.
    fn take_any(&mut self) -> bool {
        let is_any = self.peek() == "-1";
        self.next += usize::from(is_any);
        is_any
    }

    fn number(&mut self, what: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, LineError> {
        let word = self.take();
        let is_digits = word.bytes().all(|octet| octet.is_ascii_digit());
        let number = word.parse().ok().filter(|number| is_digits && range.contains(number));
        number
            .map_or_else(|| self.wrong(format!("{word:?}: expected {what}, {} to {}", range.start(), range.end())), Ok)
    }

    fn tag(&mut self) -> Result<u32, LineError> {
        Ok(self.number("a tag", 0..=u64::from(u32::MAX))? as u32)
    }

    /// A length such as `8b`, or `8 b`.
    fn octets(&mut self) -> Result<u64, LineError> {
        let word = self.take();
        let digits = match word.strip_suffix('b') {
            Some(digits) => Some(digits),
            None if self.peek() == "b" => {
                self.next += 1;
                Some(word)
            }
            None => None,
        };
        let is_digits = |digits: &&str| digits.bytes().all(|octet| octet.is_ascii_digit());
        let octets = digits.filter(is_digits).and_then(|digits| digits.parse().ok());
        match octets.filter(|octets| *octets <= MOST_OCTETS) {
            Some(octets) => Ok(octets),
            None => self.wrong(format!("{word:?}: expected octets of a message, such as 8b, up to {MOST_OCTETS}b")),
        }
    }

    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, LineError> {
        Err(LineError { line: self.number as usize, problem: problem.into() })
    }
}
