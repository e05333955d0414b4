//! Bearer tokens, and the principals that they authenticate.

use crate::config::Config;
use sha2::{Digest, Sha256};
use srdma_api::ProblemType;
use srdma_controller_core::{Principal, Refusal, Role};
use subtle::ConstantTimeEq;

/// The tokens.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    tokens: Vec<([u8; 32], Principal)>,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Self {
        let tokens = config.token.iter().map(|token| {
            let principal = Principal {
                name: token.name.clone(),
                role: token.role,
                tenant: token.tenant.clone(),
                node: token.node.clone(),
            };
            (digest_of_hexadecimal(&token.sha256), principal)
        });
        Access { tokens: tokens.collect() }
    }

    /// The principal of a token. Without configured tokens every request is from an administrator.
    pub(crate) fn principal(&self, token: Option<&str>) -> Result<Principal, Refusal> {
        if self.tokens.is_empty() {
            return Ok(Principal { name: "local".to_owned(), role: Role::Admin, tenant: None, node: None });
        }
        let Some(token) = token else {
            return Err(Refusal::new(ProblemType::MissingToken, "expected the header `Authorization: Bearer TOKEN`"));
        };
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // All are compared, so that the time does not depend on which one matches.
        let mut found = None;
        for (known, principal) in &self.tokens {
            if bool::from(known.ct_eq(&digest)) {
                found = Some(principal);
            }
        }
        found.cloned().ok_or_else(|| Refusal::new(ProblemType::InvalidToken, "the token is not configured"))
    }
}

/// The digits are checked with the configuration.
fn digest_of_hexadecimal(text: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    for (octet, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        *octet = digit(pair[0]) << 4 | pair.get(1).map_or(0, |low| digit(*low));
    }
    digest
}
