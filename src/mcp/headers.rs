//! What LibreChat says: whose call it is and where it is from.
//!
//! LibreChat fills the placeholders of `librechat.yaml` in on every `tools/call` (v0.8.0 on); what it
//! cannot fill in it leaves as it is, or empty.

use http::HeaderMap;
use mongodb::bson::oid::ObjectId;

use crate::librechat::{ConversationId, MessageId};

const USER: Header = Header {
    name: "X-User-Id",
    value: "{{LIBRECHAT_USER_ID}}",
};
const CONVERSATION: Header = Header {
    name: "X-Conversation-Id",
    value: "{{LIBRECHAT_BODY_CONVERSATIONID}}",
};
const MESSAGE: Header = Header {
    name: "X-Message-Id",
    value: "{{LIBRECHAT_BODY_MESSAGEID}}",
};
const USER_MESSAGE: Header = Header {
    name: "X-Parent-Message-Id",
    value: "{{LIBRECHAT_BODY_PARENTMESSAGEID}}",
};

/// Longer than this no id of LibreChat's is, in bytes; its own are UUIDs, with suffixes at most.
const LONGEST: usize = 128;

/// Who calls, and from where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// `users._id`.
    pub(super) user: ObjectId,
    /// The turn; `None` where the server is wired with the user's header alone.
    pub(super) turn: Option<CallerTurn>,
}

/// The turn that a call is made in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallerTurn {
    pub(super) conversation: ConversationId,
    /// R's `messageId`.
    pub(super) message: MessageId,
    /// U's `messageId`.
    pub(super) user_message: MessageId,
}

struct Header {
    name: &'static str,
    value: &'static str,
}

impl Caller {
    /// Reads the headers; `server` is the server's name in `librechat.yaml`.
    pub(super) fn read(headers: &HeaderMap, server: &str) -> Result<Self, String> {
        let user = USER.id(headers, server)?;
        let user =
            ObjectId::parse_str(&user).map_err(|_| USER.complain("no id of a user's", server))?;
        let of_the_turn = [&CONVERSATION, &MESSAGE, &USER_MESSAGE];
        if of_the_turn
            .iter()
            .all(|header| !headers.contains_key(header.name))
        {
            return Ok(Self { user, turn: None });
        }
        let turn = CallerTurn {
            conversation: CONVERSATION.id(headers, server)?.into(),
            message: MESSAGE.id(headers, server)?.into(),
            user_message: USER_MESSAGE.id(headers, server)?.into(),
        };
        Ok(Self {
            user,
            turn: Some(turn),
        })
    }
}

impl Header {
    fn id(&self, headers: &HeaderMap, server: &str) -> Result<String, String> {
        let mut values = headers.get_all(self.name).iter();
        let value = match (values.next(), values.next()) {
            (Some(value), None) => value,
            (None, _) => return Err(self.complain("missing", server)),
            (Some(_), Some(_)) => return Err(self.complain("there twice", server)),
        };
        let value = value.to_str().unwrap_or("?").trim();
        let is_odd = |c: char| !(c.is_ascii_alphanumeric() || "_-.:".contains(c));
        match value {
            "" => Err(self.complain("empty", server)),
            _ if value.contains("{{") => {
                Err(self.complain("a placeholder that LibreChat did not fill in", server))
            }
            "new" | "null" | "undefined" => Err(self.complain("no id", server)),
            _ if value.len() > LONGEST || value.contains(is_odd) => {
                Err(self.complain("malformed", server))
            }
            _ => Ok(value.to_owned()),
        }
    }

    fn complain(&self, what: &str, server: &str) -> String {
        let Self { name, value } = self;
        format!(
            "the header {name} is {what}; an administrator must mend librechat.yaml: \
            mcpServers.{server}.headers needs the line {name}: \"{value}\""
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&str, &str); 4] = [
        ("x-user-id", "507f1f77bcf86cd799439011"),
        ("x-conversation-id", "19f093df-1d0b-5240-bdb1-9aa6b560948f"),
        ("x-message-id", "6bab4cc6-4db0-4abb-b51b-bb7be6a84966_1"),
        (
            "x-parent-message-id",
            "65ba8143-64c3-4e32-8f93-21ea92279baf",
        ),
    ];

    fn read(headers: &[(&'static str, &str)]) -> Result<Caller, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Caller::read(&map, "baton")
    }

    #[test]
    fn four_headers_tell_the_turn() {
        let turn = read(&ALL).unwrap().turn.unwrap();
        assert_eq!(turn.message.as_str(), ALL[2].1);
        assert_eq!(turn.user_message.as_str(), ALL[3].1);
    }

    #[test]
    fn the_user_alone_will_do() {
        assert_eq!(read(&ALL[..1]).unwrap().turn, None);
    }

    #[test]
    fn what_is_wrong_is_named_with_the_line_that_mends_it() {
        for missing in 0..4 {
            let mut headers = ALL.to_vec();
            let (name, _) = headers.remove(missing);
            let error = read(&headers).unwrap_err();
            assert!(
                error
                    .to_lowercase()
                    .contains(&format!("the header {name} is missing")),
                "{error}"
            );
            assert!(error.contains("{{LIBRECHAT_"), "{error}");
        }
        for (value, words) in [
            ("", "empty"),
            ("{{LIBRECHAT_BODY_MESSAGEID}}", "did not fill in"),
            ("new", "no id"),
            ("a b", "malformed"),
            ("$where", "malformed"),
        ] {
            for wrong in 0..4 {
                let mut headers = ALL;
                headers[wrong].1 = value;
                let error = read(&headers).unwrap_err();
                assert!(error.contains(words), "{error}");
            }
        }
        let mut headers = ALL;
        headers[0].1 = "nobody";
        assert!(read(&headers).unwrap_err().contains("no id of a user's"));
    }
}
