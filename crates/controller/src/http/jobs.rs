//! `/v1/jobs`, `/v1/whatif` and `/v1/fabric/drained`.

use super::request::Body;
use super::{App, answer};
use crate::service::RequestError;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use srdma_api::ProblemType;
use srdma_api::{DrainLinks, Job, JobPage, NewJob, Problem, WhatIf, WhatIfAnswer};
use srdma_controller_core::{Principal, Refusal};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the previous page.
    after: Option<String>,
    /// Jobs of a page [default: 100].
    limit: Option<usize>,
    /// The owner of new jobs.
    tenant: Option<String>,
}

type Listed = Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>;

fn query(listed: Listed) -> Result<ListQuery, Refusal> {
    match listed {
        Ok(Query(query)) => Ok(query),
        Err(error) => Err(Refusal::new(ProblemType::InvalidRequest, error.to_string())),
    }
}

/// List jobs, without their flows.
#[utoipa::path(get, path = "/v1/jobs", params(ListQuery), responses((status = 200, body = JobPage)))]
pub(super) async fn list(
    State(app): State<App>,
    principal: Principal,
    listed: Listed,
) -> Result<Response, RequestError> {
    let query = query(listed)?;
    let page = app.service.read(|core| core.job_page(&principal, query.after.as_deref(), query.limit))?;
    Ok(answer(StatusCode::OK, &page, None))
}

/// Place jobs: all of them or none.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    params(ListQuery),
    request_body = NewJob,
    responses((status = 201, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn place(
    State(app): State<App>,
    principal: Principal,
    listed: Listed,
    body: Body<NewJob>,
) -> Result<Response, RequestError> {
    let query = query(listed)?;
    let placed = app.service.write(|core| core.place_jobs(&principal, query.tenant.as_deref(), &body.value)).await?;
    Ok(answer(StatusCode::CREATED, &placed, None))
}

/// Read a job with its flows: paths and programs.
#[utoipa::path(
    get,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem))
)]
pub(super) async fn show(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<Response, RequestError> {
    let job = app.service.read(|core| core.job(&principal, &name))?;
    let version = job.version;
    Ok(answer(StatusCode::OK, &job, Some(version)))
}

/// Remove a job.
#[utoipa::path(
    delete,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = WhatIfAnswer), (status = 404, body = Problem))
)]
pub(super) async fn remove(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<Response, RequestError> {
    let removed = app.service.write(|core| core.remove_job(&principal, &name)).await?;
    Ok(answer(StatusCode::OK, &removed, None))
}

/// Compute the effect of a change, without making it.
#[utoipa::path(
    post,
    path = "/v1/whatif",
    request_body = WhatIf,
    responses((status = 200, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn what_if(
    State(app): State<App>,
    principal: Principal,
    body: Body<WhatIf>,
) -> Result<Response, RequestError> {
    let effect = app.service.read(|core| core.what_if(&principal, &body.value))?;
    Ok(answer(StatusCode::OK, &effect, None))
}

/// Drain switches or links of the fabric and move their flows, or release them.
#[utoipa::path(
    put,
    path = "/v1/fabric/drained",
    request_body = DrainLinks,
    responses((status = 200, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn drain(
    State(app): State<App>,
    principal: Principal,
    body: Body<DrainLinks>,
) -> Result<Response, RequestError> {
    let DrainLinks { names, drained } = body.value;
    let changed = app.service.write(|core| core.drain_links(&principal, &names, drained)).await?;
    Ok(answer(StatusCode::OK, &changed, None))
}
