//! Bearer tokens, and the principals that they authenticate.

use crate::config::Config;
use hex::FromHex;
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
            // The digits are checked with the configuration; no token has the digest zero.
            (<[u8; 32]>::from_hex(&token.sha256).unwrap_or_default(), principal)
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
