//! `/v1/nodes` and `/v1/topology`.

use super::request::Body;
use super::{App, answer};
use crate::service::{RequestError, unix_ms};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use srdma_api::ProblemType;
use srdma_api::{
    DrainRequest, Node, NodeIdentity, NodePage, Problem, Registration, RenameRequest, Session, Sync, SyncAnswer,
    Topology, UnreachableReport,
};
use srdma_controller_core::{Core, Principal, Refusal};
use std::time::Duration;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the previous page.
    after: Option<String>,
    /// Nodes of a page [default: 100].
    limit: Option<usize>,
}

/// List nodes.
#[utoipa::path(get, path = "/v1/nodes", params(ListQuery), responses((status = 200, body = NodePage)))]
pub(super) async fn list(
    State(app): State<App>,
    principal: Principal,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, RequestError> {
    let Query(query) = query.map_err(|error| Refusal::new(ProblemType::InvalidRequest, error.to_string()))?;
    let page = app.service.read(|core| core.nodes(&principal, query.after.as_deref(), query.limit))?;
    Ok(answer(StatusCode::OK, &page, None))
}

/// Register a node.
#[utoipa::path(
    post,
    path = "/v1/nodes",
    request_body = Registration,
    responses((status = 200, body = Session), (status = "4XX", body = Problem))
)]
pub(super) async fn register(
    State(app): State<App>,
    principal: Principal,
    body: Body<Registration>,
) -> Result<Response, RequestError> {
    let session = app.service.write(|core| core.register(&principal, body.value)).await?;
    Ok(answer(StatusCode::OK, &session, None))
}

/// Read a node.
#[utoipa::path(
    get,
    path = "/v1/nodes/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Node), (status = 404, body = Problem))
)]
pub(super) async fn show(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<Response, RequestError> {
    let node = app.service.read(|core| core.node(&principal, &name))?;
    Ok(answer(StatusCode::OK, &node, None))
}

/// Report the state of a node and poll its orders; waits for one.
#[utoipa::path(
    post,
    path = "/v1/nodes/{name}/sync",
    params(("name" = String, Path)),
    request_body = Sync,
    responses((status = 200, body = SyncAnswer), (status = 409, body = Problem))
)]
pub(super) async fn sync(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    body: Body<Sync>,
) -> Result<Response, RequestError> {
    let wait = Duration::from_millis(body.value.wait_ms.min(10_000).into());
    let session = body.value.session;
    let loopback = app.service.write(|core| core.sync(&principal, &name, body.value)).await?;
    let orders = app.service.orders(loopback, wait).await;
    // Another registration meanwhile has replaced the orders.
    app.service.read(|core| core.check_session(loopback, session, &name))?;
    app.service.transaction(|core| core.keep_session(loopback));
    Ok(answer(StatusCode::OK, &SyncAnswer { orders, unreadable: Vec::new() }, None))
}

/// Report neighbours whose BFD session has gone down, and hosts whose links have: trees take other paths and edges.
/// Beside the polls of the node.
#[utoipa::path(
    post,
    path = "/v1/nodes/{name}/unreachable",
    params(("name" = String, Path)),
    request_body = UnreachableReport,
    responses((status = 200), (status = "4XX", body = Problem))
)]
pub(super) async fn unreachable(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    body: Body<UnreachableReport>,
) -> Result<Response, RequestError> {
    app.service.write(|core| core.note_unreachable(&principal, &name, &body.value)).await?;
    Ok(answer(StatusCode::OK, &(), None))
}

/// Changes a node; the response is the node, which then has this name.
async fn changed(
    app: &App,
    principal: &Principal,
    name: &str,
    change: impl FnOnce(&mut Core) -> Result<(), Refusal>,
) -> Result<Response, RequestError> {
    let node = app.service.write(|core| {
        change(core)?;
        core.node(principal, name)
    });
    Ok(answer(StatusCode::OK, &node.await?, None))
}

/// Exclude a node from new trees and reroute existing ones, or admit it again.
#[utoipa::path(
    put,
    path = "/v1/nodes/{name}/drain",
    params(("name" = String, Path)),
    request_body = DrainRequest,
    responses((status = 200, body = Node), (status = "4XX", body = Problem))
)]
pub(super) async fn drain(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    body: Body<DrainRequest>,
) -> Result<Response, RequestError> {
    changed(&app, &principal, &name, |core| core.drain_node(&principal, &name, body.value.drained)).await
}

/// Confirm what a node has registered. The body is what is confirmed, as `unconfirmed` of the node has it.
#[utoipa::path(
    post,
    path = "/v1/nodes/{name}/confirm",
    params(("name" = String, Path)),
    request_body = NodeIdentity,
    responses((status = 200, body = Node), (status = "4XX", body = Problem))
)]
pub(super) async fn confirm(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    body: Body<NodeIdentity>,
) -> Result<Response, RequestError> {
    changed(&app, &principal, &name, |core| core.confirm_node(&principal, &name, &body.value)).await
}

/// Give a node another name. It may use the former one until it registers with the new one.
#[utoipa::path(
    post,
    path = "/v1/nodes/{name}/rename",
    params(("name" = String, Path)),
    request_body = RenameRequest,
    responses((status = 200, body = Node), (status = "4XX", body = Problem))
)]
pub(super) async fn rename(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    body: Body<RenameRequest>,
) -> Result<Response, RequestError> {
    let new_name = &body.value.name;
    changed(&app, &principal, new_name, |core| core.rename_node(&principal, &name, new_name)).await
}

/// Remove a node that is drained or lost, as soon as no group has it. The response is the node as it was.
#[utoipa::path(
    delete,
    path = "/v1/nodes/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Node), (status = "4XX", body = Problem))
)]
pub(super) async fn remove(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<Response, RequestError> {
    let removed = app.service.write(|core| {
        let before = core.node(&principal, &name)?;
        core.remove_node(&principal, &name)?;
        Ok(Node { is_removing: true, ..before })
    });
    Ok(answer(StatusCode::OK, &removed.await?, None))
}

/// Read the topology: nodes, links and their load.
#[utoipa::path(get, path = "/v1/topology", responses((status = 200, body = Topology)))]
pub(super) async fn topology(State(app): State<App>, principal: Principal) -> Result<Response, RequestError> {
    let topology = app.service.read(|core| core.topology(&principal, unix_ms()))?;
    Ok(answer(StatusCode::OK, &topology, None))
}
