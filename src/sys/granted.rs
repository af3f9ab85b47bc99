//! What the kernel may deny to a unit test. Such a test is skipped and counted, as `tests/support` does for all others.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// `None` where the kernel does not have this or denies it; then the skip is reported, or the test fails because
/// `DUNNAGE_TEST_REQUIRE` names it. Any other error is a failure.
pub fn granted<T>(test: &str, need: &str, result: io::Result<T>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    assert!(
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)),
        "{need}: {error}"
    );
    let required = std::env::var("DUNNAGE_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == need), "`{need}` is required here: {error}");
    let line = format!("skipped: {test}: {need}: {error}\n");
    io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(path) = std::env::var_os("DUNNAGE_TEST_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
    None
}

#[test]
fn only_a_denial_is_a_skip() {
    assert_eq!(granted("a", "need", Ok(1)), Some(1));
    let other = || granted("a", "need", Err::<(), _>(io::Error::from_raw_os_error(libc::EINVAL)));
    assert!(std::panic::catch_unwind(other).is_err());
}
