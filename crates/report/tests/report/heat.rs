//! Heat maps are tables: colours by value, bold above the limit, nothing where nothing is.

use scraper::{Html, Selector};
use srdma_report::{Block, HeatMap, Page, Section, Unit};

#[test]
fn cells_have_colours_and_numbers() {
    let map = HeatMap {
        caption: "up & <down>".into(),
        corner: "from".into(),
        columns: vec!["s1".into(), "s2".into(), "s3".into(), "s4".into()],
        rows: vec![("leaf1".into(), vec![Some(0.0), Some(1.0), Some(2.0), None])],
        unit: Unit::Times,
        greatest: 2.0,
        limit: Some(1.0),
    };
    let section = Section { heading: "Heat".into(), lead: String::new(), blocks: vec![Block::Heat(map)] };
    let page = Page { title: "t".into(), summary: vec![], sections: vec![section], colophon: String::new() };
    let document = Html::parse_document(&page.html());
    assert_eq!(document.errors, Vec::<std::borrow::Cow<'_, str>>::new());
    let select = |selector: &str| -> Vec<String> {
        let selector = Selector::parse(selector).unwrap();
        document.select(&selector).map(|found| found.inner_html()).collect()
    };
    assert_eq!(select("table.heat caption"), ["up &amp; &lt;down&gt;"]);
    assert_eq!(select("table.heat td"), ["0×", "1×", "<b>2×</b>", "–"]);
    let styles: Vec<Option<&str>> = {
        let selector = Selector::parse("table.heat td").unwrap();
        document.select(&selector).map(|cell| cell.attr("style")).collect()
    };
    assert_eq!(styles, [Some("--heat:0%"), Some("--heat:50%"), Some("--heat:100%"), None]);
}
