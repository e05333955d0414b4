//! Checks of the head of a request, before it is served: the host that it names, the page that it is from, and the type
//! of its body (D100).
//!
//! A controller without tokens takes each request for one of an administrator. A browser on the same machine sends
//! requests for any page that it shows, and a page whose name resolves to a loopback address reads the responses, too.

use crate::config::Config;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method};
use srdma_api::{ProblemType, is_loopback_host};
use srdma_controller_core::Refusal;

/// The checks of one controller.
#[derive(Clone, Debug)]
pub(crate) struct OriginCheck {
    /// `None` with tokens, which no browser adds by itself.
    names: Option<Names>,
}

/// Names of a controller without tokens, beside those of the loopback.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Of `url` in the configuration: its origin, and its host.
    url: Option<(String, String)>,
}

impl OriginCheck {
    pub(crate) fn new(config: &Config) -> Self {
        let url = config.url.as_deref().and_then(|url| {
            let (scheme, rest) = url.split_once("://")?;
            let authority = rest.split(['/', '?', '#']).next()?;
            Some((format!("{scheme}://{authority}"), host(authority)?.to_owned()))
        });
        OriginCheck { names: config.token.is_empty().then_some(Names { url }) }
    }

    /// Refuses a request that names another host, that another origin's page has sent, or whose body is not JSON.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Refusal> {
        if let Some(names) = &self.names {
            names.check_host(head)?;
            names.check_origin(head)?;
        }
        check_body_type(head)
    }
}

impl Names {
    fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        let mut hosts = head.headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            (_, _) => None,
        };
        let is_own = |authority: &str| host(authority).is_some_and(|host| self.is_own(host));
        if named.is_some_and(is_own) && head.uri.authority().map(Authority::as_str).is_none_or(is_own) {
            return Ok(());
        }
        let named = named.unwrap_or("no valid host");
        let text = format!(
            "the request names {named:?}: without tokens only localhost, loopback addresses and the host of `url` in \
             the configuration are accepted"
        );
        Err(Refusal::new(ProblemType::ForeignHost, text))
    }

    fn is_own(&self, host: &str) -> bool {
        is_loopback_host(host) || self.url.as_ref().is_some_and(|(_, own)| own.eq_ignore_ascii_case(host))
    }

    fn check_origin(&self, head: &Parts) -> Result<(), Refusal> {
        let foreign = |from: &str| {
            let text = format!("the request is from {from}: without tokens only this controller's page is accepted");
            Err(Refusal::new(ProblemType::ForeignOrigin, text))
        };
        for origin in head.headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !self.is_own_origin(origin, &head.headers) {
                return foreign(&format!("a page of {origin:?}"));
            }
        }
        // A link to the page may be followed: the page alone tells nothing.
        let is_link = head.method == Method::GET
            && head.uri.path() == "/"
            && text(&head.headers, &HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
        match text(&head.headers, &HeaderName::from_static("sec-fetch-site")) {
            Some(site @ ("cross-site" | "same-site")) if !is_link => foreign(&format!("another page ({site})")),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a page of this origin was served under the name in `Host`, or under `url`.
    fn is_own_origin(&self, origin: &str, headers: &HeaderMap) -> bool {
        let is_of_url = self.url.as_ref().is_some_and(|(own, _)| own.eq_ignore_ascii_case(origin));
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        is_of_url || authority.is_some_and(|from| text(headers, &HOST).is_some_and(|to| to.eq_ignore_ascii_case(from)))
    }
}

/// The host of `HOST` or `HOST:PORT`; an IPv6 address with its brackets.
fn host(authority: &str) -> Option<&str> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let is_port =
        |port: &str| port.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()));
    (!host.is_empty() && (port.is_empty() || is_port(port))).then_some(host)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A body of another type than JSON is one that a page may send without permission (Fetch Standard, "CORS-safelisted
/// request-header").
fn check_body_type(head: &Parts) -> Result<(), Refusal> {
    let has_length = head.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    if head.method.is_safe() || !(has_length || head.headers.contains_key(TRANSFER_ENCODING)) {
        return Ok(());
    }
    let media = text(&head.headers, &CONTENT_TYPE).and_then(|kind| kind.split(';').next()).map(str::trim);
    if media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let text = "the body: expected the header `Content-Type: application/json`";
    Err(Refusal::new(ProblemType::UnsupportedMediaType, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn refused(check: &OriginCheck, method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<ProblemType> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check.check(&request.body(()).unwrap().into_parts().0).err().map(|refusal| refusal.kind)
    }

    /// D100
    #[test]
    fn hosts_are_those_of_the_loopback_and_of_the_url() {
        let url = Some("https://one.example:8470".to_owned());
        let check = OriginCheck::new(&Config { url, ..Config::default() });
        for host in
            ["localhost", "LOCALHOST:8470", "127.0.0.1:8470", "127.0.0.9", "[::1]", "[::1]:8470", "one.example:1"]
        {
            assert_eq!(refused(&check, "GET", "/", &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "[::1",
            "[::1]x",
            "",
            ":1",
            "192.0.2.1",
            "localhost:x",
            "[::2]:1",
        ] {
            assert_eq!(refused(&check, "GET", "/", &[("host", host)]), Some(ProblemType::ForeignHost), "{host}");
        }
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(refused(&check, "GET", "/", &twice), Some(ProblemType::ForeignHost));
        assert_eq!(refused(&check, "GET", "/", &[]), Some(ProblemType::ForeignHost));
        let absolute = refused(&check, "GET", "http://evil.example/v1/backup", &[("host", "localhost")]);
        assert_eq!(absolute, Some(ProblemType::ForeignHost));
    }

    /// D100
    #[test]
    fn origins_are_that_of_the_page_and_of_the_url() {
        let url = Some("https://one.example".to_owned());
        let check = OriginCheck::new(&Config { url, ..Config::default() });
        let with = |name, value| refused(&check, "GET", "/v1/groups", &[("host", "[::1]:8470"), (name, value)]);
        for origin in ["http://[::1]:8470", "https://one.example"] {
            assert_eq!(with("origin", origin), None, "{origin}");
        }
        for origin in ["null", "http://[::1]:8471", "http://[::1]", "https://evil.example", "http://one.example", ""] {
            assert_eq!(with("origin", origin), Some(ProblemType::ForeignOrigin), "{origin}");
        }
        for (site, refusal) in [
            ("same-origin", None),
            ("none", None),
            ("cross-site", Some(ProblemType::ForeignOrigin)),
            ("same-site", Some(ProblemType::ForeignOrigin)),
        ] {
            assert_eq!(with("sec-fetch-site", site), refusal, "{site}");
        }
        let link = [("host", "[::1]"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(refused(&check, "GET", "/", &link), None);
        assert_eq!(refused(&check, "GET", "/v1/backup", &link), Some(ProblemType::ForeignOrigin));
    }

    /// D100
    #[test]
    fn bodies_are_json() {
        let check = OriginCheck::new(&Config::default());
        let with = |method, length, kind| {
            let headers = [("host", "[::1]"), ("content-length", length), ("content-type", kind)];
            refused(&check, method, "/v1/groups", &headers)
        };
        for kind in ["application/json", "Application/JSON; charset=utf-8"] {
            assert_eq!(with("POST", "2", kind), None, "{kind}");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json-patch+json", ""] {
            assert_eq!(with("POST", "2", kind), Some(ProblemType::UnsupportedMediaType), "{kind}");
            assert_eq!(with("PUT", "2", kind), Some(ProblemType::UnsupportedMediaType), "{kind}");
            assert_eq!(with("DELETE", "0", kind), None, "no body");
        }
        let chunked = [("host", "[::1]"), ("transfer-encoding", "chunked")];
        assert_eq!(refused(&check, "DELETE", "/", &chunked), Some(ProblemType::UnsupportedMediaType));
    }
}
