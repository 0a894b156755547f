//! Mistakes on the command line that need other words than the parser's.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::net::SocketAddr;

use crate::exit::Exit;
use crate::nvme;

/// Ends the command: prints help if that was asked for, and otherwise what is wrong.
pub(crate) fn end(error: &clap::Error, verb: Option<&str>) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    match explained(error, verb) {
        Some(message) => tell!("zonelab: {message}"),
        // What the parser repeats of the command line may be the name of a file of anybody.
        None => tell!("{}", error.render().to_string().trim_end()),
    }
    std::process::exit(i32::from(Exit::Usage as u8));
}

/// What is wrong, where more can be said than what the parser does not expect.
fn explained(error: &clap::Error, verb: Option<&str>) -> Option<String> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.as_str()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::TooManyValues => {
            let value = text(ContextKind::InvalidValue).unwrap_or_default();
            Some(format!(
                "{argument} takes no value: write {argument}, not {argument}={value}"
            ))
        }
        ErrorKind::ArgumentConflict if verb == Some("nvme") && argument.starts_with("--device") => {
            Some(format!(
                "-d is --device here, and the drive is named twice: {}",
                nvme::SHORT_DATA
            ))
        }
        ErrorKind::UnknownArgument if verb == Some("nvme") => {
            let url = url(argument)?;
            Some(format!(
                "\"{argument}\" is not expected here: an option names the drive, --device {url}"
            ))
        }
        _ => None,
    }
}

/// The URL of a drive that `argument` seems to name.
fn url(argument: &str) -> Option<String> {
    if argument.starts_with("/dev/") {
        return Some(format!("linux://{argument}"));
    }
    if argument.parse::<SocketAddr>().is_ok() {
        return Some(format!("tcp://{argument}/NQN"));
    }
    // Others write nvme+tcp://.
    let scheme = argument.find("tcp://").unwrap_or_default();
    argument
        .contains("://")
        .then(|| argument.get(scheme..).unwrap_or_default().to_owned())
}

/// An address to listen at.
///
/// # Errors
/// It is none, in words that say how to write one.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Err(format!(
            "an address is missing before the port: write 127.0.0.1:{port}"
        ));
    }
    text.parse().map_err(|_| {
        "write the numbers of an address and a port, as 127.0.0.1:8420 or [::1]:8420".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_are_recognised() {
        for (argument, expected) in [
            ("tcp://h:4420/nqn.a", Some("tcp://h:4420/nqn.a")),
            ("nvme+tcp://h:4420/nqn.a", Some("tcp://h:4420/nqn.a")),
            ("pcie://0000:01:00.0", Some("pcie://0000:01:00.0")),
            ("127.0.0.1:4420", Some("tcp://127.0.0.1:4420/NQN")),
            ("/dev/ng0n1", Some("linux:///dev/ng0n1")),
            ("1", None),
        ] {
            assert_eq!(url(argument).as_deref(), expected, "{argument}");
        }
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        assert!(address("127.0.0.1:8420").is_ok() && address("[::1]:0").is_ok());
        for port in ["8420", ":8420"] {
            let message = address(port).unwrap_err();
            assert!(message.ends_with("write 127.0.0.1:8420"), "{message}");
        }
        assert!(
            address("localhost:1")
                .unwrap_err()
                .contains("127.0.0.1:8420")
        );
    }
}
