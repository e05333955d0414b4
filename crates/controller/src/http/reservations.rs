//! Receivers that join in two steps (D187).

use super::App;
use super::groups::{entered, polled};
use super::request::{AtVersion, Body, address, group_id};
use crate::service::RequestError;
use axum::extract::{Path, State};
use axum::response::Response;
use srdma_api::{NewReceiver, Problem, Receiver, ReceiverOrder, ReceiverReport};
use srdma_controller_core::{Core, Principal};
use std::time::Duration;

/// Reserve a place for a receiver that joins when it is ready; may be repeated.
#[utoipa::path(
    put,
    path = "/v1/groups/{id}/receivers/{address}/reservation",
    params(("id" = u32, Path), ("address" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body = NewReceiver,
    responses((status = 200, body = Receiver), (status = "4XX", body = Problem))
)]
pub(super) async fn reserve(
    State(app): State<App>,
    principal: Principal,
    AtVersion(version): AtVersion,
    Path((id, receiver)): Path<(String, String)>,
    body: Body<NewReceiver>,
) -> Result<Response, RequestError> {
    let (id, address) = (group_id(&id)?, address(&receiver)?);
    entered(&app, &principal, (id, address), |core| core.reserve(&principal, id, address, body.value, version)).await
}

/// Report the state of a receiver that has a reservation and poll its order; waits for an order that differs from the
/// last.
#[utoipa::path(
    post,
    path = "/v1/groups/{id}/receivers/{address}/report",
    params(("id" = u32, Path), ("address" = String, Path)),
    request_body = ReceiverReport,
    responses((status = 200, body = ReceiverOrder), (status = "4XX", body = Problem))
)]
pub(super) async fn report(
    State(app): State<App>,
    principal: Principal,
    Path((id, receiver)): Path<(String, String)>,
    body: Body<ReceiverReport>,
) -> Result<Response, RequestError> {
    let (id, address) = (group_id(&id)?, address(&receiver)?);
    let report = body.value;
    let wait = Duration::from_millis(report.wait_ms.into()).min(app.service.longest_receiver_wait());
    let order = |core: &Core| core.receiver_order(id, address, report.qpn);
    let received = |core: &mut Core| core.report_receiver(&principal, id, address, report);
    polled(&app, id, wait, received, order, |order| report.knows(order)).await
}
