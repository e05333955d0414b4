//! `cargo xtask deny`: licences, doubles, sources and advisories of the dependencies.

use crate::external::{Program, cargo};
use crate::tree::Tree;
use anyhow::Result;

const CARGO_DENY: Program = Program { name: "cargo-deny", package: "cargo-deny", question: &["--version"] };

/// The two workspaces with their lock files. Entries of `deny.toml` that the first needs may be unused in the second.
const WORKSPACES: [(&str, &[&str]); 2] =
    [("Cargo.toml", &[]), ("fuzz/Cargo.toml", &["--allow", "unmatched-skip", "--allow", "unmatched-skip-root"])];

/// Checks that need no network.
const OFFLINE: [&str; 3] = ["bans", "licenses", "sources"];

/// Checks both workspaces; `offline` leaves out the advisories, whose database is fetched.
pub(crate) fn run(offline: bool) -> Result<bool> {
    CARGO_DENY.check()?;
    let checks = if offline { &OFFLINE[..] } else { &["all"] };
    let mut is_good = true;
    for (manifest, levels) in WORKSPACES {
        println!("{manifest}: {}", checks.join(", "));
        let mut command = cargo();
        command.args(["deny", "--manifest-path", manifest, "--config", "deny.toml", "check"]);
        is_good &= command.args(levels).args(checks).current_dir(Tree::root()).status()?.success();
    }
    Ok(is_good)
}
