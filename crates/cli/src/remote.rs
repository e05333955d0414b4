//! Connection to a controller: common options of commands, and its errors.

use crate::terminal::escaped;
use anyhow::{Result, bail};
use srdma::DeviceOptions;
use srdma_api::{Client, ClientError, ProblemType};
use srdma_host::DeviceName;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// Exit code of a request that the controller has refused.
const REFUSED: u8 = 1;

/// Bearer token and CA bundle.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TrustArguments {
    /// File with the bearer token [default: environment variable SRDMA_TOKEN_FILE].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// CA bundle (PEM) that verifies the controller's certificate [default: SRDMA_CA, or the system's].
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// The controller, with credentials.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ControllerArguments {
    /// URL of the controller, or several separated by commas [default: environment variable SRDMA_CONTROLLER, or
    /// port 8470 of the local host].
    #[arg(long, value_name = "URL")]
    controller: Option<String>,
    #[command(flatten)]
    trust: TrustArguments,
}

/// Address and device of this host.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct QueuePairArguments {
    /// Address of this host in the group [default: the source address for packets to the Proxy Address].
    #[arg(long, value_name = "ADDRESS", value_parser = crate::endpoint::parse_address)]
    address: Option<Ipv6Addr>,
    /// Use a queue pair of this RDMA device, such as rxe0, mlx5_0 or an address of it, instead of a UDP socket
    /// [default: that of SRDMA_PROVIDER].
    #[arg(long, value_name = "NAME|ADDRESS")]
    device: Option<DeviceName>,
}

impl ControllerArguments {
    /// A client of the controller.
    pub(crate) fn client(&self) -> Result<Client> {
        self.trust.client(&self.url())
    }

    /// The controller's URL, or several separated by commas.
    pub(crate) fn url(&self) -> String {
        let url = self.controller.clone().or_else(|| std::env::var("SRDMA_CONTROLLER").ok());
        url.unwrap_or_else(|| "http://[::1]:8470".to_owned())
    }

    /// A device of the host library at the controller.
    pub(crate) fn device_options(&self, queue_pair: &QueuePairArguments) -> DeviceOptions {
        self.trust.device_options(&self.url(), queue_pair)
    }
}

impl TrustArguments {
    /// A client of the controller at this URL.
    pub(crate) fn client(&self, url: &str) -> Result<Client> {
        let (token_file, ca_file) = self.files();
        let token = token_file.as_deref().map(token).transpose()?;
        Ok(Client::new(url, token, ca_file.as_deref())?)
    }

    /// A device of the host library at the controller at this URL.
    pub(crate) fn device_options(&self, url: &str, queue_pair: &QueuePairArguments) -> DeviceOptions {
        let (token_file, ca_file) = self.files();
        let options = DeviceOptions { controller: url.to_owned(), ..DeviceOptions::from_environment() };
        let (provider, address) = match &queue_pair.device {
            None => (options.provider, queue_pair.address),
            Some(DeviceName::Name(name)) => (format!("verbs:{name}"), queue_pair.address),
            Some(DeviceName::Address(address)) => ("verbs".to_owned(), Some(*address)),
        };
        DeviceOptions { provider, token_file, ca_file, address, ..options }
    }

    /// The token file and the CA bundle, as given or of the environment.
    fn files(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        let or_environment = |given: &Option<PathBuf>, name: &str| {
            given.clone().or_else(|| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
        };
        (or_environment(&self.token_file, "SRDMA_TOKEN_FILE"), or_environment(&self.ca, "SRDMA_CA"))
    }
}

/// An error of the host library: that of the controller as a request of any other command has it.
pub(crate) fn of_library(error: srdma::Error) -> anyhow::Error {
    match error {
        srdma::Error::Controller(error) => error.into(),
        other => anyhow::Error::msg(other.to_string()),
    }
}

/// Set when the process is asked to end by SIGINT or SIGTERM; the second time it ends at once.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&is_interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    Ok(is_interrupted)
}

/// Reads a token file.
pub(crate) fn token(file: &Path) -> Result<String> {
    Ok(srdma_toml_error::read_private(file)?.trim().to_owned())
}

/// A group at a controller, written `http://[::1]:8470/7`: the controller's URL and the group's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupUrl {
    pub(crate) controller: String,
    pub(crate) id: u32,
}

impl GroupUrl {
    /// Whether a text is a URL rather than the name of a file.
    pub(crate) fn is_url(text: &str) -> bool {
        text.starts_with("http://") || text.starts_with("https://")
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parts = text.rsplit_once('/').and_then(|(url, id)| Some((url, id.parse().ok()?)));
        match parts {
            Some((url, id)) if Client::new(url, None, None).is_ok() => Ok(GroupUrl { controller: url.to_owned(), id }),
            Some(_) | None => bail!(
                "{text}: expected a controller and the number of a group, such as http://[::1]:8470/7; srdma group \
                 list shows them"
            ),
        }
    }
}

/// Maps a refusal of the controller to its exit code.
pub(crate) fn finish(result: Result<ExitCode>) -> Result<ExitCode> {
    let Err(error) = &result else { return result };
    let problem = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>()?.problem());
    let Some(problem) = problem else { return result };
    let hint = match problem.problem_type() {
        Some(ProblemType::MissingToken | ProblemType::InvalidToken) => ": give the bearer token by --token-file",
        Some(ProblemType::VersionMismatch | ProblemType::Busy) => ": try again",
        Some(ProblemType::UnknownGroup) => ": srdma group list shows the groups",
        _ => "",
    };
    eprintln!("srdma: {}{hint}", escaped(&format!("{error:#}")));
    Ok(ExitCode::from(REFUSED))
}

/// An idempotency key, the same for all transmissions of a request.
pub(crate) fn idempotency_key() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{:x}-{now:x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_url_and_a_number() {
        let url = GroupUrl::parse("http://[::1]:8470/7").unwrap();
        assert_eq!((url.controller.as_str(), url.id), ("http://[::1]:8470", 7));
        for wrong in ["http://[::1]:8470", "http://[::1]:8470/", "http://[::1]:8470/x", "http:///7", "http://a/v1/7"] {
            let error = GroupUrl::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{wrong}: expected a controller and the number")), "{error}");
        }
        assert!(GroupUrl::is_url("https://c/1") && !GroupUrl::is_url("group.toml"));
    }
}
