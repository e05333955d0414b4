//! Rows of earlier formats become rows of this one, all in one batch: a store is of one format or of the next, never in
//! between.
//!
//! | from | to | what changes |
//! |---|---|---|
//! | 1 | 2 | a group says how far its source is (`source`), where it said only whether it had begun (`has_begun`) |

use crate::rows::{self, FORMAT, FORMAT_KEY, Row, RowError, Write};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is done to the rows of a format to have those of the next.
struct Step {
    /// The beginning of their keys.
    prefix: &'static str,
    /// Changes one; an error in words.
    change: fn(&mut Value) -> Result<(), String>,
}

/// The step from each format, from 1.
static STEPS: [Step; FORMAT as usize - 1] = [Step { prefix: "group/", change: name_the_sources_state }];

/// The writes that bring rows of an earlier format up to [`FORMAT`], to be committed in one batch. `rows`: all of
/// [`STATE_PREFIXES`](rows::STATE_PREFIXES).
///
/// # Errors
///
/// A row cannot be read.
pub fn migrate(format: u32, rows: &[Row]) -> Result<Vec<Write>, RowError> {
    let mut changed: BTreeMap<&str, Value> = BTreeMap::new();
    for step in steps_from(format).unwrap_or_default() {
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

fn steps_from(format: u32) -> Option<&'static [Step]> {
    let first = usize::try_from(format).ok()?.checked_sub(1)?;
    STEPS.get(first..)
}

/// The same for one group's row that somebody else has kept; an error in words.
pub(crate) fn migrate_group(format: u32, group: &mut Value) -> Result<(), String> {
    let steps = steps_from(format).ok_or_else(|| format!("there is no format {format}"))?;
    steps.iter().filter(|step| step.prefix == "group/").try_for_each(|step| (step.change)(group))
}

fn name_the_sources_state(group: &mut Value) -> Result<(), String> {
    let group = group.as_object_mut().ok_or("expected a group")?;
    let has_begun = group.remove("has_begun").and_then(|has_begun| has_begun.as_bool());
    let state = if has_begun.ok_or("expected whether its source has begun")? { "sending" } else { "unheard" };
    group.insert("source".to_owned(), state.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What a headend of a group of the first format keeps is read as well; what no program has written is not.
    #[test]
    fn groups_of_every_format_are_read() {
        for (has_begun, source) in [(true, "sending"), (false, "unheard")] {
            let mut group = json!({ "id": 7, "has_begun": has_begun });
            migrate_group(1, &mut group).unwrap();
            assert_eq!(group, json!({ "id": 7, "source": source }));
            migrate_group(FORMAT, &mut group).unwrap();
            assert_eq!(group, json!({ "id": 7, "source": source }));
        }
        assert!(migrate_group(0, &mut json!({})).is_err() && migrate_group(FORMAT + 1, &mut json!({})).is_err());
        assert!(migrate_group(1, &mut json!({ "id": 7 })).is_err() && migrate_group(1, &mut json!("group")).is_err());
    }
}
