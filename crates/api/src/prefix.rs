//! Serialisation of prefixes, as texts such as `2001:db8::/32`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use srdma_wire::Prefix;

struct Text(Prefix);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Text).map_err(|error| de::Error::custom(format_args!("{text}: {error}")))
    }
}

/// Prefixes in a list.
#[allow(missing_docs, reason = "the names are serde's")]
pub mod list {
    use super::*;

    pub fn serialize<S: Serializer>(prefixes: &[Prefix], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(prefixes.iter().copied().map(Text))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Prefix>, D::Error> {
        Ok(Vec::<Text>::deserialize(deserializer)?.into_iter().map(|Text(prefix)| prefix).collect())
    }
}

/// A prefix that may be absent: with serde's `default`.
#[allow(missing_docs, reason = "the names are serde's")]
pub mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(prefix: &Option<Prefix>, serializer: S) -> Result<S::Ok, S::Error> {
        prefix.map(Text).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Prefix>, D::Error> {
        Ok(Option::<Text>::deserialize(deserializer)?.map(|Text(prefix)| prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Both {
        #[serde(with = "list")]
        many: Vec<Prefix>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional")]
        one: Option<Prefix>,
    }

    #[test]
    fn a_prefix_is_a_text() {
        for text in [r#"{"many":["2001:db8::/32","::/0"],"one":"2001:db8::1/128"}"#, r#"{"many":[]}"#] {
            let both: Both = serde_json::from_str(text).expect("prefixes");
            assert_eq!(serde_json::to_string(&both).expect("JSON"), text);
        }
    }

    #[test]
    fn an_error_names_the_text() {
        for (one, expected) in [
            ("2001:db8::", "2001:db8::: expected a prefix such as 2001:db8::/32 or 192.0.2.0/24"),
            ("2001:db8::1/32", "2001:db8::1/32: bits are set behind the prefix"),
        ] {
            let read = serde_json::from_str::<Both>(&format!(r#"{{"many":[],"one":"{one}"}}"#));
            let error = read.err().expect("no prefix").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
