//! Transactions of both ends, and one whose every byte was calculated elsewhere.

use proptest::prelude::*;
use zonelab_auth::{AuthError, Controller, Host, NoRandom, Parties, Random};
use zonelab_nvme::auth::{DhGroup, FailureExplanation, Hash, Secret};

// Keys of 32 bytes 00h, 01h, ... and 80h, 81h, ..., as nvme-cli writes them.
const HOST: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const HOST_TRANSFORMED: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const CONTROLLER: &str = "DHHC-1:02:gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp9vmVbU:";
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const SUBSYSTEM_NQN: &str = "nqn.2024-01.io.zonelab:drive";

fn secret(text: &str) -> Secret {
    Secret::parse(text).expect("nvme-cli wrote it")
}

fn parties(host: &str, controller: Option<&str>) -> Parties {
    Parties {
        host_nqn: HOST_NQN.to_owned(),
        subsystem_nqn: SUBSYSTEM_NQN.to_owned(),
        host_secret: secret(host),
        controller_secret: controller.map(secret),
    }
}

fn random(byte: u8) -> Random {
    Random {
        challenge: [byte; 64],
        exponent: [byte ^ 0xff; 64],
    }
}

/// Hands the controller a message, and does what it has to calculate.
fn receive(controller: &mut Controller, message: &[u8]) -> Result<(), AuthError> {
    controller.receive(message)?;
    match controller.calculation() {
        Some(calculation) => controller.calculated(calculation.run()),
        None => Ok(()),
    }
}

/// Carries messages between the ends until none is left.
fn talk(host: &mut Host, controller: &mut Controller) {
    while let Some(message) = host.send() {
        let _ = receive(controller, &message);
        let Some(message) = controller.send() else {
            break;
        };
        let _ = host.receive(&message);
    }
}

#[test]
fn all_hashes_groups_and_directions_succeed() {
    let hashes = [Hash::SHA_256, Hash::SHA_384, Hash::SHA_512];
    for (n, group) in [DhGroup::NULL, DhGroup::FFDHE2048, DhGroup::FFDHE3072]
        .into_iter()
        .enumerate()
    {
        for (secret, controller_secret) in [(HOST, None), (HOST_TRANSFORMED, Some(CONTROLLER))] {
            let parties = parties(secret, controller_secret);
            let mut host = Host::offering(parties.clone(), random(7), 5, (&[hashes[n]], &[group]));
            let mut controller = Controller::new(parties, random(9), 1);
            talk(&mut host, &mut controller);
            assert!(host.is_authenticated(), "{group:?}: {:?}", host.failure());
            assert!(controller.is_authenticated(), "{:?}", controller.failure());
        }
    }
}

#[test]
fn a_host_with_another_secret_is_refused() {
    let mut host = Host::new(parties(HOST, None), random(7), 5);
    let mut controller = Controller::new(parties(CONTROLLER, None), random(9), 1);
    talk(&mut host, &mut controller);
    assert_eq!(controller.failure(), Some(AuthError::WrongResponse));
    let refused = AuthError::Refused(FailureExplanation::AUTHENTICATION_FAILED);
    assert_eq!(host.failure(), Some(refused));
}

#[test]
fn a_controller_with_another_secret_is_refused() {
    let mut host = Host::new(parties(HOST, Some(HOST)), random(7), 5);
    let mut controller = Controller::new(parties(HOST, Some(CONTROLLER)), random(9), 1);
    talk(&mut host, &mut controller);
    assert_eq!(host.failure(), Some(AuthError::WrongResponse));
    assert!(!controller.is_authenticated());
}

/// The secret of one name is not that of another once it is transformed.
#[test]
fn a_transformed_secret_belongs_to_a_name() {
    let mut other = parties(HOST_TRANSFORMED, None);
    other.host_nqn.push('x');
    let mut host = Host::new(other, random(7), 5);
    let mut controller = Controller::new(parties(HOST_TRANSFORMED, None), random(9), 1);
    talk(&mut host, &mut controller);
    assert_eq!(controller.failure(), Some(AuthError::WrongResponse));
}

#[test]
fn nothing_in_common_is_said() {
    let parties = parties(HOST, None);
    let mut host = Host::offering(
        parties.clone(),
        random(7),
        5,
        (&[Hash(9)], &[DhGroup::NULL]),
    );
    let mut controller = Controller::new(parties.clone(), random(9), 1);
    talk(&mut host, &mut controller);
    let why = FailureExplanation::HASH_NOT_USABLE;
    assert_eq!(controller.failure(), Some(AuthError::Message(why)));
    assert_eq!(host.failure(), Some(AuthError::Refused(why)));
    let mut host = Host::offering(
        parties.clone(),
        random(7),
        5,
        (&[Hash::SHA_256], &[DhGroup(9)]),
    );
    let mut controller = Controller::new(parties, random(9), 1);
    talk(&mut host, &mut controller);
    let why = FailureExplanation::DH_GROUP_NOT_USABLE;
    assert_eq!(controller.failure(), Some(AuthError::Message(why)));
}

#[test]
fn a_controller_chooses_what_it_prefers_of_what_is_offered() {
    let parties = parties(HOST, None);
    let accepted = (
        &[Hash::SHA_256, Hash::SHA_512][..],
        &[DhGroup::NULL, DhGroup::FFDHE2048][..],
    );
    let mut host = Host::new(parties.clone(), random(7), 5);
    let mut controller = Controller::accepting(parties.clone(), random(9), 1, accepted);
    receive(&mut controller, &host.send().unwrap()).unwrap();
    let challenge = controller.outgoing().unwrap().to_vec();
    // HL, a reserved byte, HashID, DHgID, DHVLEN.
    assert_eq!(challenge[6..12], [32, 0, 1, 0, 0, 0]);
    assert_eq!(controller.send(), Some(challenge));
    assert_eq!(controller.outgoing(), None);
    let offer = (&[Hash::SHA_384][..], &[DhGroup::NULL][..]);
    let mut host = Host::offering(parties.clone(), random(7), 5, offer);
    let mut controller = Controller::accepting(parties, random(9), 1, accepted);
    talk(&mut host, &mut controller);
    let why = FailureExplanation::HASH_NOT_USABLE;
    assert_eq!(controller.failure(), Some(AuthError::Message(why)));
}

#[test]
fn random_bytes_come_from_their_source_or_not_at_all() {
    let mut next = 0;
    let random = Random::draw(|bytes: &mut [u8]| {
        for byte in bytes {
            *byte = next;
            next = next.wrapping_add(1);
        }
        Ok::<_, NoRandom>(())
    });
    let random = random.unwrap();
    assert_eq!((random.challenge[63], random.exponent[63]), (63, 127));
    assert!(Random::draw(|_| Err(NoRandom)).is_err());
}

/// A host that starts over in the middle, or begins with the end.
#[test]
fn messages_out_of_turn_are_refused() {
    let parties = parties(HOST, None);
    let mut host = Host::new(parties.clone(), random(7), 5);
    let first = host.send().unwrap();
    let mut controller = Controller::new(parties.clone(), random(9), 1);
    receive(&mut controller, &first).unwrap();
    let again = AuthError::Message(FailureExplanation::INCORRECT_MESSAGE);
    assert_eq!(controller.receive(&first), Err(again));
    let mut controller = Controller::new(parties, random(9), 1);
    let success2 = [1, 4, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(controller.receive(&success2), Err(again));
    assert!(!controller.is_authenticated());
}

/// Calculated by another implementation of HMAC and exponentiation.
#[test]
fn a_transaction_has_the_bytes_of_the_specification() {
    let parties = parties(HOST_TRANSFORMED, Some(CONTROLLER));
    let offer = (&[Hash::SHA_256][..], &[DhGroup::FFDHE2048][..]);
    let mut host = Host::offering(parties.clone(), random(7), 5, offer);
    let mut controller = Controller::new(parties, random(9), 0x0102_0304);
    let negotiate = host.send().unwrap();
    receive(&mut controller, &negotiate).unwrap();
    let challenge = controller.send().unwrap();
    assert_eq!(
        hex(&challenge[..16 + 32 + 8]),
        "01010000050020000101000104030201090909090909090909090909090909090909090909090909090909090909090914bbfd63ff15f793"
    );
    host.receive(&challenge).unwrap();
    let reply = host.send().unwrap();
    assert_eq!(
        hex(&reply[..16 + 64]),
        "0102000005002000010000010600000014290e8e5f5e91bdbdb4fa2697bf89688c7e194ff65dee20580c45964efaf8b30707070707070707070707070707070707070707070707070707070707070707"
    );
    receive(&mut controller, &reply).unwrap();
    let success1 = controller.send().unwrap();
    assert_eq!(
        hex(&success1),
        "01030000050020000100000000000000a42158c24c9b80eb480ecfe8cb00abf13b31656763fcc93addc72b646f4d4bc1"
    );
    host.receive(&success1).unwrap();
    assert_eq!(
        hex(&host.send().unwrap()),
        "01040000050000000000000000000000"
    );
    assert!(host.is_authenticated());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

proptest! {
    /// Whatever comes, neither end panics, and no host gets in without the secret.
    #[test]
    fn changed_messages_never_authenticate(
        at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>(),
        which in 0_usize..2,
    ) {
        let parties = parties(HOST, None);
        let offer = (&[Hash::SHA_256][..], &[DhGroup::NULL][..]);
        let mut host = Host::offering(parties.clone(), random(7), 5, offer);
        let mut controller = Controller::new(parties, random(9), 1);
        for n in 0..2 {
            let Some(mut message) = host.send() else { break };
            let original = message.clone();
            if n == which {
                let index = at.index(message.len());
                message[index] = to;
                message.truncate(cut.index(message.len()) + 1);
            }
            let _ = receive(&mut controller, &message);
            // What may change and harm nothing: reserved bytes, the challenge to a
            // controller that is not challenged, and what is offered besides.
            let is_response = n == 1 && message.get(16..48) != original.get(16..48);
            prop_assert!(!is_response || !controller.is_authenticated());
            let Some(answer) = controller.send() else { break };
            let _ = host.receive(&answer);
        }
    }

    #[test]
    fn any_bytes_are_taken(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4),
    ) {
        let parties = parties(HOST, Some(CONTROLLER));
        let mut controller = Controller::new(parties.clone(), random(9), 1);
        let mut host = Host::new(parties, random(9), 1);
        for message in &messages {
            let _ = receive(&mut controller, message);
            let _ = host.receive(message);
        }
        prop_assert!(!controller.is_authenticated() && !host.is_authenticated());
    }
}

/// Whatever holds a secret is overwritten when it is dropped.
#[test]
fn secrets_are_wiped() {
    fn is_wiped<T: zeroize::ZeroizeOnDrop>(_: &T) {}
    let secret = secret(HOST);
    is_wiped(&secret);
    is_wiped(&random(1));
    is_wiped(&zonelab_auth::transformed(&secret, HOST_NQN));
    let mut controller = Controller::new(parties(HOST, None), random(9), 1);
    let negotiate = Host::new(parties(HOST, None), random(7), 5).send().unwrap();
    controller.receive(&negotiate).unwrap();
    is_wiped(&controller.calculation().expect("it needs one"));
}
