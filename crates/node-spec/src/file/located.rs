//! Values that know their place in the file, and their notation there.

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct Located<T> {
    pub value: T,
    /// Offset of the value; 0 in a file that was not parsed.
    pub at: usize,
}

impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Located { value, at: 0 }
    }
}

/// Values are equal wherever they stand.
impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A value as TOML has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Text(String),
    Integer(u64),
    Number(f64),
}

/// A value that is written as a string or as a number.
pub trait Notation: Sized {
    /// Expected notation, for errors.
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The value as one of the functions below reads it.
    fn written(&self) -> Written;

    fn from_text(_text: &str) -> Option<Self> {
        None
    }

    fn from_integer(_integer: u64) -> Option<Self> {
        None
    }

    fn from_number(_number: f64) -> Option<Self> {
        None
    }
}

impl<'de, T: Notation> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Plain<T>>::deserialize(deserializer)?;
        let at = spanned.span().start;
        Ok(Located { value: spanned.into_inner().0, at })
    }
}

impl<T: Notation> Serialize for Located<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value.written() {
            Written::Text(text) => serializer.serialize_str(&text),
            Written::Integer(integer) => serializer.serialize_u64(integer),
            Written::Number(number) => serializer.serialize_f64(number),
        }
    }
}

struct Plain<T>(T);

impl<'de, T: Notation> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NotationVisitor(PhantomData)).map(Plain)
    }
}

struct NotationVisitor<T>(PhantomData<T>);

impl<T: Notation> Visitor<'_> for NotationVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::describe(f)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<T, E> {
        T::from_integer(integer).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(integer), &self))
    }

    fn visit_i64<E: de::Error>(self, integer: i64) -> Result<T, E> {
        let value = u64::try_from(integer).ok().and_then(T::from_integer);
        value.ok_or_else(|| E::invalid_value(Unexpected::Signed(integer), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::from_number(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}
