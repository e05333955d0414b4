//! Bearer tokens, and the principals that they authenticate.

use crate::config::Config;
use hex::FromHex;
use sha2::{Digest, Sha256};
use srdma_api::ProblemType;
use srdma_controller_core::{Principal, Refusal, Role};
use std::sync::{PoisonError, RwLock};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// The tokens, which a reload of the configuration replaces.
#[derive(Debug)]
pub(crate) struct Access {
    tokens: RwLock<Tokens>,
    /// Changes when a token is withdrawn.
    withdrawn: watch::Sender<()>,
}

/// Digests, and the principals whose tokens have them.
type Tokens = Vec<([u8; 32], Principal)>;

impl Access {
    pub(crate) fn new(config: &Config) -> Self {
        Access { tokens: RwLock::new(Self::tokens(config)), withdrawn: watch::Sender::new(()) }
    }

    fn tokens(config: &Config) -> Tokens {
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
        tokens.collect()
    }

    /// Replaces the tokens by those of another configuration.
    pub(crate) fn replace(&self, config: &Config) {
        let tokens = Self::tokens(config);
        let mut present = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let is_withdrawn = present.iter().any(|token| !tokens.contains(token));
        *present = tokens;
        drop(present);
        if is_withdrawn {
            self.withdrawn.send_replace(());
        }
    }

    /// Changes when a token is withdrawn: connections may have been opened by it.
    pub(crate) fn withdrawals(&self) -> watch::Receiver<()> {
        self.withdrawn.subscribe()
    }

    /// The principal of a token. Without configured tokens every request is from an administrator.
    pub(crate) fn principal(&self, token: Option<&str>) -> Result<Principal, Refusal> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        if tokens.is_empty() {
            return Ok(Principal { name: "local".to_owned(), role: Role::Admin, tenant: None, node: None });
        }
        let Some(token) = token else {
            return Err(Refusal::new(ProblemType::MissingToken, "expected the header `Authorization: Bearer TOKEN`"));
        };
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // All are compared, so that the time does not depend on which one matches.
        let mut found = None;
        for (known, principal) in tokens.iter() {
            if bool::from(known.ct_eq(&digest)) {
                found = Some(principal);
            }
        }
        found.cloned().ok_or_else(|| Refusal::new(ProblemType::InvalidToken, "the token is not configured"))
    }
}
