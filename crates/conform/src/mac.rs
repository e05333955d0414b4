//! MAC addresses as parameter files write them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: Vec<String> = self.0.iter().map(|octet| format!("{octet:02x}")).collect();
        f.write_str(&digits.join(":"))
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> String {
        mac.to_string()
    }
}

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let digits = parts.next().filter(|digits| digits.len() == 2 && !digits.starts_with('+'));
            *octet = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(|| refused(&text))?;
        }
        let is_unicast = octets[0] & 1 == 0 && octets != [0; 6];
        if parts.next().is_none() && is_unicast { Ok(Mac(octets)) } else { Err(refused(&text)) }
    }
}

fn refused(text: &str) -> String {
    format!("expected a unicast MAC address such as 02:00:00:00:00:01, found {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unicast_addresses_of_six_octets_are_accepted() {
        let right = Mac::try_from("02:00:00:00:0A:fe".to_owned());
        assert_eq!(right, Ok(Mac([2, 0, 0, 0, 10, 254])));
        assert_eq!(right.map(String::from).as_deref(), Ok("02:00:00:00:0a:fe"));
        for wrong in
            ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "2:0:0:0:0:1", "01:00:00:00:00:00", "+2:00:00:00:00:01"]
        {
            assert!(Mac::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
