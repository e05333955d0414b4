//! `/v1/jobs`, `/v1/whatif` and `/v1/fabric/drained`.

use super::request::Body;
use super::{App, answer, written};
use crate::service::RequestError;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use srdma_api::ProblemType;
use srdma_api::{DrainLinks, Job, JobPage, NewJob, Problem, WhatIf, WhatIfAnswer};
use srdma_controller_core::{JobRequest, Principal, Refusal};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the previous page.
    after: Option<String>,
    /// Jobs of a page [default: 100].
    limit: Option<usize>,
    /// The owner of the jobs [default: all].
    tenant: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnerQuery {
    /// The owner of the jobs [default: the token's tenant, for operators the tenant `default`].
    tenant: Option<String>,
}

type Listed = Result<Query<ListQuery>, QueryRejection>;
type Owned = Result<Query<OwnerQuery>, QueryRejection>;

fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refusal> {
    match query {
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
    let (tenant, after) = (query.tenant.as_deref(), query.after.as_deref());
    let page = app.service.read(|core| core.job_page(&principal, tenant, after, query.limit))?;
    Ok(answer(StatusCode::OK, &page, None))
}

/// Place jobs: all of them or none.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    params(OwnerQuery),
    request_body = NewJob,
    responses((status = 201, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn place(
    State(app): State<App>,
    principal: Principal,
    owned: Owned,
    body: Body<NewJob>,
) -> Result<Response, RequestError> {
    let request = JobRequest::place(query(owned)?.tenant, body.value);
    Ok(written(StatusCode::CREATED, app.service.change_jobs(&principal, request).await?, None))
}

/// Read a job with its flows: paths and programs.
#[utoipa::path(
    get,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path), OwnerQuery),
    responses((status = 200, body = Job), (status = 404, body = Problem))
)]
pub(super) async fn show(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    owned: Owned,
) -> Result<Response, RequestError> {
    let tenant = query(owned)?.tenant;
    let (body, version) = app.service.job(&principal, tenant.as_deref(), name).await?;
    Ok(written(StatusCode::OK, body, Some(version)))
}

/// Remove a job.
#[utoipa::path(
    delete,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path), OwnerQuery),
    responses((status = 200, body = WhatIfAnswer), (status = 404, body = Problem))
)]
pub(super) async fn remove(
    State(app): State<App>,
    principal: Principal,
    Path(name): Path<String>,
    owned: Owned,
) -> Result<Response, RequestError> {
    let request = JobRequest::remove(query(owned)?.tenant, name);
    Ok(written(StatusCode::OK, app.service.change_jobs(&principal, request).await?, None))
}

/// Compute the effect of a change, without making it.
#[utoipa::path(
    post,
    path = "/v1/whatif",
    params(OwnerQuery),
    request_body = WhatIf,
    responses((status = 200, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn what_if(
    State(app): State<App>,
    principal: Principal,
    owned: Owned,
    body: Body<WhatIf>,
) -> Result<Response, RequestError> {
    let request = JobRequest::what_if(query(owned)?.tenant, body.value);
    Ok(written(StatusCode::OK, app.service.change_jobs(&principal, request).await?, None))
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
    let request = JobRequest::drain(names, drained);
    Ok(written(StatusCode::OK, app.service.change_jobs(&principal, request).await?, None))
}
