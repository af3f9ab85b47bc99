//! What a pack does with the texts of a record, declared at their fields: `#[serde(serialize_with = "share::label")]`. In files and
//! for all other readers this changes nothing. A text without a declaration may contain anything, and is in a pack only if nothing
//! in it looks private.

use serde::{Serialize, Serializer};

macro_rules! shares {
    ($($(#[$doc:meta])+ $name:ident: $share:ident,)+) => {
        /// What a pack does with a text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Share {
            /// A text without a declaration.
            Told,
            $($(#[$doc])+ $share,)+
        }

        impl Share {
            /// The declaration in the name of a newtype struct, which is how a serializer learns of it.
            pub fn declared(name: &str) -> Option<Share> {
                match name {
                    $(concat!("share::", stringify!($name)) => Some(Share::$share),)+
                    _ => None,
                }
            }
        }

        $($(#[$doc])+
        pub fn $name<T: Serialize + ?Sized, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_newtype_struct(concat!("share::", stringify!($name)), value)
        })+
    };
}

shares! {
    /// The name of a number or a fact, which the program chooses. Nothing else may take its place, since readers look for it.
    name: Name,
    /// A text whose form is checked when it is read: numbers, the name of a file of the run.
    checked: Checked,
    /// Structs that are written like maps, because another is flattened into them: the keys are names of fields.
    fields: Fields,
    /// The name of a host.
    host: Host,
    /// The user's tags, by key.
    tags: Tags,
    /// Labels of subjects.
    label: Label,
    /// Anything, by label.
    by_label: ByLabel,
    /// A subject as asked for, without its label.
    spec: Spec,
    /// The name of a runtime.
    runtime: Runtime,
    /// Levels of a factor: names of kinds, or values of a subject's key.
    levels: Levels,
    /// The setting of a cell.
    setting: Setting,
    /// A prediction.
    prediction: Prediction,
    /// The path of a program.
    program: Program,
    /// The name of a file.
    file: File,
    /// Notes about a subject: output of programs, or parameters of an imported command.
    notes: Notes,
    /// Facts of a treatment, by name.
    facts: Facts,
    /// A reason that may quote a command or its values.
    quoting: Quoting,
    /// The output of a command or an engine.
    output: Output,
}
