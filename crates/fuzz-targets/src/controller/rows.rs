//! The rows of a store, as someone else has written them.

use super::draw::admin;
use super::site::{Kept, pass_time, restore, time, write};
use srdma_controller_core::{FORMAT, FORMAT_KEY, Pipeline, Row, format_of, migrate};
use std::collections::BTreeMap;

/// Any lines as rows, each a key, a space and a value: they are refused with a reason, or a controller starts with
/// them, lets time pass, shows what it has, and starts again with what it has written.
pub fn rows(input: &[u8]) {
    let lines = input.split(|octet| *octet == b'\n').filter_map(|line| {
        let space = line.iter().position(|octet| *octet == b' ')?;
        Some((std::str::from_utf8(&line[..space]).ok()?.to_owned(), line[space + 1..].to_vec()))
    });
    let mut rows: BTreeMap<String, Vec<u8>> = lines.collect();
    let format = rows.get(FORMAT_KEY).map(|value| (FORMAT_KEY.to_owned(), value.clone()));
    match format_of(format.as_ref(), rows.is_empty()) {
        Ok(Some(format)) if format < FORMAT => {
            let all: Vec<Row> = rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            match migrate(format, &all) {
                Ok(writes) => write(&mut rows, writes),
                Err(error) => return assert!(!error.to_string().is_empty()),
            }
        }
        Ok(_) => {}
        Err(error) => return assert!(!error.to_string().is_empty()),
    }
    let core = match restore(&rows, None, 0) {
        Ok(core) => core,
        Err(error) => return assert!(error.to_string().starts_with("the store"), "{error}"),
    };
    let mut pipeline = Pipeline::new(core);
    for now_ms in [0, 100, 5000, 60_000] {
        let transaction = pipeline.transact(time(now_ms), pass_time);
        write(&mut rows, transaction.writes);
        let _ = pipeline.durable(transaction.number);
        let core = pipeline.core();
        let _ = Kept::of(core);
        assert!(core.topology(&admin(), now_ms).is_ok_and(|topology| serde_json::to_string(&topology).is_ok()));
    }
    match restore(&rows, None, 70_000) {
        Ok(_) => {}
        // One of them was at its limit, and was incremented.
        Err(error) if is_of_counter(&error.to_string()) => {}
        Err(error) => panic!("a controller does not start with what it has written: {error}"),
    }
}

/// Whether a store is refused for a counter that no controller reaches (D299).
fn is_of_counter(error: &str) -> bool {
    ["starts", "last_audit", "version", "changes"].iter().any(|name| {
        error
            .split(&format!(" {name} "))
            .nth(1)
            .is_some_and(|rest| rest.contains("expected") && rest.contains("at most"))
    })
}
