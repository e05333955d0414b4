//! The kind of a scenario file, which decides its keys.

use serde::Deserialize;
use serde::de::IgnoredAny;
use srdma_toml_error::Problem;
use std::fmt;
use toml::Spanned;

/// The key `kind` of a scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fabric under load, packet by packet.
    Fabric,
    /// A fabric with jobs alone, by max-min fair rates.
    FlowLevel,
    /// A fabric of another file, with every method at every combination of values.
    Sweep,
    /// A WAN between two data centres at several lengths and buffer sizes.
    Wan,
    /// One stream through a data centre, a congested WAN and a multicast tree.
    EndToEnd,
}

/// The key of every kind, and top-level keys of the former format.
#[derive(Deserialize)]
struct Header {
    kind: Option<Spanned<String>>,
    arm: Option<Spanned<IgnoredAny>>,
    level: Option<Spanned<IgnoredAny>>,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Fabric, Kind::FlowLevel, Kind::Sweep, Kind::Wan, Kind::EndToEnd];

    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fabric => "fabric",
            Kind::FlowLevel => "flow-level",
            Kind::Sweep => "sweep",
            Kind::Wan => "wan",
            Kind::EndToEnd => "end-to-end",
        }
    }

    /// The kind of a file.
    pub(super) fn of_file(text: &str) -> Result<Self, Problem> {
        let header: Header = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
        if let Some(arm) = header.arm {
            return Err(Problem::new(arm.span().start, "`arm` has been renamed: expected [[variant]]"));
        }
        if let Some(level) = header.level {
            let text = "`level` has been replaced: expected kind = \"fabric\" or kind = \"flow-level\"";
            return Err(Problem::new(level.span().start, text));
        }
        let names = Kind::ALL.map(Kind::name).join(", ");
        let Some(kind) = header.kind else {
            return Err(Problem::new(0, format!("missing key `kind`: expected one of {names}")));
        };
        let known = Kind::ALL.into_iter().find(|known| known.name() == kind.get_ref());
        known.ok_or_else(|| {
            let text = format!("unknown kind {:?}: expected one of {names}", kind.get_ref());
            Problem::new(kind.span().start, text)
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        let problem = Kind::of_file(text).unwrap_err().in_text(text);
        (problem.line, problem.problem)
    }

    #[test]
    fn the_kind_is_an_explicit_key() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_file(&format!("title = \"t\"\nkind = \"{kind}\"\n[x]")), Ok(kind));
        }
        let missing = "missing key `kind`: expected one of fabric, flow-level, sweep, wan, end-to-end";
        assert_eq!(refused("title = \"t\""), (1, missing.to_owned()));
        let unknown = "unknown kind \"lan\": expected one of fabric, flow-level, sweep, wan, end-to-end";
        assert_eq!(refused("title = \"t\"\nkind = \"lan\""), (2, unknown.to_owned()));
    }

    #[test]
    fn keys_of_the_former_format_are_refused_with_the_new_ones() {
        let text = "kind = \"fabric\"\n\n[[arm]]\nname = \"a\"\n";
        assert_eq!(refused(text).1, "`arm` has been renamed: expected [[variant]]");
        let (line, problem) = refused("level = \"flow\"\n");
        assert_eq!(line, 1);
        assert!(problem.contains("expected kind = \"fabric\" or kind = \"flow-level\""), "{problem}");
    }
}
