//! A topology as a picture: tiers above each other, links coloured by their load.

use crate::html::{Escaped, Out, at};
use crate::unit::Unit;
use std::collections::BTreeMap;

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureNode {
    pub name: String,
    /// Its tier: 0 for hosts, then upwards.
    pub tier: u8,
    /// Its role, such as "victim"; empty for none.
    pub role: String,
}

/// A link of the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureLink {
    /// The positions of its ends among the nodes.
    pub ends: [usize; 2],
    /// The value of its colour; `None` if it was not measured.
    pub value: Option<f64>,
}

/// A topology.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub title: String,
    /// One sentence on what to look for.
    pub look_for: String,
    /// The nodes; within a tier they stand in this order.
    pub nodes: Vec<PictureNode>,
    pub links: Vec<PictureLink>,
    /// Meaning of the links' colours.
    pub measure: String,
    pub unit: Unit,
    /// The value of the strongest colour; without it the greatest of all links.
    pub greatest: Option<f64>,
}

/// Steps of colour.
const STEPS: usize = 5;

/// Hosts that are drawn one by one, at most. More become one mark for each switch.
const MAX_HOSTS: usize = 128;

const WIDTH: f64 = 960.0;
const TIER_HEIGHT: f64 = 110.0;
const MARGIN: f64 = 34.0;

/// A node where it is drawn.
struct Placed<'a> {
    x: f64,
    y: f64,
    tier: u8,
    label: String,
    role: &'a str,
}

impl Picture {
    pub(crate) fn render(&self, out: &mut Out) {
        let merged = self.merged();
        let picture = merged.as_ref().unwrap_or(self);
        let places = picture.places();
        let tiers = picture.nodes.iter().map(|node| node.tier).max().unwrap_or(0);
        let height = f64::from(tiers) * TIER_HEIGHT + 2.0 * MARGIN + 16.0;
        let (title_id, description_id) = (out.identifier(), out.identifier());
        out.add(format_args!(
            "<figure class=\"picture\">\n<figcaption><b>{}</b> <span>{}</span></figcaption>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
             <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{title_id} {description_id}\">\n\
             <title id=\"{title_id}\">{}</title>\n<desc id=\"{description_id}\">{}</desc>\n",
            Escaped(&self.title),
            Escaped(&self.look_for),
            Escaped(&self.title),
            Escaped(&self.title),
            Escaped(&picture.description()),
        ));
        picture.draw_links(out, &places);
        let roles = picture.roles();
        for place in &places {
            draw_node(out, place, &roles);
        }
        out.add(format_args!("</svg></div>\n"));
        picture.legend(out);
        out.add(format_args!("</figure>\n"));
    }

    fn greatest(&self) -> f64 {
        let values = self.links.iter().filter_map(|link| link.value).filter(|value| value.is_finite());
        self.greatest.unwrap_or_else(|| values.fold(0.0, f64::max))
    }

    /// The step of colour of a value: 0 for nothing at all, then equal parts of the greatest.
    fn step(&self, value: f64) -> usize {
        let greatest = self.greatest();
        let is_positive = value > 0.0 && greatest > 0.0;
        if is_positive { ((value / greatest * (STEPS - 1) as f64).ceil() as usize).clamp(1, STEPS - 1) } else { 0 }
    }

    fn draw_links(&self, out: &mut Out, places: &[Placed<'_>]) {
        let mut order: Vec<usize> = (0..self.links.len()).collect();
        // Links with the highest values are drawn last, so that no other covers them.
        order.sort_by_key(|index| self.links[*index].value.map_or(0, |value| self.step(value)));
        for index in order {
            let link = &self.links[index];
            let [Some(a), Some(b)] = link.ends.map(|end| places.get(end)) else { continue };
            let (class, description) = match link.value {
                Some(value) => (format!("load{}", self.step(value)), self.unit.format(value)),
                None => ("load0".to_owned(), "not measured".to_owned()),
            };
            out.add(format_args!(
                "<path class=\"{class}\" d=\"M{} {}L{} {}\"><title>{}–{}: {}</title></path>\n",
                at(a.x),
                at(a.y),
                at(b.x),
                at(b.y),
                Escaped(&a.label),
                Escaped(&b.label),
                Escaped(&description)
            ));
        }
    }

    /// Tiers from the bottom up, nodes of a tier evenly from left to right, hosts below their switch.
    fn places<'a>(&'a self) -> Vec<Placed<'a>> {
        let tiers = self.nodes.iter().map(|node| node.tier).max().unwrap_or(0);
        let mut sizes: BTreeMap<u8, usize> = BTreeMap::new();
        for node in &self.nodes {
            *sizes.entry(node.tier).or_default() += 1;
        }
        let mut seen: BTreeMap<u8, usize> = BTreeMap::new();
        let place = |node: &'a PictureNode| {
            let PictureNode { name, tier, role } = node;
            let index = seen.entry(*tier).or_default();
            *index += 1;
            let size = sizes.get(tier).copied().unwrap_or(1) as f64;
            Placed {
                x: MARGIN + (WIDTH - 2.0 * MARGIN) * (*index as f64 - 0.5) / size,
                y: MARGIN + f64::from(tiers - tier) * TIER_HEIGHT,
                tier: *tier,
                label: name.clone(),
                role,
            }
        };
        self.nodes.iter().map(place).collect()
    }

    fn legend(&self, out: &mut Out) {
        let greatest = self.greatest();
        out.add(format_args!("<ul class=\"legend\"><li>{}:</li>", Escaped(&self.measure)));
        for step in 0..STEPS {
            let share = |step: usize| self.unit.format(greatest * step as f64 / (STEPS - 1) as f64);
            let text = match step {
                0 => "none".to_owned(),
                _ if greatest <= 0.0 => break,
                1 => format!("up to {}", share(1)),
                _ => format!("up to {}", share(step)),
            };
            out.add(format_args!(
                "<li><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"load{step}\" \
                 d=\"M1 5H25\"/></svg>{}</li>",
                Escaped(&text)
            ));
        }
        let roles = self.roles();
        for role in &roles {
            out.add(format_args!(
                "<li><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><circle class=\"{}\" cx=\"13\" \
                 cy=\"5\" \
                 r=\"5\"/></svg>{}</li>",
                role_class(role, &roles),
                Escaped(role)
            ));
        }
        out.add(format_args!("</ul>\n"));
    }

    /// The roles, in the order of their nodes.
    fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<&str> = Vec::new();
        for node in &self.nodes {
            if !node.role.is_empty() && !roles.contains(&node.role.as_str()) {
                roles.push(&node.role);
            }
        }
        roles
    }

    fn description(&self) -> String {
        let hosts = self.nodes.iter().filter(|node| node.tier == 0).count();
        let switches = self.nodes.len() - hosts;
        let busiest = self.links.iter().filter_map(|link| Some((link.value?, link)));
        let busiest = busiest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(value, _)| *value > 0.0);
        let description = busiest.and_then(|(value, link)| {
            let [a, b] = [self.nodes.get(link.ends[0])?, self.nodes.get(link.ends[1])?];
            Some(format!(" Most between {} and {}: {}.", a.name, b.name, self.unit.format(value)))
        });
        let description = description.unwrap_or_default();
        format!(
            "{switches} switches and {hosts} marks for hosts, {} links. {}.{description}",
            self.links.len(),
            self.measure
        )
    }

    /// The picture with one mark for all hosts of a switch, when they are too many to be drawn.
    fn merged(&self) -> Option<Picture> {
        if self.nodes.iter().filter(|node| node.tier == 0).count() <= MAX_HOSTS {
            return None;
        }
        let mut nodes: Vec<PictureNode> = self.nodes.iter().filter(|node| node.tier > 0).cloned().collect();
        let mut new_positions: BTreeMap<usize, usize> = BTreeMap::new();
        for (new, (old, _)) in self.nodes.iter().enumerate().filter(|(_, node)| node.tier > 0).enumerate() {
            new_positions.insert(old, new);
        }
        let mut links = Vec::new();
        let mut below: BTreeMap<usize, (usize, Option<f64>)> = BTreeMap::new();
        for link in &self.links {
            match link.ends.map(|end| new_positions.get(&end).copied()) {
                [Some(a), Some(b)] => links.push(PictureLink { ends: [a, b], value: link.value }),
                [Some(switch), None] | [None, Some(switch)] => {
                    let (count, value) = below.entry(switch).or_default();
                    *count += 1;
                    *value = link.value.into_iter().chain(*value).reduce(f64::max);
                }
                [None, None] => {}
            }
        }
        for (switch, (count, value)) in below {
            let name = format!("{count} hosts");
            nodes.push(PictureNode { name, tier: 0, role: String::new() });
            links.push(PictureLink { ends: [switch, nodes.len() - 1], value });
        }
        Some(Picture { nodes, links, greatest: Some(self.greatest()), ..self.clone() })
    }
}

/// The class that colours a role: there are three, the first for the first role.
fn role_class(role: &str, roles: &[&str]) -> String {
    match roles.iter().position(|known| *known == role) {
        Some(index) => format!("host role{}", index % 3 + 1),
        None => "host".to_owned(),
    }
}

fn draw_node(out: &mut Out, place: &Placed<'_>, roles: &[&str]) {
    let (x, y, label) = (at(place.x), at(place.y), Escaped(&place.label));
    if place.tier == 0 {
        let role = if place.role.is_empty() { String::new() } else { format!(" ({})", place.role) };
        out.add(format_args!(
            "<circle class=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"><title>{label}{}</title></circle>\n",
            role_class(place.role, roles),
            Escaped(&role)
        ));
        return;
    }
    let width = 14.0 + 7.4 * place.label.chars().count() as f64;
    out.add(format_args!(
        "<g class=\"switch\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\" rx=\"4\"/>\
         <text class=\"mid\" x=\"{x}\" y=\"{}\">{label}</text></g>\n",
        at(place.x - width / 2.0),
        at(place.y - 11.0),
        at(width),
        at(place.y + 4.5),
    ));
}
