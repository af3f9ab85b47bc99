//! Names of what a sample holds. Each is declared once, where its question is, as a constant with the type of its values: what
//! measures, what analyses and what may be in a pack use the same one, and a misspelt one does not compile.

use std::fmt;
use std::marker::PhantomData;

use crate::distribution::Distribution;
use crate::units::Stamp;

/// The name of values of a type.
pub struct Name<T>(&'static str, PhantomData<fn() -> T>);

/// Of a point in time.
pub type StampName = Name<Stamp>;
/// Of a whole number.
pub type Counter = Name<i64>;
/// Of whole numbers in their order.
pub type Series = Name<Vec<i64>>;
/// Of many values without their order.
pub type Spread = Name<Distribution>;
/// Of what was found inside, or around it.
pub type Fact = Name<String>;

impl<T> Name<T> {
    /// A name that is on the list of all.
    pub(crate) const fn declared(text: &'static str) -> Name<T> {
        Name(text, PhantomData)
    }

    /// As it is recorded.
    pub const fn text(self) -> &'static str {
        self.0
    }
}

impl<T> Clone for Name<T> {
    fn clone(&self) -> Name<T> {
        *self
    }
}

impl<T> Copy for Name<T> {}

impl<T> PartialEq for Name<T> {
    fn eq(&self, other: &Name<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Name<T> {}

impl<T> fmt::Debug for Name<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl<T> fmt::Display for Name<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// Declares the names of a question in a module of its own, with a list of them. A path in brackets brings in those of others.
macro_rules! names {
    ($([$($other:ident)::+])? $($kind:ident { $($name:ident = $text:expr,)* })*) => {
        /// The names of what samples hold.
        pub mod names {
            $(pub use $($other)::+::*;)?
            $($(
                #[doc = concat!("Recorded as `", $text, "`.")]
                pub const $name: crate::names::$kind = crate::names::Name::declared($text);
            )*)*
            /// All of them as they are recorded.
            pub(crate) const ALL: &[&str] = &[$($($text,)*)*];
        }
    };
}

pub(crate) use names;
