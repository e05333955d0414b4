//! `/v1/jobs`, `/v1/whatif` and `/v1/fabric/drained`.

use super::asked::Asked;
use super::{App, answer};
use crate::access::Who;
use crate::refusal::{Kind, Refusal};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use srdma_api::{DrainLinks, Job, JobPage, NewJob, Problem, WhatIf, WhatIfAnswer};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `next` of the page before.
    after: Option<String>,
    /// Jobs of a page; 100 if nobody says.
    limit: Option<usize>,
    /// For new jobs: whose they are to be.
    tenant: Option<String>,
}

type Listed = Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>;

fn query(listed: Listed) -> Result<ListQuery, Refusal> {
    match listed {
        Ok(Query(query)) => Ok(query),
        Err(error) => Err(Refusal::new(Kind::NotUnderstood, error.to_string())),
    }
}

/// A page of the jobs, without their flows.
#[utoipa::path(get, path = "/v1/jobs", params(ListQuery), responses((status = 200, body = JobPage)))]
pub(super) async fn list(State(app): State<App>, who: Who, listed: Listed) -> Result<Response, Refusal> {
    let query = query(listed)?;
    let page = app.shell.look(|core| core.job_page(&who, query.after.as_deref(), query.limit))?;
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
    who: Who,
    listed: Listed,
    asked: Asked<NewJob>,
) -> Result<Response, Refusal> {
    let query = query(listed)?;
    let placed = app.shell.durably(|core| core.place_jobs(&who, query.tenant.as_deref(), &asked.value)).await?;
    Ok(answer(StatusCode::CREATED, &placed, None))
}

/// A job with its flows: paths and programs.
#[utoipa::path(
    get,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem))
)]
pub(super) async fn show(State(app): State<App>, who: Who, Path(name): Path<String>) -> Result<Response, Refusal> {
    let job = app.shell.look(|core| core.job(&who, &name))?;
    let version = job.version;
    Ok(answer(StatusCode::OK, &job, Some(version)))
}

/// Take a job away.
#[utoipa::path(
    delete,
    path = "/v1/jobs/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = WhatIfAnswer), (status = 404, body = Problem))
)]
pub(super) async fn remove(State(app): State<App>, who: Who, Path(name): Path<String>) -> Result<Response, Refusal> {
    let removed = app.shell.durably(|core| core.remove_job(&who, &name)).await?;
    Ok(answer(StatusCode::OK, &removed, None))
}

/// What a change would do. Nothing changes.
#[utoipa::path(
    post,
    path = "/v1/whatif",
    request_body = WhatIf,
    responses((status = 200, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn what_if(State(app): State<App>, who: Who, asked: Asked<WhatIf>) -> Result<Response, Refusal> {
    let thought = app.shell.look(|core| core.what_if(&who, &asked.value))?;
    Ok(answer(StatusCode::OK, &thought, None))
}

/// Take switches or links of the fabric out of use and move their flows, or take them into use again.
#[utoipa::path(
    put,
    path = "/v1/fabric/drained",
    request_body = DrainLinks,
    responses((status = 200, body = WhatIfAnswer), (status = "4XX", body = Problem))
)]
pub(super) async fn drain(State(app): State<App>, who: Who, asked: Asked<DrainLinks>) -> Result<Response, Refusal> {
    let DrainLinks { names, drained } = asked.value;
    let changed = app.shell.durably(|core| core.drain_links(&who, &names, drained)).await?;
    Ok(answer(StatusCode::OK, &changed, None))
}
