//! `/v1/foreign-groups`: groups that nodes have and the store does not.

use super::{App, answer};
use crate::service::RequestError;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use srdma_api::{ForeignGroups, Problem, ProblemType};
use srdma_controller_core::{Principal, Refusal};

/// List the groups that nodes have and the store does not.
#[utoipa::path(get, path = "/v1/foreign-groups", responses((status = 200, body = ForeignGroups)))]
pub(super) async fn list(State(app): State<App>, principal: Principal) -> Result<Response, RequestError> {
    let groups = app.service.read(|core| core.foreign_groups(&principal))?;
    Ok(answer(StatusCode::OK, &groups, None))
}

/// Adopt a group of the controller's own store, which was created after the backup that was restored.
#[utoipa::path(
    post,
    path = "/v1/foreign-groups/{store}/{group}/adopt",
    params(("store" = String, Path), ("group" = u32, Path)),
    responses((status = 200, body = ForeignGroups), (status = "4XX", body = Problem))
)]
pub(super) async fn adopt(
    State(app): State<App>,
    principal: Principal,
    Path((store, group)): Path<(String, u32)>,
) -> Result<Response, RequestError> {
    let store = parse(&store)?;
    let groups = app.service.write(|core| {
        core.adopt_foreign(&principal, store, group)?;
        core.foreign_groups(&principal)
    });
    Ok(answer(StatusCode::OK, &groups.await?, None))
}

/// Remove a group from the nodes that have it.
#[utoipa::path(
    delete,
    path = "/v1/foreign-groups/{store}/{group}",
    params(("store" = String, Path), ("group" = u32, Path)),
    responses((status = 200, body = ForeignGroups), (status = "4XX", body = Problem))
)]
pub(super) async fn remove(
    State(app): State<App>,
    principal: Principal,
    Path((store, group)): Path<(String, u32)>,
) -> Result<Response, RequestError> {
    let store = parse(&store)?;
    let groups = app.service.write(|core| {
        core.remove_foreign(&principal, store, group)?;
        core.foreign_groups(&principal)
    });
    Ok(answer(StatusCode::OK, &groups.await?, None))
}

/// The identity of a store: 16 hexadecimal digits.
fn parse(store: &str) -> Result<u64, Refusal> {
    let is_hexadecimal = store.len() == 16 && store.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(store, 16).ok().filter(|_| is_hexadecimal);
    number.ok_or_else(|| {
        Refusal::new(ProblemType::InvalidRequest, format!("store {store}: expected 16 hexadecimal digits"))
    })
}
