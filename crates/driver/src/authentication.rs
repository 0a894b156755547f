//! Authenticating a queue by DH-HMAC-CHAP, when the controller asks for it.

use zonelab_auth::{AuthError, Host, Parties, Random};
use zonelab_device::Buf;
use zonelab_nvme::auth::{FailureExplanation, Secret};
use zonelab_nvme::fabrics::{
    AuthenticationReceive, AuthenticationRequirements, AuthenticationSend,
};

use crate::controller::Options;
use crate::error::DriverError;
use crate::socket::Socket;
use crate::tcp::Transfer;

/// Bytes of the buffer for a message of the controller: the longest is a
/// challenge of ffdhe8192, with 1104.
const ROOM: u32 = 4096;

/// What this host authenticates itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSecrets {
    /// Its own secret.
    pub host: Secret,
    /// That of the controller, which then has to authenticate itself too.
    pub controller: Option<Secret>,
}

/// Does what the response to the Connect command of queue `qid` asks for.
pub(crate) fn authenticate(
    socket: &mut Socket,
    options: &Options,
    qid: u16,
    required: AuthenticationRequirements,
) -> Result<(), DriverError> {
    if required.ascr() {
        return Err(DriverError::SecureChannelRequired);
    }
    let address = &options.address;
    let secrets = match (&options.secrets, required.atr()) {
        (None, true) => return Err(DriverError::AuthenticationRequired),
        (None, false) => return Ok(()),
        // Whoever stands between host and controller could leave the question out.
        (Some(secrets), false) if secrets.controller.is_some() && !address.is_discovery() => {
            return Err(DriverError::NotAuthenticating);
        }
        (Some(_), false) => return Ok(()),
        (Some(secrets), true) => secrets.clone(),
    };
    let parties = Parties {
        host_nqn: address.hostnqn.clone(),
        subsystem_nqn: address.subnqn.clone(),
        host_secret: secrets.host,
        controller_secret: secrets.controller,
    };
    let random =
        Random::draw(getrandom::fill).map_err(|error| DriverError::NoRandom(error.to_string()))?;
    // One transaction on each queue at a time, so that its number names it.
    let mut host = Host::new(parties, random, qid);
    let mut has_responded = false;
    while let Some(message) = host.send() {
        let sent = send(socket, options, message);
        if host.failure().is_some() {
            // That was the word of our failure, upon which some controllers
            // close the connection at once.
            break;
        }
        sent?;
        if host.is_authenticated() {
            break;
        }
        let answer = receive(socket, options);
        let answer = answer.map_err(|error| match error {
            DriverError::Closed | DriverError::Io(_) if has_responded => {
                DriverError::NoVerdict(Box::new(error))
            }
            _ => error,
        })?;
        // What the host sends next is its response to the challenge.
        has_responded = true;
        // The failure is looked at below, after the controller has been told.
        let _failed = host.receive(&answer);
    }
    match host.failure() {
        None if host.is_authenticated() => Ok(()),
        None => Err(DriverError::Closed),
        Some(AuthError::Refused(FailureExplanation::AUTHENTICATION_FAILED)) => {
            Err(DriverError::SecretRefused)
        }
        Some(AuthError::WrongResponse) => Err(DriverError::ControllerNotAuthentic),
        Some(error) => Err(DriverError::Authentication(error)),
    }
}

fn send(socket: &mut Socket, options: &Options, message: Vec<u8>) -> Result<(), DriverError> {
    // Fits: no message has more than a few KiB.
    let entry = AuthenticationSend::new(message.len() as u32).to_entry();
    let transfer = Transfer::ToController(Buf::from(message));
    let what = "Authentication Send";
    let reply = socket.call(what, entry, transfer, options.connect_timeout)?;
    reply.fabrics_ok(what).map(drop)
}

fn receive(socket: &mut Socket, options: &Options) -> Result<Vec<u8>, DriverError> {
    let entry = AuthenticationReceive::new(ROOM).to_entry();
    let transfer = Transfer::ToHost(Buf::zeroed(ROOM as usize));
    let what = "Authentication Receive";
    let reply = socket.call(what, entry, transfer, options.connect_timeout)?;
    let reply = reply.fabrics_ok(what)?;
    let data = reply.data.unwrap_or_else(|| Buf::zeroed(0));
    let message = data.get(..reply.transferred as usize);
    Ok(message.unwrap_or_default().to_vec())
}
