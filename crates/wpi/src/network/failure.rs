//! Why a part is not propagated or received.

use crate::core::Target;
use srdma::Error;
use srdma_api::ClientError;
use std::io;
use tonic::{Code, Status};

/// Targets that a message names at most.
const MAX_NAMED: usize = 8;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}", named(.0))]
    Targets(Vec<(Target, Status)>),
    #[error("{0}")]
    Library(#[from] Error),
    #[error("the controller: {0}")]
    Controller(#[from] ClientError),
    #[error("the buffer: {0}")]
    Memory(#[from] io::Error),
    #[error("not in time")]
    Timeout,
    #[error("this node is in as many groups as it may be, and none has ended in time")]
    Occupied,
    #[error("the driver is stopping")]
    Stopping,
    #[error("the source's driver has given up")]
    SourceGone,
    #[error("group {0} at the controller is not of this invitation: it is not followed")]
    Forged(u32),
    #[error("group {0} has begun already")]
    Late(u32),
    #[error("the version is not the part of the buffer that was announced")]
    OtherContent,
    #[error("a defect of the driver, which its log shows")]
    Panicked,
}

impl Failure {
    /// The failure of parts that were sent at the same time: the targets of all, unless another reason came first.
    pub(crate) fn of_all(failures: Vec<Failure>) -> Result<(), Failure> {
        let mut lacking = Vec::new();
        for failure in failures {
            match failure {
                Failure::Targets(targets) => lacking.extend(targets),
                other => return Err(other),
            }
        }
        lacking.sort_by(|(one, _), (other, _)| one.cmp(other));
        if lacking.is_empty() { Ok(()) } else { Err(Failure::Targets(lacking)) }
    }
}

fn named(targets: &[(Target, Status)]) -> String {
    let one = |(target, status): &(Target, Status)| format!("target {target}: {}", status.message());
    let mut text = targets.iter().take(MAX_NAMED).map(one).collect::<Vec<_>>().join("; ");
    if let Some(more) = targets.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let code = match &failure {
            // What all of them say; a mixture says no more than that it has failed.
            Failure::Targets(targets) => {
                let first = targets.first().map_or(Code::Internal, |(_, status)| status.code());
                let is_common = targets.iter().all(|(_, status)| status.code() == first);
                if is_common { first } else { Code::Unavailable }
            }
            Failure::Timeout | Failure::Occupied => Code::DeadlineExceeded,
            Failure::Library(Error::Timeout | Error::NotReady { .. }) => Code::DeadlineExceeded,
            Failure::Library(_) | Failure::Controller(_) | Failure::Stopping => Code::Unavailable,
            Failure::SourceGone => Code::Cancelled,
            Failure::Forged(_) => Code::PermissionDenied,
            Failure::Late(_) => Code::FailedPrecondition,
            Failure::OtherContent => Code::DataLoss,
            Failure::Memory(_) | Failure::Panicked => Code::Internal,
        };
        Status::new(code, failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(codes: &[Code]) -> Status {
        let target = |number: usize| Target::parse(&format!("n{number}")).expect("a target");
        let targets = codes.iter().enumerate().map(|(at, code)| (target(at), Status::new(*code, "why"))).collect();
        Failure::Targets(targets).into()
    }

    #[test]
    fn targets_are_named_with_what_they_have_in_common() {
        let status = failed(&[Code::NotFound, Code::NotFound]);
        assert_eq!((status.code(), status.message()), (Code::NotFound, "target n0: why; target n1: why"));
        assert_eq!(failed(&[Code::NotFound, Code::DeadlineExceeded]).code(), Code::Unavailable);
        let many = failed(&[Code::Unavailable; 10]);
        assert!(many.message().ends_with("target n7: why; and 2 more"), "{}", many.message());
    }

    #[test]
    fn the_targets_of_all_parts_are_named() {
        let of = |name: &str| {
            let target = Target::parse(name).expect("a target");
            Failure::Targets(vec![(target, Status::not_found("why"))])
        };
        assert!(Failure::of_all(Vec::new()).is_ok());
        let both = Failure::of_all(vec![of("b"), of("a")]).expect_err("two");
        assert_eq!(both.to_string(), "target a: why; target b: why");
        let other = Failure::of_all(vec![of("b"), Failure::Timeout]).expect_err("time");
        assert_eq!(other.to_string(), "not in time");
    }
}
