//! Escaped text for HTML.

use std::fmt::{self, Display, Write};

/// A text in which nothing is markup, within elements as within quoted attributes.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Control characters are no text, and some of them no HTML.
                control if control.is_control() && control != '\n' => f.write_char('\u{fffd}')?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A document in the making.
#[derive(Default)]
pub(crate) struct Out {
    text: String,
    identifiers: u32,
}

impl Out {
    /// Adds what `format_args!` gives. A string takes everything, so nothing can fail.
    pub(crate) fn add(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text);
    }

    /// An identifier that no other element of the document has.
    pub(crate) fn identifier(&mut self) -> String {
        self.identifiers += 1;
        format!("i{}", self.identifiers)
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A coordinate of a picture: a tenth of a unit is below what is visible.
pub(crate) fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        let text = Escaped("<script>\"a\" & 'b'</script>\0\n").to_string();
        assert_eq!(text, "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;\u{fffd}\n");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([at(1.0), at(1.26), at(-0.01), at(100.04)], ["1", "1.3", "0", "100"]);
    }
}
