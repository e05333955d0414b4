//! Repair by loss, receivers, buffer and variant: a table, and plots.

use super::job::{Job, Step};
use super::jobs::{array, grouped, head, number, only, text};
use super::plots::Plot;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use srdma_report::{Axis, LinePlot, Reference, Scale, Series, Shape, Unit};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) const NAME: &str = "repair-sweep";

/// The variants, by their names in results and in documents.
const VARIANTS: [(&str, &str); 4] = [
    ("off", "without repair"),
    ("edge", "edges repair"),
    ("tree", "all nodes repair"),
    ("tree-host-headend", "all nodes, headend on the source's host"),
];

pub(super) fn job() -> Job {
    Job {
        name: NAME,
        about: "repair by loss, receivers, buffer and variant",
        is_quick: false,
        steps: vec![Step::example("srdma-cli", "repair_sweep", "")],
        table,
    }
}

/// What a run was of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    receivers: u64,
    /// Of [`VARIANTS`].
    variant: usize,
    /// Has it room for the window, neither less nor more?
    has_usual_buffer: bool,
    buffer_packets: u64,
    loss_per_million: u64,
}

/// Means of seeds over the run without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ratios {
    source: f64,
    completion: f64,
    links: f64,
}

impl Key {
    fn of(run: &Value) -> Result<Self> {
        let count = |name: &str| Ok::<_, anyhow::Error>(number(run, name)? as u64);
        let variant = text(run, "/variant")?;
        let variant = VARIANTS.iter().position(|(name, _)| *name == variant);
        let buffer_packets = count("/buffer_packets")?;
        Ok(Key {
            receivers: count("/receivers")?,
            variant: variant.context("a run of no variant")?,
            has_usual_buffer: buffer_packets == count("/window_packets")?,
            buffer_packets,
            loss_per_million: count("/loss_per_million")?,
        })
    }

    fn loss_percent(&self) -> f64 {
        self.loss_per_million as f64 / 1e4
    }
}

impl Ratios {
    fn of(run: &Value) -> Result<Self> {
        let [source, completion, links] =
            ["/source_octets", "/completion_ns", "/link_octets"].map(|of| number(run, of));
        Ok(Ratios { source: source?, completion: completion?, links: links? })
    }

    fn over(self, base: Self) -> Self {
        let Ratios { source, completion, links } = self;
        let [source, completion, links] = [source / base.source, completion / base.completion, links / base.links];
        Ratios { source, completion, links }
    }

    fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Ratios { source: mean(|one| one.source), completion: mean(|one| one.completion), links: mean(|one| one.links) }
    }
}

/// The means of all that ran under loss.
fn means(results: &[Value]) -> Result<BTreeMap<Key, Ratios>> {
    let (mut lossless, mut lossy) = (BTreeMap::new(), BTreeMap::<Key, Vec<Ratios>>::new());
    for run in array(only(results)?, "")? {
        let (key, measured) = (Key::of(run)?, Ratios::of(run)?);
        if key.loss_per_million == 0 {
            lossless.insert((key.receivers, key.variant), measured);
        } else {
            lossy.entry(key).or_default().push(measured);
        }
    }
    ensure!(!lossy.is_empty(), "no run is under loss");
    let of_key = |(key, runs): (Key, Vec<Ratios>)| {
        let base = lossless.get(&(key.receivers, key.variant)).copied();
        let base = base.with_context(|| format!("{} receivers have no run without loss", key.receivers))?;
        let over: Vec<Ratios> = runs.into_iter().map(|run| run.over(base)).collect();
        Ok((key, Ratios::mean(&over)))
    };
    lossy.into_iter().map(of_key).collect()
}

/// A row for each loss and number of receivers.
fn table(results: &[Value]) -> Result<String> {
    let columns = ["receivers; loss; variant", "source egress", "completion", "octets on all links"];
    let mut table = head(&columns);
    for (key, Ratios { source, completion, links }) in means(results)?.iter().filter(|(key, _)| key.has_usual_buffer) {
        let (receivers, variant) = (grouped(key.receivers as f64), VARIANTS[key.variant].1);
        let loss = key.loss_percent();
        let _ = writeln!(table, "| {receivers}; {loss} %; {variant} | {source:.3} | {completion:.3} | {links:.3} |");
    }
    Ok(table)
}

/// Two plots for each number of receivers, by loss, and one by buffer, of what ran with several.
pub(super) fn plots(results: &[Value]) -> Result<Vec<Plot>> {
    let means = means(results)?;
    let mut plots = Vec::new();
    let mut receivers: Vec<u64> = means.keys().map(|key| key.receivers).collect();
    receivers.dedup();
    for &receivers in &receivers {
        plots.push(by_loss(&means, receivers, "source", "octets of the source", |means| means.source));
        plots.push(by_loss(&means, receivers, "completion", "completion", |means| means.completion));
    }
    plots.extend(by_buffer(&means));
    Ok(plots)
}

fn by_loss(means: &BTreeMap<Key, Ratios>, receivers: u64, file: &str, name: &str, value: fn(&Ratios) -> f64) -> Plot {
    let series = VARIANTS.iter().enumerate().map(|(variant, (_, name))| {
        let of_it = means
            .iter()
            .filter(|(key, _)| (key.receivers, key.variant, key.has_usual_buffer) == (receivers, variant, true));
        let points = of_it.map(|(key, means)| (key.loss_percent(), value(means))).collect();
        Series { name: (*name).to_owned(), colour: variant, shape: Shape::Line, points }
    });
    let plot = LinePlot {
        title: format!("{} receivers: {name}, over no loss", grouped(receivers as f64)),
        look_for: String::new(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("loss on each link and direction", Unit::Percent) },
        y: Axis { scale: Scale::Logarithmic, least: Some(1.0), ..Axis::new(name, Unit::Times) },
        series: series.collect(),
        references: Vec::new(),
    };
    Plot { file: format!("repair-{file}-{receivers}.svg"), svg: plot.svg() }
}

/// Of the receivers, the variant and the loss that ran with buffers of several sizes, if there are any.
fn by_buffer(means: &BTreeMap<Key, Ratios>) -> Option<Plot> {
    let &Key { receivers, variant, loss_per_million, .. } = means.keys().find(|key| !key.has_usual_buffer)?;
    let of_loss =
        || means.iter().filter(|(key, _)| (key.receivers, key.loss_per_million) == (receivers, loss_per_million));
    let mut buffers: Vec<(f64, Ratios)> = of_loss()
        .filter(|(key, _)| key.variant == variant)
        .map(|(key, means)| (key.buffer_packets as f64, *means))
        .collect();
    buffers.sort_by(|one, other| one.0.total_cmp(&other.0));
    let series = |name: &str, colour: usize, value: fn(&Ratios) -> f64| Series {
        name: name.to_owned(),
        colour,
        shape: Shape::Line,
        points: buffers.iter().map(|(buffer, means)| (*buffer, value(means))).collect(),
    };
    let off = of_loss().find(|(key, _)| key.variant == 0);
    let reference = |(_, means): (&Key, &Ratios)| Reference {
        name: "completion without repair".to_owned(),
        value: means.completion,
    };
    let plot = LinePlot {
        title: format!("{receivers} receivers, {} % loss", loss_per_million as f64 / 1e4),
        look_for: String::new(),
        x: Axis::new("buffer, packets", Unit::Count),
        y: Axis { least: Some(1.0), ..Axis::new("over no loss", Unit::Times) },
        series: vec![
            series("octets of the source", 0, |means| means.source),
            series("completion", 1, |means| means.completion),
        ],
        references: off.map(reference).into_iter().collect(),
    };
    Some(Plot { file: "repair-buffer.svg".to_owned(), svg: plot.svg() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(variant: &str, buffer: u64, loss: u64, source: u64) -> Value {
        json!({
            "receivers": 5, "window_packets": 64, "variant": variant, "buffer_packets": buffer, "loss_per_million": loss,
            "source_octets": source, "completion_ns": 10 * source, "link_octets": 1000
        })
    }

    #[test]
    fn rows_are_means_over_the_run_without_loss() {
        let runs = [
            run("off", 64, 0, 100),
            run("off", 64, 3_000, 300),
            run("tree", 64, 0, 200),
            run("tree", 64, 3_000, 210),
            run("tree", 64, 3_000, 230),
            run("tree", 32, 3_000, 400),
        ];
        let table = table(&[json!(runs)]).unwrap();
        assert!(table.contains("\n| 5; 0.3 %; all nodes repair | 1.100 | 1.100 | 1.000 |\n"), "{table}");
        assert!(table.contains("\n| 5; 0.3 %; without repair | 3.000 | 3.000 | 1.000 |\n"), "{table}");
        assert_eq!(table.lines().count(), 4, "{table}");
        let plots = plots(&[json!(runs)]).unwrap();
        let files: Vec<&str> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files, ["repair-source-5.svg", "repair-completion-5.svg", "repair-buffer.svg"]);
        assert!(plots[2].svg.contains("5 receivers, 0.3 % loss") && plots[2].svg.contains("completion without repair"));
    }

    #[test]
    fn runs_without_their_base_make_no_table() {
        assert!(table(&[json!([run("tree", 64, 3_000, 210)])]).is_err());
        assert!(table(&[json!([run("tree", 64, 0, 210)])]).is_err());
    }
}
