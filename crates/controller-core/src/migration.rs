//! Migration of rows of earlier formats, all in one batch: a store has one format or the next, nothing in between.
//!
//! | from | to | what changes |
//! |---|---|---|
//! | 1 | 2 | a group has the state of its source (`source`) instead of whether it has begun (`has_begun`) |
//! | 3 | 4 | a job's flows may lie in chunks: nothing changes |
//! | 4 | 5 | nodes of a group may repair losses (`repair`, `can_repair`, `repairs`): nothing changes |
//! | 5 | 6 | a receiver may join in two steps (`in_two_steps`, `ready_at_psn`), and a group may have several regions
//! (`more_regions`): nothing changes |
//! | 2 | 3 | a silent source is `idle` instead of `unheard`; a node has a `registration` instead of a `hello` |

use crate::rows::{self, FORMAT, FORMAT_KEY, Row, RowError, Write};
use serde_json::Value;
use std::collections::BTreeMap;

/// A change of rows from one format to the next.
struct Step {
    from: u32,
    /// Prefix of their keys.
    prefix: &'static str,
    /// Changes one; an error as text.
    change: fn(&mut Value) -> Result<(), String>,
}

const GROUP: &str = "group/";

/// In order.
static STEPS: [Step; 4] = [
    Step { from: 1, prefix: GROUP, change: name_state_of_source },
    Step { from: 2, prefix: GROUP, change: rename_idle_source },
    Step { from: 2, prefix: "node/", change: rename_registration },
    Step { from: 2, prefix: "answer/", change: rename_idle_source_in_answer },
];

/// The writes that bring rows of an earlier format up to [`FORMAT`], to be committed in one batch. `rows`: all of
/// [`STATE_PREFIXES`](rows::STATE_PREFIXES).
///
/// # Errors
///
/// A row cannot be read.
pub fn migrate(format: u32, rows: &[Row]) -> Result<Vec<Write>, RowError> {
    let mut changed: BTreeMap<&str, Value> = BTreeMap::new();
    for step in steps_from(format).into_iter().flatten() {
        for row in rows.iter().filter(|(key, _)| key.starts_with(step.prefix)) {
            // An earlier step may have changed it already.
            let mut value = changed.remove(row.0.as_str()).map_or_else(|| rows::get(row), Ok)?;
            (step.change)(&mut value).map_err(|reason| rows::damaged(&row.0, reason))?;
            changed.insert(&row.0, value);
        }
    }
    let mut writes: Vec<Write> = changed.into_iter().map(|(key, value)| rows::put(key.to_owned(), &value)).collect();
    writes.push(rows::put(FORMAT_KEY.to_owned(), &FORMAT));
    Ok(writes)
}

fn steps_from(format: u32) -> Option<impl Iterator<Item = &'static Step>> {
    (1..=FORMAT).contains(&format).then(|| STEPS.iter().filter(move |step| step.from >= format))
}

/// The same for the row of a group in a recovery snapshot; an error as text.
pub(crate) fn migrate_group(format: u32, group: &mut Value) -> Result<(), String> {
    let steps = steps_from(format).ok_or_else(|| format!("format {format} does not exist"))?;
    steps.filter(|step| step.prefix == GROUP).try_for_each(|step| (step.change)(group))
}

fn name_state_of_source(group: &mut Value) -> Result<(), String> {
    let group = group.as_object_mut().ok_or("expected a group")?;
    let has_begun = group.remove("has_begun").and_then(|has_begun| has_begun.as_bool());
    let state = if has_begun.ok_or("expected whether its source has begun")? { "sending" } else { "unheard" };
    group.insert("source".to_owned(), state.into());
    Ok(())
}

fn rename_idle_source(group: &mut Value) -> Result<(), String> {
    let source = group.get_mut("source").ok_or("expected the state of its source")?;
    if source == "unheard" {
        *source = "idle".into();
    }
    Ok(())
}

fn rename_registration(node: &mut Value) -> Result<(), String> {
    let node = node.as_object_mut().ok_or("expected a node")?;
    let registration = node.remove("hello").ok_or("expected its registration")?;
    node.insert("registration".to_owned(), registration);
    Ok(())
}

/// The body is a group as clients receive it, as text.
fn rename_idle_source_in_answer(answer: &mut Value) -> Result<(), String> {
    let body = answer.get_mut("body").ok_or("expected a body")?;
    let mut group: Value =
        serde_json::from_str(body.as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
    if group.get("source_state").is_some_and(|state| state == "unheard") {
        group["source_state"] = "idle".into();
        *body = group.to_string().into();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Recovery snapshots of all formats are read; what no program has written is refused.
    #[test]
    fn groups_of_every_format_are_read() {
        for (has_begun, source) in [(true, "sending"), (false, "idle")] {
            let mut group = json!({ "id": 7, "has_begun": has_begun });
            migrate_group(1, &mut group).unwrap();
            assert_eq!(group, json!({ "id": 7, "source": source }));
            migrate_group(FORMAT, &mut group).unwrap();
            assert_eq!(group, json!({ "id": 7, "source": source }));
        }
        assert!(migrate_group(0, &mut json!({})).is_err() && migrate_group(FORMAT + 1, &mut json!({})).is_err());
        assert!(migrate_group(1, &mut json!({ "id": 7 })).is_err() && migrate_group(1, &mut json!("group")).is_err());
    }

    #[test]
    fn rows_of_the_second_format_are_renamed() {
        let row = |key: &str, value: Value| (key.to_owned(), value.to_string().into_bytes());
        let body = json!({ "id": 7, "source_state": "unheard" }).to_string();
        let rows = [
            row("answer/local/k", json!({ "request": "00", "status": 201, "body": body, "unix_s": 1 })),
            row("group/0000000007", json!({ "id": 7, "source": "unheard" })),
            row("group/0000000008", json!({ "id": 8, "source": "ended" })),
            row("node/2001:db8::1", json!({ "hello": { "name": "N1" }, "is_drained": true })),
        ];
        let written: Vec<Value> = migrate(2, &rows)
            .unwrap()
            .into_iter()
            .map(|write| match write {
                Write::Put { value, .. } => serde_json::from_slice(&value).unwrap(),
                Write::Delete { key } => panic!("{key} is deleted"),
            })
            .collect();
        let body = json!({ "id": 7, "source_state": "idle" }).to_string();
        assert_eq!(
            written,
            [
                json!({ "request": "00", "status": 201, "body": body, "unix_s": 1 }),
                json!({ "id": 7, "source": "idle" }),
                json!({ "id": 8, "source": "ended" }),
                json!({ "registration": { "name": "N1" }, "is_drained": true }),
                json!(FORMAT),
            ]
        );
        assert!(migrate(2, &[row("node/2001:db8::1", json!({ "registration": {} }))]).is_err());
    }
}
