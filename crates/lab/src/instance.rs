//! Names and places of one instance of a lab.

use crate::error::{LabError, Result};
use std::path::{Path, PathBuf};

/// Directory of the state files of this machine's labs.
const ROOT: &str = "/run/srdma/lab";

/// One instance of a lab. Its resources in the system carry its name, so that several can run side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    name: String,
}

impl Instance {
    /// The instance of a lab, distinguished from others of the same lab by a suffix.
    ///
    /// # Errors
    ///
    /// If the suffix cannot be part of a name.
    pub fn new(lab: &str, suffix: Option<&str>) -> Result<Self> {
        let Some(suffix) = suffix else {
            return Ok(Instance { name: lab.to_owned() });
        };
        let is_good = (1..=16).contains(&suffix.len())
            && suffix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_good {
            return Err(LabError::Instance(suffix.to_owned()));
        }
        Ok(Instance { name: format!("{lab}-{suffix}") })
    }

    /// The names of all instances that exist.
    ///
    /// # Errors
    ///
    /// If their directory cannot be read.
    pub fn all() -> Result<Vec<String>> {
        let root = Path::new(ROOT);
        let entries = match std::fs::read_dir(root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(LabError::file("read", root))?,
        };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Its name: the lab's, with the suffix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The network namespace of a node.
    pub fn namespace(&self, node: &str) -> String {
        format!("srdma-{}-{node}", self.name)
    }

    /// The directory of everything that the instance keeps in files; it exists while the instance does.
    pub fn directory(&self) -> PathBuf {
        Path::new(ROOT).join(&self.name)
    }

    /// The log of a process.
    pub fn log(&self, process: &str) -> PathBuf {
        self.directory().join("log").join(format!("{process}.log"))
    }

    /// The file that a process writes its standard output to.
    pub fn output(&self, process: &str) -> PathBuf {
        self.directory().join("out").join(process)
    }

    /// The `node.toml` of a node.
    pub fn configuration(&self, node: &str) -> PathBuf {
        self.directory().join("node").join(format!("{node}.toml"))
    }

    /// The status socket of a node.
    pub fn socket(&self, node: &str) -> PathBuf {
        self.directory().join("node").join(format!("{node}.sock"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_have_unique_names() {
        assert_eq!(Instance::new("figure1", None).unwrap().namespace("N6"), "srdma-figure1-N6");
        let other = Instance::new("figure1", Some("b-2")).unwrap();
        assert_eq!(other.namespace("N6"), "srdma-figure1-b-2-N6");
        assert_eq!(other.log("N6").to_str(), Some("/run/srdma/lab/figure1-b-2/log/N6.log"));
        for suffix in ["", "A", "a/b", "..", "12345678901234567"] {
            assert!(Instance::new("figure1", Some(suffix)).is_err(), "{suffix:?}");
        }
    }
}
