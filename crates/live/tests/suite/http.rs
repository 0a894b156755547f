//! Clients that misbehave, over a real socket.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use zonelab_live::http::{HEAD_BYTES, Handler, Limits, Listener, Reply};

use super::drive::ask;

struct Echo;

impl Handler for Echo {
    fn reply(&self, path: &str) -> Reply {
        match path {
            "/large" => Reply::ok("text/plain", vec![b'x'; 64 << 20]),
            path => Reply::ok("text/plain", path.as_bytes().to_vec()),
        }
    }
}

fn listen(limits: Limits) -> Listener {
    let any = "127.0.0.1:0".parse().expect("an address");
    Listener::start(any, limits, Echo).expect("a free port")
}

fn answer(listener: &Listener, request: &str) -> String {
    ask(listener.address(), request)
}

fn status(listener: &Listener, request: &str) -> String {
    let answer = answer(listener, request);
    answer.lines().next().unwrap_or_default().to_owned()
}

const HOST: &str = "Host: localhost\r\n";

#[test]
fn answers_have_their_fields() {
    let listener = listen(Limits::default());
    let answer = answer(&listener, &format!("GET /a HTTP/1.1\r\n{HOST}\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body, "/a");
    for field in [
        "HTTP/1.1 200 OK",
        "Content-Length: 2",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cache-Control: no-store",
        "Connection: close",
    ] {
        assert!(head.lines().any(|line| line == field), "{field} in {head}");
    }
    assert!(!head.contains("Access-Control-Allow"), "{head}");
}

#[test]
fn head_has_no_body() {
    let listener = listen(Limits::default());
    let answer = answer(&listener, &format!("HEAD /abc HTTP/1.1\r\n{HOST}\r\n"));
    assert!(answer.contains("Content-Length: 4\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn what_is_wrong_has_a_status() {
    let listener = listen(Limits::default());
    let long = "a".repeat(HEAD_BYTES);
    for (request, expected) in [
        (
            format!("POST / HTTP/1.1\r\n{HOST}\r\n"),
            "HTTP/1.1 405 Method Not Allowed",
        ),
        (
            format!("TRACE / HTTP/1.1\r\n{HOST}\r\n"),
            "HTTP/1.1 405 Method Not Allowed",
        ),
        (
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 421 Misdirected Request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            "HTTP/1.1 421 Misdirected Request",
        ),
        (
            format!("GET /{long} HTTP/1.1\r\n{HOST}\r\n"),
            "HTTP/1.1 431 Request Header Fields Too Large",
        ),
        (
            format!("GET / HTTP/1.1\r\na: {long}{long}"),
            "HTTP/1.1 431 Request Header Fields Too Large",
        ),
        (
            format!("GET / HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nabc"),
            "HTTP/1.1 413 Content Too Large",
        ),
        (
            format!("GET / HTTP/1.1\r\n{HOST}Sec-Fetch-Site: cross-site\r\n\r\n"),
            "HTTP/1.1 200 OK",
        ),
        (
            format!("GET /b HTTP/1.1\r\n{HOST}Sec-Fetch-Site: cross-site\r\n\r\n"),
            "HTTP/1.1 403 Forbidden",
        ),
        ("\u{1}\u{2}\r\n\r\n".to_owned(), "HTTP/1.1 400 Bad Request"),
        (
            format!("GET / HTTP/2.0\r\n{HOST}\r\n"),
            "HTTP/1.1 400 Bad Request",
        ),
    ] {
        assert_eq!(status(&listener, &request), expected, "{:.60}", request);
    }
    assert!(
        answer(&listener, &format!("PUT / HTTP/1.1\r\n{HOST}\r\n"))
            .contains("\r\nAllow: GET, HEAD\r\n")
    );
}

#[test]
fn of_several_requests_the_first_is_answered() {
    let listener = listen(Limits::default());
    let two = format!("GET /a HTTP/1.1\r\n{HOST}\r\nGET /b HTTP/1.1\r\n{HOST}\r\n");
    let answer = answer(&listener, &two);
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1);
    assert!(answer.ends_with("\r\n\r\n/a"), "{answer}");
}

#[test]
fn who_is_slow_is_told_so() {
    let patience = Duration::from_millis(50);
    let listener = listen(Limits {
        patience,
        ..Limits::default()
    });
    assert_eq!(
        status(&listener, "GET / HT"),
        "HTTP/1.1 408 Request Timeout"
    );
    assert_eq!(status(&listener, ""), "HTTP/1.1 408 Request Timeout");
}

#[test]
fn who_takes_no_answer_is_let_go() {
    let patience = Duration::from_millis(50);
    let listener = listen(Limits {
        connections: 1,
        patience,
    });
    let mut lazy = TcpStream::connect(listener.address()).expect("it listens");
    lazy.write_all(format!("GET /large HTTP/1.1\r\n{HOST}\r\n").as_bytes())
        .expect("it takes bytes");
    // The only place is free again once it is given up.
    let next = || {
        let mut stream = TcpStream::connect(listener.address()).ok()?;
        stream
            .write_all(format!("GET /b HTTP/1.1\r\n{HOST}\r\n").as_bytes())
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.ends_with("/b").then_some(())
    };
    while next().is_none() {}
    drop(lazy);
}

#[test]
fn who_is_one_too_many_is_turned_away() {
    let patience = Duration::from_secs(600);
    let listener = listen(Limits {
        connections: 2,
        patience,
    });
    let connect = || TcpStream::connect(listener.address()).expect("it listens");
    let (first, _second) = (connect(), connect());
    let mut third = connect();
    let mut bytes = Vec::new();
    // Closed or reset, without an answer.
    let _ = third.read_to_end(&mut bytes);
    assert!(bytes.is_empty());
    first.shutdown(Shutdown::Both).expect("it is open");
    loop {
        let mut stream = connect();
        let sent = stream.write_all(format!("GET /c HTTP/1.1\r\n{HOST}\r\n").as_bytes());
        let mut answer = String::new();
        if sent.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.ends_with("/c") {
            break;
        }
    }
}

#[test]
fn paths_are_names_and_not_files() {
    let listener = listen(Limits::default());
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/a%00b",
    ] {
        let answer = answer(&listener, &format!("GET {path} HTTP/1.1\r\n{HOST}\r\n"));
        assert!(
            answer.ends_with(&format!("\r\n\r\n{path}")),
            "{path} is compared as it is"
        );
    }
}
