//! `/v1/nodes` and `/v1/topology`.

use super::asked::Asked;
use super::{App, answer};
use crate::access::Who;
use crate::refusal::{Kind, Refusal};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use srdma_api::{DrainRequest, Hello, Node, NodePage, Problem, Session, Sync, SyncAnswer, Topology};
use std::time::{Duration, Instant};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the page before.
    after: Option<String>,
    /// Nodes of a page; 100 if nobody says.
    limit: Option<usize>,
}

/// A page of the nodes.
#[utoipa::path(get, path = "/v1/nodes", params(ListQuery), responses((status = 200, body = NodePage)))]
pub(super) async fn list(
    State(app): State<App>,
    who: Who,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::new(Kind::NotUnderstood, error.to_string()))?;
    let page = app.shell.look(|core| core.nodes(&who, query.after.as_deref(), query.limit))?;
    Ok(answer(StatusCode::OK, &page, None))
}

/// A node presents itself.
#[utoipa::path(
    post,
    path = "/v1/nodes",
    request_body = Hello,
    responses((status = 200, body = Session), (status = "4XX", body = Problem))
)]
pub(super) async fn hello(State(app): State<App>, who: Who, asked: Asked<Hello>) -> Result<Response, Refusal> {
    let session = app.shell.durably(|core| core.hello(&who, asked.value, Instant::now())).await?;
    Ok(answer(StatusCode::OK, &session, None))
}

/// A node.
#[utoipa::path(
    get,
    path = "/v1/nodes/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Node), (status = 404, body = Problem))
)]
pub(super) async fn show(State(app): State<App>, who: Who, Path(name): Path<String>) -> Result<Response, Refusal> {
    let node = app.shell.look(|core| core.node(&who, &name))?;
    Ok(answer(StatusCode::OK, &node, None))
}

/// A node reports, and asks for orders; waits for one.
#[utoipa::path(
    post,
    path = "/v1/nodes/{name}/sync",
    params(("name" = String, Path)),
    request_body = Sync,
    responses((status = 200, body = SyncAnswer), (status = 409, body = Problem))
)]
pub(super) async fn sync(
    State(app): State<App>,
    who: Who,
    Path(name): Path<String>,
    asked: Asked<Sync>,
) -> Result<Response, Refusal> {
    let wait = Duration::from_millis(asked.value.wait_ms.min(10_000).into());
    let session = asked.value.session;
    let loopback = app.shell.durably(|core| core.sync(&who, &name, asked.value, Instant::now())).await?;
    let orders = app.shell.orders(loopback, wait).await?;
    // Another hello meanwhile has taken the orders' place.
    app.shell.look(|core| core.is_session(loopback, session, &name))?;
    app.shell.with(|core| core.heard(loopback, Instant::now()));
    Ok(answer(StatusCode::OK, &SyncAnswer { orders }, None))
}

/// Have new trees go round a node, and move those that can be; or let them through again.
#[utoipa::path(
    put,
    path = "/v1/nodes/{name}/drain",
    params(("name" = String, Path)),
    request_body = DrainRequest,
    responses((status = 200, body = Node), (status = "4XX", body = Problem))
)]
pub(super) async fn drain(
    State(app): State<App>,
    who: Who,
    Path(name): Path<String>,
    asked: Asked<DrainRequest>,
) -> Result<Response, Refusal> {
    let drained = app.shell.durably(|core| {
        core.drain(&who, &name, asked.value.drained)?;
        core.node(&who, &name)
    });
    Ok(answer(StatusCode::OK, &drained.await?, None))
}

/// The network as a picture shows it: nodes, links and how much they carry.
#[utoipa::path(get, path = "/v1/topology", responses((status = 200, body = Topology)))]
pub(super) async fn topology(State(app): State<App>, who: Who) -> Result<Response, Refusal> {
    let topology = app.shell.look(|core| core.topology(&who))?;
    Ok(answer(StatusCode::OK, &topology, None))
}
