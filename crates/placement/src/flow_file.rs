//! Flows as CSV.
//!
//! ```csv
//! from,to,bits_per_s,job,tenant
//! h1.1,h2.1,50000000000,train,7
//! h2.1,h1.1,50000000000,train,7
//! ```
//!
//! The first line names the columns, in any order; `job` and `tenant` may be left out, or empty. A line that begins
//! with `#` is a comment.

use crate::flow::Flow;
use csv::{ReaderBuilder, StringRecord, Trim};
use srdma_fabric::{HostId, MOST_BITS_PER_S, NodeId, Topology};
use srdma_toml_error::LineError;

/// A flow with what it belongs to.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    pub flow: Flow,
    pub job: String,
    /// The part of the job that sends it, such as a collective.
    pub part: String,
    /// Whose it is: the service at the end of its program; `None` if tenants are not kept apart.
    pub tenant: Option<u16>,
}

/// The columns that there may be.
const COLUMNS: [&str; 5] = ["from", "to", "bits_per_s", "job", "tenant"];

/// The job of flows that name none.
const JOB: &str = "flows";

/// Reads the flows of a file, for a fabric.
///
/// # Errors
///
/// Names the line and the column in error, the found and the expected value.
pub fn flows_from_csv(text: &str, topology: &Topology) -> Result<Vec<ListedFlow>, LineError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| of_csv(&error))?.clone();
    let wrong = |problem: String| Err(LineError { line: 1, problem });
    let list = COLUMNS.join(", ");
    if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(name)) {
        return wrong(format!("{unknown:?} is no column: expected {list}, the last two if wanted"));
    }
    let position = |column: &str| header.iter().position(|name| name == column);
    let (Some(from), Some(to), Some(rate)) = (position("from"), position("to"), position("bits_per_s")) else {
        return wrong(format!("the first line has to name the columns: {list}, the last two if wanted"));
    };
    if let Some(twice) = COLUMNS.iter().find(|column| header.iter().filter(|name| name == *column).count() > 1) {
        return wrong(format!("column {twice} stands there twice"));
    }
    let (job, tenant) = (position("job"), position("tenant"));
    let mut flows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| of_csv(&error))?;
        let line = record.position().map_or(0, csv::Position::line) as usize;
        let row = Row { record: &record, header: &header, line };
        let flow = Flow {
            from: row.host(from, topology)?,
            to: row.host(to, topology)?,
            rate_bits_per_s: row.number(rate, 1, MOST_BITS_PER_S)?,
        };
        if flow.from == flow.to {
            return row.wrong(to, "a NIC sends nothing to itself".to_owned());
        }
        let tenant = match tenant.filter(|column| !row.field(*column).is_empty()) {
            Some(column) => Some(row.number(column, 0, 4095)? as u16),
            None => None,
        };
        let job = job.map(|column| row.field(column)).filter(|job| !job.is_empty()).unwrap_or(JOB).to_owned();
        flows.push(ListedFlow { flow, job, part: "flow".to_owned(), tenant });
    }
    Ok(flows)
}

/// A line with values.
struct Row<'a> {
    record: &'a StringRecord,
    header: &'a StringRecord,
    line: usize,
}

impl Row<'_> {
    fn field(&self, column: usize) -> &str {
        self.record.get(column).unwrap_or_default()
    }

    fn wrong<T>(&self, column: usize, problem: String) -> Result<T, LineError> {
        let name = self.header.get(column).unwrap_or_default();
        Err(LineError { line: self.line, problem: format!("column {name}: {problem}") })
    }

    fn host(&self, column: usize, topology: &Topology) -> Result<HostId, LineError> {
        match topology.node(self.field(column)) {
            Some(NodeId::Host(host)) => Ok(host),
            _ => self.wrong(column, format!("{:?} is no NIC of this fabric", self.field(column))),
        }
    }

    fn number(&self, column: usize, least: u64, most: u64) -> Result<u64, LineError> {
        let text = self.field(column);
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => self.wrong(column, format!("{text:?}: expected a whole number, {least} to {most}")),
        }
    }
}

/// An error of the CSV reader, with its line.
fn of_csv(error: &csv::Error) -> LineError {
    let line = error.position().map_or(1, csv::Position::line) as usize;
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns, but the first line has {expected_len}")
        }
        _ => error.to_string(),
    };
    LineError { line, problem }
}
