//! Searches the finished pack for private words. It sees the bytes as a reader gets them, and is independent of the code that
//! cleaned them.

use anyhow::{Result, bail};

use super::words::{Secret, stands_at};

/// Searches files for words, line by line.
pub struct Proof {
    /// The words as they occur in a file, by their first two bytes, with the index of the secret.
    starts: Vec<Vec<(usize, Vec<u8>)>>,
    called: Vec<String>,
}

impl Proof {
    /// A search for these words, each also in its JSON form.
    pub fn new(secrets: &[Secret]) -> Proof {
        let mut proof = Proof { starts: vec![Vec::new(); 1 << 16], called: Vec::new() };
        for (index, secret) in secrets.iter().enumerate() {
            proof.called.push(secret.called.clone());
            let plain = secret.word.clone();
            let quoted = serde_json::Value::from(plain.as_str()).to_string();
            let quoted = quoted[1..quoted.len() - 1].to_owned();
            let twice = (quoted != plain).then_some(quoted);
            for word in [Some(plain), twice].into_iter().flatten().map(String::into_bytes) {
                if let [first, second, ..] = word[..] {
                    proof.starts[usize::from(first) << 8 | usize::from(second)].push((index, word));
                }
            }
        }
        proof
    }

    /// Fails if a line contains one of the words, and reports the position.
    pub fn check(&self, file: &str, number: usize, line: &[u8]) -> Result<()> {
        for (at, pair) in line.windows(2).enumerate() {
            let starts = &self.starts[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            if let Some((index, _)) = starts.iter().find(|(_, word)| stands_at(line, word, at)) {
                bail!(
                    "the pack would contain {called} (`{file}`, line {number}, byte {at}), so it is not written\n\nhint: \
                     use `--private WORD` to replace a word in all texts",
                    called = self.called[*index],
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_as_it_is_and_as_json_writes_it() {
        let secret = |word: &str| Secret { word: word.into(), called: "it".into() };
        let proof = Proof::new(&[secret("anna"), secret("a\"b c"), secret("vm")]);
        let check = |line: &str| proof.check("x", 3, line.as_bytes());
        for clean in ["", "a", "hannah kvm vms", "{\"a\":\"b c\"}"] {
            assert!(check(clean).is_ok(), "{clean}");
        }
        for found in ["anna", "by anna.", "{\"x\":\"a\\\"b c\"}", "x-vm-1", "\"\\nanna\""] {
            let error = check(found).unwrap_err().to_string();
            assert!(error.contains("contain it (`x`, line 3"), "{found}: {error}");
        }
    }
}
