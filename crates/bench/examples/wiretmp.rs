use srdma_bench::wire::{self, Extent, Part, Sink, WireRow};
struct Out;
impl Sink for Out {
    fn row(&mut self, r: &WireRow) -> std::io::Result<()> {
        println!(
            "{:<15} {:<19} {:>5} {:>8.1} {:>8.1}  {:<14} {:>8.1} {:>8.1} {:>6.3} {}",
            r.driver,
            r.case,
            r.frame_octets,
            r.measured.ns_min,
            r.measured.ns_median,
            r.yardstick,
            r.yardstick_ns.ns_min,
            r.yardstick_ns.ns_median,
            r.ratio,
            r.target.filter(|t| r.ratio < *t).map_or(String::new(), |t| format!("(target {t})"))
        );
        Ok(())
    }
    fn skipped(&mut self, what: &str, why: &anyhow::Error) {
        println!("{what} skipped: {why:#}");
    }
}
fn main() -> anyhow::Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let parts: Vec<Part> = names
        .iter()
        .filter_map(|n| match n.as_str() {
            "drivers" => Some(Part::Drivers),
            "copies" => Some(Part::Copies),
            "kernel" => Some(Part::Kernel),
            "fast" => Some(Part::FastPath),
            _ => None,
        })
        .collect();
    wire::run(&parts, if names.iter().any(|n| n == "full") { Extent::FULL } else { Extent::QUICK }, &mut Out)
}
