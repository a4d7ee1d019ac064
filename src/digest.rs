//! Short digests that identify content.

use sha2::{Digest, Sha256};

/// The first `bytes` bytes of the SHA-256 of `chunks`, in hex. Each chunk's length is part of it,
/// so that no two lists of chunks run together into the same.
pub(crate) fn hex<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, bytes: usize) -> String {
    let mut hash = Sha256::new();
    for chunk in chunks {
        hash.update(chunk.len().to_le_bytes());
        hash.update(chunk);
    }
    let digest = hash.finalize();
    let mut text = String::with_capacity(2 * bytes);
    for byte in digest.iter().take(bytes) {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or_default());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn chunks_do_not_run_together() {
        let digest = hex([&b"ab"[..], b"c"], 16);
        assert_eq!(digest.len(), 32);
        assert_ne!(digest, hex([&b"a"[..], b"bc"], 16));
        assert_eq!(digest, hex([&b"ab"[..], b"c"], 16));
    }
}
