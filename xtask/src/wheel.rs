//! `cargo xtask wheel`: the Python package as a wheel, by maturin.

use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Directory of the wheel.
const WHEELS: &str = "target/wheels";
/// The longest that a wheel may be.
const MOST_OCTETS: u64 = 5 << 20;

/// Builds the wheel, and prints its path.
pub(crate) fn run() -> Result<bool> {
    let root = Tree::root();
    let wheels = root.join(WHEELS);
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let status = Command::new("maturin")
        .args(["build", "--profile", "dist", "--locked", "--manifest-path", "crates/python/Cargo.toml"])
        .args(["--target-dir", "target", "--out", WHEELS])
        .current_dir(&root)
        .status()
        .context("the wheel is made by maturin: `pip install maturin==1.16.0`")?;
    if !status.success() {
        bail!("maturin has failed");
    }
    let found = fs::read_dir(&wheels)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let [wheel] = found.as_slice() else { bail!("{} wheels in {WHEELS}", found.len()) };
    let name = wheel.file_name().and_then(|name| name.to_str()).context("the name of the wheel")?;
    ensure!(name.contains("-cp311-abi3-manylinux"), "{name} is not of abi3 and manylinux");
    let octets = fs::metadata(wheel)?.len();
    println!("{WHEELS}/{name}: {octets} octets");
    if octets > MOST_OCTETS {
        println!("the wheel has more than {MOST_OCTETS} octets");
    }
    Ok(octets <= MOST_OCTETS)
}
