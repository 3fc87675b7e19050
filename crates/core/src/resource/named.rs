//! Values with a stable name: the same word stands in the ledger, in logs, in metrics and on the wire.

use std::str::FromStr;

/// The text is not one of the known names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is not a known name")]
pub struct UnknownName(pub String);

/// A value with a stable name, which can be read back from that name.
pub trait Named: Copy + FromStr {
    /// The stable name.
    fn name(self) -> &'static str;
}

/// Gives each variant its name. A variant without a name does not compile.
macro_rules! named {
    ($type:ident { $($variant:ident $(($inner:path))? => $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant $(($inner))?),+];

            /// The stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant $(($inner))? => $name),+ }
            }
        }

        impl $crate::resource::Named for $type {
            fn name(self) -> &'static str {
                self.as_str()
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::resource::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$variant $(($inner))?),)+
                    _ => Err($crate::resource::UnknownName(text.to_owned())),
                }
            }
        }
    };
}

pub(crate) use named;
