//! A small report, in full.

use scraper::{Html, Selector};
use srdma_report::{
    Axis, BarGroup, BarPlot, Better, Block, Comparison, ComparisonRow, LinePlot, Page, Picture, PictureLink,
    PictureNode, Reference, Scale, Section, Series, Shape, Spread, Table, Unit, cumulative,
};

/// A report with everything in it, and texts that would be markup.
fn page() -> Page {
    let section = |heading: &str, lead: &str, blocks| Section { heading: heading.into(), lead: lead.into(), blocks };
    Page {
        title: "Two variants & a <victim>".into(),
        summary: vec!["The \"new\" one is faster.".into(), "It's <b>not</b> slower.".into()],
        sections: vec![
            section("Result", "What came out.", vec![comparison(), table()]),
            section("Over time", "", vec![Block::Beside(vec![lines(), distribution(), bars()])]),
            section("Where", "The fabric.", vec![picture()]),
            section("How", "", words()),
        ],
        colophon: "written by a test".into(),
    }
}

fn spread(least: f64, median: f64, greatest: f64) -> Option<Spread> {
    Some(Spread { least, median, greatest })
}

fn comparison() -> Block {
    let row = |measure: &str, unit, better, values| ComparisonRow {
        measure: measure.into(),
        meaning: String::new(),
        unit,
        better,
        values,
    };
    Block::Comparison(Comparison {
        caption: "Variants".into(),
        columns: vec![("old".into(), 0), ("new".into(), 1), ("none".into(), 2)],
        baseline: 0,
        rows: vec![
            ComparisonRow {
                meaning: "how long a flow takes".into(),
                ..row(
                    "time",
                    Unit::Nanoseconds,
                    Better::Lower,
                    vec![spread(9e3, 10e3, 11e3), spread(7e3, 7e3, 7e3), None],
                )
            },
            row(
                "rate",
                Unit::BitsPerSecond,
                Better::Higher,
                vec![spread(4e9, 4e9, 4e9), spread(3.9e9, 3.9e9, 3.9e9), spread(4e9, 4e9, 4e9)],
            ),
            row(
                "delivered",
                Unit::Octets,
                Better::Higher,
                vec![spread(10_000.0, 10_000.0, 10_000.0), spread(9_999.0, 9_999.0, 9_999.0), None],
            ),
            row("pauses", Unit::Count, Better::Neither, vec![spread(0.0, 0.0, 0.0), spread(1.0, 12.0, 40.0), None]),
            row(
                "queue",
                Unit::Octets,
                Better::Lower,
                vec![spread(1024.0, 1024.0, 1024.0), spread(20480.0, 20480.0, 20480.0), None],
            ),
        ],
    })
}

fn table() -> Block {
    Block::Table(Table {
        caption: "Parameters".into(),
        columns: vec!["key".into(), "value".into()],
        rows: vec![vec!["a<b".into(), "1".into()], vec!["c".into(), "\u{1}".into()]],
    })
}

fn lines() -> Block {
    Block::Lines(LinePlot {
        title: "Queue".into(),
        look_for: "Lower is better.".into(),
        x: Axis::new("time", Unit::Nanoseconds),
        y: Axis::new("queue", Unit::Octets),
        series: vec![
            Series {
                name: "old".into(),
                colour: 0,
                shape: Shape::Line,
                points: vec![(0.0, 0.0), (50e3, 200e3), (100e3, 50e3)],
            },
            Series {
                name: "new \"x\"".into(),
                colour: 1,
                shape: Shape::Steps,
                points: vec![(0.0, 10e3), (50e3, 60e3), (100e3, 60e3)],
            },
            Series { name: "none".into(), colour: 2, shape: Shape::Line, points: Vec::new() },
        ],
        references: vec![Reference { name: "threshold".into(), value: 100e3 }],
    })
}

fn distribution() -> Block {
    let series = |name: &str, colour, values: &[f64]| Series {
        name: name.into(),
        colour,
        shape: Shape::Steps,
        points: cumulative(values),
    };
    Block::Lines(LinePlot {
        title: "Slowdown".into(),
        look_for: "Further to the left is better.".into(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("slowdown", Unit::Times) },
        y: Axis { greatest: Some(100.0), ..Axis::new("flows", Unit::Percent) },
        series: vec![series("old", 0, &[1.0, 2.0, 30.0, 5.0]), series("new", 1, &[1.0, 1.1, 2.0, 1.5])],
        references: Vec::new(),
    })
}

fn bars() -> Block {
    let group = |name: &str, bars| BarGroup { name: name.into(), bars };
    Block::Bars(BarPlot {
        title: "p99".into(),
        look_for: "Shorter is better.".into(),
        y: Axis::new("slowdown", Unit::Times),
        series: vec![("old".into(), 0), ("new".into(), 1)],
        groups: vec![
            group("≤ 64 KiB", vec![spread(3.0, 4.0, 5.0), spread(2.0, 2.0, 2.0)]),
            group("more", vec![spread(6.0, 7.0, 9.0), None]),
        ],
        references: vec![Reference { name: "alone".into(), value: 1.0 }],
    })
}

fn picture() -> Block {
    let node = |name: &str, tier, role: &str| PictureNode { name: name.into(), tier, role: role.into() };
    let link = |a, b, value| PictureLink { ends: [a, b], value };
    Block::Picture(Picture {
        title: "Fabric".into(),
        look_for: "Red links carried most.".into(),
        nodes: vec![
            node("h1", 0, "victim"),
            node("h2", 0, ""),
            node("leaf<1>", 1, ""),
            node("leaf2", 1, ""),
            node("spine", 2, ""),
        ],
        links: vec![
            link(0, 2, Some(1.0)),
            link(1, 3, None),
            link(2, 4, Some(100.0)),
            link(3, 4, Some(0.0)),
            link(3, 9, Some(0.0)),
        ],
        measure: "busy".into(),
        unit: Unit::Percent,
        greatest: None,
    })
}

fn words() -> Vec<Block> {
    vec![
        Block::Heading("Words".into()),
        Block::Definitions(vec![("PFC".into(), "pause <per> priority".into())]),
        Block::Text("Text".into()),
        Block::List(vec!["one".into()]),
        Block::Folded("more".into(), vec![Block::Code("srdma sim 'a b' && rm <x>".into())]),
    ]
}

#[test]
fn the_document_is_well_formed() {
    let html = Html::parse_document(&page().html());
    assert_eq!(html.errors, Vec::<std::borrow::Cow<'_, str>>::new());
    let texts = |selector: &str| -> Vec<String> {
        html.select(&Selector::parse(selector).unwrap()).map(|element| element.text().collect()).collect()
    };
    assert_eq!(texts("h1"), ["Two variants & a <victim>"]);
    assert_eq!(texts(".summary"), ["The \"new\" one is faster.", "It's <b>not</b> slower."]);
    assert_eq!(texts("details code"), ["srdma sim 'a b' && rm <x>"]);
    assert_eq!(texts("h2"), ["Result", "Over time", "Where", "How"]);
    assert_eq!(texts(".better"), ["✓ −30\u{a0}%"]);
    assert_eq!(texts(".worse"), ["✗ −2.5\u{a0}%", "✗ × 20"]);
    assert_eq!(texts(".same"), ["=", "≈", "from 0"]);
    assert_eq!(texts("figure").len(), 4);
}

/// Every picture has a name and a description; every identifier is unique and every reference finds its own.
#[test]
fn pictures_are_described() {
    let html = Html::parse_document(&page().html());
    let select = |selector: &str| html.select(&Selector::parse(selector).unwrap()).collect::<Vec<_>>();
    let identifiers: Vec<&str> = select("[id]").iter().filter_map(|element| element.attr("id")).collect();
    let mut unique = identifiers.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), identifiers.len());
    for attribute in ["aria-labelledby", "href"] {
        for element in select(&format!("[{attribute}]")) {
            let value = element.attr(attribute).unwrap();
            let named = value.split(' ').map(|name| name.trim_start_matches('#')).filter(|name| *name != "data:,");
            assert!(named.into_iter().all(|name| unique.contains(&name)), "{value}");
        }
    }
    assert_eq!(select("figure svg[role=img]").len(), select("figure svg > desc").len());
    assert_eq!(select("figure svg[role=img]").len(), 4);
}

#[test]
fn the_page_loads_nothing() {
    let text = page().html();
    for outside in ["http:", "https:", "//", "@import", "src=", "url("] {
        let found: Vec<&str> = text.lines().filter(|line| line.contains(outside)).collect();
        let comments = found.iter().all(|line| line.trim_start().starts_with("//"));
        assert!(comments, "{outside}: {found:?}");
    }
}

#[test]
fn the_same_page_gives_the_same_octets() {
    assert_eq!(page().html(), page().html());
}

#[test]
fn a_small_report_looks_like_this() {
    let html = page().html();
    let body = html.split("<body>").nth(1).and_then(|rest| rest.split("<script>").next()).unwrap();
    insta::assert_snapshot!(body);
}

/// More hosts than can be drawn become one mark for each switch.
#[test]
fn many_hosts_share_a_mark() {
    let switch = |index: usize| PictureNode { name: format!("s{index}"), tier: 1, role: String::new() };
    let host = |index: usize| PictureNode { name: format!("h{index}"), tier: 0, role: String::new() };
    let nodes: Vec<PictureNode> = (0..300).map(host).chain((0..3).map(switch)).collect();
    let link = |index: usize| PictureLink { ends: [index, 300 + index % 3], value: Some(index as f64) };
    let Block::Picture(picture) = picture() else { panic!("a picture") };
    let picture = Picture { nodes, links: (0..300).map(link).collect(), ..picture };
    let section = Section { heading: String::new(), lead: String::new(), blocks: vec![Block::Picture(picture)] };
    let text = Page { sections: vec![section], ..page() }.html();
    assert_eq!(text.matches("<circle").count(), 3);
    assert!(text.contains("<title>s2–100 hosts: 299\u{a0}%</title>"));
}
