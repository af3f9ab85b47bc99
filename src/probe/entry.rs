//! The arguments of the probe where libc has started. What it does before that, or in its stead, is the crate
//! `dunnage_launch`.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;

/// The arguments of the process, as libc hands them to `main`.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    count: c_int,
    first: *const *const c_char,
    words: PhantomData<&'a CStr>,
}

impl<'a> Arguments<'a> {
    /// Takes over what `main` was called with.
    ///
    /// # Safety
    /// `first` points to `count` pointers to C strings that live as long as the arguments are used, and a null
    /// pointer after them.
    pub unsafe fn new(count: c_int, first: *const *const c_char) -> Arguments<'a> {
        Arguments { count, first, words: PhantomData }
    }

    /// The argument at this index, the program's name being the first.
    pub fn get(self, index: c_int) -> Option<&'a CStr> {
        // SAFETY: only indices below the count are read; `new` vouches for the rest.
        (index < self.count).then(|| unsafe { CStr::from_ptr(*self.first.add(index as usize)) })
    }

    /// All of them.
    pub fn words(self) -> Vec<&'a CStr> {
        (0..self.count).filter_map(|index| self.get(index)).collect()
    }

    /// The same without so many of the first.
    pub fn without(self, number: c_int) -> Arguments<'a> {
        let number = number.clamp(0, self.count);
        // SAFETY: not beyond the null pointer after the last.
        let first = unsafe { self.first.add(number as usize) };
        Arguments { count: self.count - number, first, words: PhantomData }
    }

    /// Whether they ask for the probe.
    pub fn ask_for_the_probe(self) -> bool {
        self.get(1).is_some_and(|first| first.to_bytes() == super::PROBE.as_bytes())
    }
}
