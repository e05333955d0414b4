//! The paths of routes by their entropy values, for a dissection of packets.

use super::{error, steering};
use serde::Deserialize;
use srdma_node_spec::file::RouteSection;
use srdma_toml_error::{FileError, Problem};
use srdma_wire::{Entropy, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;
use toml::Spanned;

/// The segments of each value's path, by the prefix that the route leads to.
pub type EntropyRoutes = BTreeMap<Prefix, BTreeMap<Entropy, Vec<Ipv6Addr>>>;

/// Other sections, such as those of a `node.toml`, are none of its business.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    route: Vec<Spanned<RouteSection>>,
}

/// Reads the `[[route]]`s of a file that have paths with values: what `srdma plan entropy --route` prints, or a
/// `node.toml`.
///
/// # Errors
///
/// If the file cannot be read, has no such route, or one that is wrong.
pub fn entropy_routes(file: &Path) -> Result<EntropyRoutes, FileError> {
    let text = srdma_toml_error::read(file)?;
    parse(&text).map_err(|problem| problem.in_file(file, &text))
}

fn parse(text: &str) -> Result<EntropyRoutes, Problem> {
    let file: File = toml::from_str(text).map_err(|problem| error::of_toml(&problem, text))?;
    let mut routes = EntropyRoutes::new();
    for route in &file.route {
        let route = route.get_ref();
        let Some(paths) = &route.path else { continue };
        let paths = steering::paths(paths)?.into_iter();
        let valued: BTreeMap<_, _> =
            paths.filter_map(|path| path.entropy.map(|value| (value, path.path.segments))).collect();
        if !valued.is_empty() {
            routes.entry(route.prefix.value.0).or_default().extend(valued);
        }
    }
    if routes.is_empty() {
        return Err(Problem::new(0, "there is no [[route]] with entropy values"));
    }
    Ok(routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_segments() {
        let template = "{ base = '5f00:0:1:4801:2::', choice = [{ bits = 1, choices = 2, step = '0:0:0:1::' }] }";
        let text = format!(
            "[node]\nloopback = '::1'\n[[route]]\nprefix = '2001:db8::/64'\nnic = 'h2.1'\n[[route.path]]\ntemplate = {template}\n\
             [[route]]\nprefix = '2001:db8:1::/64'\nblackhole = true\n\
             [[route]]\nprefix = '2001:db8:2::/64'\n[[route.path]]\nentropy = 9\nsegments = ['5f00::1', '5f00::2']\n"
        );
        let segments = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Ipv6Addr>>();
        let routes = parse(&text).unwrap();
        let found: Vec<_> = routes.values().map(|paths| paths.clone().into_iter().collect::<Vec<_>>()).collect();
        let by_template =
            vec![(Entropy(0), segments(&["5f00:0:1:4801:2::"])), (Entropy(1), segments(&["5f00:0:1:4802:2::"]))];
        assert_eq!(found, [by_template, vec![(Entropy(9), segments(&["5f00::1", "5f00::2"]))]]);
        assert_eq!(parse("[node]\n").unwrap_err().text, "there is no [[route]] with entropy values");
        let bad = text.replace("choices = 2", "choices = 3");
        assert!(parse(&bad).unwrap_err().text.starts_with("no template: "), "{:?}", parse(&bad));
    }
}
