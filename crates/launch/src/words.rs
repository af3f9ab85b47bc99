//! The words of a command line, as the kernel and libc's `main` hand them over.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

use crate::message::is_same;

/// The words of a process, starting with its own name.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    count: usize,
    first: *const *const c_char,
    words: PhantomData<&'a CStr>,
}

impl<'a> Words<'a> {
    /// Takes over the words that a process was started with.
    ///
    /// # Safety
    /// `first` points to `count` pointers to C strings that live as long as the words are used.
    pub unsafe fn new(count: usize, first: *const *const c_char) -> Words<'a> {
        Words { count, first, words: PhantomData }
    }

    /// The number of words.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// The word at this index; an empty one if there is none.
    pub(crate) fn at(self, index: usize) -> *const c_char {
        // SAFETY: only indices below the count are read; `new` vouches for the rest.
        if index < self.count { unsafe { *self.first.add(index) } } else { c"".as_ptr() }
    }

    /// Its bytes, counted one by one, since no function may be called.
    pub(crate) fn bytes(self, index: usize) -> &'a [u8] {
        // SAFETY: `new` vouches for every word.
        unsafe { bytes_of(self.at(index)) }
    }

    /// Whether the word at this index exists and is this one.
    pub fn is(self, index: usize, word: &str) -> bool {
        index < self.count && is_same(self.bytes(index), word.as_bytes())
    }

    /// The environment of the process.
    ///
    /// # Safety
    /// The words are where the kernel put them: a null pointer, the variables and another null pointer follow them.
    pub(crate) unsafe fn environment(self) -> Variables<'a> {
        // SAFETY: one behind the null pointer after the last word.
        Variables { next: unsafe { self.first.add(self.count + 1) }, words: PhantomData }
    }

    /// The word at this index. Calls libc.
    pub fn get(self, index: usize) -> Option<&'a CStr> {
        // SAFETY: `new` vouches for every word below the count.
        (index < self.count).then(|| unsafe { CStr::from_ptr(self.at(index)) })
    }

    /// The words without this many of the first.
    pub fn without(self, number: usize) -> Words<'a> {
        let number = number.min(self.count);
        // SAFETY: not beyond the last.
        Words { count: self.count - number, first: unsafe { self.first.add(number) }, ..self }
    }
}

/// The bytes of a word, counted one by one, since no function may be called.
///
/// # Safety
/// It ends with a zero byte, and lives as long as the result.
unsafe fn bytes_of<'a>(word: *const c_char) -> &'a [u8] {
    let word: *const u8 = word.cast();
    let mut length = 0;
    // SAFETY: no byte is read after the zero byte that ends the word.
    while unsafe { *word.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: exactly these bytes were just read.
    unsafe { core::slice::from_raw_parts(word, length) }
}

/// The variables of a process, each as `NAME=value`.
#[derive(Debug)]
pub(crate) struct Variables<'a> {
    next: *const *const c_char,
    words: PhantomData<&'a CStr>,
}

impl<'a> Iterator for Variables<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // SAFETY: `Words::environment` vouches for all pointers up to the null pointer, beyond which nothing is read.
        let word = unsafe { *self.next };
        if word.is_null() {
            return None;
        }
        // SAFETY: not beyond the null pointer; every word before it ends with a zero byte.
        unsafe {
            self.next = self.next.add(1);
            Some(bytes_of(word))
        }
    }
}
