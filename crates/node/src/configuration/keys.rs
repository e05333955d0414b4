//! `[[hmac_key]]`.

use super::Draft;
use srdma_node_spec::file::NodeFile;
use srdma_node_spec::{Entries, KeySpec};
use srdma_toml_error::Problem;
use std::collections::BTreeSet;

pub(super) fn add(file: &NodeFile, draft: &mut Draft) -> Result<(), Problem> {
    let mut ids = BTreeSet::new();
    for section in &file.hmac_key {
        let key_id = section.id.value.get() as u32;
        if key_id == 0 {
            // RFC 8754 section 2.1.2: with HMAC Key ID 0 there is no HMAC.
            return Err(Problem::new(section.id.at, "HMAC Key ID 0 means that there is no HMAC, expected 1 or more"));
        }
        if !ids.insert(key_id) {
            return Err(Problem::new(section.id.at, format!("there is an HMAC key {key_id} already")));
        }
        let key = KeySpec::new(section.key.value.0.clone(), section.cover);
        draft.add(section.id.at, Entries { keys: [(key_id, key)].into(), ..Entries::default() })?;
    }
    Ok(())
}
