//! Reads and writes of a file through io_uring: one at a time, or several in flight. The caller lends the memory
//! until all of them have ended.
//!
//! Deliberately absent: registered files and buffers, polling, and kernel threads that submit: programs use the plain
//! ring first, and that is what is measured.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use dunnage_orders::files::Direction;
use io_uring::{IoUring, opcode, squeue, types};

/// A ring, set up for a number of operations in flight.
pub struct Ring {
    ring: IoUring,
    /// An entry stayed in the queue that the kernel did not take, so the memory it names may be gone.
    is_spoiled: bool,
}

/// The most operations in flight.
pub const DEEPEST: u32 = 4096;

impl Ring {
    /// Sets one up.
    ///
    /// # Errors
    /// The kernel's: ENOSYS, EPERM or EACCES where there is none, or it is denied.
    pub fn new(depth: u32) -> io::Result<Ring> {
        Ok(Ring { ring: IoUring::new(depth.clamp(1, DEEPEST))?, is_spoiled: false })
    }

    /// Writes at an offset, and waits for the end; returns the number of bytes.
    pub fn write_at(&mut self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> io::Result<usize> {
        let target = types::Fd(file.as_raw_fd());
        let entry = opcode::Write::new(target, bytes.as_ptr(), bytes.len() as u32).offset(at).build();
        let mut flight = Flight::begin(self)?;
        // SAFETY: `bytes` is borrowed until this returns, and the flight ends before.
        unsafe { flight.push(entry) }?;
        flight.wait().map(|(_, length)| length)?
    }

    /// Reads at an offset, and waits for the end; returns the number of bytes.
    pub fn read_at(&mut self, file: BorrowedFd<'_>, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let target = types::Fd(file.as_raw_fd());
        let entry = opcode::Read::new(target, bytes.as_mut_ptr(), bytes.len() as u32).offset(at).build();
        let mut flight = Flight::begin(self)?;
        // SAFETY: `bytes` is borrowed mutably until this returns, and the flight ends before.
        unsafe { flight.push(entry) }?;
        flight.wait().map(|(_, length)| length)?
    }

    /// Keeps an operation in flight for each of the buffers. `next` is asked for the offset of the next one, with the
    /// index of its buffer and the buffer itself, until it has none; `ended` hears of each end, with the index and the
    /// number of bytes. Returns when all have ended.
    ///
    /// # Errors
    /// The first error of the kernel or of `ended`.
    pub fn many(
        &mut self,
        direction: Direction,
        file: BorrowedFd<'_>,
        buffers: &mut [&mut [u8]],
        mut next: impl FnMut(usize, &mut [u8]) -> Option<u64>,
        mut ended: impl FnMut(usize, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let target = types::Fd(file.as_raw_fd());
        let mut flight = Flight::begin(self)?;
        let mut begin = |flight: &mut Flight<'_>, index: usize, buffer: &mut [u8]| {
            let Some(at) = next(index, buffer) else { return Ok(()) };
            let length = buffer.len() as u32;
            let entry = match direction {
                Direction::Read => opcode::Read::new(target, buffer.as_mut_ptr(), length).offset(at).build(),
                Direction::Write => opcode::Write::new(target, buffer.as_ptr(), length).offset(at).build(),
            };
            // SAFETY: the buffer is borrowed mutably until `many` returns, the flight ends before, and the buffer is not
            // touched until the operation with its index has ended.
            unsafe { flight.push(entry.user_data(index as u64)) }
        };
        for (index, buffer) in buffers.iter_mut().enumerate() {
            begin(&mut flight, index, buffer)?;
        }
        while flight.pushed > flight.ended {
            let (index, length) = flight.wait()?;
            ended(index, length?)?;
            begin(&mut flight, index, buffers[index])?;
        }
        Ok(())
    }
}

/// Operations that the kernel carries out. They have ended when this is dropped.
struct Flight<'a> {
    ring: &'a mut Ring,
    pushed: usize,
    submitted: usize,
    ended: usize,
}

impl Flight<'_> {
    fn begin(ring: &mut Ring) -> io::Result<Flight<'_>> {
        if ring.is_spoiled {
            return Err(io::Error::other("the ring is broken"));
        }
        Ok(Flight { ring, pushed: 0, submitted: 0, ended: 0 })
    }

    /// Queues an operation.
    ///
    /// # Safety
    /// The memory that it names must stay valid, and untouched where the kernel writes, until it has ended or the flight is
    /// dropped.
    unsafe fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        // SAFETY: as promised to this function.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::other("the ring is full"))?;
        self.pushed += 1;
        Ok(())
    }

    /// Submits what is queued, waits until an operation has ended, and returns its index and its result.
    fn wait(&mut self) -> io::Result<(usize, io::Result<usize>)> {
        loop {
            if let Some(end) = self.ring.ring.completion().next() {
                self.ended += 1;
                let result = end.result();
                let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                return Ok((end.user_data() as usize, result));
            }
            match self.ring.ring.submit_and_wait(1) {
                Ok(submitted) => self.submitted += submitted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.ring.is_spoiled |= self.submitted < self.pushed;
        while self.ended < self.submitted {
            if self.wait().is_err() {
                // The kernel would write to memory that others use by then.
                std::process::abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek};
    use std::os::fd::AsFd;

    use super::*;
    use crate::sys::granted::granted;

    fn ring(test: &str, depth: u32) -> Option<Ring> {
        granted(test, "io_uring", Ring::new(depth))
    }

    #[test]
    fn bytes_are_written_and_read_where_they_belong() {
        let Some(mut ring) = ring("bytes_are_written_and_read_where_they_belong", 1) else { return };
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(ring.write_at(file.as_fd(), b"other", 3).unwrap(), 5);
        assert_eq!(ring.write_at(file.as_fd(), b"one", 0).unwrap(), 3);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "oneother");
        let mut back = [0; 8];
        assert_eq!(ring.read_at(file.as_fd(), &mut back, 3).unwrap(), 5);
        assert_eq!(&back[..5], b"other");
    }

    #[test]
    fn the_error_of_an_operation_is_the_kernels_and_the_ring_stays_usable() {
        const TEST: &str = "the_error_of_an_operation_is_the_kernels_and_the_ring_stays_usable";
        let Some(mut ring) = ring(TEST, 1) else { return };
        let read_only = File::open("/proc/self/status").unwrap();
        let error = ring.write_at(read_only.as_fd(), b"x", 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        assert!(ring.read_at(read_only.as_fd(), &mut [0; 10], 0).unwrap() == 10);
    }

    #[test]
    fn many_are_in_flight_and_each_ends_once() {
        let Some(mut ring) = ring("many_are_in_flight_and_each_ends_once", 8) else { return };
        let file = tempfile::tempfile().unwrap();
        let mut memory = vec![0; 8 * 512];
        let mut buffers: Vec<_> = memory.chunks_exact_mut(512).collect();
        let (mut begun, mut ended) = (0u64, 0);
        let next = |_: usize, buffer: &mut [u8]| {
            begun += 1;
            buffer.fill(begun as u8);
            (begun <= 100).then(|| (begun - 1) * 512)
        };
        let count = |_, length| {
            ended += 1;
            assert_eq!(length, 512);
            Ok(())
        };
        ring.many(Direction::Write, file.as_fd(), &mut buffers, next, count).unwrap();
        assert_eq!((ended, file.metadata().unwrap().len()), (100, 100 * 512));
        let mut back = [0; 512];
        for block in 0..100u64 {
            ring.read_at(file.as_fd(), &mut back, block * 512).unwrap();
            assert!(back.iter().all(|byte| u64::from(*byte) == block + 1), "{block}");
        }
    }
}
