//! `cargo xtask package`: the Debian packages. The same commit gives the same octets wherever it is built by the same
//! compiler.

mod library;

use crate::external::cargo;
use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of generated files for the package, beside the program, as in the package's description.
const GENERATED: &str = "target/package";

/// Builds the package and prints its path.
pub(crate) fn run() -> Result<bool> {
    let root = Tree::root();
    let commit = output(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).current_dir(&root))?;
    let date = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&root))?;
    let is_clean = output(Command::new("git").args(["status", "--porcelain"]).current_dir(&root))?.is_empty();
    let commit = if is_clean { commit } else { commit + ", modified" };
    let build = Build { commit, date };
    build.cargo(&["build", "--profile", "dist", "--locked", "--package", "srdma-cli", "--target-dir", "target"])?;
    generate(&root.join("target/dist/srdma"), &root.join(GENERATED))?;
    let package = PathBuf::from("target/package/srdma.deb");
    let path = package.display().to_string();
    build
        .cargo(&["deb", "--no-build", "--profile", "dist", "--locked", "--package", "srdma-cli", "--output", &path])
        .context("the package is made by cargo-deb: `cargo install cargo-deb --locked`")?;
    println!("{path}: sha256 {}", output(Command::new("sha256sum").arg(&package).current_dir(&root))?);
    build.cargo(&["build", "--profile", "dist", "--locked", "--package", "srdma-capi", "--target-dir", "target"])?;
    let date = build.date.parse().context("the date of the commit")?;
    for package in library::packages(&root.join("target/dist/libsrdma_capi.a"), &root.join("target/package"), date)? {
        println!("{}: sha256 {}", package.display(), output(Command::new("sha256sum").arg(&package))?);
    }
    Ok(true)
}

/// Man pages and completions, by the program itself.
fn generate(program: &Path, into: &Path) -> Result<()> {
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    let man = into.join("man");
    output(Command::new(program).args(["generate", "man"]).arg(&man))?;
    for (shell, file) in [("bash", "srdma.bash"), ("zsh", "_srdma"), ("fish", "srdma.fish")] {
        let script = output(Command::new(program).args(["generate", "completions", shell]))?;
        fs::write(into.join(file), script + "\n")?;
    }
    Ok(())
}

/// Inputs that determine the octets, beside source and compiler.
struct Build {
    commit: String,
    date: String,
}

impl Build {
    fn cargo(&self, arguments: &[&str]) -> Result<()> {
        let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"))?;
        let root = Tree::root().display().to_string();
        // No shipped file contains paths of this machine.
        let flags = format!("--remap-path-prefix={root}=srdma --remap-path-prefix={home}=cargo");
        let mut cargo = cargo();
        cargo.args(arguments).current_dir(Tree::root());
        cargo.env("SRDMA_COMMIT", &self.commit).env("SOURCE_DATE_EPOCH", &self.date).env("RUSTFLAGS", flags);
        if !cargo.status().context("cannot start cargo")?.success() {
            bail!("cargo {} failed", arguments.join(" "));
        }
        Ok(())
    }
}

/// The output of a command that has to succeed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
