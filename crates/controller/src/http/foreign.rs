//! `/v1/foreign-groups`: groups that nodes have and the store does not.

use super::{App, answer};
use crate::service::RequestError;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use srdma_api::{ForeignGroups, Problem, ProblemType, store_identity};
use srdma_controller_core::{Core, Principal, Refusal};

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
    changed(&app, &principal, &store, |core, store| core.adopt_foreign(&principal, store, group)).await
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
    changed(&app, &principal, &store, |core, store| core.remove_foreign(&principal, store, group)).await
}

/// Changes groups of a store; the response is the list.
async fn changed(
    app: &App,
    principal: &Principal,
    store: &str,
    change: impl FnOnce(&mut Core, u64) -> Result<(), Refusal>,
) -> Result<Response, RequestError> {
    let store = store_identity(store).map_err(|error| Refusal::new(ProblemType::InvalidRequest, error))?;
    let groups = app.service.write(|core| {
        change(core, store)?;
        core.foreign_groups(principal)
    });
    Ok(answer(StatusCode::OK, &groups.await?, None))
}
