//! The file of paths of a host that is its own headend: `[steering]` and `[[path]]` with the keys of `node.toml`.

use super::steering;
use serde::Deserialize;
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendError, HeadendPath};
use srdma_node_spec::file::{PathSection, SteeringSection};
use srdma_toml_error::{FileError, Problem};
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;
use std::path::Path;
use toml::Spanned;

/// Steering of flows, and their paths.
#[derive(Clone, Debug)]
pub struct PathsFile {
    config: HeadendConfig,
    paths: Vec<HeadendPath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    steering: Option<Spanned<SteeringSection>>,
    path: Spanned<Vec<Spanned<PathSection>>>,
}

impl PathsFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, and those of [`PathsFile::parse`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse(file, &text)
    }

    /// Reads the content of a file; `file` is for errors.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line that is wrong.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        Self::resolve(text).map_err(|problem| problem.in_file(file, text))
    }

    fn resolve(text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| super::error::of_toml(&error, text))?;
        let at = file.steering.as_ref().map_or(file.path.span().start, |section| section.span().start);
        let config = match &file.steering {
            Some(section) => steering::config(section.get_ref())?,
            None => HeadendConfig::new(Ipv6Addr::UNSPECIFIED),
        };
        if config.probes.is_some() && config.probe_address.is_none() {
            return Err(Problem::new(at, steering::PROBES_NEED_AN_ADDRESS));
        }
        if let Some(list) = file.steering.as_ref().and_then(|section| section.get_ref().deny_list.as_ref()) {
            return Err(Problem::new(list.span().start, "deny_list is for nodes: a file of paths is read once"));
        }
        let paths = steering::paths(&file.path)?;
        let read = PathsFile { config, paths };
        // Errors of the headend have no line of their own.
        let refused = read.headend(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED).err();
        refused.map_or(Ok(read), |error| Err(Problem::new(file.path.span().start, error.to_string())))
    }

    /// A headend for packets from an address to a peer.
    ///
    /// # Errors
    ///
    /// None that reading the file would not have found.
    pub fn headend(&self, source: Ipv6Addr, peer: Ipv6Addr) -> Result<Headend, HeadendError> {
        let mut headend = Headend::new(HeadendConfig { source, ..self.config.clone() });
        let set = headend.set_paths(Instant::ZERO, None, &self.paths)?;
        headend.lead(Prefix::host(peer), set);
        Ok(headend)
    }

    /// Return address of probes, if there are any.
    pub fn probe_address(&self) -> Option<Ipv6Addr> {
        self.config.probe_address.filter(|_| self.config.probes.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        PathsFile::parse(Path::new("paths.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn paths_are_read_as_in_a_nodes_file() {
        let text = "[steering]\nprobes = false\n[[path]]\nsegments = [\"5f00:0:100:500:300::\"]\n[[path]]\nsegments = \
                    [\"5f00:0:100:600:300::\"]\nvia = [\"2001:db8:ff:6::1\"]\n";
        let file = PathsFile::parse(Path::new("paths.toml"), text).unwrap();
        assert_eq!((file.paths.len(), file.paths[1].path.rank, file.probe_address()), (2, 1, None));
        let headend = file.headend("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()).unwrap();
        assert_eq!(headend.sets().count(), 1);
    }

    /// D255: a host that is its own headend has the paths of a template as well.
    #[test]
    fn a_template_is_expanded() {
        let choice = "{ bits = 1, choices = 2, step = \"0:0:0:100::\" }";
        let template = format!("template = {{ base = \"5f00:0:100:500:300::\", choice = [{choice}] }}");
        let text = format!("[steering]\nprobes = false\n[[path]]\n{template}\n");
        let file = PathsFile::parse(Path::new("paths.toml"), &text).unwrap();
        let found: Vec<_> =
            file.paths.iter().map(|own| (own.entropy.map(|value| value.0), own.path.segments[0])).collect();
        let by = |spine: &str| format!("5f00:0:100:{spine}:300::").parse::<Ipv6Addr>().unwrap();
        assert_eq!(found, [(Some(0), by("500")), (Some(1), by("600"))]);
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        let path = "[[path]]\nsegments = [\"5f00:0:100:500:300::\"]\n";
        assert!(problem(path).starts_with("paths.toml:1: probes need an address"), "{}", problem(path));
        assert!(problem("[steering]\nprobes = false\n").contains("path"));
        let empty = "[steering]\nprobes = false\n[[path]]\nsegments = []\n";
        assert_eq!(problem(empty), "paths.toml:3: a path needs at least one segment");
        let denied = format!("[steering]\nprobes = false\n{path}denied = true\n");
        assert!(problem(&denied).starts_with("paths.toml:3: "), "{}", problem(&denied));
    }
}
