//! Sweeps: the fabric and workloads of another file, with every method at every combination of the values of its axes.
//!
//! ```text
//!   method: keys of a variant ─┐
//!   axis:   value, value, … ───┼──► one variant for each combination: METHOD-VALUE-VALUE
//!   axis:   value, value, … ───┘
//! ```
//!
//! Methods that share an axis are run with the same values of it (D239). A key has one origin: a method and a value, or
//! values of two axes, that set the same one are refused, so that no value is silently without effect.

use super::number::{default_first_seed, default_seeds};
use super::{FabricScenario, Variant, Whole};
use serde::Deserialize;
use srdma_toml_error::Problem;
use std::path::Path;
use toml::{Spanned, Table, Value};

/// Maximum number of variants of a sweep.
const MOST_VARIANTS: usize = 4096;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: String,
    title: String,
    #[serde(default)]
    description: String,
    /// The scenario with the fabric and the workloads, relative to this file.
    of: Spanned<String>,
    #[serde(default = "default_first_seed")]
    first_seed: Whole<0, 1_000_000_000>,
    #[serde(default = "default_seeds")]
    seeds: Whole<1, 1000>,
    /// In place of the duration of that scenario.
    duration_us: Option<Whole<1, 10_000_000>>,
    method: Vec<Spanned<Table>>,
    #[serde(default)]
    axis: Vec<Axis>,
}

/// Alternatives of which each combination has one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    /// Names of the methods that it is for; without it for all.
    methods: Option<Spanned<Vec<String>>>,
    /// Keys of a variant, with a `name`.
    value: Vec<Spanned<Table>>,
}

/// Keys of a variant, with the names that they are from.
#[derive(Clone)]
struct Combination {
    name: String,
    keys: Table,
}

impl FabricScenario {
    /// Parses the content of a file of kind `sweep`, and the scenario that it is of.
    pub(super) fn resolve_sweep(path: &Path, text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
        let mut scenario = base(path, &file.of)?;
        scenario.variants = variants(path, &file, text)?;
        (scenario.title, scenario.description) = (file.title, file.description);
        (scenario.first_seed, scenario.seeds) = (file.first_seed.get(), file.seeds.get());
        scenario.measures.duration_us = file.duration_us.unwrap_or(scenario.measures.duration_us);
        // A control run takes as long as the run, and the objective does without.
        scenario.measures.control_run = false;
        scenario.is_sweep = true;
        Ok(scenario)
    }
}

fn base(path: &Path, of: &Spanned<String>) -> Result<FabricScenario, Problem> {
    let file = path.parent().unwrap_or(Path::new("")).join(of.as_ref());
    let read = srdma_toml_error::read(&file).and_then(|text| FabricScenario::parse(&file, &text));
    let scenario = read.map_err(|error| Problem::new(of.span().start, error.to_string()))?;
    if scenario.is_sweep {
        return Err(Problem::new(of.span().start, "a sweep of a sweep: expected a scenario of kind fabric"));
    }
    Ok(scenario)
}

fn variants(path: &Path, file: &File, text: &str) -> Result<Vec<Variant>, Problem> {
    let names = file.method.iter().map(name_of).collect::<Result<Vec<String>, Problem>>()?;
    for methods in file.axis.iter().filter_map(|axis| axis.methods.as_ref()) {
        if let Some(unknown) = methods.as_ref().iter().find(|name| !names.contains(name)) {
            let text = format!("there is no method {unknown:?}: expected one of {}", names.join(", "));
            return Err(Problem::new(methods.span().start, text));
        }
    }
    let mut variants: Vec<Variant> = Vec::new();
    for (method, name) in file.method.iter().zip(&names) {
        let at = method.span().start;
        let mut combinations = vec![Combination { name: name.clone(), keys: method.as_ref().clone() }];
        for axis in file.axis.iter().filter(|axis| axis.is_for(name)) {
            combinations = axis.combined_with(&combinations)?;
            if combinations.len() + variants.len() > MOST_VARIANTS {
                return Err(Problem::new(at, format!("more than {MOST_VARIANTS} variants: expected fewer values")));
            }
        }
        for combination in combinations {
            let mut variant = combination.variant(name, at)?;
            variant.read_files(path).map_err(|problem| Problem::new(at, problem))?;
            if variants.iter().any(|other| other.name == variant.name) {
                return Err(Problem::new(at, format!("two variants are called {:?}: give other names", variant.name)));
            }
            variants.push(variant);
        }
    }
    if variants.is_empty() {
        return Err(Problem::new(text.len(), "no variant: expected at least one [[method]], and values for each axis"));
    }
    Ok(variants)
}

fn name_of(table: &Spanned<Table>) -> Result<String, Problem> {
    let name = table.as_ref().get("name").and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| Problem::new(table.span().start, "missing key `name`: expected a string"))
}

impl Axis {
    fn is_for(&self, method: &String) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.as_ref().contains(method))
    }

    /// Each of these combinations with each value.
    fn combined_with(&self, combinations: &[Combination]) -> Result<Vec<Combination>, Problem> {
        let mut combined = Vec::new();
        for Combination { name, keys } in combinations {
            for value in &self.value {
                let of_value = name_of(value)?;
                let mut keys = keys.clone();
                let more = value.as_ref().iter().filter(|(key, _)| *key != "name");
                let more: Table = more.map(|(key, value)| (key.clone(), value.clone())).collect();
                add(&mut keys, &more, "").map_err(|key| {
                    let text = format!("value {of_value:?} and {name:?} both set `{key}`: expected one of them to");
                    Problem::new(value.span().start, text)
                })?;
                combined.push(Combination { name: format!("{name}-{of_value}"), keys });
            }
        }
        Ok(combined)
    }
}

impl Combination {
    fn variant(mut self, method: &str, at: usize) -> Result<Variant, Problem> {
        self.keys.insert("name".to_owned(), Value::String(self.name.clone()));
        let parsed: Result<Variant, _> = Value::Table(self.keys).try_into();
        let mut variant = parsed.map_err(|error| {
            let problem = Problem::of_toml(&error, "");
            Problem::new(at, format!("variant {:?}: {}", self.name, problem.text))
        })?;
        method.clone_into(&mut variant.method);
        variant.check().map_err(|problem| Problem::new(at, problem))?;
        Ok(variant)
    }
}

/// Adds keys to a table, and to the tables in it.
///
/// # Errors
///
/// The key that both have.
fn add(keys: &mut Table, more: &Table, path: &str) -> Result<(), String> {
    for (key, value) in more {
        match (keys.get_mut(key), value) {
            (None, _) => _ = keys.insert(key.clone(), value.clone()),
            (Some(Value::Table(keys)), Value::Table(more)) => add(keys, more, &format!("{path}{key}."))?,
            (Some(_), _) => return Err(format!("{path}{key}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Signal;

    const BASE: &str = "../../scenarios/incast-dc.toml";
    const METHODS: &str = "
[[method]]
name = \"old\"
signal = \"receiver-cnp\"
control = \"dcqcn\"
[[method]]
name = \"new\"
signal = \"fast-cnp\"
control = \"dcqcn\"
notification = { interval_ns = 4000 }
";
    const AXES: &str = "
[[axis]]
[[axis.value]]
name = \"k1\"
ecn = { k_min_octets = 1000, k_max_octets = 1000 }
notification = { threshold_octets = 1000 }
[[axis.value]]
name = \"k2\"
ecn = { k_min_octets = 2000, k_max_octets = 2000 }
notification = { threshold_octets = 2000 }
[[axis]]
methods = [\"new\"]
[[axis.value]]
name = \"fast\"
dcqcn = { preset = \"connectx\" }
";

    fn sweep(rest: &str) -> Result<FabricScenario, String> {
        let head = format!("kind = \"sweep\"\ntitle = \"a sweep\"\nof = \"{BASE}\"\nfirst_seed = 101\nseeds = 3\n");
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sweep.toml"));
        FabricScenario::parse(file, &format!("{head}{rest}")).map_err(|error| {
            let text = error.to_string();
            text.rsplit_once("sweep.toml:").map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    #[test]
    fn every_method_has_every_value_of_its_axes() {
        let sweep = sweep(&format!("duration_us = 70\n{METHODS}{AXES}")).unwrap();
        let variants: Vec<(&str, &str)> =
            sweep.variants.iter().map(|variant| (variant.name.as_str(), variant.method.as_str())).collect();
        assert_eq!(variants, [("old-k1", "old"), ("old-k2", "old"), ("new-k1-fast", "new"), ("new-k2-fast", "new")]);
        let last = &sweep.variants[3];
        let notification = last.notification.unwrap();
        assert_eq!((notification.threshold_octets.get(), notification.interval_ns.get()), (2000, 4000));
        assert_eq!((last.signal, last.ecn.unwrap().k_min_octets.get()), (Signal::FastCnp, 2000));
        assert_eq!((sweep.first_seed, sweep.seeds, sweep.measures.duration_us.get()), (101, 3, 70));
        assert!(sweep.is_sweep && !sweep.measures.control_run);
        assert_eq!(sweep.topology.hosts().len(), 64);
    }

    /// The head has five lines, METHODS eleven and AXES sixteen.
    #[test]
    fn a_mistake_names_its_line() {
        let cases = [
            (METHODS.replace("name = \"new\"", ""), "11: missing key `name`"),
            (METHODS.replace("signal = \"fast-cnp\"", "signal = \"none\""), "11: variant \"new\": its control needs"),
            (METHODS.replace("interval_ns", "intervall_ns"), "11: variant \"new\": unknown key `intervall_ns`"),
            (
                format!("{METHODS}{}", AXES.replace("{ threshold_octets = 2000", "{ interval_ns = 2000")),
                "22: value \"k2\" and \"new\" both set `notification.interval_ns`",
            ),
            (format!("{METHODS}{}", AXES.replace("[\"new\"]", "[\"newer\"]")), "27: there is no method \"newer\""),
            (format!("{METHODS}{}", AXES.replace("k2", "k1")), "7: two variants are called \"old-k1\""),
        ];
        for (text, expected) in cases {
            let found = sweep(&text).unwrap_err();
            assert!(found.starts_with(expected), "{found}\n  expected: {expected}");
        }
    }
}
