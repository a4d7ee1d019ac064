//! LibreChat's own session tokens, checked with its secret.
//!
//! `generateToken` (`packages/data-schemas/src/methods/user.ts`, v0.8.8-rc1) signs `{id, username,
//! provider, email}` with HS256 and an `exp`; `jwtStrategy.js` takes any token of the secret's
//! whose `id` is a user's. The secret also signs tokens for other ends: a second factor that is
//! still to come (`{userId, twoFAPending}`), the return from an action's login (`{user}`).

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use mongodb::bson::oid::ObjectId;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{hs256, user_id};
use crate::config::Secret;
use crate::http::error::ApiError;

/// How far the clocks of two machines may be apart, in seconds.
const LEEWAY: u64 = 30;

/// Checks tokens.
pub struct Tokens {
    key: DecodingKey,
    validation: Validation,
}

#[derive(Deserialize)]
struct Claims {
    /// The user's, as text.
    id: String,
    /// Present in a token that is good for one purpose only, such as `agent_trigger`.
    #[serde(default)]
    scope: Option<IgnoredAny>,
    #[serde(default, rename = "twoFAPending")]
    second_factor_pending: Option<IgnoredAny>,
}

impl Tokens {
    pub(super) fn new(secret: &Secret) -> Result<Self, jsonwebtoken::errors::Error> {
        hs256::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        // LibreChat's tokens are for nobody in particular.
        validation.validate_aud = false;
        Ok(Self {
            key: DecodingKey::from_secret(secret.expose().as_bytes())?,
            validation,
        })
    }

    /// The user whose session it is.
    pub(super) fn verify(&self, token: &str) -> Result<ObjectId, ApiError> {
        let claims = decode::<Claims>(token, &self.key, &self.validation)
            .map_err(|error| ApiError::unauthorized(words(error.kind())))?
            .claims;
        if claims.scope.is_some() || claims.second_factor_pending.is_some() {
            return Err(ApiError::unauthorized("the token is not one of a session"));
        }
        user_id(&claims.id).ok_or_else(|| ApiError::unauthorized("the token names no user"))
    }
}

/// The signature is checked before the claims are looked at: only who has a token that was once
/// good learns more than that it is not.
fn words(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::MissingRequiredClaim(_) => "the token has no expiry",
        _ => "the token is not valid",
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}
