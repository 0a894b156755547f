//! Open enumerations: an integer with names.

/// Declares a transparent integer type with named values.
///
/// A code that a peer sends and that has no name here is still a value of the
/// type: it prints as a number, compares, and travels on. Nothing is lost and
/// nothing is undefined.
///
/// A value prints as `NAME (0x2)`. `NAME = 0x2 => "Readable Name"` gives it a
/// name of its own for that.
#[macro_export]
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident : $repr:ty {
            $( $(#[$vmeta:meta])* $variant:ident = $value:expr $(=> $label:literal)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $vis struct $name(pub $repr);

        impl $name {
            $( $(#[$vmeta])* pub const $variant: Self = Self($value); )*

            /// Every named value with its name, in declaration order.
            pub const NAMED: &'static [(Self, &'static str)] =
                &[ $( (Self::$variant, $crate::open_enum!(@label $variant $($label)?)), )* ];

            /// The name of the value, if it has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                Self::NAMED.iter().find(|(v, _)| *v == self).map(|(_, n)| *n)
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({:#x})", self.0),
                    None => write!(f, "{}({:#x})", stringify!($name), self.0),
                }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Debug::fmt(self, f)
            }
        }
    };
    (@label $variant:ident) => { stringify!($variant) };
    (@label $variant:ident $label:literal) => { $label };
}
