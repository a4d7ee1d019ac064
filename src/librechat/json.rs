//! Changing a member of a JSON object while every other byte of its members stays as it is.
//!
//! A number keeps its digits, and members keep their order: what LibreChat or a browser wrote goes
//! on as they wrote it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object's members, in their order.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(Vec<(String, Value<'a>)>);

#[derive(Debug)]
enum Value<'a> {
    Kept(&'a RawValue),
    New(String),
}

impl<'a> Members<'a> {
    /// `None`: it is no JSON object.
    pub(crate) fn read(json: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The value as it is written; of several with the same name the last, as in JavaScript.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        Some(match value {
            Value::Kept(raw) => raw.get(),
            Value::New(text) => text,
        })
    }

    /// The value as a `T`, where it is one.
    pub(crate) fn get<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// The value as a text, where it is one.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)
    }

    /// Whether the value is `true`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }

    /// Whether there is a value other than `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw != "null")
    }

    /// Sets a member to a JSON text, in its place or at the end.
    pub(crate) fn set_raw(&mut self, name: &str, json: String) {
        let mut json = Some(json);
        self.0.retain_mut(|(key, value)| {
            if key != name {
                return true;
            }
            match json.take() {
                Some(json) => {
                    *value = Value::New(json);
                    true
                }
                None => false,
            }
        });
        if let Some(json) = json {
            self.0.push((name.to_owned(), Value::New(json)));
        }
    }

    /// Sets a member to a text, or to `null`.
    pub(crate) fn set_text(&mut self, name: &str, text: Option<&str>) {
        self.set_raw(name, serde_json::Value::from(text).to_string());
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// The object as JSON.
    pub(crate) fn write(&self) -> String {
        let mut json = String::from("{");
        for (i, (key, value)) in self.0.iter().enumerate() {
            if i > 0 {
                json.push(',');
            }
            json.push_str(&serde_json::Value::from(key.as_str()).to_string());
            json.push(':');
            json.push_str(match value {
                Value::Kept(raw) => raw.get(),
                Value::New(text) => text,
            });
        }
        json.push('}');
        json
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((key, Value::Kept(value)));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_changed_member_stays() {
        let json =
            br#"{"z": 1.50, "agent_id":"A" ,"n":{"b":1e3,"a":[ 2 ]},"agent_id":"A2","u":"\u00e9"}"#;
        let mut members = Members::read(json).unwrap();
        assert_eq!(members.text("agent_id").as_deref(), Some("A2"));
        members.set_text("agent_id", Some("B\""));
        members.set_text("spec", None);
        assert_eq!(
            members.write(),
            r#"{"z":1.50,"agent_id":"B\"","n":{"b":1e3,"a":[ 2 ]},"u":"\u00e9","spec":null}"#
        );
    }

    #[test]
    fn what_is_no_object_is_none() {
        for json in ["", "[]", "null", "{", r#"{"a":1} x"#] {
            assert!(Members::read(json.as_bytes()).is_none(), "{json}");
        }
    }
}
