//! `/v1/groups`.

use super::request::{AtVersion, Body, IdempotencyKey, address, group_id};
use super::{App, answer, written};
use crate::service::RequestError;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use srdma_api::ProblemType;
use srdma_api::{
    CommitRequest, Group, GroupPage, GroupState, NewGroup, NewReceiver, Problem, Receiver, SourceOrder, SourceReport,
    SourceService,
};
use srdma_controller_core::{Core, Principal, Refusal};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

/// The longest wait of a commit.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the previous page.
    after: Option<u32>,
    /// Groups of a page [default: 100].
    limit: Option<usize>,
    /// Only groups of this tenant.
    tenant: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateQuery {
    /// The owner; a tenant's own token implies it.
    tenant: Option<String>,
}

/// List groups.
#[utoipa::path(get, path = "/v1/groups", params(ListQuery), responses((status = 200, body = GroupPage)))]
pub(super) async fn list(
    State(app): State<App>,
    principal: Principal,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, RequestError> {
    let Query(query) = query.map_err(|error| Refusal::new(ProblemType::InvalidRequest, error.to_string()))?;
    let page = app.service.read(|core| core.groups(&principal, query.tenant.as_deref(), query.after, query.limit))?;
    Ok(answer(StatusCode::OK, &page, None))
}

/// Create a group. Receivers may join before it is committed.
#[utoipa::path(
    post,
    path = "/v1/groups",
    params(CreateQuery, ("Idempotency-Key" = Option<String>, Header, description = "Repeated: the same response")),
    request_body = NewGroup,
    responses((status = 201, body = Group), (status = "4XX", body = Problem))
)]
pub(super) async fn create(
    State(app): State<App>,
    principal: Principal,
    IdempotencyKey(key): IdempotencyKey,
    query: Result<Query<CreateQuery>, axum::extract::rejection::QueryRejection>,
    body: Body<NewGroup>,
) -> Result<Response, RequestError> {
    let Query(query) = query.map_err(|error| Refusal::new(ProblemType::InvalidRequest, error.to_string()))?;
    let Body { value, digest } = body;
    // The same body for another tenant is another request.
    let digest = query.tenant.as_ref().map_or(digest.clone(), |tenant| format!("{digest} for {tenant}"));
    let (status, body, version) = app
        .service
        .write(|core| {
            if let Some(key) = &key
                && let Some(kept) = core.stored_answer(&principal, key, &digest)?
            {
                return Ok((kept.status, kept.body.clone(), None));
            }
            let id = core.create_group(&principal, query.tenant.as_deref(), value)?;
            let (group, version) = core.group(&principal, id)?;
            let body = serde_json::to_string(&group).unwrap_or_default();
            if let Some(key) = &key {
                core.store_answer(&principal, key, digest, StatusCode::CREATED.as_u16(), body.clone());
            }
            Ok((StatusCode::CREATED.as_u16(), body, Some(version)))
        })
        .await?;
    Ok(written(StatusCode::from_u16(status).unwrap_or(StatusCode::CREATED), body, version))
}

/// Read a group with its tree.
#[utoipa::path(
    get,
    path = "/v1/groups/{id}",
    params(("id" = u32, Path)),
    responses((status = 200, body = Group), (status = 404, body = Problem))
)]
pub(super) async fn show(
    State(app): State<App>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    let (group, version) = app.service.read(|core| core.group(&principal, id))?;
    Ok(answer(StatusCode::OK, &group, Some(version)))
}

/// Read the group that resumes a group, whose source has died (D193). The latter may not exist any more.
#[utoipa::path(
    get,
    path = "/v1/groups/{id}/successor",
    params(("id" = u32, Path)),
    responses((status = 200, body = Group), (status = 404, body = Problem))
)]
pub(super) async fn successor(
    State(app): State<App>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    // A receiver acts upon it: what it says is durable.
    let (group, version) = app.service.write(|core| core.successor(&principal, id)).await?;
    Ok(answer(StatusCode::OK, &group, Some(version)))
}

/// Compute the tree and install the group on all nodes (D31).
#[utoipa::path(
    post,
    path = "/v1/groups/{id}/commit",
    params(("id" = u32, Path), ("If-Match" = Option<String>, Header)),
    request_body = CommitRequest,
    responses((status = 200, body = Group), (status = "4XX", body = Problem))
)]
pub(super) async fn commit(
    State(app): State<App>,
    principal: Principal,
    AtVersion(version): AtVersion,
    Path(id): Path<String>,
    body: Body<CommitRequest>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    app.service.write(|core| core.commit_group(&principal, id, version)).await?;
    let wait = Duration::from_millis(body.value.wait_ms.into()).min(LONGEST_WAIT);
    let deadline = Instant::now() + wait;
    let is_final = |state: &Option<GroupState>| *state != Some(GroupState::Creating);
    app.service.read_until(id, deadline, |core| core.group_state(id), is_final).await;
    let (group, version) = app.service.write(|core| core.group(&principal, id)).await?;
    Ok(answer(StatusCode::OK, &group, Some(version)))
}

/// Close a group at all nodes. The response is the group as it was.
#[utoipa::path(
    delete,
    path = "/v1/groups/{id}",
    params(("id" = u32, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 200, body = Group), (status = "4XX", body = Problem))
)]
pub(super) async fn close(
    State(app): State<App>,
    principal: Principal,
    AtVersion(version): AtVersion,
    Path(id): Path<String>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    let closed = app.service.write(|core| {
        let (mut group, _) = core.group(&principal, id)?;
        core.close_group(&principal, id, version)?;
        group.summary.state = core.group_state(id).unwrap_or(GroupState::Closed);
        Ok(group)
    });
    Ok(answer(StatusCode::OK, &closed.await?, None))
}

/// Read a receiver.
#[utoipa::path(
    get,
    path = "/v1/groups/{id}/receivers/{address}",
    params(("id" = u32, Path), ("address" = String, Path)),
    responses((status = 200, body = Receiver), (status = 404, body = Problem))
)]
pub(super) async fn receiver(
    State(app): State<App>,
    principal: Principal,
    Path((id, receiver)): Path<(String, String)>,
) -> Result<Response, RequestError> {
    let (id, address) = (group_id(&id)?, address(&receiver)?);
    let (receiver, version) = app.service.read(|core| core.receiver(&principal, id, address))?;
    Ok(answer(StatusCode::OK, &receiver, Some(version)))
}

/// Add a receiver; may be repeated.
#[utoipa::path(
    put,
    path = "/v1/groups/{id}/receivers/{address}",
    params(("id" = u32, Path), ("address" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body = NewReceiver,
    responses((status = 200, body = Receiver), (status = "4XX", body = Problem))
)]
pub(super) async fn join(
    State(app): State<App>,
    principal: Principal,
    AtVersion(version): AtVersion,
    Path((id, receiver)): Path<(String, String)>,
    body: Body<NewReceiver>,
) -> Result<Response, RequestError> {
    let (id, address) = (group_id(&id)?, address(&receiver)?);
    entered(&app, &principal, (id, address), |core| core.join(&principal, id, address, body.value, version)).await
}

/// The answer to a request that enters a receiver: the receiver.
pub(super) async fn entered(
    app: &App,
    principal: &Principal,
    (id, address): (u32, Ipv6Addr),
    enter: impl FnOnce(&mut Core) -> Result<(), Refusal>,
) -> Result<Response, RequestError> {
    let entered = app.service.write(|core| {
        enter(core)?;
        core.receiver(principal, id, address)
    });
    let (receiver, version) = entered.await?;
    Ok(answer(StatusCode::OK, &receiver, Some(version)))
}

/// Remove a receiver; may be repeated.
#[utoipa::path(
    delete,
    path = "/v1/groups/{id}/receivers/{address}",
    params(("id" = u32, Path), ("address" = String, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 200, body = Receiver), (status = "4XX", body = Problem))
)]
pub(super) async fn leave(
    State(app): State<App>,
    principal: Principal,
    AtVersion(version): AtVersion,
    Path((id, receiver)): Path<(String, String)>,
) -> Result<Response, RequestError> {
    let (id, address) = (group_id(&id)?, address(&receiver)?);
    let left = app.service.write(|core| {
        let before = core.receiver(&principal, id, address)?.0;
        core.leave(&principal, id, address, version)?;
        Ok(Receiver { state: srdma_api::ReceiverState::Leaving, ..before })
    });
    Ok(answer(StatusCode::OK, &left.await?, None))
}

/// State where a source serves the version that it published last, for receivers that join late (D190); may be
/// repeated.
#[utoipa::path(
    put,
    path = "/v1/groups/{id}/service",
    params(("id" = u32, Path)),
    request_body = SourceService,
    responses((status = 200), (status = "4XX", body = Problem))
)]
pub(super) async fn service(
    State(app): State<App>,
    principal: Principal,
    Path(id): Path<String>,
    body: Body<SourceService>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    app.service.write(|core| core.state_service(&principal, id, body.value)).await?;
    Ok(answer(StatusCode::OK, &(), None))
}

/// Report the state of a source and poll its order; waits for an order that differs from the last.
#[utoipa::path(
    post,
    path = "/v1/groups/{id}/source",
    params(("id" = u32, Path)),
    request_body = SourceReport,
    responses((status = 200, body = SourceOrder), (status = "4XX", body = Problem))
)]
pub(super) async fn source(
    State(app): State<App>,
    principal: Principal,
    Path(id): Path<String>,
    body: Body<SourceReport>,
) -> Result<Response, RequestError> {
    let id = group_id(&id)?;
    let report = body.value;
    let wait = Duration::from_millis(report.wait_ms.min(10_000).into()).min(app.service.longest_source_wait());
    let is_known = |order: &SourceOrder| match (order, report.round) {
        (SourceOrder::Wait, _) => true,
        (SourceOrder::Send { round }, Some(known)) => *round == known && !report.pausing,
        (SourceOrder::Pause { round }, Some(known)) => *round == known && report.pausing,
        (SourceOrder::Send { .. } | SourceOrder::Pause { .. }, None) | (SourceOrder::End, _) => false,
    };
    polled(&app, id, wait, |core| core.report_source(&principal, id, report), |core| core.source_order(id), is_known)
        .await
}

/// The answer to a report, which is a poll too: the order, when it is one that the reporter does not know, or the wait
/// is over.
pub(super) async fn polled<O: Serialize>(
    app: &App,
    group: u32,
    wait: Duration,
    report: impl FnOnce(&mut Core) -> Result<O, Refusal>,
    order: impl Fn(&Core) -> O,
    is_known: impl Fn(&O) -> bool,
) -> Result<Response, RequestError> {
    let deadline = Instant::now() + wait;
    let mut found = app.service.write(report).await?;
    if is_known(&found) {
        found = app.service.read_until(group, deadline, order, |order| !is_known(order)).await;
    }
    // The order may depend on writes that are not durable yet.
    app.service.write(|_| Ok(())).await?;
    Ok(answer(StatusCode::OK, &found, None))
}
