//! Who has shown the token: a cookie that says until when, signed with the token.
//!
//! Nothing is kept of it here, so that it is good at every instance and after a restart; another
//! `ops.token` ends all sessions.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderValue, header};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::config::Secret;

const COOKIE: &str = "baton_ops";

/// How long a session lasts: a working day.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// What a proxy in front says of the browser's side. Anybody may say so: a browser that is told a
/// cookie is for HTTPS alone, and has come without it, keeps none.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

pub(super) struct Sessions {
    token: Secret,
}

impl Sessions {
    pub(super) fn new(token: Secret) -> Self {
        Self { token }
    }

    /// The cookie for one who has shown this; `None`: it is not the token.
    pub(super) fn open(&self, shown: &str, headers: &HeaderMap) -> Option<HeaderValue> {
        if !self.token.is(shown) {
            return None;
        }
        let value = self.signed(since_1970(SystemTime::now() + LASTS));
        cookie(&value, LASTS, headers)
    }

    /// The cookie that ends a session.
    pub(super) fn close(headers: &HeaderMap) -> Option<HeaderValue> {
        cookie("", Duration::ZERO, headers)
    }

    /// How much longer the session of a request lasts; `None`: it has none.
    pub(super) fn left(&self, headers: &HeaderMap) -> Option<Duration> {
        self.left_at(headers, SystemTime::now())
    }

    fn left_at(&self, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
        let cookies = headers.get_all(header::COOKIE).iter();
        cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == COOKIE)
            .find_map(|(_, value)| self.verified(value))?
            .checked_sub(since_1970(now))
    }

    /// When a session ends, and the signature of it.
    fn signed(&self, until: Duration) -> String {
        let until = until.as_secs();
        let signature = self.mac(until).finalize().into_bytes();
        let hex = signature.iter().map(|byte| format!("{byte:02x}"));
        format!("{until}.{}", hex.collect::<String>())
    }

    fn verified(&self, value: &str) -> Option<Duration> {
        let (until, signature) = value.split_once('.')?;
        let until: u64 = until.parse().ok()?;
        let digits = signature.as_bytes().chunks(2);
        let signature: Option<Vec<u8>> = digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        // Takes the same time wherever the signatures differ.
        self.mac(until).verify_slice(&signature?).ok()?;
        Some(Duration::from_secs(until))
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn mac(&self, until: u64) -> Hmac<Sha256> {
        let key = self.token.expose().as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
        mac.update(format!("{COOKIE} until {until}").as_bytes());
        mac
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Without a path it is for where it was set: `/ops`, and that under whatever path a proxy has it.
fn cookie(value: &str, lasts: Duration, headers: &HeaderMap) -> Option<HeaderValue> {
    let proto = headers.get(FORWARDED_PROTO);
    let is_https = proto.is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"));
    let secure = if is_https { "; Secure" } else { "" };
    let seconds = lasts.as_secs();
    let text = format!("{COOKIE}={value}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn sessions(token: &str) -> Sessions {
        Sessions::new(token.into())
    }

    fn with(cookies: &[&str]) -> HeaderMap {
        let pair = |cookie: &&str| (header::COOKIE, cookie.parse().unwrap());
        let mut headers = HeaderMap::new();
        headers.extend(cookies.iter().map(pair));
        headers
    }

    fn opened(headers: &HeaderMap) -> String {
        let cookie = sessions(TOKEN).open(TOKEN, headers).unwrap();
        cookie.to_str().unwrap().to_owned()
    }

    #[test]
    fn the_token_opens_a_session_and_nothing_else_does() {
        let cookie = opened(&HeaderMap::new());
        let (pair, rest) = cookie.split_once(';').unwrap();
        assert_eq!(rest, " Max-Age=43200; HttpOnly; SameSite=Strict");
        let left = sessions(TOKEN).left(&with(&["a=b", &format!("c=d; {pair}")]));
        assert!(left.unwrap() + Duration::from_secs(60) > LASTS);
        for wrong in ["", "0123456789abcdef0123456789abcdeF", &TOKEN[1..]] {
            let none = HeaderMap::new();
            assert!(sessions(TOKEN).open(wrong, &none).is_none(), "{wrong}");
        }
        assert!(!pair.contains(TOKEN));
    }

    #[test]
    fn over_https_the_cookie_is_for_https_alone() {
        let headers = [(
            FORWARDED_PROTO.try_into().unwrap(),
            "https".parse().unwrap(),
        )];
        assert!(opened(&headers.into_iter().collect()).ends_with("; Secure"));
    }

    #[test]
    fn a_session_ends() {
        let value = sessions(TOKEN).signed(Duration::from_secs(1_000));
        let headers = with(&[&format!("{COOKIE}={value}")]);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let left = |seconds| sessions(TOKEN).left_at(&headers, at(seconds));
        assert_eq!(left(900), Some(Duration::from_secs(100)));
        assert_eq!(left(1_001), None);
    }

    #[test]
    fn what_was_not_signed_here_is_no_session() {
        let value = sessions(TOKEN).signed(Duration::from_secs(u64::MAX / 2));
        let left =
            |token: &str, value: &str| sessions(token).left(&with(&[&format!("{COOKIE}={value}")]));
        assert!(left(TOKEN, &value).is_some());
        assert!(left("another token, of the same length", &value).is_none());
        let (until, signature) = value.split_once('.').unwrap();
        for forged in [
            "",
            ".",
            until,
            &format!("{until}."),
            &format!("{until}.{}", &signature[2..]),
            &format!("{until}.{signature}00"),
            &format!("{until}.é{}", &signature[2..]),
            &format!("1{until}.{signature}"),
            &format!("x.{signature}"),
        ] {
            assert!(left(TOKEN, forged).is_none(), "{forged}");
        }
    }
}
