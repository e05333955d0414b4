//! Rows of earlier formats become rows of this one, all in one batch: a store is of one format or of the next, never in
//! between.
//!
//! | from | to | what changes |
//! |---|---|---|
//! | 1 | 2 | a group says how far its source is (`source`), where it said only whether it had begun (`has_begun`) |

use crate::rows::{self, FORMAT, FORMAT_KEY};
use crate::store::{Store, StoreError, Write};
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
const STEPS: [Step; FORMAT as usize - 1] = [Step { prefix: "group/", change: name_the_sources_state }];

/// The format of a store's rows; `None`: it is new.
pub(crate) fn format_of(store: &dyn Store) -> Result<Option<u32>, StoreError> {
    // More keys may begin so.
    let found = store.rows(FORMAT_KEY, None, 1)?.into_iter().find(|(key, _)| key == FORMAT_KEY);
    match found {
        Some(row) => match rows::get::<u32>(&row)? {
            0 => Err(rows::damaged(FORMAT_KEY, "there is no format 0".to_owned())),
            found if found > FORMAT => Err(StoreError::Newer { found, known: FORMAT }),
            found => Ok(Some(found)),
        },
        None if store.rows("", None, 1)?.is_empty() => Ok(None),
        None => Err(rows::damaged(FORMAT_KEY, "it is missing: this is no store of a controller".to_owned())),
    }
}

/// Brings the rows up to this program's format; returns the one that they had, if that was another.
pub(crate) fn migrate(store: &dyn Store) -> Result<Option<u32>, StoreError> {
    let Some(format) = format_of(store)?.filter(|format| *format < FORMAT) else { return Ok(None) };
    let mut changed: BTreeMap<String, Value> = BTreeMap::new();
    for step in &STEPS[format as usize - 1..] {
        for row in store.rows(step.prefix, None, usize::MAX)? {
            // An earlier step may have changed it already.
            let mut value = changed.remove(&row.0).map_or_else(|| rows::get(&row), Ok)?;
            (step.change)(&mut value).map_err(|reason| rows::damaged(&row.0, reason))?;
            changed.insert(row.0, value);
        }
    }
    let mut writes: Vec<Write> = changed.into_iter().map(|(key, value)| rows::put(key, &value)).collect();
    writes.push(rows::put(FORMAT_KEY.to_owned(), &FORMAT));
    store.commit(&writes.iter().collect::<Vec<&Write>>())?;
    Ok(Some(format))
}

/// The same for one group's row that somebody else has kept; an error in words.
pub(crate) fn migrate_group(format: u32, group: &mut Value) -> Result<(), String> {
    let first = usize::try_from(format).ok().and_then(|format| format.checked_sub(1));
    let steps = first.and_then(|first| STEPS.get(first..)).ok_or_else(|| format!("there is no format {format}"))?;
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
