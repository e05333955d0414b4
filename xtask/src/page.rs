//! `cargo xtask page`: the controller's page, by npm. Its output is committed, so that building the program needs no
//! node; the same sources give the same octets.

use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The page as it is committed.
const BUILT: &str = "page/dist/index.html";
/// Directory of the build for the comparison.
const COMPARED: &str = "target/page";

/// Builds the page; with `check` elsewhere, and `false` if that differs from what is committed.
pub(crate) fn run(check: bool) -> Result<bool> {
    let root = Tree::root();
    let page = root.join("page");
    install()?;
    if !check {
        npm(&page, &["run", "build"])?;
        println!("{BUILT}");
        return Ok(true);
    }
    let into = root.join(COMPARED);
    let place = into.to_str().context("the repository's path is not UTF-8")?;
    npm(&page, &["run", "build", "--", "--outDir", place, "--emptyOutDir"])?;
    let is_same = fs::read(root.join(BUILT))? == fs::read(into.join("index.html"))?;
    if !is_same {
        println!("{BUILT} is out of date: `cargo xtask page`");
    }
    Ok(is_same)
}

/// Compares the committed page with its sources, and runs its tests: units, and the whole page in Chromium.
pub(crate) fn test() -> Result<bool> {
    if !run(true)? {
        return Ok(false);
    }
    let page = Tree::root().join("page");
    npm(&page, &["test"])?;
    npm(&page, &["run", "browser"])?;
    Ok(true)
}

/// Installs the packages that the build and the tests need.
pub(crate) fn install() -> Result<()> {
    npm(&Tree::root().join("page"), &["ci", "--no-audit", "--no-fund"])
}

fn npm(page: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new("npm").args(arguments).current_dir(page).status();
    if !status.context("npm, of Node.js 20 or later, builds the page")?.success() {
        bail!("npm {} failed", arguments.join(" "));
    }
    Ok(())
}
