//! Checks a browser's request: it must not reach the page under a foreign name (DNS rebinding) or on behalf of a foreign page.

use axum::http::{HeaderMap, StatusCode, header};
use std::net::{IpAddr, Ipv6Addr};

/// Suffixes of names that cannot be registered.
const PRIVATE_ENDS: [&str; 3] = [".localhost", ".local", ".internal"];

pub(super) type Refusal = (StatusCode, &'static str);

/// Checks the host and the origin of a request; `names`: further host names that are ours.
pub(super) fn check(asked: &HeaderMap, names: &[String]) -> Result<(), Refusal> {
    const HOST: Refusal = (
        StatusCode::MISDIRECTED_REQUEST,
        "not under this host name: use an IP address or localhost, or name it in http_names of the switch's configuration\n",
    );
    const ORIGIN: Refusal = (StatusCode::FORBIDDEN, "not for the page of another server\n");
    let mut hosts = asked.get_all(header::HOST).iter();
    // HTTP/1.0 has no host; a browser always sends one.
    let Some(host) = hosts.next() else { return Ok(()) };
    let host = host.to_str().map_err(|_| HOST)?;
    if hosts.next().is_some() || !is_ours(name_of(host), names) {
        return Err(HOST);
    }
    // A browser that does not read the answer (an image, a form) names no origin. Following a link is allowed.
    let says = |name: &str| asked.get(name).and_then(|value| value.to_str().ok());
    let is_of_another = says("sec-fetch-site").is_some_and(|from| from == "cross-site" || from == "same-site");
    if is_of_another && says("sec-fetch-dest") != Some("document") {
        return Err(ORIGIN);
    }
    let Some(origin) = asked.get(header::ORIGIN) else { return Ok(()) };
    // The scheme may be https, of a proxy in front.
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    if origin.is_some_and(|(_, from)| from.eq_ignore_ascii_case(host)) { Ok(()) } else { Err(ORIGIN) }
}

/// Without the port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Whether no other party can own this name.
fn is_ours(name: &str, names: &[String]) -> bool {
    let name = name.trim_end_matches('.');
    let lower = name.to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok()
        || name.parse::<Ipv6Addr>().is_ok()
        || (!lower.is_empty() && !lower.contains('.'))
        || PRIVATE_ENDS.iter().any(|end| lower.ends_with(end))
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(header::HeaderName, &str)]) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value.parse().unwrap());
        }
        check(&headers, &["switch.example".into()]).map_err(|(status, _)| status)
    }

    #[test]
    fn a_host_name_that_a_stranger_may_own_is_refused() {
        let host = |name: &str| asked(&[(header::HOST, name)]);
        for ours in [
            "127.0.0.1:7701",
            "10.0.0.7",
            "[::1]:7701",
            "[fd00::7]",
            "localhost:7701",
            "LOCALHOST",
            "head-node:7701",
            "a.local",
            "switch.midflight.svc.cluster.local:7701",
            "Switch.Example:7701",
            "switch.example.",
        ] {
            assert_eq!(host(ours), Ok(()), "{ours}");
        }
        for other in ["evil.example:7701", "127.0.0.1.evil.example", "switch.example.evil.com", "local", ""] {
            let refused = Err(StatusCode::MISDIRECTED_REQUEST);
            let expected = if other == "local" { Ok(()) } else { refused };
            assert_eq!(host(other), expected, "{other}");
        }
        let twice = asked(&[(header::HOST, "127.0.0.1"), (header::HOST, "127.0.0.1")]);
        assert_eq!(twice, Err(StatusCode::MISDIRECTED_REQUEST));
        assert_eq!(asked(&[]), Ok(()), "HTTP/1.0");
    }

    #[test]
    fn the_page_of_another_server_is_refused() {
        let from = |origin: &str| asked(&[(header::HOST, "127.0.0.1:7701"), (header::ORIGIN, origin)]);
        assert_eq!(from("http://127.0.0.1:7701"), Ok(()));
        assert_eq!(from("https://127.0.0.1:7701"), Ok(()), "a proxy that speaks TLS");
        for other in ["http://evil.example", "http://127.0.0.1:8000", "null", ""] {
            assert_eq!(from(other), Err(StatusCode::FORBIDDEN), "{other}");
        }
    }

    #[test]
    fn what_the_page_of_another_server_embeds_is_refused_and_its_links_are_not() {
        let wants = |site: &str, what: &str| {
            let name = header::HeaderName::from_static;
            asked(&[(header::HOST, "127.0.0.1:7701"), (name("sec-fetch-site"), site), (name("sec-fetch-dest"), what)])
        };
        for what in ["empty", "image", "script", "iframe", "style"] {
            assert_eq!(wants("same-origin", what), Ok(()), "{what}");
            assert_eq!(wants("cross-site", what), Err(StatusCode::FORBIDDEN), "{what}");
            assert_eq!(wants("same-site", what), Err(StatusCode::FORBIDDEN), "{what}: of another port");
        }
        assert_eq!(wants("none", "document"), Ok(()), "its address was typed in");
        assert_eq!(wants("cross-site", "document"), Ok(()), "a link");
    }
}
