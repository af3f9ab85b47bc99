//! Writes a record as JSON without private content. Numbers, and names that are part of the program, stay. What happens to a text
//! is declared at its field (`dunnage_analysis::share`), and a text without a declaration stays only if nothing in it looks private.

use std::borrow::Cow;

use dunnage_analysis::share::Share;
use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple,
    Serializer,
};
use serde_json::{Error, Result};

use super::facts::fact;
use super::label::{self, Labels};
use super::words::{Kind, Words};

/// Cleans records, one after the other.
pub struct Cleaner {
    /// The words of the run.
    pub words: Words,
    /// The form of labels.
    pub labels: Labels,
    /// The names of the fields and of the fixed values that were written.
    pub names: Vec<String>,
    out: Vec<u8>,
    share: Share,
    is_key: bool,
    /// The last name of a number or a fact.
    name: String,
}

impl Cleaner {
    /// Begins with no record.
    pub fn new(words: Words) -> Cleaner {
        Cleaner {
            words,
            labels: Labels::Subjects,
            names: Vec::new(),
            out: Vec::new(),
            share: Share::Told,
            is_key: false,
            name: String::new(),
        }
    }

    /// A record without private content.
    pub fn json(&mut self, record: &impl Serialize) -> Result<&[u8]> {
        self.out.clear();
        self.share = Share::Told;
        record.serialize(&mut *self)?;
        Ok(&self.out)
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        serde_json::to_writer(&mut self.out, value)
    }

    /// A name that is part of the program, and has nothing to escape.
    fn write_name(&mut self, name: &str) -> Result<()> {
        // Those of lines, of which there are many, came last.
        if !self.names.iter().rev().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    fn open(&mut self, ends: [u8; 2], keys: Share, values: Share) -> Inside<'_> {
        self.out.push(ends[0]);
        Inside { to: self, keys, values, end: ends[1], is_first: true }
    }
}

/// Whether a text can be a name that the program chose. One with a character that none of these has comes from elsewhere.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

macro_rules! pass {
    ($($name:ident: $type:ty),+) => {
        $(fn $name(self, value: $type) -> Result<()> {
            self.write(&value)
        })+
    };
}

macro_rules! refuse {
    ($($name:ident $(<$T:ident>)? ($($type:ty),*) -> $made:ty,)+) => {
        $(fn $name $(<$T: Serialize + ?Sized>)? (self, $(_: $type),*) -> Result<$made> {
            Err(Error::custom("no record has a value of this kind"))
        })+
    };
}

impl<'a> Serializer for &'a mut Cleaner {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Impossible<(), Error>;

    pass! { serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64 }
    pass! { serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64 }
    pass! { serialize_f32: f32, serialize_f64: f64 }

    refuse! {
        serialize_char(char) -> (),
        serialize_bytes(&[u8]) -> (),
        serialize_unit() -> (),
        serialize_unit_struct(&'static str) -> (),
        serialize_newtype_variant<T>(&'static str, u32, &'static str, &T) -> (),
        serialize_tuple_struct(&'static str, usize) -> Impossible<(), Error>,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Error>,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Error>,
    }

    fn serialize_str(self, text: &str) -> Result<()> {
        let (words, labels) = (&mut self.words, self.labels);
        let cleaned: Cow<str> = match self.share {
            Share::Fields => return self.write_name(text),
            Share::Checked => text.into(),
            Share::Name => {
                self.name.clear();
                self.name.push_str(text);
                if is_name(text) { text.into() } else { words.told(text).into() }
            }
            Share::Told => words.told(text).into(),
            Share::Quoting => words.quoting(text).into(),
            Share::Output => words.given(Kind::Said, "said", text).into(),
            Share::Host => words.host(text).into(),
            Share::Tags => words.kept(Kind::Tag, if self.is_key { "key" } else { "tag" }, text).into(),
            Share::Label | Share::ByLabel => label::label(text, labels, words).into(),
            Share::Spec => label::label(text, Labels::Subjects, words).into(),
            Share::Runtime => words.kept(Kind::Label, "runtime", text).into(),
            Share::Levels => label::level(text, words).into(),
            Share::Setting => label::setting(text, words).into(),
            Share::Prediction => label::prediction(text, labels, words).into(),
            Share::Program => words.program(text).into(),
            Share::File => words.kept(Kind::Path, "file", text).into(),
            Share::Notes if labels == Labels::Commands => label::command(text, words).into(),
            Share::Notes => words.told(text).into(),
            Share::Facts => fact(&self.name, text, words).into(),
        };
        self.write(&*cleaned)
    }

    fn serialize_none(self) -> Result<()> {
        self.write(&())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.write_name(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<()> {
        self.share = Share::declared(name).unwrap_or(self.share);
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>> {
        let share = self.share;
        Ok(self.open(*b"[]", share, share))
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>> {
        let (keys, values) = match self.share {
            share @ (Share::Fields | Share::ByLabel) => (share, Share::Told),
            Share::Notes => (Share::Told, Share::Notes),
            share => (share, share),
        };
        Ok(self.open(*b"{}", keys, values))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>> {
        Ok(self.open(*b"{}", Share::Fields, Share::Told))
    }
}

/// A list or an object that is being written.
pub struct Inside<'a> {
    to: &'a mut Cleaner,
    keys: Share,
    values: Share,
    end: u8,
    is_first: bool,
}

impl Inside<'_> {
    /// The next element, or the key of the next value.
    fn next<T: Serialize + ?Sized>(&mut self, share: Share, one: &T) -> Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.to.out.push(b',');
        }
        self.to.share = share;
        one.serialize(&mut *self.to)
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.to.out.push(b':');
        self.to.share = self.values;
        value.serialize(&mut *self.to)
    }

    fn close(self) -> Result<()> {
        self.to.out.push(self.end);
        Ok(())
    }
}

macro_rules! list {
    ($($list:ident)+) => {
        $(impl $list for Inside<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.next(self.values, value)
            }

            fn end(self) -> Result<()> {
                self.close()
            }
        })+
    };
}

list! { SerializeSeq SerializeTuple }

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.to.is_key = true;
        let written = self.next(self.keys, key);
        self.to.is_key = false;
        written
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

impl SerializeStruct for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.next(self.keys, name)?;
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dunnage_analysis::share;

    use super::super::words::tests::annas;
    use super::*;

    #[derive(serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Class {
        Crash,
    }

    #[derive(serde::Serialize)]
    struct Record {
        anna: String,
        all: BTreeMap<String, Vec<Option<String>>>,
        class: Class,
        time: f64,
        #[serde(serialize_with = "share::name")]
        role: [&'static str; 3],
        #[serde(serialize_with = "share::tags")]
        tags: BTreeMap<String, String>,
    }

    #[test]
    fn a_text_without_a_declaration_stays_only_if_it_looks_harmless() {
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let record = Record {
            anna: "by anna".into(),
            all: [("/home/x".to_owned(), vec![None, Some("10.0.0.7".to_owned()), Some("fine".to_owned())])]
                .into(),
            class: Class::Crash,
            time: 0.5,
            role: ["anna", "10.0.0.7", "a.b_c"],
            tags: map("anna", "anna"),
        };
        let mut cleaner = Cleaner::new(annas());
        // The names of numbers are left to the search of the finished pack.
        let expected = r#"{"anna":"text1","all":{"/…/path1":[null,"text2","fine"]},"class":"crash","time":0.5,"role":["anna","text2","a.b_c"],"tags":{"key1":"key1"}}"#;
        assert_eq!(std::str::from_utf8(cleaner.json(&record).unwrap()).unwrap(), expected);
        // Of the names, those of the program, and no key of the record.
        assert_eq!(cleaner.names, ["anna", "all", "class", "crash", "time", "role", "tags"]);
        cleaner.words.spare(&cleaner.names, &[]);
        assert!(cleaner.words.spared.iter().any(|one| one.word == "anna"));
    }
}
