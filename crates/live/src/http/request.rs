//! What a client asks for, and why it may not.
//!
//! Sources: RFC 9110 (HTTP semantics), RFC 9112 (HTTP/1.1).

use std::net::IpAddr;

/// Most bytes of a request: there are no bodies.
pub const HEAD_BYTES: usize = 8192;
/// Most header fields of a request.
const FIELDS: usize = 64;

/// A request that may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, without a query.
    pub path: String,
    /// HEAD: the head of the answer only.
    pub is_head: bool,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not HTTP/1.
    #[error("not HTTP/1.1: {0}")]
    Malformed(String),
    /// Its head is too long, or has too many fields.
    #[error("the head of a request has at most {HEAD_BYTES} bytes and {FIELDS} fields")]
    TooLarge,
    /// It has a body.
    #[error("requests have no body here")]
    Body,
    /// Not GET or HEAD.
    #[error("{0}: valid are GET and HEAD")]
    Method(String),
    /// The name is none of this machine's loopback, and no address of it.
    #[error(
        "Host \"{0}\": valid are localhost, addresses of the loopback, and the address of the connection"
    )]
    Host(String),
    /// A page of another origin asks.
    #[error("pages of other origins may not read this")]
    Origin,
    /// It did not come in time.
    #[error("the request did not come in time")]
    Slow,
}

impl Refusal {
    /// The status code and its phrase (RFC 9110, section 15; RFC 6585 for 431).
    #[must_use]
    pub const fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed(_) => (400, "Bad Request"),
            Self::TooLarge => (431, "Request Header Fields Too Large"),
            Self::Body => (413, "Content Too Large"),
            Self::Method(_) => (405, "Method Not Allowed"),
            Self::Host(_) => (421, "Misdirected Request"),
            Self::Origin => (403, "Forbidden"),
            Self::Slow => (408, "Request Timeout"),
        }
    }
}

/// Reads the head of a request that came on a connection to `local`. `None`:
/// it is not complete. What comes after the head is not looked at.
///
/// # Errors
/// [`Refusal`].
pub fn parse(bytes: &[u8], local: IpAddr) -> Result<Option<Request>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(len)) if len <= HEAD_BYTES => {}
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
        Err(error) => return Err(Refusal::Malformed(error.to_string())),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(Refusal::Malformed("no request line".to_owned()));
    };
    let field = |name: &str| -> Result<Option<&str>, Refusal> {
        let mut all = request.headers.iter();
        let mut named = all
            .by_ref()
            .filter(|field| field.name.eq_ignore_ascii_case(name));
        let value = named.next().map(|field| std::str::from_utf8(field.value));
        if named.next().is_some() {
            return Err(Refusal::Malformed(format!("more than one {name}")));
        }
        match value {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(_)) => Err(Refusal::Malformed(format!("{name} is not text"))),
            None => Ok(None),
        }
    };
    let is_head = method == "HEAD";
    if !is_head && method != "GET" {
        return Err(Refusal::Method(method.to_owned()));
    }
    let has_body = field("Content-Length")?.is_some_and(|length| length != "0");
    if has_body || field("Transfer-Encoding")?.is_some() {
        return Err(Refusal::Body);
    }
    let host = field("Host")?.unwrap_or_default();
    // A target with scheme and host goes before the field (RFC 9112, section 3.2.2).
    let (host, target) = match target.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => (host, target),
    };
    if !is_own(host, local) {
        return Err(Refusal::Host(host.to_owned()));
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return Err(Refusal::Malformed(format!("target \"{target}\"")));
    }
    // Browsers say where a request comes from. A link to the page may be
    // anywhere; what it reads is for it alone.
    let site = field("Sec-Fetch-Site")?.unwrap_or("none");
    if path != "/" && !matches!(site, "none" | "same-origin") {
        return Err(Refusal::Origin);
    }
    Ok(Some(Request {
        path: path.to_owned(),
        is_head,
    }))
}

/// Whether `host`, with or without a port, means this machine and cannot be a
/// name that somebody else lets point here (DNS rebinding). The port is free, so
/// that one that is forwarded works.
fn is_own(host: &str, local: IpAddr) -> bool {
    let is_port = |text: &str| text.is_empty() || text.parse::<u16>().is_ok();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            if !is_port(port) {
                return false;
            }
            name
        }
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = match name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
    {
        Some(name) => name.parse().map(IpAddr::V6),
        None => name.parse().map(IpAddr::V4),
    };
    address.is_ok_and(|address| {
        let local = local.to_canonical();
        address.is_loopback() || address.to_canonical() == local
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn get(text: &str) -> Result<Option<Request>, Refusal> {
        parse(text.as_bytes(), LOCAL)
    }

    #[test]
    fn names_of_this_machine_are_its_own_and_others_are_not() {
        for own in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:4421",
            "192.0.2.7",
            "192.0.2.7:9000",
            "localhost:",
        ] {
            assert!(is_own(own, LOCAL), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "[::2]",
            "::1",
            "localhost:x",
            "localhost:80:80",
            "0.0.0.0",
            "127.1",
            "0x7f000001",
            "2130706433",
            "localhost:99999",
            "[127.0.0.1]",
            "user@localhost",
        ] {
            assert!(!is_own(other, LOCAL), "{other}");
        }
        assert!(is_own("192.0.2.7", "::ffff:192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn requests_are_read() {
        let path = |text: &str| get(text).unwrap().unwrap().path;
        assert_eq!(path("GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n"), "/a");
        assert_eq!(
            path("GET http://localhost HTTP/1.1\r\nHost: x\r\n\r\n"),
            "/"
        );
        assert_eq!(path("GET http://localhost/a HTTP/1.1\r\n\r\nGET"), "/a");
        assert!(
            get("HEAD / HTTP/1.0\r\nhost: [::1]\r\n\r\n")
                .unwrap()
                .unwrap()
                .is_head
        );
        assert_eq!(get("GET / HTTP/1.1\r\nHost: localhost\r\n"), Ok(None));
        let body = "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(path(body), "/");
    }

    #[test]
    fn what_is_not_answered_has_a_reason() {
        let with = |line: &str, fields: &str| {
            get(&format!("{line} HTTP/1.1\r\n{fields}\r\n")).expect_err("it is refused")
        };
        let host = "Host: localhost\r\n";
        assert_eq!(with("POST /", host), Refusal::Method("POST".to_owned()));
        assert_eq!(with("GET /", ""), Refusal::Host(String::new()));
        assert_eq!(with("GET http://a/", host), Refusal::Host("a".to_owned()));
        let twice = "Host: localhost\r\nHost: localhost\r\n";
        assert!(matches!(with("GET /", twice), Refusal::Malformed(_)));
        assert!(matches!(with("GET *", host), Refusal::Malformed(_)));
        assert!(matches!(with("GET a b", host), Refusal::Malformed(_)));
        let from = |site: &str| format!("{host}Sec-Fetch-Site: {site}\r\n");
        assert_eq!(with("GET /metrics", &from("cross-site")), Refusal::Origin);
        assert_eq!(with("GET /metrics", &from("same-site")), Refusal::Origin);
        assert!(get(&format!("GET / HTTP/1.1\r\n{}\r\n", from("cross-site"))).is_ok());
        for body in ["Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert_eq!(with("GET /", &format!("{host}{body}")), Refusal::Body);
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES));
        assert_eq!(get(&long), Err(Refusal::TooLarge));
        let fields = "a: b\r\n".repeat(FIELDS + 1);
        assert_eq!(with("GET /", &fields), Refusal::TooLarge);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let _ = parse(&bytes, LOCAL);
        }
    }
}
