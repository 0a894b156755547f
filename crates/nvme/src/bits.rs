//! Bit fields: a wire integer with an accessor per field.
//!
//! The declaration repeats the `hi:lo` column of the specification, so that
//! one can be held against the other. Fields that overlap, leave the integer
//! or do not fit their Rust type do not compile.

use zerocopy::little_endian::{U16, U32, U64};

/// An integer as it lies in memory.
pub(crate) trait Wire: Copy {
    /// Its width in bits.
    const BITS: u32;
    /// The value.
    fn load(self) -> u64;
    /// The integer that holds the low bits of `value`.
    fn store(value: u64) -> Self;
}

macro_rules! impl_wire {
    ($($wire:ty = $int:ty, |$value:ident| $load:expr, |$bits:ident| $store:expr;)*) => { $(
        impl Wire for $wire {
            const BITS: u32 = <$int>::BITS;
            fn load(self) -> u64 {
                let $value = self;
                u64::from($load)
            }
            fn store(value: u64) -> Self {
                let $bits = value as $int;
                $store
            }
        }
    )* };
}

impl_wire! {
    u8 = u8, |v| v, |b| b;
    U16 = u16, |v| v.get(), |b| U16::new(b);
    U32 = u32, |v| v.get(), |b| U32::new(b);
    U64 = u64, |v| v.get(), |b| U64::new(b);
}

/// What an accessor takes and returns.
pub(crate) trait Field: Copy {
    /// The widest field that it can hold, in bits.
    const BITS: u32;
    /// The value that the bits of a field stand for.
    fn from_field(bits: u64) -> Self;
    /// The bits that stand for the value.
    fn into_field(self) -> u64;
}

impl Field for bool {
    const BITS: u32 = 1;
    fn from_field(bits: u64) -> Self {
        bits != 0
    }
    fn into_field(self) -> u64 {
        u64::from(self)
    }
}

macro_rules! impl_field {
    ($($int:ty),*) => { $(
        impl Field for $int {
            const BITS: u32 = <$int>::BITS;
            fn from_field(bits: u64) -> Self {
                bits as $int
            }
            fn into_field(self) -> u64 {
                u64::from(self)
            }
        }
    )* };
}
impl_field!(u8, u16, u32);

/// Makes open enumerations usable as bit fields.
macro_rules! enum_fields {
    ($($name:ty: $int:ty),* $(,)?) => { $(
        impl $crate::bits::Field for $name {
            const BITS: u32 = <$int>::BITS;
            fn from_field(bits: u64) -> Self {
                Self(<$int as $crate::bits::Field>::from_field(bits))
            }
            fn into_field(self) -> u64 {
                u64::from(self.0)
            }
        }
    )* };
}

/// Ones in the bits `hi` to `lo`.
pub(crate) const fn mask(hi: u32, lo: u32) -> u64 {
    (u64::MAX >> (63 - (hi - lo))) << lo
}

/// Declares a bit field type: `[hi:lo] getter / setter: type`.
///
/// The setter takes and returns `self`. It keeps as many low bits of a value
/// as the field has; code that must not lose bits checks first.
macro_rules! bits {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($wire:ty: $int:ty) {
            $( $(#[$fmeta:meta])* [$hi:literal : $lo:literal] $get:ident / $with:ident : $ty:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Copy, Clone, Default, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
            zerocopy::KnownLayout, zerocopy::Unaligned,
        )]
        #[repr(transparent)]
        $vis struct $name($wire);

        const _: () = assert!(size_of::<$name>() == size_of::<$int>());

        const _: () = {
            let mut seen = 0;
            $(
                let field = $crate::bits::mask($hi, $lo);
                assert!($hi < <$wire as $crate::bits::Wire>::BITS, "the field leaves the integer");
                assert!(($hi - $lo) < <$ty as $crate::bits::Field>::BITS, "the field is wider than its type");
                assert!(seen & field == 0, "two fields overlap");
                seen |= field;
            )*
            let _ = seen;
        };

        impl $name {
            /// All bits, reserved ones included.
            #[must_use]
            $vis fn from_bits(bits: $int) -> Self {
                Self(bits.into())
            }

            /// All bits, reserved ones included.
            #[must_use]
            $vis fn bits(self) -> $int {
                self.0.into()
            }

            $(
                $(#[$fmeta])*
                #[doc = concat!("\n\nBits ", $hi, ":", $lo, ".")]
                #[must_use]
                $vis fn $get(self) -> $ty {
                    let bits = $crate::bits::Wire::load(self.0) & $crate::bits::mask($hi, $lo);
                    <$ty as $crate::bits::Field>::from_field(bits >> $lo)
                }

                #[doc = concat!("The same with bits ", $hi, ":", $lo, " (`", stringify!($get), "`) set to `value`.")]
                #[must_use]
                $vis fn $with(self, value: $ty) -> Self {
                    let mask = $crate::bits::mask($hi, $lo);
                    let bits = ($crate::bits::Field::into_field(value) << $lo) & mask;
                    let rest = $crate::bits::Wire::load(self.0) & !mask;
                    Self(<$wire as $crate::bits::Wire>::store(rest | bits))
                }
            )*
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($name))
                    $( .field(stringify!($get), &self.$get()) )*
                    .finish()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;
    use zerocopy::little_endian::U32;

    bits! {
        /// A field at either end and one across bytes.
        struct Sample(U32: u32) {
            /// Lowest bit.
            [0:0] low / with_low: bool,
            /// Straddles three bytes.
            [19:7] middle / with_middle: u16,
            /// Top nibble.
            [31:28] high / with_high: u8,
        }
    }

    #[test]
    fn bits_land_where_the_declaration_says() {
        let sample = Sample::default()
            .with_low(true)
            .with_middle(0x1fff)
            .with_high(0xa);
        assert_eq!(sample.bits(), 0xa00f_ff81);
        assert_eq!(sample.as_bytes(), [0x81, 0xff, 0x0f, 0xa0]);
        assert!(sample.low());
        assert_eq!(sample.middle(), 0x1fff);
        assert_eq!(sample.high(), 0xa);
    }

    #[test]
    fn a_setter_leaves_its_neighbours_and_the_reserved_bits_alone() {
        let sample = Sample::from_bits(u32::MAX).with_middle(0);
        assert_eq!(sample.bits(), 0xfff0_007f);
        assert_eq!(sample.with_low(false).bits(), 0xfff0_007e);
    }

    #[test]
    fn a_setter_keeps_the_low_bits_of_a_wide_value() {
        assert_eq!(Sample::default().with_high(0x5a).bits(), 0xa000_0000);
    }
}
