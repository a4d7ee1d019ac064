//! HS256, the one algorithm that a token may have.
//!
//! `jsonwebtoken` lets its user bring the cryptography. This brings HMAC with SHA-256 alone: an
//! algorithm that is not in the program cannot be confused with it.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};
use sha2::Sha256;
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes it the algorithm of this process. Harmless when repeated.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// Baton signs nothing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the type is given")]
fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the type is given")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::HS256 || key.family() != AlgorithmFamily::Hmac {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let mac =
        Hmac::new_from_slice(key.try_get_as_bytes()?).map_err(|_| ErrorKind::InvalidKeyFormat)?;
    Ok(Box::new(Hs256(mac)))
}

struct Hs256(Hmac<Sha256>);

impl Verifier<Vec<u8>> for Hs256 {
    /// In constant time.
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature)
            .map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
