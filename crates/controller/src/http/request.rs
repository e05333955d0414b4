//! Parts of a request that handlers use: the principal, the version that it expects, and the body.

use super::App;
use super::connection_limiter::Permit;
use super::memory::MAX_REQUEST_OCTETS;
use crate::service::RequestError;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, IF_MATCH};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use srdma_api::ProblemType;
use srdma_controller_core::{Principal, Refusal};
use srdma_wire::host_address;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The longest idempotency key, octets.
const MAX_KEY_OCTETS: usize = 128;

impl FromRequestParts<App> for Principal {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, RequestError> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix("Bearer ")).map(str::trim);
        let principal = app.gate.access.principal(token)?;
        if let Some(permit) = parts.extensions.get::<Arc<Permit>>() {
            permit.prove(&principal)?;
        }
        Ok(principal)
    }
}

/// The version in `If-Match`.
pub(crate) struct AtVersion(pub(crate) Option<u64>);

impl FromRequestParts<App> for AtVersion {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, RequestError> {
        let Some(text) = text(&parts.headers, IF_MATCH.as_str())? else { return Ok(AtVersion(None)) };
        let version = text.trim_matches('"').parse();
        let refusal = || {
            Refusal::new(
                ProblemType::InvalidRequest,
                format!("If-Match: {text}: expected a version as ETag names it, \"7\""),
            )
        };
        Ok(AtVersion(Some(version.map_err(|_| refusal())?)))
    }
}

/// The key of a request that may be repeated.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, RequestError> {
        match text(&parts.headers, "idempotency-key")? {
            Some(key)
                if key.is_empty() || key.len() > MAX_KEY_OCTETS || !key.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                let text = format!("Idempotency-Key: expected 1 to {MAX_KEY_OCTETS} visible ASCII characters");
                Err(Refusal::new(ProblemType::InvalidRequest, text).into())
            }
            key => Ok(IdempotencyKey(key.map(str::to_owned))),
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Refusal> {
    let value = headers.get(name).map(|value| value.to_str());
    value.transpose().map_err(|_| Refusal::new(ProblemType::InvalidRequest, format!("{name}: expected ASCII")))
}

/// A body of JSON, with its digest.
pub(crate) struct Body<T> {
    pub(crate) value: T,
    pub(crate) digest: String,
}

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, app: &App) -> Result<Self, RequestError> {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > MAX_REQUEST_OCTETS as u64) {
            let text = format!("a body has at most {MAX_REQUEST_OCTETS} octets");
            return Err(Refusal::new(ProblemType::RequestTooLarge, text).into());
        }
        let body = app.gate.memory.read(request).await?;
        let octets: &[u8] = if body.is_empty() { b"{}" } else { &body };
        let value = serde_json::from_slice(octets)
            .map_err(|error| Refusal::new(ProblemType::InvalidRequest, format!("the body: {error}")))?;
        let digest = hex::encode(Sha256::digest(octets));
        Ok(Body { value, digest })
    }
}

/// The number of a group in a path.
pub(crate) fn group_id(text: &str) -> Result<u32, Refusal> {
    text.parse().map_err(|_| Refusal::new(ProblemType::UnknownGroup, format!("{text}: expected the number of a group")))
}

/// An address in a path.
pub(crate) fn address(text: &str) -> Result<Ipv6Addr, Refusal> {
    let refusal = || Refusal::new(ProblemType::InvalidAddress, format!("{text}: expected an IPv6 or IPv4 address"));
    host_address(text).ok_or_else(refusal)
}
