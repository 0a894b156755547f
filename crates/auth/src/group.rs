//! Diffie-Hellman over the groups of RFC 7919.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use zeroize::Zeroizing;
use zonelab_nvme::auth::DhGroup;

/// A value that is no public value of its group: it would make the shared
/// secret one that anybody knows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Diffie-Hellman value is not one of the group: 2 to p - 2 are")]
pub(crate) struct NotInGroup;

/// `2^exponent mod p`, as many bytes as the prime has. `None` for a group
/// without a prime.
pub(crate) fn public_value(group: DhGroup, exponent: &[u8]) -> Option<Vec<u8>> {
    let group = Group::new(group)?;
    Some(group.power(&group.number(&[2]), exponent))
}

/// `value^exponent mod p`, as many bytes as the prime has.
///
/// # Errors
/// [`NotInGroup`]; also for a group without a prime.
pub(crate) fn shared_secret(
    group: DhGroup,
    value: &[u8],
    exponent: &[u8],
) -> Result<Zeroizing<Vec<u8>>, NotInGroup> {
    let group = Group::new(group).ok_or(NotInGroup)?;
    if value.len() != group.prime.len() {
        return Err(NotInGroup);
    }
    let value = group.number(value);
    let prime = group.params.modulus().as_ref();
    let last = prime.wrapping_sub(group.number(&[1]));
    if value <= group.number(&[1]) || value >= last {
        return Err(NotInGroup);
    }
    Ok(Zeroizing::new(group.power(&value, exponent)))
}

struct Group {
    prime: Vec<u8>,
    params: BoxedMontyParams,
}

impl Group {
    fn new(group: DhGroup) -> Option<Self> {
        let prime = prime(group)?;
        let bits = 8 * prime.len() as u32;
        let modulus = BoxedUint::from_be_slice(&prime, bits).ok()?;
        let modulus = Odd::new(modulus).into_option()?;
        Some(Self {
            prime,
            params: BoxedMontyParams::new_vartime(modulus),
        })
    }

    /// A number of at most as many bytes as the prime.
    fn number(&self, bytes: &[u8]) -> BoxedUint {
        BoxedUint::from_be_slice(bytes, 8 * self.prime.len() as u32)
            .expect("no more bytes than the prime has")
    }

    fn power(&self, base: &BoxedUint, exponent: &[u8]) -> Vec<u8> {
        let bits = 8 * exponent.len() as u32;
        let exponent = BoxedUint::from_be_slice(exponent, bits).expect("as many bits as there are");
        let exponent = Zeroizing::new(exponent);
        let power = BoxedMontyForm::new(base.clone(), &self.params).pow(&exponent);
        // The power is the secret of the exchange, or for everybody to see.
        let power = Zeroizing::new(power.retrieve());
        power.to_be_bytes().into()
    }
}

/// The prime of a group, first byte first.
fn prime(group: DhGroup) -> Option<Vec<u8>> {
    let text = match group {
        DhGroup::FFDHE2048 => FFDHE2048,
        DhGroup::FFDHE3072 => FFDHE3072,
        DhGroup::FFDHE4096 => FFDHE4096,
        DhGroup::FFDHE6144 => FFDHE6144,
        DhGroup::FFDHE8192 => FFDHE8192,
        _ => return None,
    };
    let digits = text.bytes().filter_map(|c| char::from(c).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
    Some(
        digits
            .chunks(2)
            .map(|pair| match *pair {
                [high, low] => high << 4 | low,
                _ => 0,
            })
            .collect(),
    )
}

// 2^b - 2^(b - 64) + (floor(2^(b - 130) e) + x) 2^64 - 1, with the least x that
// makes a safe prime: RFC 7919, appendix A. The tests calculate them anew.

const FFDHE2048: &str = "\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce\
    249b3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3\
    b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182\
    b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc\
    2ec22005c58ef1837d1683b2c6f34a26c1b2effa886b423861285c97ffffffffffffffff";

const FFDHE3072: &str = "\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce\
    249b3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3\
    b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182\
    b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc\
    2ec22005c58ef1837d1683b2c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c0238\
    61b46fc9d6e6c9077ad91d2691f7f7ee598cb0fac186d91caefe130985139270b4130c93bc437944f4fd4452\
    e2d74dd364f2e21e71f54bff5cae82ab9c9df69ee86d2bc522363a0dabc521979b0deada1dbf9a42d5c4484e\
    0abcd06bfa53ddef3c1b20ee3fd59d7c25e41d2b66c62e37ffffffffffffffff";

const FFDHE4096: &str = "\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce\
    249b3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3\
    b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182\
    b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc\
    2ec22005c58ef1837d1683b2c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c0238\
    61b46fc9d6e6c9077ad91d2691f7f7ee598cb0fac186d91caefe130985139270b4130c93bc437944f4fd4452\
    e2d74dd364f2e21e71f54bff5cae82ab9c9df69ee86d2bc522363a0dabc521979b0deada1dbf9a42d5c4484e\
    0abcd06bfa53ddef3c1b20ee3fd59d7c25e41d2b669e1ef16e6f52c3164df4fb7930e9e4e58857b6ac7d5f42\
    d69f6d187763cf1d5503400487f55ba57e31cc7a7135c886efb4318aed6a1e012d9e6832a907600a918130c4\
    6dc778f971ad0038092999a333cb8b7a1a1db93d7140003c2a4ecea9f98d0acc0a8291cdcec97dcf8ec9b55a\
    7f88a46b4db5a851f44182e1c68a007e5e655f6affffffffffffffff";

const FFDHE6144: &str = "\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce\
    249b3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3\
    b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182\
    b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc\
    2ec22005c58ef1837d1683b2c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c0238\
    61b46fc9d6e6c9077ad91d2691f7f7ee598cb0fac186d91caefe130985139270b4130c93bc437944f4fd4452\
    e2d74dd364f2e21e71f54bff5cae82ab9c9df69ee86d2bc522363a0dabc521979b0deada1dbf9a42d5c4484e\
    0abcd06bfa53ddef3c1b20ee3fd59d7c25e41d2b669e1ef16e6f52c3164df4fb7930e9e4e58857b6ac7d5f42\
    d69f6d187763cf1d5503400487f55ba57e31cc7a7135c886efb4318aed6a1e012d9e6832a907600a918130c4\
    6dc778f971ad0038092999a333cb8b7a1a1db93d7140003c2a4ecea9f98d0acc0a8291cdcec97dcf8ec9b55a\
    7f88a46b4db5a851f44182e1c68a007e5e0dd9020bfd64b645036c7a4e677d2c38532a3a23ba4442caf53ea6\
    3bb454329b7624c8917bdd64b1c0fd4cb38e8c334c701c3acdad0657fccfec719b1f5c3e4e46041f388147fb\
    4cfdb477a52471f7a9a96910b855322edb6340d8a00ef092350511e30abec1fff9e3a26e7fb29f8c183023c3\
    587e38da0077d9b4763e4e4b94b2bbc194c6651e77caf992eeaac0232a281bf6b3a739c1226116820ae8db58\
    47a67cbef9c9091b462d538cd72b03746ae77f5e62292c311562a846505dc82db854338ae49f5235c95b9117\
    8ccf2dd5cacef403ec9d1810c6272b045b3b71f9dc6b80d63fdd4a8e9adb1e6962a69526d43161c1a41d570d\
    7938dad4a40e329cd0e40e65ffffffffffffffff";

const FFDHE8192: &str = "\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce\
    249b3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3\
    b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182\
    b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc\
    2ec22005c58ef1837d1683b2c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c0238\
    61b46fc9d6e6c9077ad91d2691f7f7ee598cb0fac186d91caefe130985139270b4130c93bc437944f4fd4452\
    e2d74dd364f2e21e71f54bff5cae82ab9c9df69ee86d2bc522363a0dabc521979b0deada1dbf9a42d5c4484e\
    0abcd06bfa53ddef3c1b20ee3fd59d7c25e41d2b669e1ef16e6f52c3164df4fb7930e9e4e58857b6ac7d5f42\
    d69f6d187763cf1d5503400487f55ba57e31cc7a7135c886efb4318aed6a1e012d9e6832a907600a918130c4\
    6dc778f971ad0038092999a333cb8b7a1a1db93d7140003c2a4ecea9f98d0acc0a8291cdcec97dcf8ec9b55a\
    7f88a46b4db5a851f44182e1c68a007e5e0dd9020bfd64b645036c7a4e677d2c38532a3a23ba4442caf53ea6\
    3bb454329b7624c8917bdd64b1c0fd4cb38e8c334c701c3acdad0657fccfec719b1f5c3e4e46041f388147fb\
    4cfdb477a52471f7a9a96910b855322edb6340d8a00ef092350511e30abec1fff9e3a26e7fb29f8c183023c3\
    587e38da0077d9b4763e4e4b94b2bbc194c6651e77caf992eeaac0232a281bf6b3a739c1226116820ae8db58\
    47a67cbef9c9091b462d538cd72b03746ae77f5e62292c311562a846505dc82db854338ae49f5235c95b9117\
    8ccf2dd5cacef403ec9d1810c6272b045b3b71f9dc6b80d63fdd4a8e9adb1e6962a69526d43161c1a41d570d\
    7938dad4a40e329ccff46aaa36ad004cf600c8381e425a31d951ae64fdb23fcec9509d43687feb69edd1cc5e\
    0b8cc3bdf64b10ef86b63142a3ab8829555b2f747c932665cb2c0f1cc01bd70229388839d2af05e454504ac7\
    8b7582822846c0ba35c35f5c59160cc046fd8251541fc68c9c86b022bb7099876a460e7451a8a93109703fee\
    1c217e6c3826e52c51aa691e0e423cfc99e9e31650c1217b624816cdad9a95f9d5b8019488d9c0a0a1fe3075\
    a577e23183f81d4a3f2fa4571efc8ce0ba8a4fe8b6855dfe72b0a66eded2fbabfbe58a30fafabe1c5d71a87e\
    2f741ef8c1fe86fea6bbfde530677f0d97d11d49f7a8443d0822e506a9f4614e011e2a94838ff88cd68c8bb7\
    c5c6424cffffffffffffffff";

#[cfg(test)]
mod tests {
    use super::*;

    /// floor(2^bits e), by its series.
    fn e(bits: u32) -> BoxedUint {
        let guard = 64;
        let precision = 8192 + 128;
        let mut term = BoxedUint::one_with_precision(precision).shl(bits + guard);
        let mut sum = BoxedUint::zero_with_precision(precision);
        for n in 1_u64.. {
            if term.is_zero().into() {
                break;
            }
            sum = sum.wrapping_add(&term);
            let n = crypto_bigint::NonZero::new(crypto_bigint::Limb(n)).unwrap();
            term = term.div_rem_limb(n).0;
        }
        sum.shr(guard)
    }

    #[test]
    fn primes_are_those_of_their_formula() {
        for (group, bits, x) in [
            (DhGroup::FFDHE2048, 2048, 560_316_u64),
            (DhGroup::FFDHE3072, 3072, 2_625_351),
            (DhGroup::FFDHE4096, 4096, 5_736_041),
            (DhGroup::FFDHE6144, 6144, 15_705_020),
            (DhGroup::FFDHE8192, 8192, 10_965_728),
        ] {
            let one = BoxedUint::one_with_precision(8192 + 128);
            let middle = e(bits - 130).wrapping_add(BoxedUint::from(x)).shl(64);
            let formula = one
                .shl(bits)
                .wrapping_sub(one.shl(bits - 64))
                .wrapping_add(&middle)
                .wrapping_sub(&one);
            let bytes = formula.to_be_bytes();
            let prime = prime(group).unwrap();
            assert_eq!(bytes[bytes.len() - prime.len()..], prime[..], "{group:?}");
            assert_eq!(prime.len(), usize::from(group.bytes().unwrap()));
        }
    }

    #[test]
    fn both_ends_have_the_same_secret() {
        let group = DhGroup::FFDHE2048;
        let (a, b) = ([0xa5; 64], [0x3c; 64]);
        let of_a = public_value(group, &a).unwrap();
        let of_b = public_value(group, &b).unwrap();
        assert_eq!(
            shared_secret(group, &of_b, &a),
            shared_secret(group, &of_a, &b)
        );
    }

    #[test]
    fn values_that_give_a_known_secret_are_refused() {
        let group = DhGroup::FFDHE2048;
        let mut value = vec![0; 256];
        assert_eq!(shared_secret(group, &value, &[3]), Err(NotInGroup));
        value[255] = 1;
        assert_eq!(shared_secret(group, &value, &[3]), Err(NotInGroup));
        let mut last = prime(group).unwrap();
        assert_eq!(shared_secret(group, &last, &[3]), Err(NotInGroup));
        last[255] -= 1;
        assert_eq!(shared_secret(group, &last, &[3]), Err(NotInGroup));
        last[255] -= 1;
        assert!(shared_secret(group, &last, &[3]).is_ok());
        assert_eq!(shared_secret(group, &value[1..], &[3]), Err(NotInGroup));
        assert_eq!(public_value(DhGroup::NULL, &[3]), None);
    }
}
