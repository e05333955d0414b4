//! A page as an ordered list of blocks.

use crate::heat::HeatMap;
use crate::html::{Escaped, Out};
use crate::picture::Picture;
use crate::plot::{BarPlot, LinePlot};
use crate::table::{Comparison, Table};

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub title: String,
    /// Its text, a paragraph each.
    pub summary: Vec<String>,
    pub sections: Vec<Section>,
    /// Footer, such as the version of the program that wrote it.
    pub colophon: String,
}

/// A section, with an entry in the table of contents.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub heading: String,
    /// A summary in a sentence or two; may be empty.
    pub lead: String,
    /// Its contents.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section of these parts; the lead may be empty.
    pub fn new(heading: &str, lead: &str, blocks: Vec<Block>) -> Self {
        Section { heading: heading.to_owned(), lead: lead.to_owned(), blocks }
    }
}

/// A part of a section.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    List(Vec<String>),
    /// A heading within the section.
    Heading(String),
    /// Words with their meanings.
    Definitions(Vec<(String, String)>),
    /// Text as it was typed.
    Code(String),
    /// A table of figures.
    Table(Table),
    /// A table of words, which take as many lines as they need.
    Words(Table),
    /// A table that compares columns with one of them.
    Comparison(Comparison),
    /// A table coloured by its values.
    Heat(HeatMap),
    Lines(LinePlot),
    Bars(BarPlot),
    /// A topology.
    Picture(Picture),
    /// Blocks beside each other where there is room.
    Beside(Vec<Block>),
    /// Blocks that are collapsed under this name.
    Folded(String, Vec<Block>),
}

impl Block {
    /// A table of text.
    pub fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Block::Table(Table { caption: caption.to_owned(), columns, rows })
    }

    /// A table of words.
    pub fn words(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Block::Words(Table { caption: caption.to_owned(), columns, rows })
    }

    /// Words with their meanings.
    pub fn definitions(words: &[(&str, &str)]) -> Self {
        Block::Definitions(words.iter().map(|(word, meaning)| ((*word).to_owned(), (*meaning).to_owned())).collect())
    }
}

pub(crate) const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

impl Page {
    /// The page as one HTML document.
    pub fn html(&self) -> String {
        let mut out = Out::default();
        let title = Escaped(&self.title);
        out.add(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">To the results</a>\n<header>\n<h1>{title}</h1>\n"
        ));
        for paragraph in &self.summary {
            out.add(format_args!("<p class=\"summary\">{}</p>\n", Escaped(paragraph)));
        }
        out.add(format_args!("<nav aria-label=\"Contents\"><ul>\n"));
        for (number, section) in self.sections.iter().enumerate() {
            out.add(format_args!("<li><a href=\"#section{number}\">{}</a></li>\n", Escaped(&section.heading)));
        }
        out.add(format_args!("</ul></nav>\n</header>\n<main id=\"main\">\n"));
        for (number, section) in self.sections.iter().enumerate() {
            let heading = Escaped(&section.heading);
            out.add(format_args!(
                "<section id=\"section{number}\" aria-labelledby=\"heading{number}\">\n\
                 <h2 id=\"heading{number}\">{heading}</h2>\n"
            ));
            if !section.lead.is_empty() {
                out.add(format_args!("<p class=\"lead\">{}</p>\n", Escaped(&section.lead)));
            }
            render_all(&section.blocks, &mut out);
            out.add(format_args!("</section>\n"));
        }
        out.add(format_args!(
            "</main>\n<footer><p>{}</p></footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            Escaped(&self.colophon)
        ));
        out.into_text()
    }
}

fn render_all(blocks: &[Block], out: &mut Out) {
    for block in blocks {
        render(block, out);
    }
}

fn render(block: &Block, out: &mut Out) {
    match block {
        Block::Text(text) => out.add(format_args!("<p>{}</p>\n", Escaped(text))),
        Block::List(items) => {
            out.add(format_args!("<ul>\n"));
            for item in items {
                out.add(format_args!("<li>{}</li>\n", Escaped(item)));
            }
            out.add(format_args!("</ul>\n"));
        }
        Block::Heading(text) => out.add(format_args!("<h3>{}</h3>\n", Escaped(text))),
        Block::Definitions(words) => {
            out.add(format_args!("<dl>\n"));
            for (word, meaning) in words {
                out.add(format_args!("<dt>{}</dt><dd>{}</dd>\n", Escaped(word), Escaped(meaning)));
            }
            out.add(format_args!("</dl>\n"));
        }
        Block::Code(text) => out.add(format_args!("<pre tabindex=\"0\"><code>{}</code></pre>\n", Escaped(text))),
        Block::Table(table) => table.render(out, ""),
        Block::Words(table) => table.render(out, " class=\"words\""),
        Block::Comparison(comparison) => comparison.render(out),
        Block::Heat(map) => map.render(out),
        Block::Lines(plot) => plot.render(out),
        Block::Bars(plot) => plot.render(out),
        Block::Picture(picture) => picture.render(out),
        Block::Beside(blocks) => {
            out.add(format_args!("<div class=\"beside\">\n"));
            render_all(blocks, out);
            out.add(format_args!("</div>\n"));
        }
        Block::Folded(name, blocks) => {
            out.add(format_args!("<details><summary>{}</summary>\n", Escaped(name)));
            render_all(blocks, out);
            out.add(format_args!("</details>\n"));
        }
    }
}
